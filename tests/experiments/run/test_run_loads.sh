#!/usr/bin/env bash
# Several loads in one experiment. Of three, on memcached and Redis, each has its own logs, summary,
# page and verdict; the servers received every request of each once, on that load's connections, and
# each is joined. Where two load the same thread, what made one slow is that it was behind the other.
# Runs beside others: requests and connections are counted, not timed.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
need_program python3 python3
need_program redis-server redis-server
need_capture

# --- each request once, with its load ---------------------------------------------------------------

cat >"$work/three.yaml" <<EOF
name: three
hosts:
  client: {kind: netns, cores: [1]}
  server: {kind: netns, cores: [0]}
servers:
  cache: {kind: memcached, threads: 1}
  store: {kind: redis}
workload:
  keys: {count: 500}
load: {name: ask, to: cache, rate: 400, duration: 2s, connections: 8, depth: 1, timeout: 5s, sleep: true}
loads:
  batch:
    rate: 150
    connections: 3
    depth: 1
    duration: 1s
    timeout: 5s
    sleep: true
    workload: {mix: {set: 1}, keys: {count: 100, size: {fixed: 24}}, values: {size: {fixed: 900}}}
  other: {to: store, rate: 250, connections: 5, depth: 1, timeout: 5s, sleep: true, workload: {protocol: redis, keys: {count: 50}}}
EOF
cat >"$work/received.py" <<'EOF'
# How many receive calls the servers made on the connections of each load: received.py RUN
import struct, sys

def records(path, size):
    data = open(path, "rb").read()[128:]
    return [data[at:at + size] for at in range(0, len(data), size)]

def port(record, at):
    return struct.unpack_from("<H", record, at)[0]

run = sys.argv[1]
LOCAL, PEER = 48, 50
whose, on, counts = {}, {}, {"client": 0, "client-batch": 0, "client-other": 0}
for folder in counts:
    for one in records(f"{run}/{folder}/connections.tlog", 64):
        assert whose.setdefault((port(one, LOCAL), port(one, PEER)), folder) == folder
for one in records(f"{run}/server/connections.tlog", 64):
    on[struct.unpack_from("<I", one)[0]] = whose.get((port(one, PEER), port(one, LOCAL)))
for call in records(f"{run}/server/calls.tlog", 64):
    length, connection = struct.unpack_from("<II", call, 24)
    if call[50] == 1 and length and on[connection]:
        counts[on[connection]] += 1
print(*counts.values())
EOF
summary() { # LOAD: its file in the run's folder
    [ "$1" = ask ] && echo "$work/run/summary.json" || echo "$work/run/summary-$1.json"
}
records() { od -A n -t u8 -j 24 -N 8 "$1" | tr -d ' '; } # of a log's header
three_loads() {
    rm -rf "$work/run"
    "$taillight" run "$work/three.yaml" --out "$work/run" >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
    ! disturbed "$work/run" 980
}
judged_tries three_loads || fail "no run was undisturbed"
read -r -a received < <(python3 "$work/received.py" "$work/run")
at=0
for load in ask batch other; do
    folder=$work/run/client-$load suffix=-$load
    [ $load = ask ] && folder=$work/run/client suffix=
    read -r scheduled sent answered < <(jq -r '"\(.scheduled) \(.sent) \(.answered)"' "$folder/load.json")
    [ "$(records "$folder/samples.tlog")" = "$scheduled" ] || fail "$load: samples.tlog"
    [ "$sent" -gt 50 ] && [ "${received[at]}" = "$sent" ] ||
        fail "$load: the server received ${received[at]} requests on its connections, and it sent $sent"
    jq -e --arg load $load '.load == $load and .requests == '"$scheduled"' and
        ([.other_loads[].name] + [$load] | sort) == ["ask", "batch", "other"]' "$(summary $load)" >/dev/null ||
        fail "$load: $(summary $load)"
    whole=$(sqlite3 "$work/run/run$suffix.db" 'select count(*) from requests where state = "whole"')
    [ "$(sqlite3 "$work/run/run$suffix.db" 'select count(*) from requests')" = "$scheduled" ] || fail "$load: run.db"
    [ "$whole" -ge $((answered * 98 / 100)) ] || fail "$load: $whole of $answered requests are joined"
    grep -q "load \`$load\`" "$work/run/report$suffix.html" || fail "$load: its page"
    echo "$load: $sent sent and received, $whole of $answered joined"
    at=$((at + 1))
