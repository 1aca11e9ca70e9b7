#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) where perf is killed in the middle of the load: the run ends as any other, says what it has of the
# trace and why there is no more, and leaves nothing behind.
# Time limit: 1800 s
AT_SERVER='(
    until recorded=$(find /home/files -path "*/perf.data/data" -size +4096k) && [ -n "$recorded" ]; do sleep 0.1; done
    kill -9 $(pidof perf)
) >/dev/null 2>&1 &'
AFTER='! pidof perf || { echo "perf is still there"; exit 1; }'
. tests/lab/headline_lib.sh
expect '.joined >= 0.99 * .requests and .order_violations == 0'
jq -e '.intel_pt.ended.broken' "$work/run/server/capture.json" >/dev/null || fail "perf was not killed: $(jq -c .intel_pt "$work/run/server/capture.json")"
tr -s '\n ' ' ' <"$work/verdict" | grep -q "the processor's trace ended early, after .*signal 9" || fail "the verdict does not say so: $(cat "$work/verdict")"
echo "exit $status; $(jq -c '[.requests, .joined]' "$summary"); $(jq -c .intel_pt.ended "$work/run/server/capture.json")"
