#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Of more requests than a watch takes apart it looks at some in a row, and says so; its numbers are of all of them, and
# what is slow is saved and found wherever it is.
. "$(dirname "$0")/watch_lib.sh"
begin_watch --interval 5s --look 1 --trigger '>150ms' --save "$work/saved"
# Intervals are long, and so few, on a busy machine: the load comes again until one has an excerpt of what was stopped.
# A request that waits for 2.5 s, half an interval, has the whole looked at. The excerpt is cut by time: a request that
# was answered at the very edge of it may stay outside.
few='(.looked_at and .looked_at > 1990 and .looked_at <= 2000)'
stopped="select(.requests > 2000 and $few and .latency_us.max > 150000)"
stop_it() {
    sleep "$1"
    kill -STOP "$server"
    sleep 0.25
    kill -CONT "$server"
}
for after in 6.1 7.7 9.3 10.9; do
    stop_it "$after" &
    watched_load 4000 16s 8
    wait $!
    jq -es "any(.[]; $stopped)" "$work/lines" >/dev/null && break
done
end_watch
jq -es "map($stopped) | length > 0 and all((.slowest.latency_us / .latency_us.max - 1 | fabs) < 0.001 and .windows > 0)" "$work/lines" >/dev/null ||
    fail "what was slow is not in what is taken apart: $(jq -c '[.requests, .looked_at, .latency_us.max, .slowest.latency_us, .windows, .saved]' "$work/lines" | tr '\n' ' ')"
jq -es "map(select(.looked_at and .looked_at < .requests)) | length > 0 and all($few and .joined > 1900 and .verdict_available
    and .latency_us.max >= .slowest.latency_us - 1 and .servers[0].requests == .requests
    and .servers[0].latency_us == .latency_us)" "$work/lines" >/dev/null ||
    fail "not as it should be: $(jq -c '[.requests, .looked_at, .joined, .reason]' "$work/lines" | tr '\n' ' ')"
exit 0
