# SPDX-License-Identifier: MIT
#
# Opens pages in a headless browser, from file://. Sourced. $folder is the test's, and goes with it;
# fail WHAT ends it, with what $folder/out says.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "FAIL: $*"
    [ -s "$folder/out" ] && head -n 20 "$folder/out"
    exit 1
}
need_browser() {
    browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    [ -n "$browser" ] || { echo "no Chromium to open the page with (apt-get install chromium)"; exit 77; }
    command -v python3 >/dev/null || { echo "there is no python3 to use the page with (apt-get install python3)"; exit 77; }
}

# Pages that one browser opens, one after the other, for its start takes longer than most pages do: begin_page
# NAME FILE[#FRAGMENT] [WIDTH] for each, and then open_pages. $folder/NAME.dom is what is on a page after its
# scripts have run, NAME.problems what it complained of.
begin_page() { echo "$1 ${3:-1300} $2" >>"$folder/pages"; }
open_pages() {
    timeout 280 python3 tests/analysis/report/open_pages.py "$browser" "$folder" <"$folder/pages" >"$folder/out" 2>&1 ||
        fail 'the browser failed'
}
# One of them: $folder/dom. It must be ready, without complaints, and without markup where there was hostile text.
whole_page() { # NAME
    cp "$folder/$1.dom" "$folder/dom"
    [ ! -s "$folder/$1.problems" ] || fail "$1: the page has problems: $(cat "$folder/$1.problems")"
    grep -q 'data-ready="yes"' "$folder/dom" || fail "$1: not ready"
    ! grep -qE '<(b|i|u)>hostile' "$folder/dom" || fail "$1: text became markup"
}

# How often a pattern is in the DOM.
in_page() { grep -o -- "$1" "$folder/dom" | wc -l; }
