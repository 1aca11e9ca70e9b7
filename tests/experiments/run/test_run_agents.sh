#!/usr/bin/env bash
# Experiments whose load comes from agents on two client hosts, for a duration and for as long as the
# method says: all requests of those that measure are joined, connections of all have ids of their
# own, and the server saw them all.
# Runs beside others: requests and connections are counted, not timed.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
need_capture
check_agents() { # how the load's length is given
    cat >"$work/agents.yaml" <<EOF
name: agents
hosts:
  client1: {kind: netns, cores: [1]}
  client2: {kind: netns, cores: [1]}
  server: {kind: netns, cores: [0]}
servers:
  cache: {kind: memcached, threads: 1}
workload:
  keys: {count: 500}
  values: {size: {fixed: 200}}
load:
  rate: 3k
  $1
  connections: 4
  depth: 64
  agents:
    - {host: client1, kind: symmetric, name: near}
    - {host: client2, kind: throughput, rate: 1k}
    - {host: client2, kind: latency, name: probe, rate: 200, connections: 3}
EOF
    for _ in 1 2 3; do # until it is undisturbed
        rm -rf "$work/run"
        "$taillight" run "$work/agents.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
        status=$?
        [ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
        disturbed "$work/run" 980 || break
    done
    load=$work/run/client/load.json
    jq -e '[.agents.list[].name] == ["near", "agent2", "probe"] and [.agents.list[].lost] == [null, null, null]' "$load" \
        >/dev/null || fail "the agents"
    jq -e '[.agents.list[].netns] | .[0] != .[1] and .[1] == .[2] and (.[0] | startswith("/proc/"))' "$load" >/dev/null ||
        fail "the agents' network namespaces"
    jq -e '.agents.total.sent == ([.agents.list[].report.sent] | add)' "$load" >/dev/null || fail "totals"
    records() { od -A n -t u8 -j 24 -N 8 "$1" | tr -d ' '; } # of a log's header
    [ "$(records "$work/run/client/samples.tlog")" = "$(jq .scheduled "$load")" ] || fail "samples.tlog"
    [ "$(records "$work/run/client/connections.tlog")" = 11 ] || fail "connections.tlog"
    measured=$(jq .answered "$load")
    requests=$(sqlite3 "$work/run/run.db" 'select count(*) from requests where state = "whole"')
    [ "$requests" -ge "$((measured * 98 / 100))" ] || fail "$requests of $measured requests are joined: $(jq -r .verdict "$work/run/summary.json")"
    connections=$(sqlite3 "$work/run/run.db" 'select count(distinct connection) from requests')
    [ "$connections" = 7 ] || fail "requests of $connections connections are joined, not of the 7 that measure"
    jq -e '.load.agents | length == 3 and .[0].host == "client1" and .[1].rate == 1000' "$work/run/experiment.json" >/dev/null ||
        fail "experiment.json"
    echo "agents on two hosts, $1: $requests of $measured measured requests joined"
}
check_agents "duration: 1s"
check_agents "method: {percentile: p50, interval: 1s, confidence: 0.9, budget: 2s}"
jq -e '.method.target == "p50" and .method.confidence == 0.9' "$load" >/dev/null || fail "the method's result"
