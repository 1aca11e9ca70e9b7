#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with snapshots: what the buffers hold is kept when a reply was slow, so often as was asked
# for; further ones are counted, and the verdict says how much of the slow messages' time is in those that were taken.
# Time limit: 1800 s
keep=8
CAPTURE="backend: intel_pt, detail: light, buffer: 4MiB, snapshot: {on: '>35ms', keep: $keep}"
. tests/lab/headline_lib.sh
expect '.joined >= 0.99 * .requests and .order_violations == 0'
expect '.trace | .truncated == 0 and .functions > 0 and .slow_traced_ns > 0 and .slow_traced_ns <= .slow_ns'
trace=$(jq -c .intel_pt "$work/run/server/capture.json")
jq -e --argjson keep $keep '.snapshots >= 1 and .snapshots <= $keep and (.snapshots_refused == 0 or .snapshots == $keep)' >/dev/null <<<"$trace" ||
    fail "not what was asked for: $trace"
refused=$(jq .snapshots_refused <<<"$trace")
[ "$refused" = 0 ] || grep -qE "$refused snapshots? (was|were) not taken, for $keep were to be kept" "$work/verdict" ||
    fail "no word of $refused that were not taken: $(cat "$work/verdict")"
tr '\n' ' ' <"$work/verdict" | grep -qE 'functions are known for [0-9.]+ % of the slow messages' ||
    fail "the verdict does not say how much is known: $(cat "$work/verdict")"
echo "exit $status; $(jq -c '[.requests, .joined, (.trace | .slow_traced_ns / .slow_ns)]' "$summary"); $trace"
