#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` at six interfaces between a load and memcached, over UDP and TCP: each packet
# on one of two routes, in the order of the interfaces, with hops that add up to the whole; what a
# full ring, an interface that goes away and a killed command leave; and what is refused.
# Runs beside others: it counts packets, and times nothing.
set -u
. "$(dirname "$0")/route_lib.sh"
make_route
"$taillight" capsule --hop "vc:ingress@$middle" --for 0.01 -q >"$work/first" 2>"$work/first.err"
[ $? -ne 1 ] || ! grep -q 'tcx\|lacks' "$work/first.err" || skip "$(cat "$work/first.err")"
serve_memcached

# A killed one, which leaves nothing.
"$taillight" capsule "${hops[@]}" >"$work/killed" 2>"$work/killed.err" &
killed=$!
children+=($killed)
measures "$work/killed.err"
[ "$(programs_at "$client")" = 2 ] || fail "$(programs_at "$client") programs at the client's end, not 2"
[ "$(programs_at "$middle")" = 8 ] || fail "$(programs_at "$middle") programs in the middle, not 8"
{ kill -9 $killed && wait $killed; } 2>/dev/null
for place in "$client" "$middle" "$server"; do
    [ "$(programs_at "$place")" = 0 ] || fail "a killed command leaves programs attached"
done

# Loads that last until all have measured, however long the kernel takes to check their programs.
loads=()
for way in udp: ''; do
    nsenter -t "$client" -n "$taillight" load --server "${way}10.99.0.2:11211" --rate 2k \
        --connections 4 --duration 60s --sleep --quiet >"$work/load$way" 2>"$work/load$way.err" &
    loads+=($!)
done
children+=("${loads[@]}")
# All at once: hops do not disturb one another.
for filter in udp tcp; do
    timeout 60 "$taillight" capsule "${hops[@]}" --filter "$filter port 11211" --for 0.5s --json \
        --out "$work/$filter" >"$work/$filter.json" 2>"$work/$filter.err" &
    printf -v "$filter" %s $!
done
timeout 60 "$taillight" capsule "${hops[@]}" --buffer 4KiB --for 0.5s --json >"$work/full.json" 2>"$work/full.err" &
full=$!
# shellcheck disable=SC2154 # udp and tcp are assigned by name
wait "$udp" || fail "udp: exit $?"
wait "$tcp" || fail "tcp: exit $?"
wait $full || fail "full: exit $?"
# A queue that is too short, between two hops: they are named, and no others.
if in_namespace "$middle" tc qdisc add dev p0 root tbf rate 256kbit burst 2000 limit 200 2>"$work/tbf"; then
    timeout 60 "$taillight" capsule "${hops[@]}" --filter 'udp dst port 11211' --for 0.5s --out "$work/lost" \
        >"$work/lost.text" 2>"$work/lost.err" || fail "lost: exit $?"
    jq -e --arg at "p1:ingress@$middle" '[.routes[].hops[] | select(.lost_from_previous > 0)] as $losses
        | ($losses | length) == 1 and $losses[0].hop == $at and $losses[0].lost_from_previous > 10' \
        "$work/lost/capsule.json" >/dev/null || fail "lost: $(cat "$work/lost.text")"
    grep -q "^  lost between p0:egress@$middle and p1:ingress@$middle: [1-9]" "$work/lost.text" ||
        fail "lost: $(cat "$work/lost.text")"
    in_namespace "$middle" tc qdisc del dev p0 root
fi
kill "${loads[@]}"

