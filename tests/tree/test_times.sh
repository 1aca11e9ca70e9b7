#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A time that was measured is written in one way, by base/units.h, base/text.h (TEXT_NS, TEXT_US, TEXT_INSTANT) and, on the
# page, page_plot.js: no other format has a fraction with a unit of time behind it, and no table one unit for
# all of its times. (Whole numbers of a unit are settings; ticks of an axis are of its scale.)
# A rate, so many requests/s or /s, is written by TEXT_RATE or text_rate(): "20,000", "0.5".
set -u
own_writers() { # FILE...
    grep -nE '%[-+0-9.*]*[efg] (ns|us|µs|ms)\b|%\.([1-9*][0-9]*f|[0-9]+g) s\b|"[^"]*,? in (us|ms)[:.]|\| [a-z]+ (us|ms) \|' "$@" |
        grep -vE 'seconds \* i / 5|:[0-9]+: *(//|\*)'
    grep -nE '%[-+0-9.*]*(ll|z)?[dufg] ?((%s|logical )?request(s|%s)?)?/s\b' "$@" | grep -vE '"/proc/|:[0-9]+: *(//|\*)'
    grep -nE '(toFixed|toPrecision)\([^)]*\)\)? *(\+ *.|\}) ?(ns|us|µs|ms)\b' "$@"
}
mapfile -t sources < <(find taillight.c base workloads loadgen profiler shim analysis experiments -name '*.[chj]' -o -name '*.js' |
    grep -vE '^(base/(units|text)\.c|analysis/report/page/assets/page_plot\.js)$')
[ ${#sources[@]} -gt 300 ] || { echo "FAIL: only ${#sources[@]} sources"; exit 1; }
# A check that can fail.
line_file=$(mktemp)
trap 'rm -f "$line_file"' EXIT
for line in 'printf("p99 %.1f us", us);' 'printf("for %.3g s\n", s);' 'printf("%zu requests; pooled, in us:", n);' \
    'printf("at %.10g requests/s", rate);' 'printf("%llu/s", rate);' 'printf("%.0f %srequest%s/s", rate, logical, s);' \
    'puts("| cause | median us |");' "(us / 1e3).toFixed(1) + ' ms'" '`${us.toFixed(1)} µs`'; do
    echo "$line" >"$line_file"
    [ -n "$(own_writers "$line_file")" ] || { echo "FAIL: not seen: $line"; exit 1; }
done
found=$(own_writers "${sources[@]}")
[ -z "$found" ] || { echo "FAIL: times or rates that are written in another way:"; echo "$found"; exit 1; }
echo "${#sources[@]} sources"
