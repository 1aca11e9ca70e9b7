#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The terminal, the page and summary.json of a run say the same of each number that they share, and so do those of a
# comparison of two runs; a percentile that too few requests reach is kept back everywhere, and not said to be "never".
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program chromium chromium
need_program python3 python3
experiment "$work/numbers.yaml" netns 3k 1s <<<'servers: {cache: {kind: memcached, threads: 1}}'
drawn() { # PAGE PROFILE, to stdout after its scripts have run
    timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=3000 \
        --user-data-dir="$work/$2" --dump-dom "file://$1" 2>"$work/browser.err"
}
told() {
    python3 tests/experiments/one_number.py "$work/run/summary.json" "$work/terminal" "$work/dom" \
        p50 p99 requests joined 'slow messages' >"$work/told"
}
# Where others have the cores, the requests that can be joined may be too few to be told of.
told_run() {
    rm -rf "$work/run"
    "$taillight" run "$work/numbers.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status = 0 ] || { [ $status = 4 ] && grep -q '^Inconclusive: ' "$work/run.err"; } || fail "exit $status, and no word of why"
    "$taillight" report "$work/run" --text --full >"$work/terminal" 2>"$work/report.err"
    drawn "$work/run/report.html" profile >"$work/dom"
    grep -q 'data-ready="yes"' "$work/dom" || fail "the page did not become ready"
    told
}
judged_tries told_run || fail "$(cat "$work/told")"
cat "$work/told"
# A check that can fail: another count of requests on the page.
sed -i 's/of the [0-9,]* slow messages/of the 9 slow messages/' "$work/dom"
told && fail "two counts of slow messages are not seen"
grep -q 'FAIL: slow messages differs' "$work/told" || fail "another difference: $(cat "$work/told")"

experiment "$work/few.yaml" netns 300 1s <<<'servers: {cache: {kind: memcached, threads: 1}}'
"$taillight" run "$work/few.yaml" --out "$work/few" --quiet >"$work/few.out" 2>"$work/few.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "few requests: exit $status"
[ "$(json "$work/few/summary.json" '$.answered')" = "$(json "$work/few/summary.json" '$.requests')" ] ||
    skip "not all of 300 requests were answered"
drawn "$work/few/report.html" profile >"$work/few.dom" &
few=$!
"$taillight" compare "$work/few" "$work/run" --quiet --out "$work/compared.html" >"$work/compared" 2>"$work/compare.err"
"$taillight" compare "$work/few" "$work/run" --quiet --json >"$work/compared.json" 2>"$work/compare.err"
drawn "$work/compared.html" other-profile >"$work/compared.dom"
wait $few
grep -q '999 in 1,000 within</dt><dd>too few requests<' "$work/few.dom" || fail "the page does not say that p99.9 has too few"
told_of() { # BASE
    python3 tests/experiments/compared_numbers.py "$work/compared.json" "$work/compared" "$work/compared.dom" \
        "$work/$1/summary.json" "$work/run/summary.json" >"$work/told"
}
told_of few || fail "$(cat "$work/told")"
cat "$work/told"
# A check that can fail: another run than the one that was compared.
told_of run && fail "percentiles of another run are not seen"
grep -q '^FAIL: base .* differs' "$work/told" || fail "another run: $(cat "$work/told")"
