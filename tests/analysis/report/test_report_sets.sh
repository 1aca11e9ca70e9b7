#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The pages of several runs, opened in a headless browser from file://: the history, and folders of
# repetitions, of a matrix and of a study. All marks, levels, gates and links are there, hostile text
# stays text, and folders that are not whole are refused.
set -u
. "$(dirname "$0")/browser_lib.sh"
command -v sqlite3 >/dev/null || { echo "there is no sqlite3; install it: apt-get install sqlite3"; exit 77; }
need_browser
taillight=$BUILD/taillight

# --- the history ---------------------------------------------------------------------------------

"$taillight" history list --db "$folder/none.db" >"$folder/out" 2>&1 # refused; nothing is made
[ ! -e "$folder/none.db" ] || fail "list made a database"
grep -q 'no history .*none.db yet: taillight history add RUN begins it' "$folder/out" || fail "no history, and no mend"
sqlite3 "$folder/h.db" <<'EOF' || fail "filling"
CREATE TABLE runs(id INTEGER PRIMARY KEY, experiment TEXT NOT NULL, folder TEXT NOT NULL UNIQUE, label TEXT NOT NULL,
  added INTEGER NOT NULL, runs INTEGER NOT NULL, requests INTEGER NOT NULL, offered_rate REAL, taillight_version TEXT NOT NULL);
CREATE TABLE measures(run INTEGER NOT NULL REFERENCES runs(id), kind TEXT NOT NULL, name TEXT NOT NULL, us REAL,
  low_us REAL, high_us REAL, share REAL, PRIMARY KEY (run, kind, name)) WITHOUT ROWID;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
INSERT INTO runs SELECT i, '</script><b>hostile</b>', '/r' || i, '<i>hostile</i> ' || i, 0, 1, 1, 1, '0' FROM n;
INSERT INTO runs VALUES (31, 'other', '/other', 'v', 0, 1, 1, 1, '0');
INSERT INTO measures SELECT id, 'percentile', 'p95', 100 + id % 5 + 20 * (id > 18), 90, 1e6, NULL FROM runs WHERE id BETWEEN 2 AND 30;
INSERT INTO measures SELECT id, 'percentile', 'p99.9', NULL, NULL, NULL, NULL FROM runs;
INSERT INTO measures SELECT id, 'cause', '<u>hostile</u> (A)', 5 + id % 3, 4, 9, 1 FROM runs WHERE id BETWEEN 19 AND 30;
EOF
history=("$taillight" history --db "$folder/h.db")
"${history[@]}" list --html "$folder/h.html" >"$folder/out" 2>&1
[ $? = 2 ] && grep -q -- '--html is of plot' "$folder/out" || fail "a list as a page"
"${history[@]}" plot --quiet --html "$folder/h.html" >"$folder/out" || fail "no page of the history"
[ "$(cat "$folder/out")" = "$folder/h.html" ] || fail "--quiet"
grep -q '<h1 class="verdict">1 of 4 series changed their level; the latest: p95 of &lt;/script&gt;.* +20 % since #19 &lt;i&gt;hostile' \
    "$folder/h.html" || fail "the headline: $(grep '<h1' "$folder/h.html")"
# A copy that a few lines of script use once it is ready.
use='const all = what => document.querySelectorAll(what).length;
    const seen = [".point", ".interval", ".level", ".change", ".series"].map(all).join(" ");
    [...document.querySelectorAll("#kinds button")].at(-1).click(); document.body.append("seen " + seen)'
when='.observe(document.documentElement, {attributeFilter: ["data-ready"]})'
sed "s|^</body>\$|<script>new MutationObserver(() => {${use//$'\n'/}})$when</script>&|" "$folder/h.html" >"$folder/used.html"
begin_page history "$folder/used.html"

# --- folders of runs -----------------------------------------------------------------------------

mkdir "$folder/"{repetitions,matrix,study,broken,foreign}
latencies='"latency_us": {"p50": 100, "p99": 400.5, "p99.9": null}, "ci_us": {"p50": [90, 110.5], "p99": [300, null], "p99.9": null}'
row='"requests": 10, "verdict": "<b>hostile</b> verdict", "load_verdict": "n/a", "load_reasons": ["</script><b>hostile</b>"]'
gates='[{"gate": "p50 at most 1us", "outcome": "failed", "words": "<b>hostile</b>", "part": "<i>hostile</i>"},
  {"gate": "p99 at most 1us", "outcome": "passed", "words": "400 us"}]'
