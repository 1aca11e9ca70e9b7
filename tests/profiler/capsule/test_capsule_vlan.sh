#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` of what VLANs tag: with one tag, which the kernel keeps beside the packet, and with two, of which the
# inner one is in the frame. Hops that look and hops that carry see the same packets over
# all six interfaces, and what arrives is what was sent; then streams that leave as segments, which the server's interface
# merges (GRO), and as large packets, which no interface divides (GSO).
# Runs beside others: counts packets, asserts no times.
. "$(dirname "$0")/route_lib.sh"
make_route
need_carrying
serve_echo

# From now on what an end sends has so many tags, or what it receives loses them: ends push|pop TAGS
ends() {
    local end
    for end in "$client" "$server"; do
        rm -f "$work/$end-$1" # what the one before it said would be taken for its own, until it begins
        nsenter -t "$end" -n python3 "$here/vlan_ends.py" "$1" eth0 "$2" >"$work/$end-$1" 2>"$work/$end-$1.err" &
        children+=($!)
        tagging+=($!)
        await grep -q attached "$work/$end-$1" || skip "nothing can be tagged here: $(cat "$work/$end-$1.err")"
    done
}

# As ethtool(8) does, which need not be here: offload PLACE INTERFACE gso|tso|gro 0|1
offload() {
    in_namespace "$1" python3 - "${@:2}" <<'PY'
import ctypes, fcntl, socket, struct, sys
SIOCETHTOOL, COMMANDS = 0x8946, {"tso": 0x1f, "gso": 0x24, "gro": 0x2c}
value = ctypes.create_string_buffer(struct.pack("=II", COMMANDS[sys.argv[2]], int(sys.argv[3])))
fcntl.ioctl(socket.socket(), SIOCETHTOOL, struct.pack("=16sQ16x", sys.argv[1].encode(), ctypes.addressof(value)))
PY
}

# Measures by these kinds of hops while datagrams and a stream with so many tags, or the stream alone, are there and back:
# asks NAME TAGS both|stream KIND...
asks() {
    local kind option measuring=() tagging=()
    ends push "$2"
    for kind in "${@:4}"; do
        option=()
        [ "$kind" = look ] || option=(--carry)
        timeout 60 "$taillight" capsule "${hops[@]}" "${option[@]}" --filter 'port 7007' --json \
            >"$work/$1-$kind.json" 2>"$work/$1-$kind.err" &
        children+=($!)
        measuring+=($!)
        measures "$work/$1-$kind.err"
    done
    ends pop "$2" # behind the hops
    in_namespace "$client" timeout 60 python3 "$here/echo.py" ask 10.99.0.2 7007 1 "$3" >"$work/$1.came" 2>"$work/$1.came.err" ||
        fail "$1: lost or changed: $(cat "$work/$1.came.err")"
    kill -INT "${measuring[@]}"
    wait "${measuring[@]}" || fail "$1: exit $?"
    { kill -KILL "${tagging[@]}" && wait "${tagging[@]}"; } 2>/dev/null
}

holds() { # NAME CONDITION
    # shellcheck disable=SC2016 # words of jq
    jq -e --arg there "$there" --arg back "$back" '
        def all_hops(key): [.hops[][key]] | add;
        def matched(hop; nth): [.hops[] | select(.name | startswith(hop + "@")) | .matched][nth];
        def way(hops): .routes[] | select((.hops | map(.hop) | join(" ")) == hops);
        way($there).packets > 50 and way($back).packets > 50
        and all_hops("tagged") + all_hops("unreadable") + all_hops("dropped") == 0 and ('"$2)" "$work/$1.json" >/dev/null ||
        fail "$1: $(jq -c '[.routes[] | [.packets, .complete, .gaps, .merged, (.hops | length)]], .rare, (.hops[] | {name, role, matched, tagged, unreadable, begun, stamped, ended, bundled, damaged, not_stamped})' "$work/$1.json")"
}

for tags in 1 2; do
    asks $tags $tags both look carry
    holds "$tags-look" '.rare == 0 and all(.routes[]; .gaps == 0)'
    holds "$tags-carry" '.rare == 0 and all(.routes[]; .complete == .packets) and all_hops("begun") > 100
        and all_hops("begun") == all_hops("ended") and all_hops("damaged") + all_hops("not_stamped") == 0'
done
# Segments, which the kernel merges at the server where vs could not have sent them as one.
offload "$client" eth0 tso 0 && offload "$client" eth0 gso 0 && offload "$middle" vs tso 0 && offload "$server" eth0 gro 1 ||
    skip "what interfaces merge cannot be set here"
# Packets with trailers are not merged. A datagram was lost here once, on a busy machine: an interface that merges has room
# for 256 packets that its core has not taken yet.
asks merged 1 stream look
# shellcheck disable=SC2016 # words of jq
holds merged-look 'way($there).gaps == 0 and matched("eth0:ingress"; 1) < 0.9 * matched("vs:egress"; 0)'
echo "one and two tags: $(cat "$work"/[12].came | tr '\n' ' ')packets; merged:" \
    "$(jq -c '[.hops[] | select(.name | test("^(vs:egress|eth0:ingress)")) | .matched]' "$work/merged-look.json") client, vs, server"
