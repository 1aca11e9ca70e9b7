#!/usr/bin/env bash
# A host behind ssh from which nothing comes for 8 s, as where others have its cores: by `silence` the run waits for it and ends
# as any other; without, the link counts as down.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts server
try() { # NAME MORE-OF-THE-HOST
    claim_port
    cat >"$work/$1.yaml" <<EOF
name: $1
hosts:
  client: {kind: local, cores: [1]}
  server: {kind: ssh, address: server, cores: [0], ssh_config: $ssh_config, directory: $work/server-files$2}
servers: {cache: {kind: memcached, threads: 1, port: $port}}
workload: {keys: {count: 500}, values: {size: {fixed: 200}}}
load: {rate: 1k, duration: 12s, connections: 8, depth: 64, timeout: 1s, sleep: true}
EOF
    ip netns exec "ssh$$-here" "$taillight" run "$work/$1.yaml" --out "$work/$1" >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
    await grep -q 'loading [0-9]' "$work/$1.err" || fail "$1: the load does not begin"
    sleep 1
    near ip link set to-server down
    sleep 8
    near ip link set to-server up
    wait $pid
    status=$?
}
try patient ', silence: 30s'
[ $status = 0 ] || [ $status = 4 ] || fail "patient: exit $status: $(cat "$work/patient.err")"
jq -e '.joined > 500' "$work/patient/summary.json" >/dev/null || fail "patient: $(jq -c '[.requests, .joined]' "$work/patient/summary.json")"
ssh_nothing_left server 10
try strict ''
[ $status = 1 ] && grep -q 'is down: nothing has come over it for [4-6] s' "$work/strict.err" || fail "strict: exit $status: $(cat "$work/strict.err")"
