#!/usr/bin/env bash
# Of many requests a watch does without hand-offs and departures, and says so: each has its latency and its causes
# all the same. As soon as they are few these are recorded again.
# Runs beside others: what else is busy makes it wait, and nothing is timed.
. "$(dirname "$0")/watch_lib.sh"
begin_watch --interval 500ms --full 50
# Intervals are long, and so few, on a busy machine: each load comes again until one has it whole.
spared_all() { jq -es 'any(.[]; .requests >= 50 and .spared > 0.9 * .requests)' "$work/lines" >/dev/null; }
seen_whole() { jq -es 'map(select(.requests > 0)) | .[-1] | .spared == 0 and .slowest.stages_us["server stack"] > 0' "$work/lines" >/dev/null; }
for _ in 1 2 3 4; do
    watched_load 400 2s 8
    spared_all && break
done
for _ in 1 2 3 4; do
    watched_load 10 2s 8
    seen_whole && break
done
await seen_whole || fail "nothing is recorded in full after it: $(jq -c '[.requests, .spared, .slowest.stages_us]' "$work/lines" | tr '\n' ' ')"
end_watch
jq -es 'map(select(.requests >= 50)) | (.[0].spared == 0)
    and any(.spared > 0.9 * .requests and .joined >= 0.99 * .requests and .verdict_available and .latency_us.p50 > 0
        and (.slowest.stages_us | has("server stack") | not) and .coverage_total > 0)' "$work/lines" >/dev/null ||
    fail "not as it should be: $(jq -c '[.requests, .joined, .spared, .reason, .slowest.stages_us]' "$work/lines" | tr '\n' ' ')"
exit 0
