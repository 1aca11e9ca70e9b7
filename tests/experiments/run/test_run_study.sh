#!/usr/bin/env bash
# A study: two steps, compared, and a study in it that runs them in turn, twice; tables, pictures and
# pages of what they came to.
# Runs beside others: what its runs come to is not what it is about.
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
experiment "$work/one.yaml" netns 2k 500ms <<EOF
servers: {cache: {kind: memcached, threads: 1}}
EOF
printf 'extends: one.yaml\nservers: {cache: {threads: 2}}\n' >"$work/two.yaml"
cat >"$work/long.yaml" <<EOF
name: long
rounds: 2
steps: {one: one.yaml, two: two.yaml}
with: {capture: {backend: none}, servers: {cache: {shim: false}}, load: {duration: 200ms},
    gates: [{percentile: p50, max: 1ns}, {percentile: p50, max_increase: 5%}]}
compare: {both: {base: one, candidate: two}}
EOF
cat >"$work/all.yaml" <<EOF
name: all
steps: {one: one.yaml, two: two.yaml, long: long.yaml}
compare: {middle: {base: one, candidate: two, slices: [p40-p60]}}
gates: [{percentile: p50, max_increase: 5%}, {percentile: p50, max: 100s}]
EOF
"$taillight" run --check "$work/all.yaml" >"$work/plan" 2>"$work/cmd.err" || fail "--check"
grep -q 'step long: study long (.*long.yaml): 2 steps, in turn, 2 times' "$work/plan" || fail "the plan: $(cat "$work/plan")"
run=$work/run
"$taillight" run "$work/all.yaml" --out "$run" --junit "$work/gates.xml" --annotations >"$work/out" 2>"$work/run.err"
status=$?
# Whether half a second on a busy machine is enough for a verdict is not what this is about.
# Nor is it how sure two rounds make a gate.
[ $status = 3 ] || [ $status = 4 ] || fail "exit $status"
analyzed_once 6 "$work/run.err"
for folder in one two long/{one,two}/repetition-{1,2}; do
    [ -s "$run/$folder/report.html" ] || fail "no report in $folder"
done
for file in report.html study.json results.md cdf.svg compare-middle.html long/report.html long/cdf.svg; do
    [ -s "$run/$file" ] || fail "no $file"
done
jq -e '[.list[] | [.step, .folder, .study]] == [["one", "one", false], ["two", "two", false], ["long", "long", true]]
    and .compare[0].slices[0].slice == "p40-p60"' "$run/study.json" >/dev/null || fail "study.json: $(cat "$run/study.json")"
# The percentiles of a run are those of its own summary, and the runs of a step have seeds of their own.
p99=$(jq .latency_us.p99 "$run/one/client/load.json") # null: on a machine so busy that not all came back
jq -e --argjson p99 "$p99" '.list[0].latency_us.p99.median as $m | $m == $p99 or ($m - $p99 | fabs < 0.01)' "$run/study.json" >/dev/null ||
    fail "p99 is $p99 in load.json: $(jq -c '.list[0].latency_us' "$run/study.json")"
jq -e '[.list[].latency_us["p99"].runs | length] == [2, 2]' "$run/long/study.json" >/dev/null || fail "long/study.json"
seeds=$(for i in 1 2; do json "$run/long/one/repetition-$i/experiment.json" '$.load.seed'; done | sort -u | wc -l)
[ "$seeds" = 2 ] || fail "both rounds have one seed"
grep -q '^| one | 1 | ' "$run/results.md" && grep -q '^## middle: two against one' "$run/results.md" ||
    fail "results.md: $(cat "$run/results.md")"
cmp <(head -5 "$work/out") <(head -5 "$run/results.md") || fail "the terminal says something else"
python3 -c 'import sys, xml.dom.minidom as m; d = m.parse(sys.argv[1]); assert len([p for p in
    d.getElementsByTagName("path") if p.getAttribute("stroke-width") == "1.8"]) == 4' "$run/long/cdf.svg" ||
    fail "cdf.svg has not two curves in each of two panels"
# The table, study.json and the page say the same of each percentile, wherever it is told.
if is_long && command -v chromium >/dev/null; then
    for study in "$run" "$run/long"; do
        timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=3000 \
            --user-data-dir="$work/profile" --dump-dom "file://$study/report.html" >"$work/dom" 2>"$work/browser.err"
        python3 tests/experiments/set_numbers.py "$study/study.json" "$study/results.md" "$work/dom" >"$work/told" 2>&1 ||
            fail "$(cat "$work/told")"
        cat "$work/told"
    done
fi
for step in one two; do
    jq -e '.gates | length == 1 and .[0].value > 0.001 and .[0].outcome != "passed"' "$run/long/$step/gates.json" >/dev/null ||
        fail "the gate of $step: $(cat "$run/long/$step/gates.json")"
    jq -e --arg step $step '[.gates[] | select(.part == $step)] | length == 1' "$run/long/gates.json" >/dev/null || fail "$step of long"
    grep -q "^gate .* p50 at most 1ns: long/$step: " "$work/out" || fail "the gate of $step is not reported: $(tail -5 "$work/out")"
done
# Gates of the comparisons: the study's, with one run a side; the candidate's of an increase, over both
# rounds, which then wait for nothing but that of the base. No gate is passed by loads that a machine this
# busy leaves inconclusive.
jq -e '([.gates[] | select(.part == "middle") | [.gate, (.outcome | sub("passed"; "inconclusive"))]] ==
        [["p50 at most +5%", "inconclusive"], ["p50 at most 100s", "inconclusive"]])
    and ([.gates[] | select(.gate == "p50 at most 100s") | .outcome == "passed" or (.words | contains("cannot be trusted"))] | all)
    and ([.gates[].part] | sort | unique) == ["long/both", "long/one", "long/two", "middle"]' \
    "$run/gates.json" >/dev/null || fail "gates.json: $(cat "$run/gates.json")"
jq -e '[.gates[] | select(.part == "both")] | length == 1 and .[0].unit == "share" and .[0].value != null' \
    "$run/long/gates.json" >/dev/null || fail "long/gates.json: $(cat "$run/long/gates.json")"
jq -e '.compare[0].percentiles[0].percentile == "p50" and (.gates | length) == 3' "$run/long/study.json" >/dev/null ||
    fail "the comparison over all rounds: $(jq -c .compare "$run/long/study.json")"
grep -q '^1 gate of an increase waits for a base' "$work/out" || fail "waiting: $(tail -4 "$work/out")"
grep -q '^::warning title=p50 at most +5%25 inconclusive::middle: ' "$work/out" || fail "no annotation"
python3 -c 'import sys, xml.etree.ElementTree as t; cases = t.parse(sys.argv[1]).getroot().findall("testsuite/testcase")
names = [(c.get("classname"), c.get("name")) for c in cases]; assert len(set(names)) == 5, names
assert ("all.middle", "p50 at most +5%") in names, names' "$work/gates.xml" || fail "JUnit"
check_nothing_left "$run" ""
echo "study: $(sed -n 's/^| one/one/p' "$run/results.md")"
