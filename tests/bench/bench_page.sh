#!/usr/bin/env bash
# How soon a run's page is there, and how soon it follows what its reader does, in a headless browser. The page is
# that of PAGE=FILE, a report.html, else one of 200,000 simulated requests; ROUNDS=N (9).
. tests/analysis/report/browser_lib.sh
. tests/ports.sh
need_browser
rounds=${ROUNDS:-9} page=${PAGE:-}
if [ -z "$page" ]; then
    page=$folder/large.html
    "$BUILD/tests/analysis/report/test_report_html" --write "$page" large || exit 1
fi
# The browser writes what is on the page when all of it is loaded: a picture that takes its time keeps it open.
python3 -c '
import http.server, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(4)
        self.send_error(404)
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
print(server.server_address[1], flush=True)
server.serve_forever()' >"$folder/port" &
pictures=$!
trap 'kill $pictures; rm -rf "$folder"' EXIT
await test -s "$folder/port" || fail 'no server for the picture'
sed -e '/http-equiv="Content-Security-Policy"/d' -e "/^<\/body>\$/r tests/bench/page_driver.html" "$page" |
    sed "s|^</body>\$|<img alt=\"\" src=\"http://127.0.0.1:$(cat "$folder/port")/\"></body>|" >"$folder/driven.html" || exit 1
for _ in $(seq "$rounds"); do
    # Not in virtual time, as in the tests: that stands still while scripts run.
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage \
        --window-size=1400,1000 --user-data-dir="$folder/profile" --dump-dom "file://$folder/driven.html" 2>"$folder/stderr" |
        sed -n 's/.*TIME \([0-9.]* .*\)/\1/p' | sed 's/<.*//' >>"$folder/times"
done
[ "$(grep -c ' ready$' "$folder/times")" = "$rounds" ] || fail 'the page did not say how long it took'
echo "$(($(stat -c %s "$page") / 1000)) kB, $(nproc) cores, $rounds rounds, no GPU; ms"
printf '%10s %10s  %s\n' median worst step
cut -d' ' -f2- "$folder/times" | awk '!seen[$0]++' | while read -r what; do
    sort -n <(awk -v what="$what" '{ms = $1; sub(/^[^ ]* /, "")} $0 == what {print ms}' "$folder/times") |
        awk -v what="$what" '{all[NR] = $1} END {printf "%10.1f %10.1f  %s\n", all[int((NR + 1) / 2)], all[NR], what}'
done | tee "$folder/table"
jq -R -s '[split("\n")[] | select(. != "") | capture("^ *(?<median_ms>[0-9.]+) +(?<worst_ms>[0-9.]+)  (?<step>.*)$")
    | {step, median_ms: (.median_ms | tonumber), worst_ms: (.worst_ms | tonumber)}]' "$folder/table" >"$BUILD/bench/page.json"