echo "{\"name\": \"<b>hostile</b>\", \"count\": 2, \"pooled\": {\"requests\": 20, $latencies}, \"between\": {\"percentile\": \"p99\",
  \"range_us\": [1, 2], \"between_us\": 1, \"within_us\": 0.5, \"p\": 0.001, \"exceeds_within\": true},
  \"list\": [{\"folder\": \"repetition-1\", $row, $latencies}, {\"folder\": \"javascript:alert(1)\", $row, $latencies}]}" \
    >"$folder/repetitions/repetitions.json"
echo "{\"gates\": $gates}" >"$folder/repetitions/gates.json"
echo "{\"name\": \"m\", \"count\": 2, \"list\": [{\"configuration\": \"a=1\", \"folder\": \"configuration-1\", $latencies,
  \"server_cpu_us\": 7.5, \"uncorrected_latency_us\": {\"p99\": 55}},
  {\"configuration\": \"a=2\", \"folder\": \"configuration-2\", \"skipped\": \"<b>hostile</b>\"}]}" >"$folder/matrix/matrix.json"
step='"study": false, "runs": 2, "requests": 20, "latency_us": {"p50": {"median": 10, "lowest": 9, "highest": 11, "runs": [9, 11], "pooled": 10, "pooled_ci": [9, 11]},
  "p99": {"median": 10, "lowest": 9, "highest": 9, "runs": [9, null], "pooled": null, "pooled_ci": null}}'
