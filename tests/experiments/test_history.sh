#!/usr/bin/env bash
# taillight history: a run is taken up once, the change of a level is found and drawn, databases that
# are none are refused.
# Runs beside others: words and a database.
. "$(dirname "$0")/run_lib.sh"
need_program jq jq
need_program sqlite3 sqlite3
experiment "$work/lab.yaml" local 1k 200ms <<EOF2
servers: {lab: {kind: labserver, options: ["--service", "fixed:1us"], port: 0}}
capture: {backend: none}
EOF2
claim_port
sed -i "s/port: 0/port: $port/; s/^workload:/workload:\n  protocol: lab/" "$work/lab.yaml"
[ "$(nproc)" -ge 2 ] || sed -i 's/cores: \[[01]\]/cores: [0]/' "$work/lab.yaml"
"$taillight" run "$work/lab.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
history=("$taillight" history --db "$work/h.db" --quiet)
"${history[@]}" >"$work/out" 2>"$work/cmd.err"
[ $? = 2 ] && grep -q 'there is no history .*h.db yet' "$work/cmd.err" || fail "a database that is not there"
"${history[@]}" add "$work/run" --label v1 >"$work/out" 2>"$work/cmd.err" || fail "add"
grep -q '^#1 /' "$work/out" || fail "what was added is not reported"
"${history[@]}" add "$work/run" >"$work/out" 2>"$work/cmd.err"
[ $? = 2 ] && grep -q 'is in there already' "$work/cmd.err" || fail "a run twice"
[ "$(sqlite3 "$work/h.db" 'select count(*) from runs')" = 1 ] || fail "half a run is in there"
"${history[@]}" list --json >"$work/out" 2>"$work/cmd.err" || fail "list"
jq -e '[.series[].name] == ["p50", "p90", "p99", "p99.9"]' "$work/out" >/dev/null || fail "the series"
"$taillight" analyze "$work/run" --json --quiet >"$work/summary" 2>/dev/null
jq -e --slurpfile s "$work/summary" '.series[0].points[0] | .label == "v1" and (.us - $s[0].latency_us.p50 | fabs) < 0.001' \
    "$work/out" >/dev/null || fail "p50 is not that of the run"
# Thirty runs more, of which the last twelve take 20 % longer; a cause that only they have.
sqlite3 "$work/h.db" <<'EOF2' || fail "filling"
WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 31)
INSERT INTO runs SELECT i, 'test', '/r' || i, 'v' || i, 0, 1, 1000, 1000, '0' FROM n;
INSERT INTO measures SELECT id, 'percentile', 'p95', 100.0 + id % 5 + 20 * (id >= 20), NULL, NULL, NULL FROM runs WHERE id > 1;
INSERT INTO measures SELECT id, 'cause', 'idle (A)', 10.0, NULL, NULL, 1 FROM runs WHERE id > 1;
INSERT INTO measures SELECT id, 'cause', 'yes (A)', 5.0 + id % 3, NULL, NULL, 1 FROM runs WHERE id >= 20;
EOF2
"${history[@]}" list --json >"$work/out" || fail "list"
jq -e '.series[] | select(.name == "p95") | [.changes[].run] == [20] and .changes[0].p <= 0.01 and .unknown == 1' \
    "$work/out" >/dev/null || fail "the change of p95"
jq -e '.series[] | select(.name == "yes (A)") | [.changes[].run] == [20] and .changes[0].before_us == 0 and (.points | length) == 30' \
    "$work/out" >/dev/null || fail "the cause that appeared"
jq -e '.series[] | select(.name == "idle (A)") | .changes == []' "$work/out" >/dev/null || fail "a level that never changed"
"${history[@]}" list >"$work/out" || fail "list in words"
grep -q "p95 .*30 runs, now .*, not known in 1: +.* % since #20 v20 (102 us -> 121 us, p 0.00" "$work/out" || fail "the list: $(grep p95 "$work/out")"
LC_ALL=C "${history[@]}" plot --series p95 >"$work/out" || fail "plot"
[ "$(grep -c '^  #.*[0-9] us #####' "$work/out")" = 30 ] || fail "not a bar a run"
grep -A1 -- '^  ---- +' "$work/out" | grep -q '^  #20 ' || fail "the change is not drawn"
# Of the causes whose level never changed the largest five, unless all are asked for.
sqlite3 "$work/h.db" "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7)
INSERT INTO measures SELECT id, 'cause', 'steady' || i || ' (A)', i, NULL, NULL, 1 FROM runs, n WHERE id > 1;" || fail "filling"
"${history[@]}" list >"$work/out" || fail "list with many causes"
[ "$(grep -oE '^  (idle|yes|steady[0-9])' "$work/out" | tr -d '\n')" = '  yes  idle  steady4  steady5  steady6  steady7' ] &&
    grep -q '^  and 3 smaller causes whose level has not changed (--full)$' "$work/out" || fail "which causes are listed: $(cat "$work/out")"
"${history[@]}" list --full >"$work/out" || fail "list --full"
[ "$(grep -cE '^  steady[0-9]' "$work/out")" = 7 ] && ! grep -q smaller "$work/out" || fail "--full leaves some out"
head -c 5000 /dev/urandom >"$work/junk.db"
"$taillight" history list --db "$work/junk.db" >"$work/out" 2>"$work/cmd.err"
[ $? = 2 ] && grep -q 'junk.db: file is not a database' "$work/cmd.err" || fail "junk as a database"
"${history[@]}" drop >"$work/out" 2>"$work/cmd.err"
[ $? = 2 ] && grep -q 'it may be: add, list, plot' "$work/cmd.err" || fail "an unknown word"
echo "history: found the change at #20"
