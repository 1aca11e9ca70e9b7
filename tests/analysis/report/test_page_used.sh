#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A run's page in a real browser, by real clicks and keys (devtools.py): two clicks lead from a cause to the timeline of one of
# its messages, every plot can be used by keyboard and fits a telephone, and no label lies over the latency curve.
. tests/analysis/report/browser_lib.sh
need_browser
command -v python3 >/dev/null || { echo "there is no python3 to use the page with (apt-get install python3)"; exit 77; }
pages=()
for variant in usual everything large odd; do
    "$BUILD/tests/analysis/report/test_report_html" --write "$folder/$variant.html" "$variant" || fail "no page: $variant"
    pages+=("$folder/$variant.html")
done
# Where all but few answers came at once and the others never: the curve falls steeply, and its words stand beside it.
for unanswered in 1 40 400 2000 3600; do
    python3 tests/analysis/report/steep_curve.py "$folder/usual.html" "$unanswered" >"$folder/steep$unanswered.html" ||
        fail "no page with $unanswered unanswered requests"
    pages+=("$folder/steep$unanswered.html")
done
# Two browsers at the same time.
timeout 280 python3 tests/analysis/report/test_page_used.py "$browser" "$folder/labels.profile" "${pages[@]}" >"$folder/labels" 2>&1 &
timeout 280 python3 tests/analysis/report/test_page_used.py "$browser" "$folder/profile" "$folder/usual.html" || fail "the page cannot be used so"
wait $!
status=$?
cat "$folder/labels"
[ $status -eq 0 ] || fail "labels lie over curves"