echo "{\"name\": \"s\", \"rounds\": 2, \"list\": [{\"step\": \"one\", \"folder\": \"one/repetition-1\", $step},
  {\"step\": \"two\", \"folder\": \"two/repetition-1\", $step}, {\"step\": \"inner\", \"folder\": \"inner\", \"study\": true}],
  \"compare\": [{\"name\": \"c\", \"base\": \"one\", \"candidate\": \"two\", \"page\": \"compare-c.html\",
    \"slices\": [{\"slice\": \"p99\", \"verdict\": \"<b>hostile</b>\"}], \"percentiles\": [{\"verdict\": \"p50 +1 %\"}]}]}" \
    >"$folder/study/study.json"
mkdir "$folder/"{loads,repeated_loads}
echo "{\"name\": \"l\", \"rounds\": 2, \"list\": [{\"step\": \"one\", \"folder\": \"one/repetition-1\", $step, \"verdict\": \"fine\", \"load\": \"ask\",
  \"loads\": {\"batch\": {$step, $row}}}, {\"step\": \"two\", \"folder\": \"two/repetition-1\", $step}]}" >"$folder/loads/study.json"
pooled="\"pooled\": {\"requests\": 20, $latencies}, \"between\": {\"percentile\": \"p99\", \"range_us\": [1, 2], \"between_us\": 1, \"within_us\": 0.5, \"p\": 0.001,
  \"exceeds_within\": true}, \"list\": [{\"folder\": \"repetition-1\", $latencies}, {\"folder\": \"repetition-2\", $latencies}]"
echo "{\"name\": \"r\", \"count\": 2, \"load\": \"ask\", $pooled, \"loads\": {\"batch\": {$pooled}}}" >"$folder/repeated_loads/repetitions.json"
echo '<svg xmlns="http://www.w3.org/2000/svg"><script>document.title = 1</script></svg>' >"$folder/study/cdf.svg"
echo '{"name": "x", "list": [' >"$folder/broken/study.json"
echo '{"name": "x", "list": [1]}' >"$folder/foreign/matrix.json"
for bad in broken/study foreign/matrix; do
    "$taillight" report "$folder/${bad%/*}" >"$folder/out" 2>&1
    [ $? -eq 2 ] && grep -q "$bad.json" "$folder/out" || fail "$bad: not refused by name"
done

"$taillight" report "$folder/repetitions" >"$folder/out" || fail "repetitions: no page"
grep -qF '2 repetitions of <b>hostile</b>; 20 requests in all: p99 401 us [300 us, never]; the repetitions differ by more than chance' \
    "$folder/out" || fail "repetitions: the sentence"
grep -qF 'Inconclusive: the load of 2 of 2 repetitions cannot be trusted: </script><b>hostile</b>. 2 repetitions of' "$folder/out" ||
    fail "repetitions: the doubt"
begin_page repetitions "$folder/repetitions/report.html"
"$taillight" report "$folder/study" -q >"$folder/out" || fail "study: no page"
begin_page study "$folder/study/report.html"
"$taillight" report "$folder/matrix" -q -o "$folder/m.html" >"$folder/out" || fail "matrix: no page"
begin_page matrix "$folder/m.html"
# Of several loads each is there: a row, a verdict and a page each, and the doubt says whose it is.
"$taillight" report "$folder/loads" >"$folder/out" || fail "loads: no page"
grep -qF 'Inconclusive: the load of 1 of 2 steps cannot be trusted: load `batch`: </script>' "$folder/out" || fail "loads: the doubt"
begin_page loads "$folder/loads/report.html"
"$taillight" report "$folder/repeated_loads" >"$folder/out" || fail "repeated loads: no page"
grep -qF '; load `ask`: 20 requests in all: p99 401 us' "$folder/out" && grep -qF '; load `batch`: 20 requests in all: p99 401 us' "$folder/out" ||
    fail "repeated loads: the sentence"
begin_page repeated_loads "$folder/repeated_loads/report.html"

# --- what is on the pages --------------------------------------------------------------------------

open_pages
whole_page history
# p95 has two levels and the change between them; p99.9 is known nowhere and has no marks.
grep -q 'seen 29 29 2 1 2' "$folder/dom" || fail "percentiles: $(grep -o 'seen [0-9 ]*' "$folder/dom")"
# Of the runs that have no cause at all nothing is known.
[ "$(in_page 'class="point"')" = 12 ] && [ "$(in_page 'not known in 18 runs')" = 1 ] || fail "the causes' marks"
whole_page repetitions
[ "$(in_page 'class="point"') $(in_page 'class="level"')" = "6 2" ] || fail "repetitions: marks $(in_page 'class="point"')"
grep -q 'href="./repetition-1/report.html"' "$folder/dom" && grep -q 'href="./javascript%3Aalert(1)/report.html"' "$folder/dom" ||
    fail "repetitions: the links"
grep -q '1 gate failed, 1 gate passed' "$folder/dom" && [ "$(in_page 'p50 at most 1us')" = 1 ] || fail "repetitions: the gates"
grep -qF 'Inconclusive: the load of 2 of 2 repetitions' "$folder/dom" || fail "repetitions: the page does not doubt them"
whole_page study
for one in one two; do
    for i in 1 2; do grep -q "href=\"./$one/repetition-$i/report.html\"" "$folder/dom" || fail "study: no link to $one $i"; done
done
grep -q 'href="./inner/report.html"' "$folder/dom" && grep -q 'href="./compare-c.html"' "$folder/dom" || fail "study: the links"
[ "$(in_page 'src="data:image/svg+xml,')" = 1 ] && [ "$(in_page 'pooled 10.0 µs')" = 2 ] || fail "study: picture, pooled percentiles"
# Which runs' ends are told is decided once, where the study is written.
[ "$(in_page '\[9.00 µs, 9.00 µs\]')" = 2 ] || fail "study: the ends of a percentile that one run has"
whole_page matrix
grep -q 'skipped: &lt;b&gt;hostile' "$folder/dom" && grep -q '7.50 µs' "$folder/dom" && grep -q 'from the send 55.0 µs' "$folder/dom" ||
    fail "matrix: what was skipped, the cost, latency from the send"
whole_page loads
for i in 1 2; do
    grep -q "one, load ask.*href=\"./one/repetition-$i/report.html\"" "$folder/dom" &&
        grep -q "one, load batch.*href=\"./one/repetition-$i/report-batch.html\"" "$folder/dom" || fail "loads: no link to $i"
done
[ "$(in_page 'class="point"')" = 6 ] && grep -q 'first round: load n/a' "$folder/dom" &&
    grep -q 'href="./one/repetition-1/report-batch.html">one, load batch</a></span></t[dh]><t[^>]*>&lt;b&gt;hostile&lt;/b&gt; verdict' "$folder/dom" ||
    fail "loads: marks, the note, the verdicts"
whole_page repeated_loads
[ "$(in_page 'class="point"') $(in_page 'class="level"')" = "12 4" ] || fail "repeated loads: marks $(in_page 'class="point"') $(in_page 'class="level"')"
grep -q 'href="./repetition-2/report-batch.html"' "$folder/dom" && grep -q 'all of load ask, pooled' "$folder/dom" &&
    grep -q 'all of load batch, pooled' "$folder/dom" && grep -q 'Between runs of load batch' "$folder/dom" || fail "repeated loads: rows"
echo "pages of several runs: history, repetitions, study"
