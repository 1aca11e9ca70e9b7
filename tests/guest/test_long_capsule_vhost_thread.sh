#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Since Linux 6.4 vhost's thread is one of the process that has the machine, and none of the kernel's: with a kernel that new
# a hop at the tap says that this thread takes packets out, and no other. (The machine behind the tap is a program that
# has vhost-net do what QEMU has it do.)
# Time limit: 600 s
. "$(dirname "$0")/guest_lib.sh"
cat >"$work/inside" <<'INSIDE'
set -u
modprobe -a vhost_net tun veth || exit 1
unshare -n sleep 300 &
machine=$!
sleep 1
ip link add to-machine type veth peer name eth0 netns "$machine"
ip link set to-machine up
./vhost_nic tap0 to-machine &
nic=$!
tries=100
until ip link set tap0 up 2>/dev/null && cat /proc/$nic/task/*/comm | grep -q '^vhost-'; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || { echo "vhost has no thread in the process"; exit 1; }
    sleep 0.1
done
for task in /proc/$nic/task/*; do
    read -r name <"$task/comm"
    case $name in vhost-*) echo "{\"process\": $nic, \"thread\": ${task##*/}, \"name\": \"$name\"}" >/out/worker.json ;; esac
done
./taillight capsule --hop tap0:egress --for 0.2 --json >/out/capsule.json 2>/tmp/err
[ $? = 4 ] || { cat /tmp/err; exit 1; } # nothing passes
INSIDE
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/vhost_nic" tests/guest/vhost_nic.c || exit 1
guest_run -k newer -t 250 -p cat -p grep -p sleep -f "$work/inside" -f "$work/vhost_nic" 'bash inside'
jq -e --slurpfile worker "$work/out/worker.json" '.hops[0].holder | .process == $worker[0].process
    and ([.threads[] | select(.reads) | [.thread, .name]] == [[$worker[0].thread, $worker[0].name]])' "$work/out/capsule.json" >/dev/null ||
    fail "$(cat "$work/out/worker.json"): $(jq -c '.hops[0].holder' "$work/out/capsule.json")"