for filter in udp tcp; do
    # Two routes, whole; nothing unknown; hops that add up to the whole within a rounding.
    jq -e --arg there "$there" --arg back "$back" '
        ([.routes[].hops | map(.hop) | join(" ")] | sort) == ([$there, $back] | sort)
        and all(.routes[]; .complete == .packets and .gaps == 0 and .packets > 0
            and all(.hops[]; .seen_last == 0)
            and (([.hops[].from_previous.mean_ns // 0] | add) - .end_to_end.mean_ns | fabs) < 1
            and all(.hops[1:][].from_previous; .p50_ns > 0 and .p50_ns <= .p99_ns and .p99_ns <= .max_ns)
            and .end_to_end.max_ns >= .end_to_end.p50_ns)
        and .packets == ([.routes[].packets] | add)
        and .rare + .repeated + .forgotten == 0
        and ([.hops[].recorded] | add) == .records
        and all(.hops[]; .dropped + .unreadable + .fragments == 0 and (.gone | not))' \
        "$work/$filter.json" >/dev/null || fail "$filter: $(cat "$work/$filter.json")"
    cmp "$work/$filter.json" "$work/$filter/capsule.json" || fail "capsule.json is another document"
    [ "$(stat -c %s "$work/$filter/hops.tlog")" = $((128 + 48 * $(jq .records "$work/$filter.json"))) ] ||
        fail "hops.tlog has another size"
done
# Datagrams are never merged: what left the client and what the client got are packets one to one.
jq -e '.packets > 500 and ([.routes[].merged] | add) == 0' "$work/udp.json" >/dev/null ||
    fail "udp: $(jq .packets "$work/udp.json") packets"
jq -e '([.hops[].dropped] | add) > 0 and all(.hops[]; .matched > 0)' \
    "$work/full.json" >/dev/null || fail "a full ring: $(jq -c '[.hops[] | {matched, recorded, dropped}]' "$work/full.json")"

# An interface that goes away: its hops say so, the others go on. (Nothing passes any more: exit 4.)
timeout 60 "$taillight" capsule "${hops[@]}" --filter 'udp port 9' --for 0.2s --json >"$work/gone.json" 2>"$work/gone.err" &
gone=$!
measures "$work/gone.err"
in_namespace "$middle" ip link delete vs
wait $gone
[ $? = 4 ] || fail "an interface goes away: not exit 4"
jq -e --arg m "$middle" --arg s "$server" '[.hops[] | select(.gone) | .name] | sort ==
    ([["eth0", $s], ["vs", $m]] | map(.[0] + (":ingress", ":egress") + "@" + .[1]) | sort)' \
    "$work/gone.json" >/dev/null || fail "gone: $(jq -c '[.hops[] | {name, gone}]' "$work/gone.json")"
[ "$(programs_at "$middle")" = 0 ] || fail "programs are left attached"

refused() { # STATUS WORDS ARGUMENTS...
    local said status
    said=$(timeout 20 "$taillight" capsule -q "${@:3}" 2>&1)
    status=$?
    [ $status = "$1" ] && [[ $said == *"$2"* ]] || fail "${*:3}: exit $status, not $1 with \"$2\": $said"
}
refused 2 'there is no interface nosuch0 in that namespace; there are lo, ' --hop "nosuch0@$middle" --for 0.01
refused 2 'no network namespace at /run/netns/nosuch' --hop eth0@nosuch --for 0.01
refused 2 'is given twice' --hop lo --hop lo:ingress
refused 2 '--hop is needed' --for 1s
refused 2 'is not understood here' --hop lo --filter 'udp or tcp'
refused 2 'to be two interfaces' --hop lo --carry
refused 2 'is not a [user@]host' --hop 'lo@ssh:there;id'
refused 2 'is not an absolute path' --hop lo@ssh:there --directory '/tmp/$(id)'
refused 2 'is given twice' --hop lo@ssh:there --hop lo:ingress@ssh:there
refused 2 'of 3 other machines at most' --hop lo@ssh:a --hop lo@ssh:b --hop lo@ssh:c --hop lo@ssh:d
refused 2 'to be two interfaces' --hop lo@ssh:there --carry
refused 2 '--part: only with' --hop lo --hop lo@ssh:there --carry --part 1
refused 2 '--part: only with' --hop lo@ssh:there --hop lo@ssh:here --carry --part 1 --flow-key 1 --announce
refused 2 '--part: "xyz" is not a number' --hop lo --hop lo@ssh:there --carry --part xyz --flow-key 1 --announce
refused 2 'what to write into --out' --hop lo --clocks
refused 4 'no packet that is asked for passed' --hop "p1@$middle" --filter 'udp port 9' --for 0.01
exit 0
