#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The page of a real trace, opened in a headless browser from file://: it draws, without complaint.
set -u
data=${TAILLIGHT_DATA:-../shared/data}/pt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ -e "$data/percpu-multi-core.tar.xz" ] || { echo "no captures under $data; set TAILLIGHT_DATA to where they are"; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "no Chromium to open the page with (apt-get install chromium)"; exit 77; }
fail() {
    echo "FAIL: $*"
    exit 1
}
tar --no-same-owner -xJf "$data/percpu-multi-core.tar.xz" -C "$folder"
spans=$("$BUILD/taillight" analyze --json -q --html "$folder/page.html" "$folder"/*/trace.json | jq .total.spans) ||
    fail 'no page'
[ "$(stat -c %s "$folder/page.html")" -lt 200000 ] || fail 'the page is large'
timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync \
    --disable-dev-shm-usage --window-size=1300,1100 --virtual-time-budget=3000 \
    --user-data-dir="$folder/profile" --enable-logging=stderr --dump-dom "file://$folder/page.html" \
    >"$folder/dom" 2>"$folder/stderr" || fail 'the browser failed'
grep -E 'CONSOLE.*(rror|iolat|efused)' "$folder/stderr" && fail 'the page has problems'
grep -q 'data-ready="yes"' "$folder/dom" || fail 'not ready'
grep -q "19.7 ms of 2 streams: $spans spans" "$folder/dom" || fail "the sentence does not say $spans spans"
echo "$spans spans on the page"
