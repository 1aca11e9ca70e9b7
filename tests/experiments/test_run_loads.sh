#!/usr/bin/env bash
# Several loads in one experiment. Of three, on memcached and Redis, each has its own logs, summary,
# page and verdict; the servers received every request of each once, on that load's connections, and
# each is joined. Where two load the same thread, what made one slow is that it was behind the other.
# Runs beside others: requests and connections are counted, not timed.
. "$(dirname "$0")/run_lib.sh"
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
