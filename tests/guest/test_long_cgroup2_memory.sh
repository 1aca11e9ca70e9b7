#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A limit of memory of cgroup v2, in a guest: somebody stores more in a server than its group's
# memory.high allows, and the kernel puts the server to sleep each time it asks for more. The run names
# the group and its limit; the same without a limit names none.
. tests/guest/guest_lib.sh

experiment() { # NAME HIGH
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
echo $$ >$group/cgroup.procs
memcached -u root -l "$1" -p "$2" -U 0 -t 1 -m 100 &
trap 'kill $!; wait $!; exit' TERM
sleep 3
[ "$3" = max ] || echo $(($(cat $group/memory.current) + 1000000)) >$group/memory.high
# Somebody stores more and more.
exec 3<>"/dev/tcp/$1/$2"
for ((key = 0; key < 400; key++)); do
    printf 'set more%d 0 0 100000 noreply\r\n%0100000d\r\n' $key 0 >&3
    sleep 0.05
done
wait
INSIDE
cat >"$work/inside.sh" <<'INSIDE'
mount -t cgroup2 none /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
for name in high none; do
    ./taillight run $name.yaml --out /tmp/$name --quiet >/dev/null 2>/out/$name.err
    echo $? >/out/$name.exit
    cp /tmp/$name/summary.json /out/$name.json && cp /tmp/$name/server/capture.json /out/$name.capture.json || cat /out/$name.err
    cat /sys/fs/cgroup/box/memory.events.local >/out/$name.events
done
INSIDE
experiment high yes
experiment none max
guest_run -t 400 -f "$work/high.yaml" -f "$work/none.yaml" -f "$work/server.sh" -f "$work/inside.sh" '. ./inside.sh'
grep -qE '^[04]$' "$work/out/high.exit" || fail "the run with a limit: $(cat "$work/out/high.exit" "$work/out/high.err")"
shown='{first: .diagnosis.causes[:3], lede, verdict}'
held='.diagnosis.causes | map(select(.category == "memory limit" and (.cause | test("memory.high of box"))))'
expect high.capture.json '.memory_limits | any(.group == "/box" and .limit == "memory.high" and .times > 3)' .memory_limits
expect high.json "$held | length == 1 and .[0].messages > 5" "$shown"
expect none.capture.json '.memory_limits == []' .memory_limits
expect none.json "$held == []" "$shown"
jq -c "[${held}[0] | .cause, .messages, .total_us]" "$work/out/high.json"
