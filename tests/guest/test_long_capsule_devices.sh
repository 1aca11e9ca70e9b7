#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tunnels over IPv6 and IPv4 (geneve, sit, ip6gre, ip6tnl), 802.1ad's tags and addresses that tc translates, of which many
# kernels of virtual machines have none and Debian's newest has all: packets carry their stamps from end to end, each
# request is answered with its own value, and no trailer is damaged or lost.
# Time limit: 600 s
. "$(dirname "$0")/guest_lib.sh"
cat >"$work/inside" <<'INSIDE'
set -u
dmesg -n 1
modprobe -a veth geneve sit ip6_gre ip6_tunnel 8021q sch_ingress cls_u32 act_nat
fail() { echo "FAIL: $*"; cat /tmp/capsule.err /tmp/load; exit 1; }
at() { nsenter -t "$1" -n "${@:2}"; }
for name in client server; do
    unshare -n sleep 86400 & # the clock of a guest that its host starves may be minutes ahead
    printf -v $name %s $!
done
sleep 1
at "$client" ip link add a0 type veth peer name b0 netns "$server"
both() { # WORDS of ip, in which %L is this end and %R the other, %D its interface
    local end place own other device words
    for end in "$client 1 2 a0" "$server 2 1 b0"; do
        read -r place own other device <<<"$end"
        words=${*//%L/$own} words=${words//%R/$other}
        at "$place" ip ${words//%D/$device} || fail "$*"
    done
}
both addr add 10.88.0.%L/24 dev %D
both addr add fd88::%L/64 dev %D nodad
both link set %D up
at "$server" memcached -u root -t 1 -l 0.0.0.0,:: -p 11211 -U 11211 &
tries=200
until at "$client" bash -c 'exec 3<>/dev/tcp/10.88.0.2/11211' 2>/dev/null; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || fail "memcached does not come up"
    sleep 0.1
done
at "$client" ./taillight load --server 10.88.0.2:11211 --prepare --quiet >/tmp/load 2>&1 || fail "no dataset"
load() { # NAME SERVER
    at "$client" ./taillight load --server "$2" --rate 50 --connections 4 --duration 1s --timeout 60s --sleep --quiet >/tmp/load 2>&1
    grep -q ' answered (0 misses, 0 errors), 0 unsent, 0 timed out, 0 lost' /tmp/load || fail "$1: requests were not answered"
}
carries() { # NAME ADDRESS HOPS...: datagrams and streams
    local capsule tries=300
    rm -f /tmp/capsule.err
    ./taillight capsule --carry "${@:3}" --filter 'port 11211' --json >"/out/$1.json" 2>/tmp/capsule.err &
    capsule=$!
    until grep -qs 'measuring' /tmp/capsule.err; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] && kill -0 $capsule 2>/dev/null || fail "$1: it does not measure"
        sleep 0.1
    done
    load "$1" "$2"
    load "$1" "udp:$2"
    kill -INT $capsule
    wait $capsule || fail "$1: exit $?"
    jq -e --argjson hops $((($# - 2) / 2)) 'def all_hops(key): [.hops[][key]] | add;
        (.routes | length) == 2 and .rare == 0 and all(.routes[]; .packets > 20 and .complete == .packets and (.hops | length) == $hops)
        and all_hops("begun") == all_hops("ended") and all_hops("damaged") + all_hops("foreign") + all_hops("not_stamped") == 0' \
        "/out/$1.json" >/dev/null || fail "$1: $(cat "/out/$1.json")"
}
over() { # NAME FAMILY WORDS of ip link add
    both link add "${@:3}"
    both addr add 10.89.0.%L/24 dev d0
    both addr add fd89::%L/64 dev d0 nodad
    both link set d0 mtu 1300 up
    [ "$2" = 6 ] || carries "$1-4" 10.89.0.2:11211 --hop "d0@$client" --hop "a0@$client" --hop "b0@$server" --hop "d0@$server"
    [ "$2" = 4 ] || carries "$1-6" '[fd89::2]:11211' --hop "d0@$client" --hop "a0@$client" --hop "b0@$server" --hop "d0@$server"
    both link del d0
}
over geneve both d0 type geneve id 9 remote fd88::%R
over sit 6 d0 type sit remote 10.88.0.%R local 10.88.0.%L
over ip6gre both d0 type ip6gre remote fd88::%R local fd88::%L
over ip6tnl both d0 type ip6tnl mode any remote fd88::%R local fd88::%L
both link add link %D name q0 type vlan proto 802.1ad id 5
both link set q0 up
over tags 4 link q0 name d0 type vlan proto 802.1ad id 6
# Behind the hops of a0, tc gives the server another address there, and takes it away from what comes back.
at "$client" tc qdisc add dev a0 clsact
at "$client" tc filter add dev a0 egress protocol ip u32 match ip dst 10.88.0.9/32 action nat ingress 10.88.0.9/32 10.88.0.2 || fail "no nat of tc's"
at "$client" tc filter add dev a0 ingress protocol ip u32 match ip src 10.88.0.2/32 action nat egress 10.88.0.2/32 10.88.0.9
at "$client" ip neigh add 10.88.0.9 lladdr "$(at "$server" ip -j link show b0 | jq -r '.[0].address')" dev a0
carries translated 10.88.0.9:11211 --hop "a0@$client" --hop "b0@$server"
! dmesg | grep -E 'WARNING:|BUG:|Oops'
INSIDE
guest_run -k newer -t 500 -p cat -p grep -p sleep -p tc -f "$work/inside" 'bash inside'
for way in "$work"/out/*.json; do jq -r --arg way "$(basename "$way" .json)" '"\($way): \([.routes[].packets])"' "$way"; done
