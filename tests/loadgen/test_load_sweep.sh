#!/usr/bin/env bash
# What stands above one load run, on a server that takes 100 us for each request and can thus
# answer 10,000 a second at most: a sweep finds the server saturated and says so; a search for an
# SLO finds a rate below that, none, or says that it cannot tell. --hgrm. Asserts words and counts,
# never times; on a busy machine a search may well be inconclusive.
set -u
. "$(dirname "$0")/load_lib.sh"
load() {
    timeout 60 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" \
        --quiet "$@" >"$dir/out" 2>"$dir/err"
}
start_server --service fixed:100us

refused() {
    load "${@:2}"
    [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err" || fail "${*:2}: not refused with $1"
}
refused '--sweep: "1k:2k" is not FROM:TO:STEP' --sweep 1k:2k
refused '--slo: "p99>=1ms": <= or <' --slo 'p99>=1ms'
refused '--rate and --sweep exclude each other' --rate 1k --sweep 1k:2k:1k
refused '--sweep makes runs of its own' --sweep 1k:2k:1k --samples "$dir/s"
refused '--prepare stores the dataset and makes no load: run it first, and then --sweep without it' --prepare --sweep 1k:2k:1k --out "$dir/s"

# The table, sweep.json and the page say the same of each number, of which few requests reach some, too.
if is_long; then
    load --sweep 200:1k:800 --duration 300ms --out "$dir/few"
    cp "$dir/out" "$dir/few.terminal"
    load --sweep 14k:20k:6k --duration 300ms --timeout 100ms --out "$dir/table"
    draw() { # FOLDER: its page as a browser has it, in FOLDER.dom
        "$build/taillight" report "$1" -q >"$1.page" || fail "no page of $1"
        timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=3000 \
            --user-data-dir="$1.profile" --dump-dom "file://$1/report.html" >"$1.dom" 2>"$1.browser"
    }
    numbers_of() { # FOLDER TERMINAL
        python3 tests/experiments/set_numbers.py "$1/sweep.json" "$2" "$1.dom" >"$dir/told" 2>&1 || fail "$(cat "$dir/told")"
    }
    browser=$(command -v chromium || command -v google-chrome || true)
    if [ -n "$browser" ]; then
        draw "$dir/table" &
        draw "$dir/few"
        wait $!
        numbers_of "$dir/table" "$dir/out"
        numbers_of "$dir/few" "$dir/few.terminal"
        cat "$dir/told"
        # A check that can fail: a table of which each interval begins elsewhere.
        python3 tests/experiments/set_numbers.py "$dir/few/sweep.json" <(sed 's/\[/[1/' "$dir/few.terminal") "$dir/few.dom" >"$dir/told" 2>&1 &&
            fail 'numbers that differ are not seen'
    fi
fi

# Beyond 10,000 a second the server is saturated, and the client is not: three tries, because
# whoever else runs here may keep the client from sending, or the server from answering 8,000.
who() { jq -r "[.points[] | select(.rate == $1) | .saturated.who] | first" "$dir/out"; }
for try in 1 2 3; do
    load --sweep 8k:26k:6k --duration 500ms --timeout 200ms --json --out "$dir/sweep"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "sweep: exit $status"
    cmp -s <(jq -S . "$dir/out") <(jq -S . "$dir/sweep/sweep.json") ||
        fail 'sweep.json differs from --json'
    [ "$(jq -r .stop "$dir/out")" = saturated ] || fail 'the sweep: why it ended'
    [ "$(who 14000)" = server ] && [ "$(who 20000)" = server ] && break
    jq -e '[.points[].saturated.who] | any(. == "client") or first == "server"' "$dir/out" >/dev/null ||
        fail 'not saturated at 14k'
done
if [ "$(who 14000)" != server ] || [ "$(who 20000)" != server ]; then
    echo "this machine is too busy: $(jq -r .saturation.why "$dir/out")"
    exit 77
fi
[ "$(jq -r .saturation.who "$dir/out")" = server ] || fail 'the sweep: who is saturated'
jq -e '.points | length >= 2 and all(.achieved_rate < 10500)' "$dir/out" >/dev/null || fail 'points'
rest_is_long

load --sweep 14k:20k:6k --duration 500ms --timeout 200ms
grep -qE 'from 14,000 requests/s on the (server|client) is saturated: ' "$dir/out" || fail 'the table'

# No request takes less than the 100 us of its service.
load --slo 'p50<=90us' --rate 1k --duration 300ms --json --out "$dir/none"
status=$?
[ $status -eq 3 ] || [ $status -eq 4 ] || fail "an SLO that cannot be met: exit $status"
verdict=$(jq -r .slo.verdict "$dir/out")
[ $status -eq 3 ] && [ "$verdict" != missed ] && fail "missed: verdict $verdict"
[ $status -eq 4 ] && [ "$verdict" != n/a ] && fail "inconclusive: verdict $verdict"
jq -e '.slo.met_up_to == null and all(.points[]; .slo != "met")' "$dir/out" >/dev/null ||
    fail 'an SLO that cannot be met: met'

# Twice the saturated rate never meets one; the search ends between.
load --slo 'p50<=5ms' --sweep 2k:32k:x2 --duration 200ms --timeout 200ms --json
status=$? searched=$?
case "$status $(jq -r .slo.verdict "$dir/out")" in '0 met' | '4 n/a') ;; *) fail "search: $status" ;; esac
if [ $status -eq 0 ]; then
    jq -e '.slo | .met_up_to >= 2000 and .met_up_to <= 11000 and
        .not_met_from > .met_up_to and .not_met_from <= .met_up_to * 2.0001' "$dir/out" >/dev/null ||
        fail 'search: the gap'
    jq -e '.slo.met_up_to as $up | [.points[] | select(.rate == $up and .slo == "met")] | length >= 2' \
        "$dir/out" >/dev/null || fail 'search: not confirmed'
fi

# A recording at each rate ends where its last request does.
seq 0 0.01 1.99 >"$dir/times"
load --sweep 1k:4k:x2 --arrivals "replay:$dir/times" --duration 200ms --json
jq -e '.points | length >= 1 and all(.[]; .offered_rate > .rate * 0.9)' "$dir/out" >/dev/null ||
    fail "a recording: offered $(jq -c '[.points[] | [.rate, .offered_rate]]' "$dir/out")"

# The percentile table counts every scheduled request.
load --rate 2k --duration 500ms --json --hgrm "$dir/hgrm"
grep -q 'Value     Percentile TotalCount 1/(1-Percentile)' "$dir/hgrm" || fail 'hgrm: the head'
grep -qE "^#\[Max .* Total count +=  *$(jq .scheduled "$dir/out")\]" "$dir/hgrm" || fail 'hgrm: the count'
[ $searched -eq 4 ] && echo 'the search was inconclusive on a machine this busy'
exit 0
