#!/usr/bin/env bash
# `load: {method: ...}`: the load lasts until the percentile's interval is narrow enough, in rounds
# on new connections, and the capture as long as the load: requests of every round are explained.
# Runs beside others: requests are counted, not timed.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
need_capture

# method_run METHOD: a run with it, conclusive or not.
method_run() {
    experiment "$work/method.yaml" netns 4k 1s <<<'servers: {cache: {kind: memcached, threads: 1}}'
    sed -i "s/duration: 1s/method: $1/" "$work/method.yaml"
    rm -rf "$work/run"
    "$taillight" run "$work/method.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
    load=$work/run/client/load.json
}

method_run '{percentile: p50, interval: 5ms, confidence: 0.9, budget: 4s}'
"$taillight" run --check "$work/method.yaml" >"$work/plan" 2>"$work/cmd.err" || fail "--check"
grep -q 'until the 90 % interval of p50 is 5.* ms wide, for 4.* s at most' "$work/plan" ||
    fail "the plan: $(cat "$work/plan")"
jq -e '.method | .target == "p50" and .confidence == 0.9 and .ci.wanted == 5000' "$load" >/dev/null ||
    fail "the method: $(jq -c .method "$load")"
jq -e '.load | .method.percentile == "p50" and .duration_ns == 4e9' "$work/run/experiment.json" \
    >/dev/null || fail "experiment.json"

# No interval of a p99.9 is that narrow: the budget is what ends it, after more than one round.
method_run '{percentile: p99.9, interval: 1ns, budget: 3s}'
jq -e ".warnings[] | select(startswith(\"the load is inconclusive: \"))" "$work/run/experiment.json" >/dev/null || fail "an unsatisfied method is not said"
rounds=$(jq '.method.rounds + .method.stabilising_rounds' "$load")
[ "$rounds" -ge 2 ] || fail "$rounds rounds"
answered=$(jq .answered "$load")
joined=$(jq .joined "$work/run/summary.json")
[ $((joined * 10)) -ge $((answered * 9)) ] || fail "$joined of $answered answered requests are joined"
echo "method: $rounds rounds, $joined of $answered answered requests are joined"
