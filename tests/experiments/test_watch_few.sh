#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A server with a few requests a second, fewer in each interval than a diagnosis needs, stands still: what it answered before
# says what is ordinary, in the interval and in the window that is saved, and both say so and count none of it.
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await bash -c "</dev/tcp/127.0.0.1/$port" || fail "the server does not listen"
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$work/workload.yaml"

few_try() {
    rm -rf "$work/saved" "$work/lines"
    "$taillight" watch --pid $server --interval 1s --json --trigger '>150ms' --save "$work/saved" >"$work/lines" 2>"$work/watch.err" &
    watch=$!
    await test -s "$work/lines" || fail "the watch does not begin"
    "$taillight" load --server "127.0.0.1:$port" --workload "$work/workload.yaml" --rate 20 --duration 8s --connections 4 \
        --depth 1 --sleep --json --quiet >"$work/load.json" 2>"$work/load.err" &
    load=$!
    sleep 5.5
    kill -STOP $server && sleep 0.3 && kill -CONT $server
    wait $load
    [[ $? == [04] ]] || fail "the load ended with an error"
    stalled() { jq -es 'any(.windows == 1) and .[-1].requests == 0' "$work/lines" >/dev/null; }
    await stalled
    kill -INT $watch
    wait $watch || fail "the watch ended with $?"
    jq -es 'map(select(.windows == 1)) | length == 1 and all(.requests < 50 and .requests + .ordinary_earlier >= 50
        and .slice_messages <= .requests and .causes[0].cause == "stopped by a signal")' "$work/lines" >/dev/null ||
        { echo "the interval: $(jq -c '[.requests, .ordinary_earlier, .windows, .causes[0].cause, .reason]' "$work/lines" | tr '\n' ' ')"; return 1; }
    "$taillight" analyze "$work"/saved/slow-* --quiet --json >"$work/stall.json" 2>"$work/analyze.err"
    [[ $? == [04] ]] || fail "what was saved cannot be analyzed"
    jq -e '.requests < 50 and .diagnosis.candidates <= .requests and .diagnosis.reference_earlier >= 40
        and .causes[0].cause == "stopped by a signal" and .causes[0].role == "A"
        and (.verdict | contains("requests that were answered before these, too"))' "$work/stall.json" >/dev/null ||
        { echo "saved: $(jq -c '[.requests, .diagnosis.reference_earlier, .verdict]' "$work/stall.json")"; return 1; }
}
judged_tries few_try || fail "the stall of few requests has no name"
kill $server
exit 0
