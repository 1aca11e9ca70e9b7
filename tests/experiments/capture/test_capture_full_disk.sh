#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The disk fills while a capture goes on, and while a run loads: what was written until then can be analyzed, and it
# says so; the load's own result is on the terminal, and why there is no more.
. tests/experiments/run_lib.sh
need_capture
if [ -z "${OWN_DISK:-}" ]; then
    mkdir "$work/disk" && export OWN_DISK="$work/disk"
    unshare -m bash -c 'mount -t tmpfs -o size=32m none "$OWN_DISK" && exec bash "$0"' "$0"
    exit
fi
build=$(cd "$BUILD" && pwd)
server='' capture=''
cleanup() {
    kill -9 $server $capture 2>/dev/null
    rm -rf "$work"
}
fill() { dd if=/dev/zero of="$OWN_DISK/filler" bs=4k 2>/dev/null; }
claim_port
"$build/labserver" --port "$port" >"$work/server.out" 2>&1 & server=$!
mkfifo "$work/input"
exec 4<>"$work/input"
"$taillight" capture --port "$port" --backend events --out "$OWN_DISK/capture" <"$work/input" >"$work/cap.out" 2>"$work/cap.err" &
capture=$!
await grep -q '"ready"' "$work/cap.out" || fail "the capture does not begin"
"$taillight" load --server 127.0.0.1:$port --rate 300 --connections 2 --duration 60s --sleep --stamps user --quiet \
    >"$work/load.out" 2>"$work/load.err" & load=$!
await test -e "$OWN_DISK/capture/capture.json" || fail "nothing is written while it goes on"
fill
pause 0.5
kill $capture
wait $capture
status=$?
kill $load
[ $status = 1 ] || fail "exit $status"
grep -q "cannot write $OWN_DISK/capture/.*: No space left on device" "$work/cap.err" || fail "the full disk is not said"
grep -q "but for the last .* is in $OWN_DISK/capture: .taillight analyze" "$work/cap.err" || fail "what is kept is not said"
rm "$OWN_DISK/filler"
"$taillight" analyze "$OWN_DISK/capture" --quiet >"$work/out" 2>"$work/analyze.err"
case $? in 0 | 4) ;; *) fail "it cannot be analyzed" ;; esac
requests=$(json "$OWN_DISK/capture/summary.json" '$.requests')
[ "$requests" -gt 100 ] || fail "$requests requests are left"
rm -rf "${OWN_DISK:?}"/*

experiment "$work/run.yaml" netns 1k 4s <<END
servers: {cache: {kind: memcached}}
END
"$taillight" run "$work/run.yaml" --out "$OWN_DISK/run" >"$work/out" 2>"$work/run.err" & run=$!
await test -s "$OWN_DISK/run/client/connections.tlog" || fail "the run does not load"
fill
wait $run
status=$?
[ $status = 1 ] || fail "the run: exit $status"
grep -q 'what the load generator measured could not be written .*No space left on device.*requests answered, p50 .*, p99 ' "$work/run.err" ||
    fail "the load's result is not said"
grep -q '^taillight: .*No space left on device\|its disk is full' "$work/run.err" || fail "the run's full disk is not said"
echo "analyzed: $requests requests"
