#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A watch that gets no core for some seconds, as on a machine that is busy with other things, and is then told to end: what its
# capture recorded meanwhile is looked at all the same, and each stall in it saved. Where the records have made room, it is
# said of how many intervals.
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await bash -c "</dev/tcp/127.0.0.1/$port" || fail "the server does not listen"
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$work/workload.yaml"

# late_watch OPTIONS...: stops the watch, then three times the server.
late_watch() {
    local stall
    rm -rf "$work/saved" "$work/lines"
    "$taillight" watch --pid $server --interval 1s --json --trigger '>200ms' --save "$work/saved" "$@" >"$work/lines" 2>"$work/watch.err" &
    watch=$!
    await test -s "$work/lines" || fail "the watch does not begin"
    "$taillight" load --server "127.0.0.1:$port" --workload "$work/workload.yaml" --rate 500 --duration 7s --connections 8 \
        --depth 1 --sleep --json --quiet >"$work/load.json" 2>"$work/load.err" &
    load=$!
    sleep 1.5
    kill -STOP $watch
    for stall in 1 2 3; do
        sleep 0.9
        kill -STOP $server && sleep 0.4 && kill -CONT $server
    done
    wait $load
    [[ $? == [04] ]] || fail "the load ended with an error"
    sleep 2.5 # the last request's segment has ended
    kill -INT $watch
    kill -CONT $watch
    wait $watch || fail "the watch ended with $?"
}

ended_try() {
    late_watch
    jq -es --argjson asked "$(jq .answered "$work/load.json")" '(map(.windows) | add == 3)
        and (map(.requests) | add | . >= 0.99 * $asked and . <= $asked + 10)
        and (map(select(.windows > 0)) | all(.seconds > 2 and .causes[0].cause == "stopped by a signal"))' "$work/lines" >/dev/null ||
        { echo "three stalls: $(jq -c '[.requests, .seconds, .windows, .latency_us.max, .causes[0].cause]' "$work/lines" | tr '\n' ' ')"; return 1; }
    ! grep 'could not be looked at' "$work/watch.err" || fail "all could be looked at"
}
judged_tries ended_try || fail "what ended before the watch is not looked at"

late_watch --keep 1 # the latest segment alone stays
jq -es '[.[].windows] | add // 0 | . <= 2' "$work/lines" >/dev/null || fail "the records of all are there"
grep -qE '(^| )[1-9][0-9]* intervals could not be looked at' "$work/watch.err" || fail "nobody says what could not be looked at"
kill $server
exit 0
