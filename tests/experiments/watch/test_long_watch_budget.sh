#!/usr/bin/env bash
# Of many requests a watch records no more than it may spend: a part of each interval, most of them without hand-offs
# and departures, and says so. Those that it has recorded have their latency and their causes all the same. As soon as
# requests are few all of them are recorded again, whatever that takes. What is recorded while the watch does not come
# to look at it, is passed over when it comes, and told.
# Runs beside others: what else is busy makes it wait, and nothing is timed.
. "$(dirname "$0")/watch_lib.sh"
begin_watch --interval 500ms --budget 0.01%
# Intervals are long, and so few, on a busy machine: each load comes again until one has it.
part='.requests >= 50 and .recorded < 0.7 and .spared > 0.9 * .looked_at and .joined >= 0.98 * .looked_at and .verdict_available'
seen_in_part() { jq -es "any(.[]; $part)" "$work/lines" >/dev/null; }
seen_whole() {
    jq -es 'map(select(.requests > 0)) | .[-1] | .recorded == 1 and .spared == 0 and .slowest.stages_us["server stack"] > 0' "$work/lines" >/dev/null
}
for _ in 1 2 3 4; do
    watched_load 5000 3s 16
    seen_in_part && break
done
passed_over() { jq -es 'any(.[]; .passed_over > 0)' "$work/lines" >/dev/null; }
for _ in 1 2 3 4; do
    watched_load 5000 6s 16 &
    load=$!
    kill -STOP "$watch"
    sleep 4
    kill -CONT "$watch"
    wait $load || fail "the load beside a stopped watch: $(cat "$work/load.err")"
    passed_over && break
done
await passed_over || fail "nothing is said of what a stopped watch did not look at: $(jq -c '[.seconds, .recorded, .passed_over]' "$work/lines" | tr '\n' ' ')"
for _ in 1 2 3 4; do
    watched_load 10 2s 8
    seen_whole && break
done
await seen_whole || fail "nothing is recorded in full after it: $(jq -c '[.requests, .recorded, .spared, .slowest.stages_us]' "$work/lines" | tr '\n' ' ')"
# Of what was recorded in full while it did not look, no more than twelve intervals are looked at as one.
whole_passed_over() { jq -es 'any(.[]; .passed_over >= 12 and .recorded == 1)' "$work/lines" >/dev/null; }
for _ in 1 2 3 4; do
    kill -STOP "$watch"
    watched_load 10 15s 8
    kill -CONT "$watch"
    watched_load 10 2s 8
    whole_passed_over && break
done
await whole_passed_over || fail "a long interval is looked at in one: $(jq -c '[.seconds, .recorded, .passed_over]' "$work/lines" | tail -n 6 | tr '\n' ' ')"
end_watch
grep -qE '( 1 interval was| [0-9,]+ intervals were) passed over' "$work/watch.err" || fail "its end does not say so: $(cat "$work/watch.err")"
# What there is a second is counted over the time that was recorded, and that is not all of it.
jq -es "any($part"' and .latency_us.p50 > 0 and .watch_share > 0 and .rate > 1000 and .seconds < 0.7
        and (.slowest.stages_us | has("server stack") | not) and .coverage_total > 0)' "$work/lines" >/dev/null ||
    fail "not as it should be: $(jq -c '[.requests, .recorded, .seconds, .joined, .spared, .reason, .slowest.stages_us]' "$work/lines" | tr '\n' ' ')"

# The first interval says as well that it was recorded in part; all of --for was looked at, and nothing else is said.
for _ in 1 2 3 4; do
    watched_load 5000 6s 16 &
    load=$!
    "$taillight" watch --pid "$server" --budget 0.01% --for 2s --json >"$work/first" 2>"$work/first.err" ||
        fail "a watch for 2 s ended with $?: $(cat "$work/first.err")"
    wait $load || fail "the load beside a watch for 2 s: $(cat "$work/load.err")"
    jq -es 'length == 1 and .[0].seconds < 1' "$work/first" >/dev/null && break
done
jq -es '.[0].seconds >= 1 or .[0].recorded < 0.9' "$work/first" >/dev/null ||
    fail "a part is taken for the whole: $(jq -c '[.seconds, .recorded]' "$work/first")"
! grep 'not looked at' "$work/first.err" || fail "--for is over, and something is missed"

# What a watch looks at as one has no more than 64 MiB of events, however few intervals that are: nor is what it passes over
# read with it.
begin_watch --interval 2s
watched_load 20000 60s 16 &
load=$!
kill -STOP "$watch"
recorded() { du -cb /tmp/taillight-watch-"$watch"-*/events-*.tlog 2>/dev/null | tail -n 1 | cut -f 1; }
for _ in $(seq 50); do
    [ "$(recorded)" -lt 200000000 ] || break
    sleep 1
done
[ "$(recorded)" -gt 100000000 ] || fail "so little was recorded: $(recorded) bytes"
kill -CONT "$watch"
looked_at_less() { jq -es 'any(.[]; .passed_over > 0)' "$work/lines" >/dev/null; }
await looked_at_less || fail "all of it is looked at as one: $(jq -c '[.seconds, .recorded, .passed_over]' "$work/lines" | tr '\n' ' ')"
most_kib=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$watch/status")
[ "$most_kib" -lt 400000 ] || fail "looking at 64 MiB took $most_kib KiB"
wait $load || fail "the load beside it: $(cat "$work/load.err")"
end_watch

# A capture by hand has no use for it without segments, and what it recorded in parts is not taken for one.
"$taillight" capture --out "$work/hand" --port "$port" --budget 5% </dev/null >/dev/null 2>"$work/hand.err"
[ $? = 2 ] && grep -q 'segment' "$work/hand.err" || fail "--budget without --segment: $(cat "$work/hand.err")"
mkdir "$work/hand"
"$taillight" capture --out "$work/hand" --port "$port" --budget 0.01% --segment 500ms --calls kernel --quiet \
    < <(sleep 8) >"$work/segments" 2>"$work/hand.err" &
capture=$!
await test -s "$work/segments" || fail "the capture does not begin"
watched_load 5000 4s 16
wait $capture || fail "the capture ended with $?: $(cat "$work/hand.err")"
if jq -es 'map(select(.recorded? < 1)) | length > 0' "$work/segments" >/dev/null; then
    "$taillight" analyze "$work/hand" >/dev/null 2>"$work/analyze.err"
    [ $? = 2 ] && grep -q -- '--budget' "$work/analyze.err" || fail "rests are not told: $(cat "$work/analyze.err")"
fi
exit 0
