#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Opens reports in a headless browser, from file://, and uses them: every variant loads without an
# error and fetches nothing; balloons, keys, windows, sorting, timelines and printing do their work.
# THOROUGH=1: more of them, those of many messages too (test_long_report_page.sh).
set -u
. "$(dirname "$0")/browser_lib.sh"
need_browser
writer="$BUILD/tests/analysis/report/test_report_html"
[ -x "$writer" ] || { echo "$writer is not built"; exit 1; }
failures=0

look_at() { name=$1; } # NAME: what the next expectations are of

expect() { # $1: what, $2: pattern
    if grep -q -F -- "$2" "$folder/$name.dom"; then
        echo "ok    $1"
    else
        echo "FAIL  $1: \"$2\" is not on the page"
        failures=$((failures + 1))
    fi
}

no_errors() {
    if grep . "$folder/$name.problems" || grep -F '[FAIL]' "$folder/$name.dom"; then
        echo "FAIL  $name: the page has problems"
        failures=$((failures + 1))
    fi
}

# A copy of a page with a listener for problems in front and a driver at the end.
instrument() { # $1: page, $2: copy, $3: driver
    sed -e 's|^<head>$|<head><script>window.problems = [];\
addEventListener("error", event => problems.push(event.message));\
addEventListener("unhandledrejection", event => problems.push(String(event.reason)));\
addEventListener("securitypolicyviolation", event => problems.push(event.blockedURI));</script>|' \
        -e "/^<\/body>\$/r tests/analysis/report/$3" "$1" >"$2"
}

is_used() { [ "$1" = usual ] || [ -n "${THOROUGH:-}" ]; } # by the driver, or only opened
variants="usual odd empty no-causes no-verdict ${THOROUGH:+large everything}"
doms=()
for variant in $variants; do
    page=$folder/$variant.html
    "$writer" --write "$page" "$variant" || exit 1
    if is_used "$variant"; then
        instrument "$page" "$folder/$variant-driven.html" report_page_driver.html
        page=$folder/$variant-driven.html
    fi
    width=1400
    [ $variant != odd ] || width=390 # as on a telephone
    begin_page "$variant" "$page" $width
    doms+=("$folder/$variant.dom")
done
# Two runs against each other, and three a side.
"$BUILD/tests/analysis/compare/test_run_compare" --write "$folder/compare.html" 1 || exit 1
sed 's|^</body>$|<script>new MutationObserver(() => { document.documentElement.dataset.fits = ["shifts", "changes", "places", "categories", "box"].filter(name => { \
const plot = document.getElementById(name + "-plot"); return plot.scrollWidth > plot.clientWidth; }).join() \|\| "all"; }) \
.observe(document.documentElement, {attributeFilter: ["data-ready"]});</script></body>|' \
    "$folder/compare.html" >"$folder/phone.html"
begin_page compare "$folder/phone.html" 390 # as on a telephone
"$BUILD/tests/analysis/compare/test_run_compare" --write "$folder/sets.html" 3 || exit 1
begin_page sets "$folder/sets.html"
# And two whose functions are known, used.
"$BUILD/tests/analysis/compare/test_run_compare_functions" --write "$folder/functions.html" >/dev/null || exit 1
instrument "$folder/functions.html" "$folder/functions-driven.html" compare_page_driver.html
begin_page functions "$folder/functions-driven.html"
# The address chooses the message: an ordinary one, and one that is not there.
ordinary=$(python3 tests/analysis/report/page_data.py "$folder/usual.html" | grep -o '"id":[0-9]*,"reference":true' | head -n 1 | grep -o '[0-9]*')
begin_page ordinary "$folder/usual.html#message=$ordinary"
begin_page unknown "$folder/usual.html#message=999999"
# Numbers in words: what the terminal says of many, beside what the page says.
{
    echo '<!doctype html><meta charset="utf-8"><body><script>'
    cat analysis/report/page/assets/page_plot.js
    echo 'const cases = ['
    "$BUILD/tests/analysis/report/test_number_words" --write || exit 1
    cat <<'EOF'
], forms = {duration, seconds, count, percent, signedPercent, wholePercent};
const plain = text => String(text).replaceAll('µs', 'us').replace('−', '-');
const wrong = cases.filter(([form, values, said]) => plain(forms[form](...values)) !== said);
document.body.append(`${cases.length} numbers, ${wrong.length} differ `, ...wrong.slice(0, 5).map(
    ([form, values, said]) => `${form}(${values}): page ${forms[form](...values)}, terminal ${said}; `));
