#!/usr/bin/env bash
# A file that extends another and has a matrix: a run for each configuration, in a folder of its own,
# and a table of them all.
# Runs beside others: what its runs come to is not what it is about.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
need_program memcached memcached
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
claim_port
mkdir "$work/base"
experiment "$work/base/base.yaml" local 1k 300ms <<EOF
servers: {cache: {kind: memcached, threads: 1, port: $port, shim: false}}
capture: {backend: none}
EOF
cat >"$work/both.yaml" <<EOF
extends: base/base.yaml
name: both
matrix:
  load.rate: [500, 2k]
EOF
"$taillight" run --check "$work/both.yaml" >"$work/plan" 2>"$work/cmd.err" || fail "--check"
grep -q 'experiment both (.*both.yaml): rate=2k' "$work/plan" || fail "the plan: $(cat "$work/plan")"
"$taillight" run "$work/both.yaml" --out "$work/run" >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
jq -e '[.list[] | .folder, .configuration] ==
    ["configuration-1", "rate=500", "configuration-2", "rate=2k"]' "$work/run/matrix.json" \
    >/dev/null || fail "matrix.json: $(cat "$work/run/matrix.json")"
grep -q "2 configurations of both" "$work/run/report.html" || fail "no page of all"
for i in 1 2; do
    folder=$work/run/configuration-$i
    [ -s "$folder/report.html" ] || fail "configuration-$i has no report"
    [ "$(json "$folder/experiment.json" '$.configuration')" = \
        "$(jq -r ".list[$i - 1].configuration" "$work/run/matrix.json")" ] || fail "the configuration"
    jq -e --slurpfile load "$folder/client/load.json" ".list[$i - 1].latency_us == \$load[0].latency_us" \
        "$work/run/matrix.json" >/dev/null || fail "the latencies of configuration-$i"
    # What the folder keeps is the whole experiment, without the other files.
    "$taillight" run --check "$folder/experiment.yaml" >"$work/plan" 2>"$work/cmd.err" ||
        fail "the folder's experiment.yaml"
done
[ "$(json "$work/run/configuration-2/experiment.json" '$.load.rate')" = 2000.0 ] || fail "the rate"
grep -Eq '^rate=2k +[0-9n-][^|]*\| +[0-9n]' "$work/out" || fail "the table: $(cat "$work/out")"
jq -e 'all(.list[]; .uncorrected_latency_us | has("p99")) and all(.list[]; .server_cpu_us > 0)' \
    "$work/run/matrix.json" >/dev/null || fail "matrix.json: $(cat "$work/run/matrix.json")"
echo "matrix: $(sed -n 's/^rate=/rate=/p' "$work/out" | tr '\n' ';')"

rest_is_long

# What the machine cannot capture is skipped where that is allowed, with the reason, and else fails.
cat >"$work/optional.yaml" <<EOF
extends: base/base.yaml
name: optional
matrix:
  watched: {baseline: {}, pt: {capture: {backend: intel_pt, optional: true}}}
EOF
if "$taillight" doctor --json | jq -e '.items[] | select(.name | test("Intel PT")) | .state != "yes"' >/dev/null; then
    rm -rf "$work/run"
    "$taillight" run "$work/optional.yaml" --out "$work/run" >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status = 0 ] || { [ $status = 4 ] && grep -q 'the load is inconclusive: ' "$work/run.err"; } || fail "exit $status"
    jq -e '.count == 2 and (.list[1].skipped | test("Intel PT"))' "$work/run/matrix.json" >/dev/null ||
        fail "matrix.json: $(cat "$work/run/matrix.json")"
    grep -q '^watched=pt .*skipped: .*Intel PT' "$work/out" || fail "the table: $(cat "$work/out")"
    grep -Eq '^watched=baseline .* 1\.00 .* 1\.00 .* 1\.00( |$)' "$work/out" || fail "no ratios: $(cat "$work/out")"
    grep -q 'p99/us .* CPU/us  ratio' "$work/out" || fail "the table's head: $(cat "$work/out")"
    sed -i 's/, optional: true//' "$work/optional.yaml"
    "$taillight" run "$work/optional.yaml" --out "$work/failed" >"$work/out" 2>"$work/run.err"
    [ $? = 1 ] || fail "without optional"
fi
