#!/usr/bin/env bash
# Gates at the end of a run of repetitions and in a comparison: exit codes, what is said, JUnit XML,
# annotations, gates.json.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
need_program python3 python3
need_program memcached memcached
need_program ip iproute2
unshare -n true 2>/dev/null || skip "network namespaces cannot be made here: it takes root"
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
experiment "$work/gated.yaml" netns 1k 300ms <<EOF2
servers: {cache: {kind: memcached, threads: 1}}
capture: {backend: none}
repetitions: {count: 3}
gates:
  - {percentile: p50, max: 1ns}
  - {percentile: p25, max: 100s}
  - {percentile: p50, max_increase: 5%}
  - {cause: "application time (A)", max: 1us}
EOF2
unhurried_run "$work/run" "$work/gated.yaml" --junit "$work/run.xml" --annotations ||
    skip "this machine is too busy for a load that can be trusted, without which no gate is judged"
[ "$status" = 3 ] || fail "a failed gate is not exit 3 but $status: $(grep "^gate" "$work/out")"
analyzed_once 3 "$work/run.err"
grep -q '^::error title=p50 at most 1ns failed::' "$work/out" || fail "no annotation"
jq -e '[.gates[].outcome] == ["failed", "passed", "inconclusive"]' "$work/run/gates.json" >/dev/null || fail "gates.json"
python3 - "$work/run.xml" <<'EOF2' || fail "JUnit"
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot().find("testsuite")
assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
assert [case.get("classname") for case in suite] == ["test"] * 3
assert suite.find("testcase/failure") is not None
EOF2
compare() { # EXIT MORE-OPTIONS...
    local wanted=$1 status
    shift
    "$taillight" compare "$work/run" "$work/run" --quiet "$@" >"$work/out" 2>"$work/cmp.err"
    status=$?
    [ $status = "$wanted" ] || fail "exit $status instead of $wanted: compare $*"
}
# The candidate's own gates, with a base: the fourth is judged as well.
# What is no run is refused before the other side is analysed, which takes long.
"$taillight" compare "$work/run" "$work/no-run" >"$work/out" 2>"$work/cmp.err"
[ $? = 2 ] && [ "$(wc -l <"$work/cmp.err")" = 1 ] && grep -q 'no-run is neither a run folder' "$work/cmp.err" ||
    fail "compare with a folder that is not there: $(cat "$work/cmp.err")"
compare 3 --json
jq -e '.gates[0].outcome == "failed" and (.gates | length) == 4 and .base.runs == 3' "$work/out" >/dev/null || fail "the document"
jq -e '[.percentiles[].change] | all(. == null or . == 0)' "$work/out" >/dev/null || fail "a run differs from itself"
echo 'gates: [{percentile: p50, max: 100s}]' >"$work/gates.yaml"
compare 0 --gates "$work/gates.yaml" --junit "$work/compare.xml"
grep -q '^gate passed .*p50 at most 100s: .*\] (95 %)' "$work/out" || fail "the passed gate is not reported"
echo 'gates: [{cause: "yes (A)", max: 1us}]' >"$work/gates.yaml"
compare 4 --gates "$work/gates.yaml" --annotations
grep -q '^::warning title=yes (A) at most 1us inconclusive::' "$work/out" || fail "no warning"
echo 'gates: [{percentile: p50, max: 100}]' >"$work/gates.yaml"
compare 2 --gates "$work/gates.yaml"
grep -q 'gates.yaml:1:32: max: ' "$work/cmp.err" || fail "a wrong gate is not placed"
rest_is_long

# The page of repetitions, with categories, of the same comparison.
printf 'client,mine\n' >"$work/mine.csv"
compare 3 --output "$work/page.html" --categories "$work/mine.csv"
[ -s "$work/page.html" ] && grep -q "^Report: $work/page.html" "$work/out" || fail "no page of repetitions"
"$taillight" compare "$work" "$work/run" >"$work/out" 2>"$work/cmp.err"
[ $? = 2 ] && grep -q 'neither a run folder' "$work/cmp.err" || fail "a folder that is no run"
# One run a side, with gates: the comparison of two runs, and the gates after it.
echo 'gates: [{percentile: p50, max: 100s}, {percentile: p50, max_increase: 5%}]' >"$work/gates.yaml"
"$taillight" compare "$work/run/repetition-1" "$work/run/repetition-2" --quiet --gates "$work/gates.yaml" >"$work/out" 2>"$work/cmp.err"
[ $? = 4 ] && grep -q '^gate inconclusive p50 at most +5%.*takes at least two a side' "$work/out" || fail "one run a side"
# One document, whether a side is one run or several.
shape() { jq -cS '[keys, (.percentiles[0] | keys), (.slices[0] | keys - ["base", "candidate"])]' "$1"; }
"$taillight" compare "$work/run" "$work/run" --quiet --json --gates "$work/gates.yaml" >"$work/out" 2>"$work/cmp.err"
shape "$work/out" >"$work/several"
"$taillight" compare "$work/run/repetition-1" "$work/run/repetition-2" --quiet --json --gates "$work/gates.yaml" >"$work/out" 2>"$work/cmp.err"
[ $? = 4 ] && jq -e '.base.runs == 1 and (.gates | length) == 2' "$work/out" >/dev/null || fail "one run a side as JSON"
[ "$(shape "$work/out")" = "$(cat "$work/several")" ] || fail "two shapes: $(shape "$work/out") and $(cat "$work/several")"
"$taillight" compare "$work/run" "$work/run" >"$work/out" 2>"$work/cmp.err"
analyzed_once 3 "$work/cmp.err"
"$taillight" compare "$work/run" "$work/run/repetition-1" >"$work/out" 2>"$work/cmp.err"
analyzed_once 4 "$work/cmp.err"
# What a load that cannot be trusted measured neither passes nor fails a build, and the comparison says so first.
cp -r "$work/run" "$work/doubtful"
jq '.verdict = "n/a" | .reasons = ["this client had its core for only 63 % of the time"] | .doubts = ["starved"]' \
    "$work/run/repetition-2/client/load.json" >"$work/doubtful/repetition-2/client/load.json"
echo 'gates: [{percentile: p50, max: 1ns}, {percentile: p50, max: 100s}]' >"$work/gates.yaml"
for sides in "run doubtful" "doubtful run"; do
    read -r base candidate <<<"$sides"
    "$taillight" compare "$work/$base" "$work/$candidate" --quiet >"$work/out" 2>"$work/cmp.err"
    status=$?
    side=$([ $candidate = doubtful ] && echo candidate || echo base)
    [ $status = 4 ] || [ $side = base ] || fail "exit $status of a comparison with such a load"
    head -n 1 "$work/out" | grep -q "^Inconclusive: the $side's load cannot be trusted in 1 of 3 runs: the load generator was starved of its CPU core" || fail "no headline"
done
"$taillight" compare "$work/run" "$work/doubtful" --quiet --gates "$work/gates.yaml" >"$work/out" 2>"$work/cmp.err"
[ $? = 4 ] && [ "$(grep -c "^gate inconclusive .*the candidate's load cannot be trusted: the load generator was starved of its CPU core" "$work/out")" = 2 ] ||
    fail "gates of such a load"
sed -i '/^repetitions/d' "$work/gated.yaml"
unhurried_run "$work/single" "$work/gated.yaml" || skip "this machine is too busy now for a load that can be trusted"
[ "$status" = 3 ] || fail "a failed gate of a single run is not exit 3 but $status"
analyzed_once 1 "$work/run.err"
echo "gates: $(jq -c '[.gates[].outcome]' "$work/run/gates.json")"
