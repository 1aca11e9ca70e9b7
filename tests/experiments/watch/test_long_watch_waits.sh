#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A server that stands still for longer than several intervals of a watch: a client that waits for it has sent its
# request in a segment that lies far back. It has its whole latency all the same, its cause and its one window.
# Time limit: 300 s
. tests/experiments/watch/watch_lib.sh
need_program python3 python3
# One request after the other, on one connection, until the end.
cat >"$work/ask.py" <<'E2'
import socket, sys, time
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
replies = connection.makefile("rb")
for _ in range(100000):
    connection.sendall(b"get a\r\n")
    replies.readline()
    time.sleep(0.002)
E2
python3 "$work/ask.py" "$port" &
asking=$!

waits_try() {
    rm -rf "$work/saved"
    "$taillight" watch --pid $server --interval 1s --json --budget 0 --trigger '>1s' --save "$work/saved" >"$work/lines" 2>"$work/watch.err" &
    watch=$!
    seen() { jq -es 'map(.requests) | add > 50' "$work/lines" >/dev/null; }
    await seen || fail "the watch sees no request"
    kill -STOP $server && sleep 5.3 && kill -CONT $server
    sleep 4 # the interval of its answer has ended
    kill -INT $watch
    wait $watch || fail "the watch ended with $?"
    jq -es '(map(.windows) | add == 1) and any(.latency_us.max > 5e6 and .windows == 1)' "$work/lines" >/dev/null ||
        { echo "windows: $(jq -c '[.requests, .joined, .windows, .latency_us.max]' "$work/lines" | tr '\n' ' ')"; return 1; }
    "$taillight" analyze "$work"/saved/slow-* --quiet --json >"$work/stall.json" 2>"$work/analyze.err"
    [[ $? == [04] ]] || fail "what was saved cannot be analyzed"
    jq -e '.latency_us.max > 5e6 and (.causes[0].cause | startswith("stopped by a signal")) and .causes[0].role == "A"' "$work/stall.json" >/dev/null ||
        { echo "saved: $(jq -c '[.verdict, .latency_us.max, .requests]' "$work/stall.json")"; return 1; }
}
judged_tries waits_try || fail "the stall is not shown as it was"
kill $asking $server
exit 0
