#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The flight recorder on stalls at random instants: each has one saved window whose first cause is
# the stall, nothing else has one, and what was saved, made room or was lost is said. The folder is on
# another file system than the records, so that saving copies them.
# Time limit: 400 s
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
stalls=${STALLS:-30} seconds=${SECONDS_LONG:-90}
saved=$(mktemp -d /dev/shm/taillight-stalls-XXXXXX) || skip "there is no /dev/shm"
trap 'rm -rf "$saved"; cleanup' EXIT
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await bash -c "</dev/tcp/127.0.0.1/$port" || fail "the server does not listen"
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$work/workload.yaml"

# The instants: uniform, but for 0.9 s that two stalls, which would be one else, are apart.
instants() { # SEED
    awk -v seed="$1" -v n="$stalls" -v long="$seconds" 'BEGIN {
        srand(seed); free = long - n * 0.9
        for (i = 0; i < n; i++) at[i] = rand() * free
        for (i = 1; i < n; i++)
            for (k = i; k > 0 && at[k] < at[k - 1]; k--) { t = at[k]; at[k] = at[k - 1]; at[k - 1] = t }
        for (i = 0; i < n; i++) printf "%.4f\n", at[i] + i * 0.9 - (i ? at[i - 1] + (i - 1) * 0.9 : 0)
    }'
}

stalls_try() {
    local seed=${SEED:-$RANDOM} gap folder wrong=0 found
    rm -rf "${saved:?}"/*
    coproc watching { exec "$taillight" watch --pid $server --interval 1s --json --trigger '>250ms' \
        --save "$saved" --saves $((stalls * 2)) 2>"$work/watch.err"; }
    watch=$watching_PID
    exec {lines}<&"${watching[0]}"
    read -r -t 60 line <&$lines || fail "the watch does not begin"
    cat <&$lines >"$work/lines" &
    reader=$!
    "$taillight" load --server "127.0.0.1:$port" --workload "$work/workload.yaml" --rate 500 \
        --duration $((seconds + 4))s --connections 8 --depth 1 --sleep --json --quiet \
        >"$work/load.json" 2>"$work/load.err" &
    load=$!
    sleep 1.5
    # A stall lasts 400 ms of the gap to the next one.
    instants "$seed" | while read -r gap; do
        sleep "$(awk -v gap="$gap" 'BEGIN { gap -= 0.4; print (gap > 0 ? gap : 0) }')"
        kill -STOP $server && sleep 0.4 && kill -CONT $server
    done
    wait $load
    [[ $? == [04] ]] || fail "the load ended with an error"
    sleep 4 # the last interval has ended
    kill -INT "$watch"
    wait "$watch" || fail "the watch ended with $?"
    exec {lines}<&-
    wait $reader
    found=$(find "$saved" -mindepth 1 -maxdepth 1 | wc -l)
    for folder in "$saved"/*; do
        "$taillight" analyze "$folder" --quiet --json >"$work/one.json" 2>"$work/analyze.err"
        jq -e '.without_client and .causes[0].cause == "stopped by a signal" and .causes[0].role == "A"
            and .latency_us.max > 250000' "$work/one.json" >/dev/null && continue
        wrong=$((wrong + 1))
        jq -c '[.verdict, .latency_us.max, .requests]' "$work/one.json"
    done
    echo "seed $seed: $stalls stalls, $found windows, $wrong of them with another first cause;" \
        "lines say $(jq -s 'map(.windows) | add' "$work/lines");" \
        "$(grep -h 'saved in\|looked at\|share' "$work/watch.err" | tr '\n' ' ')"
    grep -qF "$found saved in" "$work/watch.err" || fail "the watch counts its windows wrongly"
    [ "$found" -eq "$stalls" ] && [ $wrong -eq 0 ]
}
judged_tries stalls_try || fail "stalls and windows are not the same"
kill $server
exit 0
