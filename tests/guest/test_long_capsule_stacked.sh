#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Interfaces on top of another one (macvlan, ipvlan, VRF), of which many kernels of virtual machines have none and Debian's 6.1
# has all: hops at them and below see and carry each packet. Some give what they send to the IP layer once more, which
# would make a trailer a part of the packet: there none begins, neither when told to nor when the interface becomes
# such a one meanwhile, and each request is answered.
# Time limit: 600 s
. "$(dirname "$0")/guest_lib.sh"
cat >"$work/inside" <<'INSIDE'
set -u
dmesg -n 1
modprobe -a veth macvlan ipvlan vrf
fail() { echo "FAIL: $*"; cat /tmp/capsule.err /tmp/load; exit 1; }
at() { nsenter -t "$1" -n "${@:2}"; }
capsule() { # NAME PROTOCOL HOPS...
    local name=$1 tries=300
    rm -f /tmp/capsule.err # what the one before it said would be taken for its own, until it begins
    ./taillight capsule "${@:3}" --filter "$2 port 11211" --json >"/out/$name.json" 2>/tmp/capsule.err &
    capsule=$!
    until grep -qs 'measuring' /tmp/capsule.err; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] && kill -0 $capsule 2>/dev/null || fail "$name: it does not measure"
        sleep 0.1
    done
}
load() { # NAME NAMESPACE SERVER
    at "$2" ./taillight load --server "$3" --rate 50 --connections 4 --duration 1s --timeout 20s --sleep --quiet >/tmp/load 2>&1
    grep -q ' 0 unsent, 0 timed out, 0 lost' /tmp/load || fail "$1: requests were not answered"
}
end() {
    kill -INT $capsule
    wait $capsule
}
begin_of() { # KIND...: a client a0 - b0, upon which are the server's s0 and another client's c0
    for name in client server other; do
        unshare -n sleep 86400 & # the clock of a guest that its host starves may be minutes ahead
        printf -v $name %s $!
    done
    sleep 1
    ip link add b0 type veth peer name a0 netns "$client"
    ip link set b0 up
    at "$client" ip link set a0 up
    at "$client" ip addr add 10.88.0.1/24 dev a0
    ip link add link b0 name s0 netns "$server" type "$@" || fail "no $*"
    ip link add link b0 name c0 netns "$other" type "$@"
    at "$server" ip link set s0 up
    at "$server" ip addr add 10.88.0.2/24 dev s0
    at "$other" ip link set c0 up
    at "$other" ip addr add 10.88.0.3/24 dev c0
    case $* in *l3*) # nobody answers ARP there
        at "$client" ip neigh add 10.88.0.2 lladdr "$(cat /sys/class/net/b0/address)" dev a0 ;;
    esac
    at "$server" memcached -u root -t 1 -l 10.88.0.2 -p 11211 -U 11211 &
    cache=$!
    tries=200
    until at "$client" bash -c 'exec 3<>/dev/tcp/10.88.0.2/11211' 2>/dev/null; do
        tries=$((tries - 1)); [ $tries -gt 0 ] || fail "memcached does not come up"
        sleep 0.1
    done
}
end_of() {
    kill $cache $client $server $other
    wait $cache $client $server $other
    ip link del b0
}
seen() { # NAME WAYS HOPS: all packets of so many ways, at that many hops
    jq -e --argjson ways "$2" --argjson hops "$3" '(.routes | length) == $ways
        and all(.routes[]; .packets >= 20 and .complete == .packets and (.hops | length) == $hops)
        and all(.hops[] | select(.role == "begins"); .begun > 0 and .no_room == 0)
        and ([.hops[].begun] | add) == ([.hops[].ended] | add)' "/out/$1.json" >/dev/null || fail "$1: $(cat "/out/$1.json")"
}
number=0
for kind in 'macvlan mode bridge' 'ipvlan mode l2' 'ipvlan mode l3' 'ipvlan mode l3s'; do
    begin_of $kind
    all="--hop a0@$client --hop b0 --hop s0@$server" beside="--hop c0@$other --hop s0@$server"
    name="${kind// /-}"
    capsule "$name-look" udp $all
    load "$name-look" "$client" udp:10.88.0.2:11211
    end
    # (What such a slave receives in mode l3s never passes the interface.)
    [ "${kind%l3s}" != "$kind" ] || seen "$name-look" 2 3
    capsule "$name-beside" udp $beside
    load "$name-beside" "$other" udp:10.88.0.2:11211
    end
    seen "$name-beside" 2 2
    case $kind in
        *l3*)
            ./taillight capsule --carry $all --filter 'tcp port 11211' --for 0.1 >/dev/null 2>/tmp/refused
            [ $? = 2 ] && grep -q -- '--hop s0:egress@.*pass.* the IP layer once more' /tmp/refused || fail "$name: $(cat /tmp/refused)"
            ;;&
        *l3)
            capsule "$name-in" tcp --carry --hop "a0:egress@$client" --hop b0:ingress --hop "s0:ingress@$server"
            load "$name-in" "$client" 10.88.0.2:11211
            end
            seen "$name-in" 1 3
            ;;
        *l3s) ;;
        *)
            capsule "$name-carry" tcp --carry $all
            load "$name-carry" "$client" 10.88.0.2:11211
            end
            seen "$name-carry" 2 3
            ;;
    esac
    case $kind in *l2) # and another mode meanwhile
        at "$client" ip neigh replace 10.88.0.2 lladdr "$(cat /sys/class/net/b0/address)" dev a0
        capsule "$name-becomes" tcp --carry $all
        at "$server" ip link set s0 type ipvlan mode l3 || fail "no other mode"
        sleep 1
        load "$name-becomes" "$client" 10.88.0.2:11211
        end
        jq -e 'all(.hops[]; .begun == 0) and ([.hops[].no_room] | add) > 40' "/out/$name-becomes.json" >/dev/null ||
            fail "$name-becomes: $(cat "/out/$name-becomes.json")"
        ;;
    esac
    end_of
done
ip link add v0 type vrf table 10 || fail "no VRF"
./taillight capsule --carry --hop v0 --hop lo --for 0.1 >/dev/null 2>/tmp/refused
[ $? = 2 ] && grep -q -- '--hop v0:egress:.* the IP layer once more' /tmp/refused || fail "vrf: $(cat /tmp/refused)"
! dmesg | grep -E 'WARNING:|BUG:|Oops'
INSIDE
guest_run -t 500 -p cat -p grep -p sleep -f "$work/inside" 'bash inside'
