#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A watch that gets no core for some seconds, as on a machine that is busy with other things, until its time is over: what its
# capture recorded meanwhile is looked at all the same, and each stall in it saved. Where the records have made room, it is
# said of how many intervals.
. tests/experiments/watch/watch_lib.sh

# late_watch OPTIONS...: stops the watch, then three times the server.
late_watch() {
    local stall
    rm -rf "$work/saved"
    begin_watch --interval 1s --trigger '>200ms' --save "$work/saved" --for 12s "$@"
    watched_load 500 7s 8 &
    load=$!
    sleep 1.5
    kill -STOP $watch
    for stall in 1 2 3; do
        sleep 0.9
        kill -STOP $server && sleep 0.4 && kill -CONT $server
    done
    wait $load || exit
    sleep 2.5 # the last request's segment has ended
    kill -CONT $watch
    wait $watch || fail "the watch ended with $?"
}

ended_try() {
    late_watch
    jq -es --argjson asked "$(jq .answered "$work/load.json")" '(map(.windows) | add == 3)
        and (map(.requests) | add | . >= 0.99 * $asked and . <= $asked + 10)
        and (map(select(.windows > 0)) | all(.seconds > 2 and (.causes[0].cause | startswith("stopped by a signal"))))' "$work/lines" >/dev/null ||
        { echo "three stalls: $(jq -c '[.requests, .seconds, .windows, .latency_us.max, .causes[0].cause]' "$work/lines" | tr '\n' ' ')"; return 1; }
    ! grep 'could not be looked at' "$work/watch.err" || fail "all could be looked at"
}
judged_tries ended_try || fail "what ended before the watch is not looked at"

late_watch --keep 1 # the latest segment alone stays
jq -es '[.[].windows] | add // 0 | . <= 2' "$work/lines" >/dev/null || fail "the records of all are there"
grep -qE '(^| )[1-9][0-9]* intervals? could not be looked at' "$work/watch.err" || fail "nobody says what could not be looked at"
kill $server
exit 0