done
jq -e '.load.seed != .loads.batch.seed and .loads.other.workload.keys.count == 50 and .workload.keys.count == 500' \
    "$work/run/experiment.json" >/dev/null || fail "experiment.json"
grep -q '^three, load `ask`' "$work/out" && grep -q '^The load `other`: ' "$work/out" || fail "what is printed"
"$taillight" report "$work/run" --load other --text --quiet >"$work/out" 2>"$work/cmd.err"
grep -q '^three, load `other`' "$work/out" && grep -q '  load `ask`  ' "$work/out" || fail "report --load"
"$taillight" analyze "$work/run" --load none >"$work/out" 2>"$work/cmd.err"
[ $? = 2 ] && grep -q 'no load `none` in .*; it has ask, batch, other' "$work/cmd.err" || fail "a load that is not there"
# Without a log of one beside it, the verdict says so.
rm "$work/run/client-batch/connections.tlog"
"$taillight" analyze "$work/run" --slice p99-100 --quiet >"$work/out" 2>"$work/cmd.err"
grep -q '`batch` ([^)]*) (client-batch/connections.tlog is missing' "$work/out" || fail "a missing log of the load beside: $(cat "$work/out")"

# --- one load behind another --------------------------------------------------------------------------

cat >"$work/behind.yaml" <<EOF
name: behind
hosts:
  client: {kind: netns, cores: [1]}
  server: {kind: netns, cores: [0]}
servers:
  lab: {kind: labserver, threads: 1}
workload: {protocol: lab, mix: {call: 1}, service: "fixed:20us"}
load: {rate: 400, duration: 3s, connections: 8, depth: 4, sleep: true}
loads:
  heavy: {rate: 40, connections: 2, depth: 4, sleep: true, workload: {protocol: lab, mix: {call: 1}, service: "fixed:5ms"}}
diagnose: {slice: p90-100}
EOF
conclusive_run "$work/behind.yaml"
jq -e '.load == "main" and any(.diagnosis.blocking.culprits[]; (.who | startswith("call of load `heavy`")) and (.foreign | not))' \
    "$work/run/summary.json" >/dev/null ||
    fail "who held them up: $(jq -c '.diagnosis.blocking.culprits' "$work/run/summary.json")"
blockers=$(sqlite3 "$work/run/run.db" "select count(*) from blockers where owner = 'call of load \`heavy\`' and blocker is null")
[ "$blockers" -gt 0 ] || fail "run.db does not know who held them up"
echo "behind another load: $(jq -r '.diagnosis.blocking.culprits[0].who' "$work/run/summary.json")"

rest_is_long

# --- gates and comparisons ---------------------------------------------------------------------------

several() { # THE-SECOND'S-NAME
    cat <<EOF
name: several
hosts: {client: {kind: netns, cores: [1]}, server: {kind: netns, cores: [0]}}
servers: {lab: {kind: labserver, threads: 1}}
workload: {protocol: lab, mix: {call: 1}, service: "fixed:20us"}
load: {rate: 500, duration: 600ms, connections: 4, sleep: true}
loads: {$1: {rate: 300, connections: 2, sleep: true, workload: {protocol: lab, mix: {call: 1}, service: "fixed:200us"}}}
capture: {backend: none}
repetitions: {count: 2}
EOF
}
{
    several batch
    echo 'gates: [{percentile: p50, max: 100s}, {percentile: p50, load: batch, max: 1ns}, {percentile: p90, load: batch, max_increase: 5%}]'
} >"$work/gated.yaml"
# On a machine too busy for a load that can be trusted its gates are inconclusive, which is said; and
# two repetitions may differ so much that no interval lies below a limit.
wanted=3
"$taillight" run "$work/gated.yaml" --out "$work/gated" >"$work/out" 2>"$work/run.err"
status=$?
! grep -q 'the load .*is inconclusive: ' "$work/run.err" || wanted=34
[[ $wanted = *$status* ]] || fail "a failed gate of the second load is not exit 3 but $status"
jq -e 'def is($load; $outcome; $limit): .load == $load and .limit == $limit and
        (.outcome == $outcome or (.outcome == "inconclusive" and ($outcome == "passed" or (.words | test("load cannot be trusted")))));
    .gates | length == 3 and (.[0] | is("main"; "passed"; 1e8)) and (.[1] | is("batch"; "passed"; 1e8)) and
        (.[2] | is("batch"; "failed"; 0.001))' \
    "$work/gated/gates.json" >/dev/null || fail "gates.json: $(jq -c .gates "$work/gated/gates.json")"
