#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A million packets, of datagrams and of a stream, that carry their stamps over six interfaces beside a bulk neighbour:
# both ends hash every byte, and what was begun came to its end, whole, in order of time. PACKETS=N.
set -u
. "$(dirname "$0")/route_lib.sh"
packets=${PACKETS:-1000000} hold_seconds=3600
make_route
need_carrying
serve_hashes() { # PORT
    nsenter -t "$server" -n python3 "$here/hashed.py" serve "$1" >"$work/serve$1" 2>"$work/serve$1.err" &
    children+=($!)
    await grep -q ready "$work/serve$1" || fail "no server on port $1"
}
serve_hashes 7008
serve_hashes 7009
# The neighbour: a stream in bundles of 64 KiB, on the same interfaces, that no hop is asked for.
nsenter -t "$client" -n python3 -c '
import socket
s = socket.create_connection(("10.99.0.2", 7009))
while True: s.sendall(bytes(1 << 20))' >"$work/bulk" 2>"$work/bulk.err" &
children+=($!)
for kind in carry look; do
    options=(--carry --memory 2GiB --buffer 64MiB)
    [ $kind = carry ] || options=(--sample 1/16 --buffer 64MiB)
    "$taillight" capsule "${hops[@]}" "${options[@]}" --filter 'dst port 7008' --json >"$work/$kind.json" 2>"$work/$kind.err" &
    printf -v $kind %s $!
    children+=($!)
    measures "$work/$kind.err"
done
in_namespace "$client" python3 "$here/hashed.py" send 10.99.0.2 7008 $((packets * 3 / 4)) $((packets / 4)) >"$work/hashes" ||
    fail "what arrived is not what was sent: $(cat "$work/hashes")"
# shellcheck disable=SC2154 # carry and look are assigned by name
kill -INT "$carry" "$look"
wait "$carry" || fail "carrying: exit $?"
wait "$look" || fail "looking: exit $?"
# Segments may be sent in bundles, which are left alone; the datagrams are all there.
jq -e --argjson least $((packets * 3 / 4)) 'def all_hops(key): [.hops[][key]] | add;
    ([.routes[].packets] | add) as $routed | .packets >= $least and .forgotten == 0
    and $routed >= 0.99 * .packets and ([.routes[].complete] | add) >= 0.99 * .packets
    and all_hops("begun") == all_hops("ended") and all_hops("ended") == all_hops("recorded")
    and all_hops("stamped") == 4 * all_hops("begun")
    and all_hops("damaged") + all_hops("not_stamped") + all_hops("dropped") + all_hops("foreign") == 0
    and all(.routes[]; .hops[1:] | all(.from_previous.p50_ns > 0))' "$work/carry.json" >/dev/null ||
    fail "carry: $(jq -c '[.packets, .forgotten, .rare], [.routes[] | [.packets, .complete]], [.hops[] | {name, begun, stamped, ended, recorded, bundled, dropped, damaged, not_stamped}]' "$work/carry.json")"
jq -e '([.routes[].complete] | add) >= 0.99 * .packets and .packets > 100 and ([.hops[].dropped] | add) == 0' "$work/look.json" >/dev/null ||
    fail "look: $(jq -c '[.packets, .rare], [.routes[] | [.packets, .complete]]' "$work/look.json")"
echo "$(jq .packets "$work/carry.json") packets carried their stamps, $(jq .packets "$work/look.json") were looked at; $(cat "$work/hashes")"
