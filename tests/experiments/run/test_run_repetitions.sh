#!/usr/bin/env bash
# An experiment twice: a whole run in a folder of its own each time, with a seed of its own, and what
# the two come to together.
# Runs beside others: files and counts are looked at, no times.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
need_program memcached memcached
need_program ip iproute2
unshare -n true 2>/dev/null || skip "network namespaces cannot be made here: it takes root"
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
experiment "$work/twice.yaml" netns 1k 500ms <<EOF
servers: {cache: {kind: memcached, threads: 1}}
capture: {backend: none}
repetitions: {count: 2, restart: true}
EOF
"$taillight" run "$work/twice.yaml" --out "$work/run" --json --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
cmp -s "$work/out" "$work/run/repetitions.json" || [ "$(jq -S . "$work/out")" = "$(jq -S . "$work/run/repetitions.json")" ] ||
    fail "what is printed is not what is in the folder"
jq -e '.count == 2 and [.list[].folder] == ["repetition-1", "repetition-2"]' "$work/out" >/dev/null || fail "the list"
jq -e '.list[0].seed == 1 and .list[1].seed != 1' "$work/out" >/dev/null || fail "the seeds"
for i in 1 2; do
    for part in experiment.json client/load.json client/samples.tlog report.html summary.json; do
        [ -s "$work/run/repetition-$i/$part" ] || fail "repetition-$i has no $part"
    done
    [ "$(json "$work/run/repetition-$i/client/load.json" '$.seed')" = "$(jq ".list[$i - 1].seed" "$work/out")" ] ||
        fail "repetition $i was loaded with another seed"
done
grep -q "2 repetitions of test" "$work/run/report.html" || fail "no page of the two"
sum=$(jq -s 'map(.scheduled) | add' "$work"/run/repetition-*/client/load.json)
[ "$(jq .pooled.requests "$work/out")" = "$sum" ] || fail "the pool is not their $sum requests"
jq -e '(.pooled.latency_us.p50 // 1e12) as $p | [.list[].latency_us.p50 // 1e12] | $p >= min * 0.9999 and $p <= max * 1.0001' \
    "$work/out" >/dev/null || fail "the pooled median is not between theirs"
# One interval: what the load, its method, the run and the repetitions say of a number is the same.
for i in 1 2; do
    jq -e -n --slurpfile load "$work/run/repetition-$i/client/load.json" --slurpfile run "$work/run/repetition-$i/summary.json" \
        --slurpfile all "$work/run/repetitions.json" --argjson i $i '
        def same($a; $b): if $a == null or $b == null then $a == $b else ($a - $b | fabs) <= 0.001 * ($a | fabs) + 0.01 end;
        def all_same($a; $b): [$a, $b] | map(. // [null, null]) | transpose | all(same(.[0]; .[1]));
        $load[0] as $l | $run[0] as $r | ["p50", "p90", "p99", "p99.9", "p99.99"]
        | all(. as $p | same($l.latency_us[$p]; $r.latency_us[$p]) and all_same($l.ci_us[$p]; $r.latency_ci_us[$p])
            and all_same($l.ci_us[$p]; $all[0].list[$i - 1].ci_us[$p]))
        and all_same($l.ci_us.p99; [$l.method.ci.low, $l.method.ci.high])
        and (.[4] as $p | $l.latency_us[$p]) == null' >/dev/null ||
        fail "repetition $i: two statements about one number"
done
jq -e '.between.percentile == "p99"' "$work/out" >/dev/null || fail "what is compared"
"$taillight" run "$work/twice.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/again.err"
[ $? = 2 ] && grep -q 'has a run in it already' "$work/again.err" || fail "a folder that is not empty"
# Not each of them, or one twice: nothing that could be compared with others.
refused() { # WORDS
    "$taillight" compare "$work/run" "$work/part" --quiet >"$work/out" 2>"$work/part.err"
    [ $? = 2 ] && grep -q "$1" "$work/part.err" || fail "not refused with \"$1\": $(cat "$work/out" "$work/part.err")"
    rm -r "$work/part"
}
cp -r "$work/run" "$work/part"
rm -r "$work/part/repetition-2"
refused 'repetition-2 of 2 is missing'
cp -r "$work/run" "$work/part"
rm -r "$work/part/repetition-1" "$work/part/repetitions.json"
refused 'repetition-1 of 2 is missing'
# Ended before all were made: what there is counts, and it is said.
cp -r "$work/run" "$work/part"
rm -r "$work/part/repetition-2" "$work/part/repetitions.json"
"$taillight" compare "$work/part" "$work/run" --quiet >"$work/out" 2>"$work/part.err"
[[ $? == [04] ]] && grep -q 'the base has only 1 of the 2 repetitions that its experiment asks for' "$work/out" ||
    fail "nothing is said of the repetition that was never made: $(cat "$work/out" "$work/part.err")"
rm -r "$work/part"
cp -r "$work/run" "$work/part"
rm -r "$work/part/repetition-2"
cp -r "$work/part/repetition-1" "$work/part/repetition-2"
refused 'repetition-2 has the same requests as repetition-1'
echo "repetitions: two whole runs, pooled, $(jq -c .between.range_us "$work/run/repetitions.json") us apart"
