#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A load that two machines share, each with a NIC whose clock drifts its own way and that tells of what it receives after 180 us: two guests, behind ssh,
# load a memcached out here that nobody prepared. The agents keep their NICs' stamps, told in one time, and
# nearly all requests have both.
# Their machines are emulated, and their timings mean nothing.
# Time limit: 600 s
set -u
for program in ssh ssh-keygen /usr/sbin/sshd jq memcached; do
    command -v $program >/dev/null || { echo "there is no $program (openssh-client, openssh-server, jq, memcached)"; exit 77; }
done
if [ "${1:-}" != inside ]; then # while there is a network
    module=$(tests/guest/build_module.sh "$BUILD" phcpair) || { echo "$module"; exit 77; }
fi
. "$(dirname "$0")/tap_lib.sh" # tap0 is the first guest's; the second's is like it
module=$(tests/guest/build_module.sh "$BUILD" phcpair) || fail "$module"
ip tuntap add tap1 mode tap && ip addr add 10.79.0.1/24 dev tap1 && ip link set tap1 up || fail "no second tap device"
ip addr add 10.80.0.1/32 dev lo # the server's, however it is reached
nets=(10.78.0 10.79.0) cards=(10.81.0 10.82.0)
for k in 0 1; do
    net=${nets[k]} card=${cards[k]}
    ip route add "$card.0/24" via "$net.2"
    # shellcheck disable=SC2016 # a line for the guest
    guest_ssh "client$k" "$net.2" 'ForceCommand nsenter --net=/proc/$(cat /run/client.pid)/ns/net bash -c "$SSH_ORIGINAL_COMMAND"'
    cat >"$work/inside$k" <<INSIDE
set -u
modprobe virtio_net
tries=50
until ip link show eth0 >/dev/null 2>&1; do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || exit 1
    sleep 0.1
done
ip addr add $net.2/24 dev eth0
ip link set eth0 up
ip route add default via $net.1
mkdir -p /run/sshd /home/files
chmod 600 host_key
insmod phcpair.ko coalesce_us=180 || exit 1
unshare -n sleep 100000 &
echo \$! >/run/client.pid
until [ "\$(readlink /proc/\$(cat /run/client.pid)/ns/net)" != "\$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
ip link set phc0 netns \$(cat /run/client.pid)
ip addr add $card.2/24 dev phc1
ip link set phc1 up
echo 1 >/proc/sys/net/ipv4/ip_forward
nsenter --net=/proc/\$(cat /run/client.pid)/ns/net bash -c "ip link set lo up; ip addr add $card.1/24 dev phc0; ip link set phc0 up; ip route add default via $card.2"
/usr/sbin/sshd -D -e -f sshd_client$k 2>/run/sshd.log &
tries=300
until grep -q 'Server listening' /run/sshd.log; do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || { cat /run/sshd.log; exit 1; }
    sleep 0.1
done
$guest_wait
[ -z "\$(ls -A /home/files)" ] && ! grep -lx taillight /proc/[0-9]*/comm || { echo 'something was left'; ls -R /home/files; exit 1; }
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
    tests/guest/run_guest.sh -n "tap$k" -t 400 -p sshd -f "$module" -f "$work/inside$k" -f "$work/sshd_client$k" \
        -f "$work/host_key" -f "$work/user_key.pub" "bash inside$k" >"$work/said$k" 2>&1 &
    guests[k]=$!
done
ours+=("${guests[@]}")
for k in 0 1; do
    until grep -q 'the guest is ready' "$work/said$k"; do
        kill -0 "${guests[k]}" 2>/dev/null || { cat "$work/said$k"; fail "guest $k ended before it was ready"; }
        sleep 0.2
    done
done
memcached -u root -l 10.80.0.1 -p 11211 -t 1 &
ours+=($!)
cat >"$work/two.yaml" <<END
name: two-clients
hosts:
  here: {kind: local, cores: [0]}
  one: {kind: ssh, address: client0, cores: [1], nic: phc0, directory: /home/files, ssh_config: $work/ssh_config, silence: 60s}
  two: {kind: ssh, address: client1, cores: [1], nic: phc0, directory: /home/files, ssh_config: $work/ssh_config, silence: 60s}
servers:
  cache: {host: here, kind: running, port: 11211, address: 10.80.0.1, fill: true}
workload:
  keys: {count: 100}
  values: {size: {fixed: 100}}
load:
  from: one
  rate: 80
  duration: 5s
  connections: 4
  depth: 64
  timeout: 20s
  seed: 1
  stamps: hw
  agents: [{host: one, kind: symmetric, name: first}, {host: two, kind: symmetric, name: second}]
END
# The first translates the programs' code, and stalls: TCP then merges what the load is late with, under one stamp.
"$BUILD/taillight" run "$work/two.yaml" --set load.duration=1s --out "$work/warm" --quiet >"$work/verdict" 2>&1
"$BUILD/taillight" run "$work/two.yaml" --out "$work/run" --quiet >"$work/verdict" 2>&1
status=$?
for port in 10.78.0.2 10.79.0.2; do : 2>/dev/null >/dev/tcp/$port/11212 || fail "a guest cannot be told to end"; done
for k in 0 1; do
    wait "${guests[k]}" || { cat "$work/said$k"; fail "guest $k: exit $?"; }
done
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$work/verdict" "$KEEP"
[ $status = 0 ] || [ $status = 4 ] || fail "the run: exit $status: $(cat "$work/verdict")"
load=$work/run/client/load.json
said=$(jq -c '[.answered, .stamps, [.agents.list[] | [.name, .lost, .report.answered, .report.stamps]]]' "$load")
jq -e '.answered > 300 and .stamps.hw >= 0.95 * .answered' "$load" >/dev/null || fail "the NICs' stamps: $said"
jq -e '[.agents.list[].report | .stamps.hw >= 0.9 * .answered] | length == 2 and all' "$load" >/dev/null ||
    fail "those of one: $said"
jq -e '.joined >= 0.95 * .requests' "$work/run/summary.json" >/dev/null ||
    fail "joined: $(jq -c '[.requests, .joined, .unmatched]' "$work/run/summary.json")"
echo "exit $status; $said; joined $(jq -c '[.joined, .requests, .order_violations]' "$work/run/summary.json")"
