# SPDX-License-Identifier: MIT
#
# `taillight capsule` where the kernel has no tcx: clsact_scene.sh COMMAND..., which runs taillight. Hops that look and
# that carry see all packets between two namespaces; and however it ends, interfaces are as they were.
# Run by test_long_capsule_clsact.sh, and in a guest by test_long_capsule_guest.sh; needs ip, tc, memcached and jq.
set -u
scene=$(mktemp -d /tmp/taillight-clsact-XXXXXX)
taillight=("$@")
started=()
trap '{ kill -9 "${started[@]}" && wait; } 2>/dev/null; rm -rf "$scene"' EXIT
fail() {
    echo "FAIL: $*"
    cat "$scene"/*.err
    exit 1
}
await() { # COMMAND...
    local tries=400
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.05
    done
}
elsewhere() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
for end in client server; do
    unshare -n sleep 86400 & # the clock of a guest that its host starves may be minutes ahead
    started+=($!)
    printf -v $end %s $!
    await elsewhere $! || fail "no network namespace"
done
at() { nsenter -t "$1" -n "${@:2}"; } # PROCESS COMMAND...
# shellcheck disable=SC2154 # client and server are assigned by name
at "$client" ip link add eth0 type veth peer name eth0 netns "$server" || fail "no veth pair"
number=1
for end in "$client" "$server"; do
    at "$end" ip link set lo up
    at "$end" ip addr add 10.97.0.$number/24 dev eth0
    at "$end" ip link set eth0 up
    number=$((number + 1))
done
nsenter -t "$server" -n memcached -u root -t 1 -l 0.0.0.0 -p 11211 -U 11211 >"$scene/memcached.err" 2>&1 &
started+=($!)
answers() { at "$client" bash -c 'exec 3<>/dev/tcp/10.97.0.2/11211' 2>/dev/null; }
await answers || fail "memcached does not come up"
nsenter -t "$client" -n "${taillight[@]}" load --server udp:10.97.0.2:11211 --rate 500 --connections 4 \
    --duration 1200s --sleep --quiet >"$scene/load" 2>"$scene/load.err" &
load=$!
started+=($load)

hops=(--hop "eth0@$client" --hop "eth0@$server")
measures() { grep -q '^taillight: measuring' "$scene/$1.err"; }
filters() { # of one end's interface
    { at "$1" tc filter show dev eth0 ingress; at "$1" tc filter show dev eth0 egress; } | grep -c direct-action
}
as_before() {
    for end in "$client" "$server"; do
        ! at "$end" tc qdisc show dev eth0 | grep clsact >/dev/null || return 1
    done
}
start() { # NAME OPTIONS...
    "${taillight[@]}" capsule "${hops[@]}" --filter 'udp port 11211' --json "${@:2}" >"$scene/$1.json" 2>"$scene/$1.err" &
    printf -v "$1" %s $!
    started+=($!)
    await measures "$1" || fail "$1: no hops"
}
whole() { # NAME: all packets at both ends, there and back
    jq -e '(.routes | length) == 2 and all(.routes[]; .packets > 20 and .complete == .packets) and .rare == 0' \
        "$scene/$1.json" >/dev/null || fail "$1: $(jq -c . "$scene/$1.json")"
}
as_before || fail "clsact is there before anything began"
# shellcheck disable=SC2154 # as above
for way in look carry; do
    option=()
    [ $way = look ] || option=(--carry)
    start $way "${option[@]}"
    [ "$(filters "$client")" = 2 ] && [ "$(filters "$server")" = 2 ] || fail "$way: not a filter at each hop"
    # A second one that is killed: its hops go, the first goes on, and so does what it stands on.
    start killed
    { kill -9 "$killed" && wait "$killed"; } 2>/dev/null
    two() { [ "$(filters "$client")" = 2 ] && [ "$(filters "$server")" = 2 ]; }
    await two || fail "a killed command leaves $(filters "$client") and $(filters "$server") filters, not 2"
    sleep 0.5
    kill -INT "${!way}"
    wait "${!way}" || fail "$way: exit $?"
    whole $way
    as_before || fail "$way: clsact is left"
done
start alone
{ kill -9 "$alone" && wait "$alone"; } 2>/dev/null
await as_before || fail "a killed command leaves clsact"
# One that was there stays.
at "$client" tc qdisc add dev eth0 clsact
start guest --for 0.3s
wait "$guest" || fail "beside another's clsact: exit $?"
at "$client" tc qdisc show dev eth0 | grep clsact >/dev/null || fail "another's clsact is gone"
[ "$(filters "$client")" = 0 ] || fail "filters are left"
# In a VLAN, where the kernel has them: the tag lies beside the packet, and packets carry below it too; of two tags
# the inner lies in the frame. Either way every request is answered: what was changed would not get past its checksum.
# No more are asked at once than the server's socket has room for, however long an emulated core leaves the server
# waiting: at a rate of 500 a second beside another load it lost datagrams that had come whole (RcvbufErrors).
asked() { # NAME ADDRESS
    nsenter -t "$client" -n "${taillight[@]}" load --server "udp:$2:11211" --rate max --connections 4 --depth 1 --duration 1s \
        --timeout 20s --sleep --quiet --json >"$scene/$1-load.json" 2>"$scene/$1-load.err"
    jq -e '.answered > 50 and .answered == .sent and ([.errors[]? | numbers] | add // 0) == 0' "$scene/$1-load.json" >/dev/null ||
        fail "$1: $(jq -c '{sent, answered, errors}' "$scene/$1-load.json") $(at "$server" grep Udp: /proc/net/snmp)"
}
answered() { # NAME ADDRESS: first without anything of ours, then while packets carry
    asked "$1-before" "$2"
    start "$1" --carry
    asked "$1" "$2"
    kill -INT "${!1}"
    wait "${!1}" || [ $? = 4 ] || fail "$1: it failed"
}
carried() { # NAME: each request and its reply
    # shellcheck disable=SC2016 # words of jq
    jq -e --argjson answered "$(jq .answered "$scene/$1-load.json")" '
        ([.routes[] | select(.packets >= $answered and .complete == .packets)] | length) == 2
        and ([.hops[].begun] | add) >= 2 * $answered and ([.hops[].tagged] | add) == 0
        and ([.hops[] | .damaged + .not_stamped + .unreadable] | add) == 0' "$scene/$1.json" >/dev/null ||
        fail "$1: $(jq -c . "$scene/$1.json")"
}
vlans() {
    local end number=1
    for end in "$client" "$server"; do
        at "$end" sh -e -c "
            ip link add link eth0 name one type vlan id 7
            ip addr add 10.98.0.$number/24 dev one
            ip link add link one name two type vlan id 8
            ip addr add 10.99.0.$number/24 dev two
            ip link set one up" || return 1
        number=$((number + 1))
    done
}
{ kill -9 $load && wait $load; } 2>/dev/null
tags="no VLANs here"
if vlans 2>"$scene/vlans"; then
    answered tag 10.98.0.2
    carried tag
    # Not before, since an interface that is up sends packets of its own.
    for end in "$client" "$server"; do at "$end" ip link set two up; done
    answered tags 10.99.0.2
    carried tags
    tags="carried with one VLAN tag $(jq -c '[.hops[].begun] | add' "$scene/tag.json"), with two $(jq -c '[.hops[].begun] | add' "$scene/tags.json")"
fi
# An interface that goes away.
start gone
at "$client" ip link del eth0
kill -INT "$gone"
wait "$gone"
jq -e '[.hops[].gone] == [true, true, true, true]' "$scene/gone.json" >/dev/null || fail "gone: $(jq -c '[.hops[] | [.name, .gone]]' "$scene/gone.json")"
echo "$(jq -c '[.routes[].packets]' "$scene/look.json") packets with hops that look, $(jq -c '[.routes[].packets]' "$scene/carry.json") with hops that carry; $tags"
