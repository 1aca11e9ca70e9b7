#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Opens reports in a headless browser, from file://, and uses them: every variant loads without an
# error and fetches nothing; balloons, keys, windows, sorting, timelines and printing do their work.
set -u
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "no Chromium to open the report with (apt-get install chromium)"; exit 77; }
writer="$BUILD/tests/analysis/test_report_html"
[ -x "$writer" ] || { echo "$writer is not built"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# Prints the page's DOM after its scripts have run. $1: file, $2: address's hash.
open_page() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --disable-dev-shm-usage --window-size=1400,2000 --virtual-time-budget=5000 \
        --user-data-dir="$folder/profile" --enable-logging=stderr --dump-dom "file://$1$2" \
        2>"$folder/stderr"
}

expect() { # $1: what, $2: pattern, the DOM on stdin
    if grep -q -F -- "$2" "$folder/dom"; then
        echo "ok    $1"
    else
        echo "FAIL  $1: \"$2\" is not on the page"
        failures=$((failures + 1))
    fi
}

no_errors() { # $1: what
    if grep -E 'CONSOLE.*(rror|iolat|efused)' "$folder/stderr" || grep -F '[FAIL]' "$folder/dom"; then
        echo "FAIL  $1: the page has problems"
        failures=$((failures + 1))
    fi
}

# A copy of a page with a listener for problems in front and a driver at the end.
instrument() { # $1: page, $2: copy
    sed -e 's|^<head>$|<head><script>window.problems = [];\
addEventListener("error", event => problems.push(event.message));\
addEventListener("securitypolicyviolation", event => problems.push(event.blockedURI));</script>|' \
        -e '/^<\/body>$/r tests/analysis/report_page_driver.html' "$1" >"$2"
}

for variant in usual large everything odd no-causes no-verdict empty; do
    "$writer" --write "$folder/$variant.html" "$variant" || exit 1
    instrument "$folder/$variant.html" "$folder/$variant-driven.html"
    open_page "$folder/$variant-driven.html" "" >"$folder/dom" || { echo "FAIL  $variant: the browser failed"; cat "$folder/stderr"; exit 1; }
    expect "$variant: the page became ready" 'data-ready="yes"'
    expect "$variant: the driver ran to its end" 'driver: done'
    [ $variant != odd ] || expect "odd: what was not set" 'no: No such file or directory'
    [ $variant != odd ] || expect "odd: the neighbour's load" '4,999/s'
    no_errors "$variant"
    grep -o '\[ok\].*' "$folder/dom" | sed "s/^\[ok\]/ok    $variant:/"
done

# Two runs against each other.
"$BUILD/tests/analysis/test_run_compare" --write "$folder/compare.html" || exit 1
open_page "$folder/compare.html" "" >"$folder/dom"
expect "compare: the page became ready" 'data-ready="yes"'
expect "compare: what appeared is drawn and named" 'aria-label="yes (A) appeared: +'
expect "compare: both runs' latencies are drawn" 'aria-label="Latency of both runs'
expect "compare: slices can be chosen" '>p40-p60</button>'
expect "compare: queues are drawn" 'aria-label="Messages ahead by kind'
expect "compare: contexts stand in a table" '<caption class="only-screen-reader">Contexts of the cores</caption>'
no_errors "compare"

# The address chooses the message: an ordinary one, and one that is not there.
ordinary=$(grep -o '"id":[0-9]*,"reference":true' "$folder/usual.html" | head -n 1 | grep -o '[0-9]*')
open_page "$folder/usual.html" "#message=$ordinary" >"$folder/dom"
expect "an ordinary message by its address" "data-message=\"$ordinary\""
expect "it is called ordinary" "Message $ordinary, an ordinary one"
no_errors "ordinary"
open_page "$folder/usual.html" "#message=999999" >"$folder/dom"
expect "an unknown message is said to be missing" "Message 999999 is not in this report"
no_errors "unknown"

[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
