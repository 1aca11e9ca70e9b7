#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A run's page in a real browser, by real clicks and keys (devtools.py): two clicks lead from a cause to the timeline of one of
# its messages, every plot can be used by keyboard and fits a telephone, and no label lies over the latency curve.
# THOROUGH=1: of more causes and curves (test_long_page_used.sh).
. tests/analysis/report/browser_lib.sh
need_browser
pages=()
for variant in usual odd ${THOROUGH:+everything large}; do
    "$BUILD/tests/analysis/report/test_report_html" --write "$folder/$variant.html" "$variant" || fail "no page: $variant"
    pages+=("$folder/$variant.html")
done
# Where all but few answers came at once and the others never: the curve falls steeply, and its words stand beside it.
for unanswered in 1 3600 ${THOROUGH:+40 400 2000}; do
    python3 tests/analysis/report/steep_curve.py "$folder/usual.html" "$unanswered" >"$folder/steep$unanswered.html" ||
        fail "no page with $unanswered unanswered requests"
    pages+=("$folder/steep$unanswered.html")
done
timeout 800 python3 tests/analysis/report/test_page_used.py "$browser" "$folder/profile" "${pages[@]}" || fail "the page cannot be used so"
