#!/usr/bin/env bash
# An experiment whose load comes from agents on two hosts behind ssh and one here: they begin
# together, by clocks related over their links; the controller pools what they measured, and all of
# it is joined with what the server's host saw. The sizes of values stand in a file that only the
# controller's side has.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts one two server
ssh_host() { echo "{kind: ssh, address: $1, cores: [$2], ssh_config: $ssh_config, directory: $work/$1-files}"; }
mkdir "$work/here"
# What is in $work/here only the controller sees, its run's folder too.
for host in one two; do inside $host mount -t tmpfs tmpfs "$work/here" || skip "no tmpfs can be mounted here"; done
printf '200,9\n400,1\n' >"$work/here/sizes.csv"
cat >"$work/agents.yaml" <<EOF
name: agents
hosts:
  here: {kind: local, cores: [1]}
  one: $(ssh_host one 1)
  two: $(ssh_host two 1)
  server: $(ssh_host server 0)
servers: {cache: {kind: memcached, threads: 1}}
workload: {keys: {count: 500}, values: {size: {empirical: $work/here/sizes.csv}}}
load:
  from: one
  rate: 3k
  duration: 1s
  connections: 4
  depth: 64
  agents:
    - {host: one, kind: symmetric, name: first}
    - {host: two, kind: throughput, rate: 1k}
    - {host: here, kind: latency, name: probe, rate: 200, connections: 3}
EOF
near "$taillight" run "$work/agents.yaml" --out "$work/here/run" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
load=$work/here/run/client/load.json
jq -e '[.agents.list[] | [.name, .lost, .link != null]] ==
    [["first", null, true], ["agent2", null, true], ["probe", null, false]]' "$load" >/dev/null ||
    fail "the agents: $(jq -c '[.agents.list[] | [.name, .lost, .link]]' "$load")"
jq -e '.agents.start_bound_us > 0 and .agents.start_bound_us < 1e5 and .agents.start_spread_us < 1e6' "$load" >/dev/null ||
    fail "the spread: $(jq -c '[.agents.start_spread_us, .agents.start_bound_us]' "$load")"
measured=$(jq .answered "$load")
requests=$(jq .joined "$work/here/run/summary.json")
[ "$requests" -ge "$((measured * 98 / 100))" ] || fail "$requests of $measured requests are joined"
for host in one two server; do ssh_nothing_left $host 10; done
echo "agents on three hosts: $requests of $measured measured requests joined; they began within" \
    "$(jq '.agents.start_spread_us, .agents.start_bound_us' "$load" | paste -sd' ') us (spread, and bound of the clocks)"
