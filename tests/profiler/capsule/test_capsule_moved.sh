#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# An interface that is moved to another namespace while it has hops, and has another number there: its hops are gone, what
# passes it from then on is nobody's, and the hops that share its programs go on.
# Runs beside others: counts packets, asserts no times.
. "$(dirname "$0")/route_lib.sh"
make_route
serve_echo
hold elsewhere
in_namespace "$elsewhere" ip link add taken index 40 type veth peer name other || skip "no veth pair with a number of its own"
ask() { # PLACE
    in_namespace "$1" timeout 60 python3 "$here/echo.py" ask 10.99.0.2 7007 0.3 >>"$work/came" 2>"$work/came.err"
}
await ask "$client" || fail "nothing comes back: $(cat "$work/came.err")"
timeout 60 "$taillight" capsule "${hops[@]}" --filter 'udp port 7007' --json >"$work/moved.json" 2>"$work/moved.err" &
capsule=$!
children+=($capsule)
measures "$work/moved.err"
ask "$client" || fail "nothing comes back: $(cat "$work/came.err")"
in_namespace "$client" ip link set eth0 netns "$elsewhere" || skip "no interface can be moved here"
in_namespace "$elsewhere" sh -e -c 'ip addr add 10.99.0.1/24 dev eth0; ip link set eth0 up' || fail "no address there"
number=$(in_namespace "$elsewhere" ip link show eth0 | sed -n '1s/:.*//p')
[ "$number" != 40 ] || skip "it has its number there, too"
await ask "$elsewhere" || fail "nothing comes back from there: $(cat "$work/came.err")"
kill -INT $capsule
wait $capsule || fail "exit $?"
# shellcheck disable=SC2016 # words of jq
jq -e --arg there "$there" --arg place "@$client" '
    def matched($name): [.hops[] | select(.name | startswith($name)) | .matched][0];
    ([.hops[] | select(.gone) | .name] | sort) == (["eth0:egress" + $place, "eth0:ingress" + $place])
    and matched("eth0:egress" + $place) > 50 and matched("vc:ingress") > matched("eth0:egress" + $place) + 50
    and matched("vc:ingress") == matched("p0:egress")
    and (matched("eth0:egress" + $place) as $before | any(.routes[]; (.hops | map(.hop) | join(" ")) == $there and .packets > 50))
    and all(.hops[]; .dropped == 0)' "$work/moved.json" >/dev/null ||
    fail "$(jq -c '[.routes[] | [.packets, .complete, .gaps, (.hops | length)]], .rare, (.hops[] | {name, matched, recorded, gone})' "$work/moved.json")"
echo "number $number there: $(jq -c '[.hops[] | .matched]' "$work/moved.json")"
