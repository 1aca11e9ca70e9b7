#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What a hop rarely sees, over six interfaces, where hops carry and where they look: datagrams of every length from 96
# bytes below the MTU up to it, IPv4's options, IPv6's extension headers and bundles of datagrams (UDP GSO). All come back
# as they were sent, and each packet is accounted for, one by one.
# shellcheck disable=SC2016 # words of jq
set -u
. "$(dirname "$0")/route_lib.sh"
make_route
need_carrying
serve_echo

# Each family: 97 datagrams of 97 lengths, of which a trailer of six stamps (72 bytes) leaves the room for 25, then 10
# with options (of IPv6 20), and 10 bundles of 10.
datagrams=$((2 * 97 + 30)) fitting=$((2 * 25 + 30)) long=$((2 * 72)) bundles=20
begin() { # NAME OPTION...
    timeout 90 "$taillight" capsule "${hops[@]}" --filter 'udp port 7007' "${@:2}" --json >"$work/$1.json" 2>"$work/$1.err" &
    capsule=$!
    children+=($capsule)
    measures "$work/$1.err"
}
end() { # NAME CONDITION
    kill -INT $capsule
    wait $capsule || fail "$1: exit $?"
    jq -e --arg there "$there" --arg back "$back" --argjson datagrams $datagrams --argjson fitting $fitting \
        --argjson long $long --argjson bundles $bundles '
        def all_hops(key): [.hops[][key]] | add;
        def way(hops): .routes[] | select((.hops | map(.hop) | join(" ")) == hops);
        all_hops("dropped") + all_hops("unreadable") + all_hops("fragments") + .rare + .forgotten == 0
        and all(.routes[]; .complete == .packets and .gaps == 0) and '"$2" "$work/$1.json" >/dev/null ||
        fail "$1: $(jq -c '[.routes[] | [.packets, .complete, .gaps, (.hops | length)]], .rare, .repeated, .pieces, (.hops[] | {name, role, matched, recorded, unreadable, begun, stamped, ended, no_room, bundled, bare, foreign, damaged, sent_again, not_stamped})' "$work/$1.json")"
}
ask_kinds() { # NAME
    for address in 10.99.0.2 fd99::2; do
        in_namespace "$client" timeout 60 python3 "$here/kinds.py" $address 7007 >>"$work/$1.came" 2>"$work/$1.came.err" ||
            fail "$1, $address: $(cat "$work/$1.came.err")"
    done
}

for address in 10.99.0.2 fd99::2; do # so that neighbours are known
    await in_namespace "$client" timeout 60 python3 "$here/echo.py" ask $address 7007 0.3 >"$work/known" 2>&1 || fail "$address does not answer"
done

# Bundles are left alone on their way there, and what comes back is single datagrams.
begin carry --carry
ask_kinds carry
end carry '(way($there).packets == $fitting) and (way($back).packets == $fitting + 10 * $bundles)
    and all_hops("begun") == all_hops("ended") and all_hops("ended") == all_hops("recorded")
    and all_hops("no_room") == 2 * $long and all_hops("bundled") == $bundles
    and all_hops("damaged") + all_hops("not_stamped") + all_hops("foreign") == 0
    and all(.hops[] | select(.role == "begins"); .matched == .begun + .no_room + .bundled)'
begin look
ask_kinds look
end look 'way($there).packets == $datagrams + $bundles and way($back).packets == $datagrams + 10 * $bundles'
echo "$(tr '\n' ' ' <"$work/carry.came")carried $(jq -c '[.routes[].packets]' "$work/carry.json"), looked at" \
    "$(jq -c '[.routes[].packets]' "$work/look.json")"
