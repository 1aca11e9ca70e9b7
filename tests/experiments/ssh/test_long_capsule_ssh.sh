#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` with hops behind a real sshd: packets on one route over both machines, in order,
# with clocks related within a stated bound (here they are one clock, so the truth is known), looked at or
# with the stamps carried from one to the other; an end
# by Ctrl-C, by SIGKILL and by a dead link leaves nothing there; and what is refused.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_program memcached memcached
ssh_hosts there
run=''
eval "every_$(declare -f far_processes)"
far_processes() { every_far_processes "$1" | grep -v ' memcached '; } # the server is not what is looked for
attached() { far there python3 "$(dirname "$0")/../../profiler/capsule/attached_programs.py"; }
capsule() {
    near "$taillight" capsule --ssh-config "$ssh_config" --directory "$work/there-files" "$@"
}
hops=(--hop to-there --hop eth0@ssh:there)
near "$taillight" capsule --hop to-there:ingress --for 0.01 -q >"$work/first" 2>&1
[ $? -ne 1 ] || ! grep -q 'tcx\|lacks' "$work/first" || skip "$(cat "$work/first")"

user=()
[ "$(id -u)" -eq 0 ] && user=(-u root)
far there memcached "${user[@]}" -t 1 -l 10.246.0.2 -p 11211 -U 11211 >"$work/memcached.log" 2>&1 &
await near bash -c 'exec 3<>/dev/tcp/10.246.0.2/11211' || fail "memcached does not come up"
near "$taillight" load --server udp:10.246.0.2:11211 --rate 1k --connections 4 --duration 120s --sleep --quiet \
    >"$work/load.log" 2>&1 &
load=$!

capsule "${hops[@]}" --filter 'udp port 11211' --for 1s --json --out "$work/out" >"$work/both.json" 2>"$work/both.err" ||
    fail "exit $?: $(cat "$work/both.err")"
there='to-there:egress eth0:ingress@there' back='eth0:egress@there to-there:ingress'
jq -e --arg there "$there" --arg back "$back" '
    ([.routes[].hops | map(.hop) | join(" ")] | sort) == ([$there, $back] | sort)
    and all(.routes[]; .packets > 100 and .complete >= .packets * 0.99 and .gaps == 0
        and all(.hops[1:][].from_previous; .p50_ns > 0))
    and ([.hops[].machine] == ["", "", "there", "there"])
    and all(.hops[]; .matched > 0 and .matched == .recorded + .unsampled + .bare + .dropped)
    and (.clocks | length == 1)
    and (.clocks[0] | .machine == "there" and .trips >= 3 and .crossings > 200
        and .disagreeing == 0 and .backwards == 0 and .unrelated == 0
        and (.offset_ns | fabs) <= .bound_p99_ns and .bound_p99_ns <= .link_bound_p99_ns)' \
    "$work/both.json" >/dev/null || fail "$(cat "$work/both.json")"
cmp "$work/both.json" "$work/out/capsule.json" || fail "capsule.json is another document"
for file in hops.tlog clock.tlog there/hops.tlog there/clock.tlog there/capsule.json; do
    [ -s "$work/out/$file" ] || fail "there is no $file in --out"
done
ssh_nothing_left there 10
[ "$(attached)" = 0 ] || fail "programs are left attached there"

# Hops there alone: in that machine's time, and nothing here.
capsule --hop eth0@ssh:there --filter 'udp port 11211' --for 0.2s --json >"$work/alone.json" 2>"$work/alone.err" ||
    fail "alone: exit $?: $(cat "$work/alone.err")"
jq -e '.packets > 10 and (.clocks | length) == 0' "$work/alone.json" >/dev/null || fail "alone: $(cat "$work/alone.json")"

# Packets, of streams too, carry their stamps from one machine to the other and back: those that begin end, each with the stamps of
# both clocks; and nobody has lost or changed one.
near "$taillight" load --server 10.246.0.2:11211 --rate 500 --connections 4 --duration 60s --sleep --quiet >"$work/streams.log" 2>&1 &
streams=$!
await far there sh -c 'ss -Htn state established "sport = :11211" | grep -q .' || fail "no streams: $(cat "$work/streams.log")"
capsule "${hops[@]}" --carry --filter 'port 11211' --for 1s --json --out "$work/carried" >"$work/carry.json" 2>"$work/carry.err" ||
    fail "carrying: exit $?: $(cat "$work/carry.err")"
