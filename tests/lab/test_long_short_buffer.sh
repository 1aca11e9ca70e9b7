#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with a buffer for the trace that is much too small: perf cuts the trace, which is counted,
# stands in the verdict beside what is known of the slow messages' functions, and is the first thing to mend. All else is whole.
# Time limit: 1800 s
CAPTURE='backend: intel_pt, detail: light, buffer: 64KiB'
. tests/lab/headline_lib.sh
expect '.joined >= 0.99 * .requests and .order_violations == 0'
expect '.trace | .truncated > 0 and .functions > 0 and .slow_traced_ns < 0.9 * .slow_ns'
grep -q 'the trace was cut [0-9,]* times because its buffer was full' "$work/verdict" || fail "no word of the cuts: $(cat "$work/verdict")"
tr '\n' ' ' <"$work/verdict" | grep -qE 'functions are (known for [0-9.]+ % of the slow messages.*cuts? for want of buffer|N/A: the processor.s trace shows nothing)' ||
    fail "the verdict does not say how much of the trace is missing: $(cat "$work/verdict")"
echo "exit $status; $(jq -c '[.requests, .joined, (.trace | .truncated, .slow_traced_ns / .slow_ns)]' "$summary")"
