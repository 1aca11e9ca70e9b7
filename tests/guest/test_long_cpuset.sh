#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The cpuset knob where there is cgroup v2, in a guest: the server has its core to itself while the
# run lasts, and nothing is left of it after the run's end, after a kill -9 of the run, and, once a
# journal was replayed, after one of the keeper, too.
. tests/guest/guest_lib.sh
cat >"$work/cpuset.yaml" <<'YAML'
name: cpuset
hosts: {client: {kind: netns, cores: [1]}, server: {kind: netns, cores: [0]}}
servers: {cache: {host: server, kind: memcached, threads: 1, memory: 64MiB, shim: false}}
tuning: {server: [cpuset: {}]}
workload: {keys: {count: 50}, values: {size: {fixed: 20}}}
load: {rate: 100, duration: 2s, connections: 4, depth: 64, timeout: 10s, seed: 1}
capture: {backend: none}
YAML
cat >"$work/inside.sh" <<'INSIDE'
cg=/sys/fs/cgroup
mount -t cgroup2 none $cg
sleep 1000 & # somebody else
other=$!
allowed() { sed -n 's/^Cpus_allowed_list:[ \t]*//p' /proc/$1/status; }
state() { echo "$1: groups=$(ls -d $cg/taillight-* 2>/dev/null | wc -l) given='$(cat $cg/cgroup.subtree_control)' other=$(allowed $other)"; }
begin() { # until the server is in its group
    ./taillight run "$1" --out "$2" --quiet >/dev/null 2>"$2.err" &
    run=$!
    for i in $(seq 300); do
        server=$(cat $cg/taillight-*/cgroup.procs 2>/dev/null | head -n 1)
        [ -n "$server" ] && [ "$(cat /proc/$server/comm)" = memcached ] && return
        sleep 0.1
    done
    cat "$2.err"
    exit 1
}
gone() { for i in $(seq 100); do ls -d $cg/taillight-* >/dev/null 2>&1 || return; sleep 0.1; done; }
state before
begin cpuset.yaml /tmp/run
echo "server: $(allowed $server), partition $(cat $cg/taillight-*/cpuset.cpus.partition)"
state during
wait $run
jq -cM '.tuned[] | [.setting, .value, .applied]' /tmp/run/experiment.json
state after
sed 's/duration: 2s/duration: 100s/' cpuset.yaml >long.yaml
begin long.yaml /tmp/killed
kill -9 $run
gone
state 'run killed'
begin long.yaml /tmp/keeper
for p in /proc/[0-9]*; do [ "$(cat $p/comm 2>/dev/null)" = taillight-keep ] && kill -9 ${p#/proc/}; done
wait $run
state 'keepers killed'
./taillight doctor --restore >/tmp/restored 2>&1 || cat /tmp/restored
state restored
INSIDE
said() { grep -qxF -- "$1" "$work/said" || fail "not said: $1"; }
guest_run -t 300 -f "$work/cpuset.yaml" -f "$work/inside.sh" '. ./inside.sh'
said "before: groups=0 given='' other=0-1"
said 'server: 0, partition root'
said "during: groups=1 given='cpuset' other=1"
said '["cpuset","0 exclusive",true]'
said "after: groups=0 given='' other=0-1"
said "run killed: groups=0 given='' other=0-1"
said "keepers killed: groups=1 given='cpuset' other=1"
said "restored: groups=0 given='' other=0-1"
