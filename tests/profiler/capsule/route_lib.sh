# SPDX-License-Identifier: MIT
#
# A way of six interfaces for the tests of `taillight capsule`, sourced by them; expects $BUILD:
#
#     client's eth0 - vc, bridge br0, p0 - p1, bridge br1, vs - server's eth0
#
# in network namespaces without names, which are gone with the processes that hold them. The client's eth0 and vs have the
# same number, each in its namespace.
set -u
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/../../ports.sh"
taillight="$(cd "$BUILD" && pwd)/taillight"
work=$(mktemp -d /tmp/taillight-capsule-XXXXXX)
children=()

# What each core has thrown away since it had more packets to take in than it may: of all namespaces, and other programs' too.
cores_dropped() { awk '{ printf "%s ", $2 }' /proc/net/softnet_stat; } # in hexadecimal
dropped_before=$(cores_dropped)

# Where cores threw packets away since the test began, which others sent or which were these, it is made once more.
fail() {
    echo "FAIL: $*" >&2
    for log in "$work"/*.err; do [ -s "$log" ] && sed "s/^/    /" "$log" >&2; done
    local dropped
    dropped=$(cores_dropped)
    if [ "$dropped" != "$dropped_before" ] && [ -z "${AGAIN:-}" ] && [ $BASHPID = $$ ]; then
        echo "cores have thrown packets away ($dropped_before, now $dropped): once more" >&2
        cleanup
        AGAIN=yes exec bash "$0"
    fi
    exit 1
}
skip() {
    echo "$*"
    exit 77
}
cleanup() {
    # What timeout has started does not end when that is killed.
    for child in "${children[@]}"; do pkill -KILL -P "$child"; done
    { kill -9 "${children[@]}" && wait; } 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

for program in ip memcached python3 jq; do
    command -v $program >/dev/null || skip "there is no $program"
done
unshare -n true 2>/dev/null || skip "network namespaces cannot be made here: it takes root"

# A namespace, by the process that holds it, for $hold_seconds at most: hold NAME, then $NAME is its number.
hold() {
    unshare -n sleep "${hold_seconds:-300}" &
    children+=($!)
    printf -v "$1" %s $!
    await is_elsewhere $! || fail "a network namespace does not come up"
}
is_elsewhere() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
# In the background it would be a shell around the command: what is to be killed is started by nsenter itself.
in_namespace() { nsenter -t "$1" -n "${@:2}"; } # PROCESS COMMAND...

make_route() {
    hold client
    hold middle
    hold server
    in_namespace "$client" ip link add eth0 index 40 type veth peer name vc netns "$middle" ||
        skip "veth pairs cannot be made here"
    in_namespace "$middle" sh -e -c "
        ip link add vs index 40 type veth peer name eth0 netns $server
        ip link add p0 type veth peer name p1
        ip link add br0 type bridge
        ip link add br1 type bridge
        ip link set vc master br0
        ip link set p0 master br0
        ip link set p1 master br1
        ip link set vs master br1
        for device in lo vc vs p0 p1 br0 br1; do ip link set \$device up; done" ||
        skip "bridges and veth pairs cannot be made here"
    for end in "$client 1" "$server 2"; do
        in_namespace "${end% *}" sh -e -c "
            ip link set lo up
            ip addr add 10.99.0.${end#* }/24 dev eth0
            ip -6 addr add fd99::${end#* }/64 dev eth0 nodad
            ip link set eth0 up" || fail "no addresses"
    done
    hops=(--hop "eth0@$client" --hop "vc@$middle" --hop "p0@$middle" --hop "p1@$middle"
        --hop "vs@$middle" --hop "eth0@$server")
    # What packets there and back are to pass, as one line each.
    there="eth0:egress@$client vc:ingress@$middle p0:egress@$middle p1:ingress@$middle vs:egress@$middle eth0:ingress@$server"
    back="eth0:egress@$server vs:ingress@$middle p1:egress@$middle p0:ingress@$middle vc:egress@$middle eth0:ingress@$client"
}

# Bridges that hand packets to iptables cut off what lies behind the IP packet.
stop_cutting() {
    in_namespace "$middle" sh -c 'for setting in /proc/sys/net/bridge/bridge-nf-call-*tables; do
        [ ! -e "$setting" ] || echo 0 >"$setting" || exit 1; done'
}

# Hops that carry can be had on the way, or the reason why not.
need_carrying() {
    stop_cutting || skip "bridges here hand packets to iptables, and that cannot be changed"
    "$taillight" capsule --hop "vc:ingress@$middle" --for 0.01 -q >"$work/first" 2>"$work/first.err"
    [ $? -ne 1 ] || ! grep -q 'tcx\|lacks' "$work/first.err" || skip "$(cat "$work/first.err")"
}

serve_echo() { # on port 7007
    nsenter -t "$server" -n python3 "$here/echo.py" serve 7007 >"$work/echo" 2>"$work/echo.err" &
    children+=($!)
    await grep -q ready "$work/echo" || fail "the echo server does not come up"
}

serve_memcached() {
    local user=()
    [ "$(id -u)" -eq 0 ] && user=(-u root)
    nsenter -t "$server" -n memcached "${user[@]}" -t 1 -l 10.99.0.2 -p 11211 -U 11211 \
        >"$work/memcached.err" 2>&1 &
    children+=($!)
    await in_namespace "$client" bash -c 'exec 3<>/dev/tcp/10.99.0.2/11211' ||
        fail "memcached does not come up"
}

# Waits until a capsule that was started in the background measures: measures STDERR
measures() { await grep -q '^taillight: measuring' "$1" || fail "$1: no hops were attached"; }

# How many programs are at the interfaces of a namespace, by the kernel: programs_at PROCESS
programs_at() {
    in_namespace "$1" python3 "$here/attached_programs.py"
}
