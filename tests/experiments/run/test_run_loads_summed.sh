#!/usr/bin/env bash
# What sums up several runs says every load of each: a study, a matrix, and the history.
# Runs beside others: words and names, no times.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
need_program sqlite3 sqlite3
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
claim_port
cat >"$work/two.yaml" <<EOF
name: two
hosts: {client: {cores: [1]}, server: {cores: [0]}}
servers: {lab: {kind: labserver, threads: 1, port: $port}}
workload: {protocol: lab, mix: {call: 1}, service: "fixed:20us"}
load: {name: ask, rate: 500, duration: 200ms, connections: 4, sleep: true}
loads: {batch: {rate: 300, connections: 2, sleep: true, workload: {protocol: lab, mix: {call: 1}, service: "fixed:300us"}}}
capture: {backend: none}
EOF
grep -v '^loads' "$work/two.yaml" | sed 's/name: ask, //' >"$work/alone.yaml"
printf 'name: both\nsteps: {one: two.yaml, alone: alone.yaml}\n' >"$work/study.yaml"
printf 'extends: two.yaml\nmatrix: {load.rate: [400, 500]}\n' >"$work/matrix.yaml"
ran() { # NAME: 0, or 4 on a machine too busy for a load that can be trusted
    "$taillight" run "$work/$1.yaml" --out "$work/$1" >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "$1: exit $status"
}

ran study
# What a load's own file says, and what the study says of it: p99 (0: not known) and verdict.
same() { # LOAD.JSON PATH-IN-STUDY.JSON
    jq -e --slurpfile own "$1" '.list[0]'"$2"' as $told |
        ($told.latency_us.p99.median // 0) - ($own[0].latency_us.p99 // 0) < 0.02 and
        ($own[0].latency_us.p99 // 0) - ($told.latency_us.p99.median // 0) < 0.02 and
        $told.load_verdict == $own[0].verdict and $told.requests == $own[0].scheduled' "$work/study/study.json" >/dev/null
}
same "$work/study/one/client/load.json" '' || fail "the first load: $(jq -c '.list[0]' "$work/study/study.json")"
same "$work/study/one/client-batch/load.json" .loads.batch || fail "the second load: $(jq -c '.list[0].loads' "$work/study/study.json")"
jq -e '.list[0].load == "ask" and (.list[0].loads | keys) == ["batch"] and .list[0].requests != .list[0].loads.batch.requests and
    (.list[1] | has("loads") or has("load") | not)' "$work/study/study.json" >/dev/null ||
    fail "study.json: $(jq -c .list "$work/study/study.json")"
for table in "$work/out" "$work/study/results.md"; do
    grep -q '^| one, load `ask` | 1 | ' "$table" && grep -q '^| one, load `batch` | 1 | ' "$table" &&
        grep -q '^| alone | 1 | ' "$table" || fail "the table: $(cat "$table")"
done
grep -q 'one, load `batch`' "$work/study/cdf.svg" || fail "the curves"

rest_is_long

ran matrix
jq -e '(.list | length) == 2 and all(.list[]; .load == "ask" and (.loads | keys) == ["batch"] and .loads.batch.requests != .requests)' \
    "$work/matrix/matrix.json" >/dev/null || fail "matrix.json: $(jq -c .list "$work/matrix/matrix.json")"
[ "$(grep -c '^rate=[45]00 ' "$work/out")" = 4 ] && grep -q '^The load `batch`:' "$work/out" || fail "the tables: $(cat "$work/out")"
# A request costs what the cores were busy for, shared by the requests of both loads.
of_run=$work/matrix/configuration-1
jq -e --argjson busy "$(jq .server_cpu.busy_ns "$of_run/experiment.json")" --argjson ask "$(jq .answered "$of_run/client/load.json")" \
    --argjson batch "$(jq .answered "$of_run/client-batch/load.json")" \
    '.list[0].server_cpu_us - $busy / ($ask + $batch) / 1000 | fabs < 0.01' "$work/matrix/matrix.json" >/dev/null ||
    fail "CPU a request: $(jq '.list[0].server_cpu_us' "$work/matrix/matrix.json")"

history=("$taillight" history --db "$work/h.db" --quiet)
"${history[@]}" add "$work/study/one" "$work/study/alone" >"$work/out" 2>"$work/cmd.err" || fail "history add"
"${history[@]}" list --json --series p99 >"$work/out" || fail "history list"
jq -e '[.series[] | [.name, (.points | length) + .unknown]] == [["p99", 2], ["p99 of load `batch`", 2]]' "$work/out" >/dev/null ||
    fail "the history: $(jq -c . "$work/out")"
"${history[@]}" plot >"$work/out" || fail "history plot"
[ "$(grep -c '^two: p99' "$work/out")" = 2 ] || fail "the history draws $(cat "$work/out")"
[ "$(sqlite3 "$work/h.db" 'select count(*) from runs')" = 2 ] || fail "a load is a run of its own"
echo "every load: $(sed -n 's/^| one, load/one, load/p' "$work/study/results.md")"