document.documentElement.dataset.ready = 'yes';
</script></body>
EOF
} >"$folder/words.html"
begin_page words "$folder/words.html"
# What must be noticed: a page that throws and wants what it may not have.
sed 's|^</body>$|<img src="http://127.0.0.1:9/picture"><script>throw new Error("thrown")</script></body>|' "$folder/empty.html" >"$folder/broken.html"
begin_page broken "$folder/broken.html"
open_pages

for problem in 'Error: thrown' 'http://127.0.0.1:9/picture'; do
    grep -q "$problem" "$folder/broken.problems" || { echo "FAIL  not noticed: $problem"; failures=$((failures + 1)); }
done
look_at words
expect "numbers: the page rounds as the terminal does" '1760 numbers, 0 differ'
grep -o '[0-9][0-9]* numbers, .*' "$folder/words.dom"
no_errors

for variant in $variants; do
    look_at "$variant"
    expect "$variant: the page became ready" 'data-ready="yes"'
    ! is_used "$variant" || expect "$variant: the driver ran to its end" 'driver: done'
    [ $variant != odd ] || expect "odd: what was not set" 'no: No such file or directory'
    [ $variant != odd ] || expect "odd: the neighbour's load" '4,999/s'
    no_errors
    grep -o '\[ok\].*' "$folder/$variant.dom" | sed "s/^\[ok\]/ok    $variant:/"
done
python3 tests/experiments/written_times.py "${doms[@]}" || failures=$((failures + 1))

look_at no-verdict
expect "no verdict: why a message was slow is not known, nor by how much" 'Not known: only'
look_at no-causes
expect "no causes: an ordinary message is shown" ', an ordinary one: '
expect "no causes: there is none that is slower" 'class="step" disabled'
expect "no client of ours: what nobody asked for at a time had arrived" '· arrived at '
expect "no client of ours: one of what was lost is one" '1 request not answered by the end of the capture'

look_at compare
expect "compare: its plots fit a telephone" 'data-fits="all"'
expect "compare: the page became ready" 'data-ready="yes"'
expect "compare: what appeared is drawn and named" 'aria-label="yes (A) appeared: +'
expect "compare: both runs' latencies are drawn" 'aria-label="Latency of both runs'
expect "compare: slices can be chosen" '>p40-p60</button>'
expect "compare: the percentile's change is drawn" 'data-percentile="p99"'
expect "compare: queues are drawn" 'aria-label="Messages ahead by kind'
expect "compare: contexts stand in a table" '<caption class="only-screen-reader">Contexts of the cores</caption>'
expect "compare: no functions, and why" 'Functions are known in neither run'
no_errors

look_at sets
expect "sets: the page became ready" 'data-ready="yes"'
expect "sets: what is in doubt says so first" '<h1 class="verdict">Inconclusive: the base'"'"'s load cannot be trusted in 1 of 3 runs. As measured, every message took '
expect "sets: how many runs a side has" '3 runs, 18,000 requests'
expect "sets: the percentile's change is drawn" 'data-percentile="p99"'
change=$(grep -o '>p99 +[0-9.]* % \[' "$folder/sets.dom" | grep -o '[+0-9.]* %')
expect "sets: a change is the same number in the sentence and in the table" ">$change<"
expect "sets: what appeared is drawn and named" 'aria-label="yes (A) appeared: +'
expect "sets: categories are drawn" 'aria-label="hogs +'
expect "sets: the intervals know how runs differ" 'from resampling the runs, and 40 blocks'
expect "sets: no balloons" '<section id="balloons" aria-labelledby="messages-title" hidden'
no_errors

look_at functions
expect "functions: the driver ran to its end" 'driver: done'
no_errors
grep -o '\[ok\].*' "$folder/functions.dom" | sed "s/^\[ok\]/ok    functions:/"

look_at ordinary
expect "an ordinary message by its address" "data-message=\"$ordinary\""
expect "it is called ordinary" "Message $ordinary, an ordinary one"
no_errors
look_at unknown
expect "an unknown message is said to be missing" "Message 999999 is not in this report"
no_errors

[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