jq -e '(.list | length) == 2 and (.loads.batch.list | length) == 2 and (.loads | keys) == ["batch"] and
    .pooled.requests == ([.list[].requests] | add) and .loads.batch.pooled.requests == ([.loads.batch.list[].requests] | add) and
    .list[0].seed != .loads.batch.list[0].seed and .list[0].requests != .loads.batch.list[0].requests' \
    "$work/gated/repetitions.json" >/dev/null || fail "repetitions.json: $(jq -c .loads "$work/gated/repetitions.json")"
grep -q '^The load `batch`: 2 repetitions, ' "$work/out" || fail "the repetitions of the second load are not printed"
grep -Eq '^gate (failed      |inconclusive) p50 of load `batch` at most 1ns: ' "$work/out" || fail "the failed gate does not say whose it is"
compared() { # EXIT BASE CANDIDATE OPTIONS...
    local wanted=$1
    shift
    "$taillight" compare "$@" --quiet >"$work/out" 2>"$work/cmd.err"
    status=$?
    [[ $wanted = *$status* ]] || fail "exit $status instead of $wanted: compare $*"
}
compared $wanted "$work/gated" "$work/gated" --output "$work/page.html"
grep -q ' against .*, load `main`$' "$work/out" && grep -q ' against .*, load `batch`$' "$work/out" || fail "compare does not show each load"
[ -s "$work/page.html" ] && [ -s "$work/page-batch.html" ] && grep -q "^Report: $work/page-batch.html" "$work/out" || fail "a page each"
[ "$(grep -c '^gate ' "$work/out")" = 4 ] && grep -q '^gate .* p90 of load `batch` at most +5%: ' "$work/out" || fail "gates of compare"
compared 34 "$work/gated" "$work/gated" --json --load batch
jq -e '.load == "batch" and all(.gates[]; .load == "batch")' "$work/out" >/dev/null || fail "compare --load"
several other >"$work/other.yaml"
"$taillight" run "$work/other.yaml" --out "$work/other" >"$work/out" 2>"$work/cmd.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "the second run: exit $status"
compared 34 "$work/other" "$work/gated" --json
jq -e '.load == "main" and .other_loads == [] and .loads_only_in == {base: ["other"], candidate: ["batch"]} and
    ([.gates[] | select(.load == "batch") | .outcome] == ["inconclusive", "inconclusive", "inconclusive"])' "$work/out" >/dev/null ||
    fail "loads that only one side has: $(jq -c '[.load, .loads_only_in, .gates]' "$work/out")"
compared 34 "$work/other" "$work/gated"
grep -q '^Only the base has the load `other`' "$work/out" && grep -q '^Only the candidate has the load `batch`' "$work/out" ||
    fail "loads that only one side has are not said"
refused() { # SENTENCE ARGUMENTS...
    local sentence=$1
    shift
    compared 2 "$@"
    grep -q -e "$sentence" "$work/cmd.err" || fail "compare $*: $(cat "$work/cmd.err")"
}
refused 'no load that was asked for is on both sides: .* has `main`, `other`, and .* has `main`, `batch`' \
    "$work/other" "$work/gated" --load batch
refused '--load: there is no load `none` in .*; it has `main`, `batch`' "$work/other" "$work/gated" --load none
refused '--message: a request is one load.s, and there are `main`, `batch`' "$work/gated/repetition-1" "$work/gated/repetition-2" --message 1
echo 'gates: [{percentile: p50, load: none, max: 1s}]' >"$work/gates.yaml"
refused 'gates: there is no load `none` in .*; it has `main`, `batch`' "$work/gated" "$work/gated" --gates "$work/gates.yaml"
echo "gates of several loads: $(jq -c '[.gates[] | [.load, .outcome]]' "$work/gated/gates.json")"