jq -e --arg there "$there" --arg back "$back" '
    def all_hops(key): [.hops[][key]] | add;
    ([.routes[].hops | map(.hop) | join(" ")] | sort) == ([$there, $back] | sort)
    and all(.routes[]; .packets > 100 and .complete == .packets and .gaps == 0
        and all(.hops[1:][].from_previous; .p50_ns > 0))
    and ([.hops[].role] == ["ends", "begins", "ends", "begins"])
    and all_hops("begun") == all_hops("ended") and all_hops("ended") == all_hops("recorded")
    and all_hops("begun") > 200 and .records >= 2 * all_hops("begun")
    and all_hops("damaged") + all_hops("foreign") + all_hops("dropped") + all_hops("not_stamped") == 0
    and (.clocks[0] | .crossings >= 200 and .disagreeing == 0 and .backwards == 0 and .unrelated == 0
        and (.offset_ns | fabs) <= .bound_p99_ns and .bound_p99_ns <= .link_bound_p99_ns)' \
    "$work/carry.json" >/dev/null || fail "carrying: $(cat "$work/carry.json")"
kill $streams
python3 - "$work/carried/hops.tlog" <<'PY' || fail "carrying: not both of datagrams and streams"
import struct, sys
log = open(sys.argv[1], "rb").read()[128:]
assert {struct.unpack_from("<37xB", log, at)[0] for at in range(0, len(log), 48)} == {6, 17}
PY
[ "$(attached)" = 0 ] || fail "programs are left attached there"
# The other machine's interface is the one with the smaller MTU: what would be too long for it is left alone here.
far there ip link set eth0 mtu 1000
capsule "${hops[@]}" --carry --filter 'udp port 11211' --for 3s --json >"$work/narrow.json" 2>"$work/narrow.err" &
narrow=$!
await grep -q '^taillight: measuring' "$work/narrow.err" || fail "narrow: $(cat "$work/narrow.err")"
near python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for length in 900, 940, 972: s.sendto(bytes(length), ("10.246.0.2", 11211))'
wait $narrow || fail "narrow: exit $?: $(cat "$work/narrow.err")"
jq -e '(.hops[] | select(.name == "to-there:egress") | .no_room) == 2
    and ([.hops[].begun] | add) == ([.hops[].ended] | add)' "$work/narrow.json" >/dev/null || fail "narrow: $(cat "$work/narrow.json")"
far there ip link set eth0 mtu 1500

# Both ends there, and nothing is loaded here. No packet comes to such an end: replies are carried, out to here.
capsule --carry --hop eth0@ssh:there --hop lo@ssh:there --filter 'udp port 11211' --for 0.3s --json >"$work/away.json" 2>"$work/away.err"
[ $? = 4 ] || fail "carrying there alone: not exit 4: $(cat "$work/away.err")"
jq -e '(.hops[] | select(.name == "eth0:egress@there") | .begun) > 20' "$work/away.json" >/dev/null ||
    fail "carrying there alone: $(cat "$work/away.json")"

begin() { # NAME [OPTION...]: a measuring without an end, until both machines have their hops
    # What runs in the background ignores SIGINT, unless it is told otherwise.
    env --default-signal=INT ip netns exec "ssh$$-here" "$taillight" capsule --ssh-config "$ssh_config" \
        --directory "$work/there-files" "${hops[@]}" --filter 'udp port 11211' --for 60s "${@:2}" >"$work/$1" 2>"$work/$1.err" &
    began=$!
    await grep -q '^taillight: measuring' "$work/$1.err" || fail "$1: it does not measure: $(cat "$work/$1.err")"
    [ "$(attached)" = 2 ] || fail "$1: $(attached) programs there, not 2"
}
# What a measuring here may leave: its connections' files.
left_here() { find /tmp -maxdepth 1 -newer "$ssh_config" \( -name 'taillight-capsule-*' -type f -o -name "taillight-$began-*" \); }
none_attached() { [ "$(attached)" = 0 ]; }
nothing_here() { [ -z "$(left_here)" ]; }
nothing() { # NAME
    await none_attached || fail "$1: programs are left attached there"
    ssh_nothing_left there 15
    await nothing_here || fail "$1: left here: $(left_here)"
}
begin interrupted
kill -INT $began
wait $began || fail "interrupted: exit $?: $(cat "$work/interrupted.err")"
grep -q 'The clock of there is related within' "$work/interrupted" || fail "interrupted: $(cat "$work/interrupted")"
nothing interrupted
begin killed --carry
{ kill -9 $began && wait $began; } 2>/dev/null
nothing killed
begin unlinked --carry
near ip link set to-there down
wait $began
[ $? = 1 ] || fail "a dead link: not exit 1: $(cat "$work/unlinked.err")"
grep -q 'host there' "$work/unlinked.err" || fail "a dead link: $(cat "$work/unlinked.err")"
sleep 1
nothing unlinked
near ip link set to-there up
kill $load

refused() { # STATUS WORDS ARGUMENTS...
    local said status
    said=$(capsule -q "${@:3}" 2>&1)
    status=$?
    [ $status = "$1" ] && [[ $said == *"$2"* ]] || fail "${*:3}: exit $status, not $1 with \"$2\": $said"
}
refused 2 'host there: --hop nosuch0:ingress: there is no interface nosuch0' --hop nosuch0@ssh:there --for 0.01
refused 1 'Permission denied (publickey)' --hop eth0@ssh:there --ssh-option PubkeyAuthentication=no
nothing refused
exit 0
