#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The flight recorder on stalls at random instants: each has one saved window whose first cause is
# the stall, no other window names one, and what was saved, made room or was lost is said. The folder is on
# another file system than the records, so that saving copies them. Once with few requests and once with so many that
# only a part of each interval is taken apart.
# Time limit: 600 s
. tests/experiments/watch/watch_lib.sh
need_program python3 python3
stalls=${STALLS:-20} seconds=${SECONDS_LONG:-60}
saved=$(mktemp -d /dev/shm/taillight-stalls-XXXXXX) || skip "there is no /dev/shm"
trap 'rm -rf "$saved"; cleanup' EXIT

stalls_try() {
    local seed=${SEED:-$RANDOM} folder found
    rm -rf "${saved:?}"/*
    coproc watching { exec "$taillight" watch --pid $server --interval 1s --look 1 --json --budget 0 --trigger '>250ms' \
        --save "$saved" --saves $((stalls * 2)) 2>"$work/watch.err"; }
    watch=$watching_PID
    exec {lines}<&"${watching[0]}"
    read -r -t 60 line <&$lines || fail "the watch does not begin"
    cat <&$lines >"$work/lines" &
    reader=$!
    watched_load "$rate" $((seconds + 4))s 8 &
    load=$!
    sleep 1.5
    python3 tests/experiments/watch/watch_stalls.py stall "$seed" "$stalls" "$seconds" $server >"$work/stalls.json" ||
        fail "the server was not stopped"
    wait $load || exit
    sleep 4 # the last interval has ended
    end_watch
    exec {lines}<&-
    wait $reader
    found=$(find "$saved" -mindepth 1 -maxdepth 1 | wc -l)
    grep -qF "$found saved in" "$work/watch.err" || fail "the watch counts its windows wrongly"
    for folder in "$saved"/*; do
        "$taillight" analyze "$folder" --quiet --json >"$work/one.json" 2>"$work/analyze.err"
        [[ $? == [04] ]] || fail "a window cannot be analyzed: $folder: $(cat "$work/analyze.err")"
        jq -c --slurpfile capture "$folder/capture.json" '{from_ns: $capture[0].segments.from_ns,
            until_ns: $capture[0].segments.until_ns, max_us: .latency_us.max, requests, verdict,
            cause: (.causes[0] | "\(.cause) (\(.role))")}' "$work/one.json" || fail "a window cannot be analyzed: $folder"
    done >"$work/windows"
    echo "seed $seed: $(grep -h 'saved in\|looked at\|share' "$work/watch.err" | tr '\n' ' ')"
    python3 tests/experiments/watch/watch_stalls.py judge "$work/stalls.json" "$work/windows"
}
for rate in 500 5000; do
    judged_tries stalls_try || fail "at $rate/s stalls and windows are not the same"
done
kill $server
exit 0
