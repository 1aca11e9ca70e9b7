#!/usr/bin/env bash
# Lives of M(a) and the reply alone: a run without a record of kernel events has its requests joined by
# the shim's stamps, says what is not divided, and makes no cause of it. And `own_stack` takes nothing
# away from a server whose messages the kernel sees after all.
# Runs beside others: stamps are counted, nothing is timed.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program jq jq
build=$(cd "$BUILD" && pwd)
run_with() { # OWN_STACK BACKEND
    experiment "$work/$2.yaml" netns 1k 1s <<EOF
servers:
  lab: {host: server, kind: labserver, own_stack: $1, options: [--service, "fixed:10us"]}
capture: {backend: $2}
EOF
    "$taillight" run "$work/$2.yaml" --out "$work/$2" --quiet >"$work/$2.out" 2>"$work/$2.err"
    [[ $? == [04] ]] || fail "the run ended with an error"
}
run_with true none
jq -e '.joined >= 0.99 * .answered and .answered > 500 and .join.without_arrivals == .joined and
    .join.without_departures == .joined and .order_violations == 0 and .worst_stage_sum_error_ns < 2' \
    "$work/none/summary.json" >/dev/null || fail "not joined: $(jq -c '[.answered, .joined, .join]' "$work/none/summary.json")"
jq -e '[.stages[] | select(.stage == "way in, undivided" or .stage == "way back, undivided")] |
    length == 2 and all(.role == "network" and .mean_us.p50 > 0)' "$work/none/summary.json" >/dev/null ||
    fail "the ways are not one stage each: $(jq -c .stages "$work/none/summary.json")"
jq -e '[.stages[] | select(.stage == "R core" or .stage == "A core" or .stage == "server stack")] |
    all(.mean_us.p99 == 0)' "$work/none/summary.json" >/dev/null || fail "a stage is made up"
verdict=$(json "$work/none/summary.json" '$.verdict')
[[ $verdict == *'nothing takes M(n) and M(h) (no kernel events were recorded'* ]] || fail "it is not said: $verdict"
[[ $verdict == *'N/A: no kernel events were captured on the server'* ]] || fail "causes are made up: $verdict"

run_with true events
jq -e '.joined >= 0.95 * .answered and ([.join.without_arrivals, .join.without_departures] | max) <= 0.01 * .joined and
    (.stages | map(.stage) | index("network to server") != null)' "$work/events/summary.json" >/dev/null ||
    fail "what the kernel saw is not taken: $(jq -c '[.answered, .joined, .join]' "$work/events/summary.json")"

printf 'servers: {c: {own_stack: true, shim: false}}\n' | experiment "$work/bad.yaml" netns 1k 1s
"$taillight" run --check "$work/bad.yaml" 2>"$work/bad.err" && fail "own_stack without the shim is taken"
grep -q 'bad.yaml:[0-9:]* own_stack: only the shim sees' "$work/bad.err" || fail "the wrong refusal"
check_nothing_left "$work/events" ""
