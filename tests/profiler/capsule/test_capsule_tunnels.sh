#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` below tunnels: where what passes is the packet around the one that is asked for, that one is found, by
# hops that look and by those that stamp what it carries. Each tunnel's datagrams pass its two ends and, between them, the
# same two interfaces of the network below.
# Runs beside others: counts packets, asserts no times.
. "$(dirname "$0")/route_lib.sh"
make_route
need_carrying
serve_echo

# A tunnel between client and server, in which they are 10.90.NUMBER.1 and .2; in the words %L and %R are the ends below.
tunnels=()
make_tunnel() { # NAME NUMBER KIND WORDS...
    local end place own other words
    for end in "$client 1 2" "$server 2 1"; do
        read -r place own other <<<"$end"
        words=${*:3}
        words=${words//%L/$own} words=${words//%R/$other}
        in_namespace "$place" sh -e -c "
            ip link add $1 type $words
            ip addr add 10.90.$2.$own/24 dev $1
            ip link set $1 mtu 1200 up" 2>>"$work/refused" || { echo "there is no $3 here"; return; }
    done
    tunnels+=("$1 $2")
}
make_tunnel vx0 1 vxlan id 7 remote 10.99.0.%R dstport 4789 dev eth0
[ ${#tunnels[@]} = 1 ] || skip "$(cat "$work/refused")"
make_tunnel vx6 2 vxlan id 8 remote fd99::%R dstport 8472 dev eth0
make_tunnel gn0 3 geneve id 9 remote 10.99.0.%R
make_tunnel tap1 4 gretap remote 10.99.0.%R local 10.99.0.%L key 10
make_tunnel gr1 5 gre remote 10.99.0.%R local 10.99.0.%L
make_tunnel in1 6 ipip remote 10.99.0.%R local 10.99.0.%L

looking=(--hop "vc:ingress@$middle=m" --hop "vs:egress@$middle=m")
for one in "${tunnels[@]}"; do
    looking+=(--hop "${one% *}:egress@$client=c" --hop "${one% *}:ingress@$server=s")
done
"$taillight" capsule "${looking[@]}" --filter 'udp dst port 7007' --json >"$work/look.json" 2>"$work/look.err" &
look=$!
"$taillight" capsule --carry --hop "vx0@$client=c" --hop "vc@$middle=m" --hop "vs@$middle=m" --hop "vx0@$server=s" \
    --filter 'udp port 7007' --json >"$work/carry.json" 2>"$work/carry.err" &
carry=$!
"$taillight" capsule --carry --hop "vc:ingress@$middle=m" --hop "vs:egress@$middle=m" --filter 'udp dst port 7007' \
    --json >"$work/below.json" 2>"$work/below.err" &
below=$!
children+=($look $carry $below)
measures "$work/below.err"
measures "$work/look.err"
measures "$work/carry.err"
in_namespace "$client" python3 - "${tunnels[@]##* }" <<'PY' || fail "datagrams are lost or changed"
import random, socket, sys
for number in sys.argv[1:]:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.connect((f"10.90.{number}.2", 7007))
    for n in range(100):
        data = random.randbytes(random.randint(1, 900))
        s.send(data)
        assert s.recv(2000) == data
PY
kill -INT $look $carry $below
wait $below
wait $look || fail "looking: exit $?"
wait $carry || fail "carrying: exit $?"
for one in "${tunnels[@]}"; do
    name=${one% *}
    jq -e --arg way "$name:egress@c vc:ingress@m vs:egress@m $name:ingress@s" '
        [.routes[] | select([.hops[].hop] | join(" ") == $way) | .packets == 100 and .complete == 100] == [true]' "$work/look.json" >/dev/null ||
        fail "$name: $(jq -c '[.routes[] | [.packets, .complete, [.hops[].hop]]], [.hops[] | [.name, .matched, .unreadable]]' "$work/look.json")"
done
jq -e '([.hops[].unreadable] | add) == 0' "$work/look.json" >/dev/null || fail "looking: headers are not understood"
# Both hops on either way stamped what passed them in a tunnel.
jq -e 'def all_hops(key): [.hops[][key]] | add;
    (.routes | length) == 2 and all(.routes[]; .packets == 100 and .complete == 100 and (.hops | length) == 4)
    and all_hops("begun") == 200 and all_hops("ended") == 200 and all_hops("stamped") == 400
    and all_hops("damaged") + all_hops("foreign") + all_hops("not_stamped") + all_hops("unreadable") == 0' "$work/carry.json" >/dev/null ||
    fail "carrying: $(jq -c '[.routes[] | [.packets, .complete, (.hops | length)]], [.hops[] | [.name, .matched, .begun, .stamped, .ended, .foreign, .not_stamped]]' "$work/carry.json")"
# Below, none begins: one that carries already is left alone, and nothing is added to the others.
jq -e --argjson others $((100 * (${#tunnels[@]} - 1))) '([.hops[].begun] | add) == 0 and (.hops[0] | .foreign == 100 and .not_stamped == $others)' \
    "$work/below.json" >/dev/null || fail "below: $(jq -c '.hops[0]' "$work/below.json")"
echo "found in ${tunnels[*]}; carried $(jq -c '[.routes[].packets]' "$work/carry.json")"
