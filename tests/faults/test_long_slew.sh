#!/usr/bin/env bash
# While the clock is slewed by +-500 ppm, the stamps of a request stay ordered from end to end: the
# kernel's in CLOCK_REALTIME and CLOCK_MONOTONIC, the client's and the shim's in TSC cycles.
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
experiment "$work/slew.yaml" netns 20k 5s <<EOF
servers: {cache: {host: server, kind: memcached, shim: true}}
EOF
"$BUILD/tests/faults/slew" 500 700 </dev/null >"$work/first" 2>&1 # its input has ended: puts back only
[ $? -eq 77 ] && skip "$(tail -n 1 "$work/first")"
mkfifo "$work/end"
"$BUILD/tests/faults/slew" 500 700 <"$work/end" >"$work/slew.out" 2>"$work/slew.err" &
exec 3>"$work/end"
conclusive_run "$work/slew.yaml" --quiet
exec 3>&-
wait
cat "$work/slew.out"
violations=$(json "$work/run/summary.json" '$.order_violations')
error=$(json "$work/run/summary.json" '$.clock_error_ns')
requests=$(sqlite3 "$work/run/run.db" "select count(*) from requests where state = 'whole'")
echo "$requests whole lifetimes, $violations stamps out of order, clock error at most $error ns"
[ "$requests" -gt 50000 ] || fail "too few lifetimes to tell"
jq -e '.clock_error_ns < 2000' "$work/run/summary.json" >/dev/null ||
    fail "the clocks are not followed: whatever the stamps' order is, it means nothing"
[ "$violations" = 0 ] || fail "stamps out of order under a slew"
