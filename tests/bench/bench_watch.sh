#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What `taillight watch` costs the server that it watches: memcached -t 1, alternately alone, watched, watched with each
# interval in full (--budget 0), with each request taken apart (--look 0), and with --framing. A load of two intervals goes before what is measured, since a watch only
# then knows that there are so many requests: what it takes from the throughput of that one is `first`. Each round has every setting once, in an order of its own, and is compared with itself: the median over the
# rounds, and its interval at 95 %, of what a watch takes from a closed loop's throughput and adds to its p50 and p99. The watch may run wherever the
# kernel puts it, also beside the server. ROUNDS=N (11), SECONDS_EACH=S (4), INTERVAL=TIME (1s),
# BEFORE=TIME (2s), SETTINGS=WORDS (watched all full framed), of those beside `alone`.
set -u
BUILD=${BUILD:-build}
export BUILD
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
rounds=${ROUNDS:-11} each=${SECONDS_EACH:-4} interval=${INTERVAL:-1s} before=${BEFORE:-2s} settings=${SETTINGS:-watched all full framed}
claim_port
taskset -c 0 memcached -u root -t 1 -l 127.0.0.1 -p "$port" -U 0 2>"$work/memcached.err" &
server=$!
await bash -c "</dev/tcp/127.0.0.1/$port" || fail "memcached does not come up"
load() { taskset -c 1 "$taillight" load --server "127.0.0.1:$port" --connections 8 --quiet --json "$@" </dev/null; }
load --prepare >/dev/null 2>"$work/prepare.err" || fail "no dataset"

measure() { # ROUND SETTING
    local watch='' options=() status warm closed requests=0
    [ "$2" != framed ] || options=(--framing memcached)
    [ "$2" != all ] || options=(--look 0)
    [ "$2" != full ] || options=(--budget 0)
    if [ "$2" != alone ]; then
        "$taillight" watch --pid $server --interval "$interval" --json "${options[@]}" >"$work/watched" 2>"$work/watch.err" &
        watch=$!
        await [ -s "$work/watched" ] || fail "the watch does not begin"
    fi
    warm=$(load --rate max --duration "$before" 2>"$work/load.err")
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "the load before: exit $status"
    closed=$(load --rate max --duration "${each}s" 2>"$work/load.err")
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "the closed loop: exit $status"
    if [ -n "$watch" ]; then
        # What it sees of the load ends with an interval of its own, and its analysis.
        sleep "$each"
        kill -INT $watch
        wait $watch || fail "$2: the watch: exit $?"
        requests=$(jq -s 'map(.requests) | add' "$work/watched")
        [ "$requests" -gt 0 ] || fail "$2: the watch saw no request: $(tail -n 1 "$work/watched")"
    fi
    jq -n -c --arg setting "$2" --argjson round "$1" --argjson closed "$closed" --argjson warm "$warm" --argjson seen "$requests" \
        --slurpfile watched <([ -z "$watch" ] || cat "$work/watched") '{$setting, $round,
        rps: $closed.achieved_rate, first: $warm.achieved_rate, p50: $closed.latency_us.p50, p99: $closed.latency_us.p99,
        seen: (100 * $seen / ($closed.answered + $warm.answered)),
        recorded: (100 * ($watched | map(select(.requests > 0) | .recorded) | add // 0) / ([($watched | map(select(.requests > 0)) | length), 1] | max)),
        spared: (100 * ($watched | map(.spared // 0) | add // 0) / ([($watched | map(.looked_at // 0) | add // 0), 1] | max)),
        looked: (100 * ($watched | map(.looked_at // 0) | add // 0) / ([$seen, 1] | max)), dropped: ($watched | map(.dropped // 0) | add // 0),
        own: (100 * ($watched | map(.own_share) | max // 0))}' >>"$work/lines" || fail "a line cannot be made"
    rm -f "$work/watch.err"
}

for ((round = 1; round <= rounds; round++)); do
    while read -r setting; do measure "$round" "$setting"; done < <(tr ' ' '\n' <<<"alone $settings" | shuf)
done

# Of each round what a setting changes against its own `alone`; what was seen and lost stands beside.
jq -s '
    # low, high: the interval of the median at 95 %, by the ranks around it; of five rounds and fewer the least and the most
    def spread: sort | ([((length - 1.96 * (length | sqrt)) / 2 | round) - 1, 0] | max) as $low
        | {value: .[(length - 1) / 2 | floor], runs: length, min: .[0], max: .[-1], low: .[$low], high: .[length - 1 - $low]};
    group_by(.round) | map((map(select(.setting == "alone"))[0]) as $alone | map(select(.setting != "alone")
        | {setting, seen, looked, recorded, spared, dropped, own} + ({rps, first, p50, p99} | with_entries(.value = 100 * (.value / $alone[.key] - 1)))))
    | add | group_by(.setting) | map({key: .[0].setting, value: (. as $runs
        | ["rps", "first", "p50", "p99", "seen", "looked", "recorded", "spared", "own", "dropped"] | map({key: ., value: (. as $key | $runs | map(.[$key]) | spread)})
        | from_entries)}) | from_entries' "$work/lines" >"$work/table" || fail "the table cannot be made"
jq -r '
    def n: (. * 10 | round / 10) | tostring;
    def cell: "\(.value | n) (\(.low | n) to \(.high | n))";
    "|throughput, added %|of the load before, added %|p50, added %|p99, added %|seen, % of requests|taken apart, % of these|recorded, % of the time|in less detail, %|capture, % of a core|records dropped",
    (to_entries[] | "\(.key)|" + ([.value.rps, .value.first, .value.p50, .value.p99, .value.seen, .value.looked, .value.recorded, .value.spared, .value.own, .value.dropped] | map(cell) | join("|")))' "$work/table" |
    awk -F '|' '{ printf "  %-9s %-26s %-28s %-26s %-26s %-26s %-26s %-26s %-24s %-24s %s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 }'
mkdir -p "$BUILD/bench"
jq '{name: "watch", metrics: ([to_entries[] | .key as $setting | .value | to_entries[]
    | {key: ($setting + "_" + .key), value: (.value + {unit: (if .key == "dropped" then "records" else "%" end)})}] | from_entries)}' \
    "$work/table" >"$BUILD/bench/watch.json" || fail "no watch.json"
