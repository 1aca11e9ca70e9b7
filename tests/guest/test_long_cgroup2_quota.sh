#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A CPU quota of cgroup v2, in a guest: who shares the server's control group uses it up now and then,
# and the server stands still. The kernel counts that, and the run names the group; the same without a
# quota names none.
. tests/guest/guest_lib.sh

experiment() { # NAME MAX
    guest_experiment "$1" 50 <<'YAML'
capture: {backend: events}
diagnose: {slice: p90-100}
YAML
    sed -i -e 's/^  cache: .*/  cache:/' -e 's/duration: 2s/duration: 10s/' "$work/$1.yaml"
    sed -i "/^  cache:/r /dev/stdin" "$work/$1.yaml" <<YAML
    host: server
    kind: command
    port: 11211
    shim: true
    command: [bash, server.sh, '{address}', '{port}', '$2']
YAML
}
cat >"$work/server.sh" <<'INSIDE'
group=/sys/fs/cgroup/box
mkdir -p $group
echo "$3" >$group/cpu.max
echo $$ >$group/cgroup.procs
memcached -u root -l "$1" -p "$2" -U 0 -t 1 &
trap 'kill $!; wait $!; exit' TERM
while sleep 0.9; do
    end=$((${EPOCHREALTIME/./} + 60000))
    until [ ${EPOCHREALTIME/./} -gt $end ]; do :; done
done
INSIDE
cat >"$work/inside.sh" <<'INSIDE'
mount -t cgroup2 none /sys/fs/cgroup
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
for name in quota none; do
    ./taillight run $name.yaml --out /tmp/$name --quiet >/dev/null 2>/out/$name.err
    echo $? >/out/$name.exit
    cp /tmp/$name/summary.json /out/$name.json && cp /tmp/$name/server/capture.json /out/$name.capture.json || cat /out/$name.err
done
INSIDE
experiment quota '20000 200000'
experiment none max
guest_run -t 400 -f "$work/quota.yaml" -f "$work/none.yaml" -f "$work/server.sh" -f "$work/inside.sh" '. ./inside.sh'
grep -qE '^[04]$' "$work/out/quota.exit" || fail "the run with a quota: $(cat "$work/out/quota.exit" "$work/out/quota.err")"
shown='{first: .diagnosis.causes[:3], verdict}'
throttled='.diagnosis.causes | map(select(.category == "CPU quota" and (.cause | test("CPU quota of box"))))'
expect quota.capture.json '.quotas | any(.group == "/box" and .times > 3 and .throttled_ms > 200)' .quotas
expect quota.json "$throttled | length == 1 and .[0].messages > 5" "$shown"
expect none.capture.json '.quotas == []' .quotas
expect none.json "$throttled == []" "$shown"
jq -c "[${throttled}[0] | .cause, .messages, .total_us]" "$work/out/quota.json"
