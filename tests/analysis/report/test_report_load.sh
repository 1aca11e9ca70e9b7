#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The page of a sweep or a search, opened in a headless browser from file://: all points, the SLO
# and the saturation are drawn, hostile text stays text; and folders that are not whole are refused.
set -u
. "$(dirname "$0")/browser_lib.sh"
point() { # rate, p50, who, verdict
    cat <<JSON
{"rate": $1, "duration_s": 1, "seed": 1, "offered_rate": $1, "achieved_rate": $1, "scheduled": 1, "answered": 1,
 "latency_us": {"p50": $2, "p99": 400.5, "p99.9": null}, "ci_us": {"p50": [90, 110.5], "p99": [300, null], "p99.9": null},
 "verdict": "$4", "reasons": ["</script><b>hostile</b>"], "spin_fraction": 0.5,
 "saturated": {"who": "$3", "why": "the server is saturated: <i>hostile</i>", "in_flight": [1, 2], "waiting": [0, 0]},
 "slo": "met", "slo_why": ""}
JSON
}
mkdir "$folder/search" "$folder/sweep" "$folder/broken" "$folder/foreign"
head='"server": "host:1 <b>", "protocol": "memcached", "workload": null, "arrivals": "exponential", "pattern": "constant",
 "seed": 1, "connections": 16, "depth": null'
points="[$(point 1000 100 none ok), $(point 2000 150.5 none n/a), $(point 3000 null server n/a)]"
echo "{\"kind\": \"search\", $head, \"points\": $points, \"slo\": {\"text\": \"p99<=500us\", \"quantile\": 0.99,
 \"limit_us\": 500, \"verdict\": \"met\", \"why\": \"p99<=500us is met up to 2000 requests/s\", \"met_up_to\": 2000,
 \"not_met_from\": 3000, \"trials\": 4}}" >"$folder/search/sweep.json"
echo "{\"kind\": \"sweep\", $head, \"points\": $points, \"stop\": \"saturated\", \"highest_ok\": 1000,
 \"saturation\": {\"rate\": 3000, \"who\": \"server\", \"why\": \"the server is saturated: so it is\"}}" >"$folder/sweep/sweep.json"
echo '{"kind": "sweep", "points": [' >"$folder/broken/sweep.json"
echo '{"points": [{"rate": "many"}]}' >"$folder/foreign/sweep.json"

"$BUILD/taillight" report "$folder/sweep/sweep.json" >"$folder/out" 2>&1
[ $? -eq 2 ] && grep -q 'sweep.json: Not a directory' "$folder/out" || fail 'a file for a folder'
for bad in broken foreign; do
    "$BUILD/taillight" report "$folder/$bad" >"$folder/out" 2>&1
    [ $? -eq 2 ] && grep -q "$bad/sweep.json" "$folder/out" || fail "$bad: not refused by name"
done
"$BUILD/taillight" report "$folder/search" >"$folder/out" || fail 'search: no page'
grep -q '^p99<=500us is met up to 2000 requests/s$' "$folder/out" || fail 'search: the sentence'
"$BUILD/taillight" report "$folder/sweep" -q -o "$folder/curve.html" >"$folder/out" || fail 'sweep: no page'
[ "$(cat "$folder/out")" = "$folder/curve.html" ] || fail 'sweep: --quiet'
grep -q 'From 3,000 requests/s on the server is saturated: so it is' "$folder/curve.html" || fail 'sweep: the verdict'

# One verdict: what cannot be trusted is not a headline.
sed 's/"highest_ok": 1000/"highest_ok": null/' "$folder/sweep/sweep.json" >"$folder/foreign/sweep.json"
"$BUILD/taillight" report "$folder/foreign" >"$folder/out" || fail 'doubtful: no page'
grep -qF 'Inconclusive: the figures of no rate can be trusted; of the first: </script><b>hostile</b>' "$folder/out" ||
    fail 'doubtful: the sentence'

need_browser
begin_page search "$folder/search/report.html"
begin_page curve "$folder/curve.html"
open_pages
look_at() { # NAME
    whole_page "$1"
    [ "$(in_page 'class="point"')" -eq 9 ] || fail "$1: not three points of three percentiles"
    grep -q 'id="saturation"' "$folder/dom" || fail "$1: saturation is not marked"
}
look_at search
grep -q 'id="slo"' "$folder/dom" || fail 'search: no line for the SLO'
look_at curve
grep -q 'id="slo"' "$folder/dom" && fail 'sweep: a line for an SLO'
exit 0
