# SPDX-License-Identifier: MIT
#
# Opens pages in a headless browser, from file://. Sourced. $folder is the test's, and goes with it;
# fail WHAT ends it, with what $folder/out and the browser said.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
    echo "FAIL: $*"
    [ -s "$folder/out" ] && head -n 20 "$folder/out"
    [ -s "$folder/stderr" ] && grep CONSOLE "$folder/stderr"
    exit 1
}
need_browser() {
    browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    [ -n "$browser" ] || { echo "no Chromium to open the page with (apt-get install chromium)"; exit 77; }
}

# The page's DOM after its scripts have run: $folder/dom. It must be ready, without complaints, and
# without markup where there was hostile text.
open_page() { # FILE
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --disable-dev-shm-usage --window-size=1300,1100 --virtual-time-budget=3000 \
        --user-data-dir="$folder/profile" --enable-logging=stderr --dump-dom "file://$1" \
        >"$folder/dom" 2>"$folder/stderr" || fail "$1: the browser failed"
    grep -E 'CONSOLE.*(rror|iolat|efused)' "$folder/stderr" && fail "$1: the page has problems"
    grep -q 'data-ready="yes"' "$folder/dom" || fail "$1: not ready"
    grep -qE '<(b|i|u)>hostile' "$folder/dom" && fail "$1: text became markup"
    return 0
}

# How often a pattern is in the DOM.
in_page() { grep -o -- "$1" "$folder/dom" | wc -l; }
