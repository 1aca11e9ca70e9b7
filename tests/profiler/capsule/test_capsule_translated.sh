#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` where a router gives packets other addresses on their way, both ends' (as Docker does for a
# published port): packets are followed through it, each and sampled, there and back. Where rules translate that the kernel's
# connection tracking knows nothing of, it is said where the ways are parted.
# Runs beside others: counts packets, asserts no times.
. "$(dirname "$0")/route_lib.sh"
command -v nft >/dev/null || skip "there is no nft"
hold client
hold router
hold server
in_namespace "$router" sh -e -c "
    ip link add to-client type veth peer name eth0 netns $client
    ip link add to-server type veth peer name eth0 netns $server
    ip addr add 10.98.0.9/24 dev to-client
    ip addr add 10.99.0.9/24 dev to-server
    ip link set to-client up
    ip link set to-server up
    echo 1 >/proc/sys/net/ipv4/ip_forward" || skip "veth pairs or forwarding cannot be had here"
for end in "$client 98 1" "$server 99 2"; do
    read -r place network own <<<"$end"
    in_namespace "$place" sh -e -c "
        ip addr add 10.$network.0.$own/24 dev eth0
        ip link set eth0 up
        ip route add default via 10.$network.0.9" || fail "no addresses"
done
serve_echo

asks() { # NAME OPTION...: what is printed is $work/NAME, and the document $work/NAME.d/capsule.json
    "$taillight" capsule --hop "eth0@$client=c" --hop "to-client@$router=r" --hop "to-server@$router=r" --hop "eth0@$server=s" \
        --filter 'port 7007' --out "$work/$1.d" "${@:2}" >"$work/$1" 2>"$work/$1.err" &
    local capsule=$!
    children+=($capsule)
    measures "$work/$1.err"
    in_namespace "$client" timeout 60 python3 "$here/echo.py" ask 10.98.0.9 7007 0.3 >"$work/$1.came" 2>"$work/$1.came.err" ||
        fail "$1: lost or changed: $(cat "$work/$1.came.err")"
    kill -INT $capsule
    wait $capsule || fail "$1: exit $?"
}
holds() { # NAME CONDITION
    jq -e '
        def way(hops): [.routes[] | select((.hops | map(.hop) | join(" ")) == hops)];
        def there: way("eth0:egress@c to-client:ingress@r to-server:egress@r eth0:ingress@s");
        def back: way("eth0:egress@s to-server:ingress@r to-client:egress@r eth0:ingress@c");
        '"$2" "$work/$1.d/capsule.json" >/dev/null ||
        fail "$1: $(jq -c '[.routes[] | [.packets, .complete, (.hops | map(.hop))]], .translated' "$work/$1.d/capsule.json")"
}

in_namespace "$router" nft -f - 2>"$work/nft.err" <<'NFT' || skip "addresses cannot be translated here: $(cat "$work/nft.err")"
table ip translated {
    chain before {
        type nat hook prerouting priority -100
        iifname "to-client" meta l4proto { tcp, udp } dnat to 10.99.0.2
    }
    chain behind {
        type nat hook postrouting priority 100
        oifname "to-server" masquerade
    }
}
NFT
asks each
asks sampled --sample 1/4
for name in each sampled; do
    holds $name '(.routes | length) == 2 and (there + back | length) == 2 and all(.routes[]; .packets > 20 and .complete == .packets)
        and .rare == 0 and .translated > 80'
    grep -q 'addresses are translated (NAT): they were followed' "$work/$name" || fail "$name: not said"
    ! grep -q 'not known again' "$work/$name" || fail "$name: $(cat "$work/$name")"
done
holds each 'all(.routes[]; .packets > 100)'

in_namespace "$router" nft delete table ip translated
in_namespace "$router" nft -f - 2>"$work/nft.err" <<'NFT' || skip "addresses cannot be translated without state here: $(cat "$work/nft.err")"
table ip without_state {
    chain before {
        type filter hook prerouting priority -300
        iifname "to-client" ip daddr 10.98.0.9 notrack ip daddr set 10.99.0.2
        iifname "to-server" ip saddr 10.99.0.2 notrack
    }
    chain behind {
        type filter hook postrouting priority 300
        oifname "to-client" ip saddr 10.99.0.2 ip saddr set 10.98.0.9
    }
}
NFT
asks parted
holds parted '(.routes | length) == 4 and .translated == 0'
[ "$(grep -c 'not known again' "$work/parted")" = 2 ] || fail "parted: $(cat "$work/parted")"
echo "followed: $(jq -c '[.routes[].packets], .translated' "$work/each.d/capsule.json" | tr '\n' ' ')"
