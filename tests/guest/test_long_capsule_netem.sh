#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# netem, which many kernels of virtual machines lack and Debian's 6.1 has, delays what passes one link of a bridge, then
# the other: in 99 of 100 packets the longest time from hop to hop is that link's, and in 95 it is the delay within 15 %,
# which was spent in the queue of the interface that netem is at.
# (A long delay, since an emulated core stands still for tens of ms now and then.)
. "$(dirname "$0")/guest_lib.sh"
cat >"$work/inside" <<'INSIDE'
set -u
at() { nsenter -t "$1" -n "${@:2}"; }
for end in client server; do
    unshare -n sleep 300 &
    printf -v $end %s $!
done
sleep 1
ip link add c0 type veth peer name eth0 netns "$client"
ip link add s0 type veth peer name eth0 netns "$server"
ip link add bridge0 type bridge
for port in c0 s0; do ip link set $port master bridge0 up; done
ip link set bridge0 up
number=1
for end in "$client" "$server"; do
    at "$end" ip addr add 10.97.0.$number/24 dev eth0
    at "$end" ip link set eth0 up
    number=$((number + 1))
done
nsenter -t "$server" -n memcached -u root -t 1 -l 10.97.0.2 -p 11211 -U 11211 &
sleep 2
delay() { # LINK PROCESS DEVICE
    at "$2" tc qdisc add dev "$3" root netem delay 200ms limit 100000 || exit 1
    ./taillight capsule --hop "eth0:egress@$client=client" --hop c0:ingress --hop s0:egress --hop "eth0:ingress@$server=server" \
        --filter 'udp dst port 11211' --out "/out/$1" >"/out/$1.txt" 2>"/out/$1.err" &
    capsule=$!
    until grep -q 'measuring' "/out/$1.err"; do kill -0 $capsule || exit 1; sleep 0.1; done
    nsenter -t "$client" -n ./taillight load --server udp:10.97.0.2:11211 --rate 40 --connections 2 --duration 5s --sleep --quiet >/dev/null
    kill -INT $capsule
    wait $capsule || exit 1
    at "$2" tc qdisc del dev "$3" root
}
delay client "$client" eth0
delay server $$ s0
INSIDE
guest_run -t 240 -p tc -f "$work/inside" 'dmesg -n 1; bash inside'
python3 - "$work/out" <<'PY' || fail "the delay is not where it was put"
import collections, json, struct, sys
DELAY = 200e6
where = {"client": ("eth0:egress@client", "c0:ingress"), "server": ("s0:egress", "eth0:ingress@server")}
for name, link in where.items():
    folder = f"{sys.argv[1]}/{name}"
    names = [hop["name"] for hop in json.load(open(f"{folder}/capsule.json"))["hops"]]
    packets = collections.defaultdict(list)
    data = open(f"{folder}/hops.tlog", "rb").read()[128:]
    for time, flow, datagram, _, _, _, hop, _, _, _, queued in struct.iter_unpack("<QQQIIIBBBBQ", data):
        packets[flow, datagram].append((time, names[hop], queued))
    whole = [sorted(stamps) for stamps in packets.values() if len(stamps) == 4]
    longest = [max((b[0] - a[0], (a[1], b[1])) for a, b in zip(stamps, stamps[1:])) for stamps in whole]
    right = sum(step == link for _, step in longest)
    near = sum(step == link and abs(took - DELAY) <= 0.15 * DELAY for took, step in longest)
    queues = [[(at, queued) for _, at, queued in stamps if queued] for stamps in whole]
    waited = sum(len(queue) == 1 and queue[0][0] == link[0] and abs(queue[0][1] - DELAY) <= 0.15 * DELAY for queue in queues)
    print(f"{' -> '.join(link)}: right in {right} of {len(whole)}, within 15 % in {near}, in its queue {waited}")
    assert len(whole) > 150 and waited >= 0.95 * len(whole) and right >= 0.99 * len(whole) and near >= 0.95 * len(whole)
PY
