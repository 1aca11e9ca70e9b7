#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Time limit: 900 s
# test_page_used.sh with every cause that the bar offers, and with labels over more curves, of more messages.
THOROUGH=1
. tests/analysis/report/test_page_used.sh
# And the README's picture is made of it.
timeout 100 python3 tests/analysis/report/picture.py "$browser" "$folder/profile" "$folder/usual.html" "$folder/picture" >"$folder/out" 2>&1 ||
    fail 'no picture'
for theme in light dark; do
    [ "$(stat -c %s "$folder/picture-$theme.webp")" -gt 20000 ] || fail "the picture is empty: $theme"
done
