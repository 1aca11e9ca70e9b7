#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The terminal, the page and summary.json of a run say the same of each number that they share.
# Runs beside others: what is measured is of no interest, only that it is told once.
. "$(dirname "$0")/run_lib.sh"
need_capture
need_program chromium chromium
need_program python3 python3
experiment "$work/numbers.yaml" netns 3k 1s <<<'servers: {cache: {kind: memcached, threads: 1}}'
"$taillight" run "$work/numbers.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
"$taillight" report "$work/run" --text --full >"$work/terminal" 2>"$work/report.err"
timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=3000 \
    --user-data-dir="$work/profile" --dump-dom "file://$work/run/report.html" >"$work/dom" 2>"$work/browser.err"
grep -q 'data-ready="yes"' "$work/dom" || fail "the page did not become ready"
told() {
    python3 tests/experiments/one_number.py "$work/run/summary.json" "$work/terminal" "$work/dom" \
        p50 p99 requests joined 'slow messages' >"$work/told"
}
told || fail "$(cat "$work/told")"
cat "$work/told"
# A check that can fail: another count of requests on the page.
sed -i 's/of the [0-9,]* slow messages/of the 9 slow messages/' "$work/dom"
told && fail "two counts of slow messages are not seen"
grep -q 'FAIL: slow messages differs' "$work/told" || fail "another difference: $(cat "$work/told")"
