#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A capture writes its segments behind others, and empties its rings as before: it has the same
# niceness after a segment as when it began.
# Runs beside others: it asserts no times.
. tests/experiments/run_lib.sh
need_capture
claim_port
niceness() { sed 's/.*) //' "/proc/$capture/stat" | cut -d ' ' -f 17; }
mkfifo "$work/input"
exec 3<>"$work/input" # whose end would end the capture
"$taillight" capture --port "$port" --out "$work/capture" --segment 200ms --quiet <"$work/input" >"$work/out" 2>"$work/cap.err" &
capture=$!
armed() { grep -q '"ready"' "$work/out"; }
written() { [ "$(grep -c '"segment"' "$work/out")" -ge "$1" ]; }
await armed || fail "the capture does not begin"
begun=$(nice) # of who started it
await written 2 || fail "no segment is written: $(cat "$work/out")"
is_as_begun() { [ "$(niceness)" = "$begun" ]; } # while the next one is written it is not
await is_as_begun || fail "niceness $begun when it began, $(niceness) after a segment"
kill "$capture"
wait
