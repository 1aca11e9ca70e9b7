#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Seven interfaces from a load out here to a server behind ssh in a guest with another kernel, three
# bridges and a tap device between them: hops on both machines see the same packets, in order, their
# times add up to the network's, and packets and requests say the same of the two clocks. And packets that carry their
# stamps from here into the guest and back.
set -u
command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || { echo "there is no sshd; install it: apt-get install openssh-server"; exit 77; }
. "$(dirname "$0")/tap_lib.sh"
sshd=$(command -v sshd || echo /usr/sbin/sshd)
programs=(-p "$sshd" -p id)
for part in /usr/lib/openssh/sshd-session /usr/lib/openssh/sshd-auth; do
    [ ! -x $part ] || programs+=(-p $part)
done

# br0 - p0 - p1, br1, q0 - q1, br2, tap0: what br0 sends passes them all, without being bridged to itself.
ip addr del 10.78.0.1/24 dev tap0
ip link add p0 type veth peer name p1
ip link add q0 type veth peer name q1
for bridge in br0 br1 br2; do ip link add $bridge type bridge || { echo "no bridge can be made here"; exit 77; }; done
while read -r port bridge; do ip link set "$port" master "$bridge"; done <<'PORTS'
p0 br0
p1 br1
q0 br1
q1 br2
tap0 br2
PORTS
for link in br0 br1 br2 p0 p1 q0 q1 tap0; do ip link set $link up; done
ip addr add 10.78.0.1/24 dev br0

guest_ssh guest 10.78.0.2
cat >"$work/inside" <<INSIDE
$guest_begin
mkdir -p /run/sshd
chmod 600 host_key
$sshd -e -f sshd_guest
$guest_wait
INSIDE
cat >"$work/seven.yaml" <<YAML
name: seven
hosts:
  client: {kind: local, cores: [1]}
  guest: {kind: ssh, address: guest, ssh_config: $work/ssh_config, cores: [0], silence: 60s}
servers:
  cache: {host: guest, kind: memcached, threads: 1, memory: 64MiB, shim: true}
workload:
  keys: {count: 200}
  values: {size: {fixed: 200}}
load: {from: client, to: cache, rate: 100, duration: 4s, connections: 4, depth: 64, timeout: 10s, seed: 1}
capsule: {hops: [br0@client, p0@client, p1@client, q0@client, q1@client, tap0@client, eth0@guest]}
YAML
guest_start -t 240 "${programs[@]}" -f "$work/inside" -f "$work/host_key" -f "$work/user_key.pub" \
    -f "$work/sshd_guest" 'bash inside'
