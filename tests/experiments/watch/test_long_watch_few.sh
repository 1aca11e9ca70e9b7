#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A server with a few requests a second, fewer in each interval than a diagnosis needs, stands still: what it answered before
# says what is ordinary, in the interval and in the window that is saved, and both say so and count none of it.
. tests/experiments/watch/watch_lib.sh

few_try() {
    rm -rf "$work/saved"
    begin_watch --interval 1s --trigger '>150ms' --save "$work/saved"
    watched_load 20 8s 4 &
    load=$!
    sleep 5.5
    kill -STOP $server && sleep 0.3 && kill -CONT $server
    wait $load || exit
    stalled() { jq -es 'any(.windows == 1) and .[-1].requests == 0' "$work/lines" >/dev/null; }
    await stalled
    end_watch
    jq -es 'map(select(.windows == 1)) | length == 1 and all(.requests < 50 and .requests + .ordinary_earlier >= 50
        and .slice_messages <= .requests and (.causes[0].cause | startswith("stopped by a signal")))' "$work/lines" >/dev/null ||
        { echo "the interval: $(jq -c '[.requests, .ordinary_earlier, .windows, .causes[0].cause, .reason]' "$work/lines" | tr '\n' ' ')"; return 1; }
    "$taillight" analyze "$work"/saved/slow-* --quiet --json >"$work/stall.json" 2>"$work/analyze.err"
    [[ $? == [04] ]] || fail "what was saved cannot be analyzed"
    jq -e '.requests < 50 and .diagnosis.candidates <= .requests and .diagnosis.reference_earlier >= 40
        and (.causes[0].cause | startswith("stopped by a signal")) and .causes[0].role == "A"
        and (.verdict | contains("requests that were answered before these, too"))' "$work/stall.json" >/dev/null ||
        { echo "saved: $(jq -c '[.requests, .diagnosis.reference_earlier, .verdict]' "$work/stall.json")"; return 1; }
}
judged_tries few_try || fail "the stall of few requests has no name"
kill $server
exit 0
