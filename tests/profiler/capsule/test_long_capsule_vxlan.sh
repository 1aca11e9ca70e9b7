#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` with an overlay: hops at the ends of a VXLAN see the packets in it, hops at the interfaces below it
# those around them, and packets carry their stamps within. Around them, from their sender on, the kernel lets no
# trailer on: they are left alone, and counted.
set -u
. "$(dirname "$0")/route_lib.sh"
make_route
stop_cutting || skip "bridges here hand packets to iptables, and that cannot be changed"
for end in "$client 1 2" "$server 2 1"; do
    read -r place own other <<<"$end"
    in_namespace "$place" sh -e -c "
        ip link add vx0 type vxlan id 7 remote 10.99.0.$other dstport 4789 dev eth0
        ip addr add 10.96.0.$own/24 dev vx0
        ip link set vx0 up" 2>/dev/null || skip "there is no VXLAN here"
done
"$taillight" capsule --hop "vc:ingress@$middle" --for 0.01 -q >"$work/first" 2>"$work/first.err"
[ $? -ne 1 ] || ! grep -q 'tcx\|lacks' "$work/first.err" || skip "$(cat "$work/first.err")"
serve_echo
ends=(--hop "vx0@$client" --hop "vx0@$server")
for kind in look carry outer around; do
    case $kind in
        look) options=("${ends[@]}" --filter 'udp port 7007') ;;
        carry) options=("${ends[@]}" --carry --filter 'udp port 7007') ;;
        outer) options=("${hops[@]}" --filter 'udp dst port 4789') ;;
        around) options=("${hops[@]}" --carry --filter 'udp dst port 4789') ;;
    esac
    timeout 60 "$taillight" capsule "${options[@]}" --json >"$work/$kind.json" 2>"$work/$kind.err" &
    printf -v $kind %s $!
    children+=($!)
    measures "$work/$kind.err"
done
in_namespace "$client" python3 - <<'PY' || fail "datagrams are lost or changed"
import random, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect(("10.96.0.2", 7007))
for n in range(300):
    data = random.randbytes(random.randint(1, 1200))
    s.send(data)
    assert s.recv(2000) == data
PY
# shellcheck disable=SC2154 # look, carry, outer and around are assigned by name
kill -INT "$look" "$carry" "$outer" "$around"
wait "$around"
jq -e '([.hops[] | .begun] | add) == ([.hops[] | .ended] | add) and ([.hops[] | .damaged + .foreign + .unreadable] | add) == 0
    and all(.hops[] | select(.role == "begins"); .matched >= 300 and .begun + .not_stamped + .no_room == .matched)' \
    "$work/around.json" >/dev/null || fail "around: $(jq -c '[.hops[] | {name, matched, begun, ended, not_stamped, no_room, foreign, damaged}]' "$work/around.json")"
for kind in look carry outer; do
    wait "${!kind}" || fail "$kind: exit $?"
    least=300 hops_on_way=2
    [ $kind != outer ] || hops_on_way=6
    jq -e --argjson least $least --argjson hops $hops_on_way '(.routes | length) == 2 and all(.routes[];
        .packets >= $least and .complete == .packets and (.hops | length) == $hops)
        and ([.hops[] | .damaged + .foreign + .unreadable + .dropped] | add) == 0' "$work/$kind.json" >/dev/null ||
        fail "$kind: $(jq -c '[.routes[] | [.packets, .complete, (.hops | length)]], [.hops[] | {name, matched, foreign, damaged, unreadable, no_room}]' "$work/$kind.json")"
done
echo "inside $(jq -c '[.routes[].packets]' "$work/look.json"), carried $(jq -c '[.routes[].packets]' "$work/carry.json"), outside $(jq -c '[.routes[].packets]' "$work/outer.json"), around $(jq -c '[.hops[] | select(.role == "begins") | [.begun, .not_stamped]]' "$work/around.json") carried and refused"
