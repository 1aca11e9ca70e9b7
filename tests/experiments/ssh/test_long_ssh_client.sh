#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A load behind ssh is a machine, too: its own host records what its cores did, so that a program
# that keeps the load from its core has its name, as on a near host, and the verdict does not put it
# on the server. The same where the load is here and only the server is behind ssh.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts client server
ssh_host() { echo "{kind: ssh, address: $1, cores: [$2], ssh_config: $ssh_config, directory: $work/$1-files}"; }
# hogged NAME CLIENT: 20 ms of its core are gone five times a second.
hogged() {
    cat >"$work/$1.yaml" <<EOF
name: client-hog-$1
hosts:
  client: $2
  server: $(ssh_host server 0)
servers:
  cache: {host: server, kind: memcached, threads: 1, memory: 64MiB, shim: true}
neighbours:
  hog: {host: client, kind: command, cores: [1], command: [sh, -c, 'while sleep 0.2; do timeout 0.02 yes; done']}
workload:
  keys: {count: 200}
  values: {size: {fixed: 200}}
load: {rate: 2k, duration: 4s, connections: 8, depth: 64, timeout: 5s, seed: 1}
diagnose: {slice: p95-100}
EOF
    run="$work/$1"
    near "$taillight" run "$work/$1.yaml" --out "$run" --quiet >"$work/$1.out" 2>"$work/$1.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "$1: exit $status"
    [ -s "$run/client/events.tlog" ] || fail "$1: the load's cores were not recorded"
    jq -e '.client_cores == "1" and .ports == [] and .events.records > 0' "$run/client/capture.json" >/dev/null ||
        fail "$1: $(jq -c '{client_cores, ports}' "$run/client/capture.json")"
    said=$(jq -r '.lede, .verdict' "$run/summary.json")
    top=$(jq -r '.causes[0] | .cause + " (" + .role + ")"' "$run/summary.json")
    echo "$1: the first cause is $top"
}
far_hogged() {
    rm -rf "$work/far"
    hogged far "$(ssh_host client 1)"
    [ "$top" = 'yes (client)' ] && grep -q 'The client was late, not the server' <<<"$said"
}
near_hogged() {
    rm -rf "$work/near"
    hogged near '{kind: local, cores: [1]}'
    [ "$top" = 'yes (client)' ] && grep -q 'The client was late, not the server' <<<"$said"
}
judged_tries far_hogged || fail "behind ssh: $top: $said"
ssh_nothing_left server 10
ssh_nothing_left client 10
judged_tries near_hogged || fail "here: $top: $said"
ssh_nothing_left server 10
