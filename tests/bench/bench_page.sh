#!/usr/bin/env bash
# How soon a run's page is there, and how soon it follows what its reader does, in a headless browser: that of 200,000
# simulated requests, and beside it, alternated, that of 2,000, which tells how quick the machine is. PAGE=FILE: a
# report.html in place of the large one; ROUNDS=N (9).
. tests/analysis/report/browser_lib.sh
need_browser
rounds=${ROUNDS:-9} page=${PAGE:-$folder/large.html}
[ -n "${PAGE:-}" ] || "$BUILD/tests/analysis/report/test_report_html" --write "$page" large || exit 1
"$BUILD/tests/analysis/report/test_report_html" --write "$folder/small.html" small || exit 1
for one in "$page" "$folder/small.html"; do
    sed "/^<\/body>\$/r tests/bench/page_driver.html" "$one" >"$folder/driven-$(basename "$one")" || exit 1
done
python3 tests/bench/page_times.py "$browser" "$folder/profile" "$rounds" \
    large="$folder/driven-$(basename "$page")" small="$folder/driven-small.html" >"$folder/out" || fail 'the pages cannot be used'
[ "$(grep -c ' ready$' "$folder/out")" = $((2 * rounds)) ] || fail 'the page did not say how long it took'
echo "$(($(stat -c %s "$page") / 1000)) kB and $(($(stat -c %s "$folder/small.html") / 1000)) kB, $(nproc) cores, $rounds rounds, no GPU; ms"
printf '%10s %10s %10s %10s  %s\n' median worst 'median of' 'worst of 2,000' step
of() { # PAGE STEP: the median and the worst
    awk -v page="$1" -v what="$2" '$1 == page {ms = $2; sub(/^[^ ]* [^ ]* /, "")} $0 == what {print ms}' "$folder/out" | sort -n |
        awk '{all[NR] = $1} END {if (NR) printf "%10.1f %10.1f", all[int((NR + 1) / 2)], all[NR]; else printf "%10s %10s", "-", "-"}'
}
sed -n 's/^large [^ ]* //p' "$folder/out" | awk '!seen[$0]++' | while read -r what; do
    echo "$(of large "$what") $(of small "$what")  $what"
done | sed 's/^ */  /' | awk '{printf "%10s %10s %10s %14s ", $1, $2, $3, $4; for (i = 5; i <= NF; i++) printf " %s", $i; print ""}' | tee "$folder/table"
jq -R -s '[split("\n")[] | select(. != "") | capture("^ *(?<median_ms>[0-9.]+) +(?<worst_ms>[0-9.]+) +(?<small_median_ms>[-0-9.]+) +(?<small_worst_ms>[-0-9.]+) +(?<step>.*)$")
    | {step, median_ms: (.median_ms | tonumber), worst_ms: (.worst_ms | tonumber), small_median_ms: (.small_median_ms | tonumber?), small_worst_ms: (.small_worst_ms | tonumber?)}]' \
    "$folder/table" >"$BUILD/bench/page.json"
