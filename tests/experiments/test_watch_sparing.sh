#!/usr/bin/env bash
# Of many requests a watch does without hand-offs and departures, and says so: each has its latency and its causes
# all the same. As soon as they are few these are recorded again.
# Runs beside others: what else is busy makes it wait, and nothing is timed.
. "$(dirname "$0")/run_lib.sh"
need_capture
need_program jq jq
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await bash -c "</dev/tcp/127.0.0.1/$port" || fail "the server does not listen"
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$work/workload.yaml"
"$taillight" watch --pid $server --interval 500ms --full 50 --json >"$work/lines" 2>"$work/watch.err" &
watch=$!
await test -s "$work/lines" || fail "the watch does not begin"
load() { # RATE DURATION
    "$taillight" load --server "127.0.0.1:$port" --workload "$work/workload.yaml" --rate "$1" --duration "$2" \
        --connections 8 --depth 1 --sleep --json --quiet >"$work/load.json" 2>"$work/load.err"
    [[ $? == [04] ]] || fail "the load ended with an error"
}
load 400 2s
load 10 2s
seen_whole() { jq -es 'map(select(.requests > 0)) | .[-1] | .spared == 0 and .slowest.stages_us["server stack"] > 0' "$work/lines" >/dev/null; }
await seen_whole || fail "nothing is recorded in full after it: $(jq -c '[.requests, .spared, .slowest.stages_us]' "$work/lines" | tr '\n' ' ')"
kill -INT $watch
wait $watch || fail "the watch ended with $?"
jq -es 'map(select(.requests >= 50)) | (.[0].spared == 0)
    and any(.spared > 0.9 * .requests and .joined >= 0.99 * .requests and .verdict_available and .latency_us.p50 > 0
        and (.slowest.stages_us | has("server stack") | not) and .coverage_total > 0)' "$work/lines" >/dev/null ||
    fail "not as it should be: $(jq -c '[.requests, .joined, .spared, .reason, .slowest.stages_us]' "$work/lines" | tr '\n' ' ')"
exit 0