for try in 1 2 3; do
    rm -rf "$work/run"
    "$BUILD/taillight" run "$work/seven.yaml" --out "$work/run" >"$work/report" 2>"$work/run.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "run: exit $status: $(tail -n 20 "$work/run.err" "$work"/run/logs/*.log)"
    jq -e '.hosts.both_ways | not' "$work/run/summary.json" >/dev/null && break
    echo "try $try: the clocks are not related closely enough: $(jq -c .hosts "$work/run/summary.json")"
done

# Stamps of both kernels' clocks in one packet. UDP, since nobody sends it again.
for setting in /proc/sys/net/bridge/bridge-nf-call-*tables; do [ ! -e "$setting" ] || echo 0 >"$setting"; done
ssh -F "$work/ssh_config" guest 'exec memcached -u root -l 10.78.0.2 -p 11213 -U 11213' >"$work/memcached.log" 2>&1 &
ours+=($!)
tries=100
until (exec 3<>/dev/tcp/10.78.0.2/11213) 2>/dev/null; do
    tries=$((tries - 1)) && [ $tries -gt 0 ] || fail "no memcached in the guest: $(cat "$work/memcached.log")"
    sleep 0.1
done
"$BUILD/taillight" load --server udp:10.78.0.2:11213 --rate 100 --connections 4 --duration 60s --sleep --quiet >"$work/load.log" 2>&1 &
load=$!
ours+=($load)
"$BUILD/taillight" capsule --ssh-config "$work/ssh_config" --hop br0 --hop p0 --hop p1 --hop tap0 --hop eth0@ssh:guest \
    --carry --filter 'udp port 11213' --for 4s --json >"$work/carry.json" 2>"$work/carry.err" ||
    fail "carrying: exit $?: $(cat "$work/carry.err") $(jq -c '.hops[]' "$work/carry.json")"
kill $load
jq -e '
    def all_hops(key): [.hops[][key]] | add;
    ([.routes[].hops | map(.hop) | join(" ")] | sort) == (["br0:egress p0:egress p1:ingress tap0:egress eth0:ingress@guest",
        "eth0:egress@guest tap0:ingress p1:egress p0:ingress br0:ingress"] | sort)
    and all(.routes[]; .packets > 50 and .complete == .packets and .gaps == 0 and all(.hops[1:][].from_previous; .p50_ns > 0))
    and all_hops("begun") == all_hops("ended") and all_hops("ended") == all_hops("recorded")
    and all_hops("stamped") == 3 * all_hops("begun") and .records == 5 * all_hops("begun")
    and all_hops("damaged") + all_hops("foreign") + all_hops("dropped") + all_hops("not_stamped") == 0
    and (.clocks[0] | .crossings > 100 and .compared > 0 and .disagreeing == 0 and .backwards == 0 and .unrelated == 0
        and (.offset_ns | fabs) > .bound_p99_ns and .bound_p99_ns <= .link_bound_p99_ns)' "$work/carry.json" >/dev/null ||
    fail "carrying: $(cat "$work/carry.json")"
echo "carried: $(jq -c '[.routes[].packets], .clocks[0]' "$work/carry.json")"
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$work/report" "$KEEP"
guest_end

summary=$work/run/summary.json
expect() {
    jq -e "$1" "$summary" >/dev/null || fail "not $1: $(jq -c '[.requests, .joined, .hosts, .hops]' "$summary")"
}
dd if="$work/run/client/hops.tlog" bs=1 skip=40 count=36 status=none >"$work/boot.here"
dd if="$work/run/server/hops.tlog" bs=1 skip=40 count=36 status=none >"$work/boot.there"
! cmp -s "$work/boot.here" "$work/boot.there" || fail "both logs are of one boot"
expect '.requests > 300 and .joined >= 0.95 * .requests and (.hosts.both_ways | not)'
expect '.hops.problem == null and .hops.dropped == 0 and .hops.strange == 0 and .hops.backwards == 0'
expect '.hops.divided_to_server >= 0.99 * .hops.requests and .hops.divided_to_client >= 0.95 * .hops.requests'
# Each passed all of the links, there and back; the last one lies behind the client's stamp, where the kernel first had
# the packet, mostly or always.
links() { # WAY LINKS...: each is there of at least 95 of 100 messages, in this order, and no other is
    local way=$1
    shift
    expect "[.hops.parts[] | select(.way == \"$way\" and (.part | contains(\"->\")) and .part != \"p0@client -> br0@client\")] |
        map(.part) == $(jq -cn '$ARGS.positional' --args "$@") and (map(.messages) | min) >= 0.95 * $(jq .hops.requests "$summary")"
}
links 'to server' 'br0@client -> p0@client' 'p0@client -> p1@client' 'p1@client -> q0@client' 'q0@client -> q1@client' \
    'q1@client -> tap0@client' 'tap0@client -> eth0@guest'
links 'to client' 'eth0@guest -> tap0@client' 'tap0@client -> q1@client' 'q1@client -> q0@client' 'q0@client -> p1@client' \
    'p1@client -> p0@client'
# Parts add up to their way, as each message's do.
expect '[.hops.parts | group_by(.way)[] | (map(select(.part | startswith("all of") | not) | .mean_us * .messages) | add)
    - (map(select(.part | startswith("all of")) | .mean_us * .messages) | add) | fabs] | max < 1'
expect '.hops.clock.exchanges >= 0.95 * .hops.requests and .hops.clock.compared > 0 and .hops.clock.disagreeing == 0'
expect '.hops.clock.bound_p99_us > 0 and .hops.clock.difference_max_us <= .hops.clock.bound_p99_us + .hosts.bound_p99_us'
expect '.worst_stage_sum_error_ns == 0'
grep -q 'by these packets the clocks are related within' "$work/report" || fail "no word of the clocks: $(cat "$work/report")"
jq -c '[.hosts.bound_p99_us, .hosts.rate_ppm, .hops.clock]' "$summary"
