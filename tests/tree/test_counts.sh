#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A count in a sentence of the program is written by TEXT_COUNT ("12,345 requests"): counts.py says what is one. On the page it is
# written by count() or plural().
set -u
export PYTHONDONTWRITEBYTECODE=1
mapfile -t sources < <(find taillight.c base workloads loadgen profiler shim analysis experiments -name '*.[ch]')
[ ${#sources[@]} -gt 300 ] || { echo "FAIL: only ${#sources[@]} sources"; exit 1; }
raw_on_page() { grep -nE '\$\{[^}(]*(length|\.count|counts\.[a-z_]+)[^}(]*\} [a-z]' "$@"; }
# A check that can fail, and that lets pass what is no count.
line_file=$(mktemp)
trap 'rm -f "$line_file"' EXIT
for line in 'printf("%zu requests", n);' 'printf("lost %llu of %s", n, s);' 'printf("%" PRIu64 " records lost", n);' \
    'printf("%u connection%s", n, s);' 'printf("over %s, %llu "\n "times", s, n);' 'printf("%d in flight", n);'; do
    printf '%b\n' "$line" >"$line_file"
    [ -n "$(python3 tests/tree/counts.py "$line_file")" ] || { echo "FAIL: not seen: $line"; exit 1; }
done
for line in 'printf("%s:%zu: no comma", s, n);' 'printf("%zu bytes of it", n);' 'printf("{\"port\": %u}", n);' \
    'sscanf(line, "overrun: %llu of", &n);' 'printf("request %llu took %s", n, s);' 'printf("on %u cores", n);' \
    'printf("%s requests", TEXT_COUNT(n)); // %zu requests'; do
    echo "$line" >"$line_file"
    found=$(python3 tests/tree/counts.py "$line_file")
    [ -z "$found" ] || { echo "FAIL: no count: $line"; exit 1; }
done
echo "\`\${own.length} messages\`" >"$line_file"
raw_on_page "$line_file" >/dev/null || { echo 'FAIL: not seen on the page'; exit 1; }
found=$(python3 tests/tree/counts.py "${sources[@]}"; raw_on_page analysis/report/page/assets/*.js)
[ -z "$found" ] || { echo "FAIL: counts without separators:"; echo "$found"; exit 1; }
echo "${#sources[@]} sources"
