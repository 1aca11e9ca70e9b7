#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# An interface of the way is renamed, which changes nothing. Interfaces are deleted while packets carry their stamps:
# what was under way is lost, and with it the trailers, nothing else; the command goes on, and so does the flow as soon
# as there is a way again. And a disk that is full when the records are written: an error, the table all the same, and no
# file that looks whole.
set -u
. "$(dirname "$0")/route_lib.sh"
make_route
need_carrying
serve_echo

# Datagrams, one at a time, for SECONDS from the first that came back; prints how many did, and that the last did.
ask_on() { # SECONDS
    in_namespace "$client" python3 - "$1" <<'PY'
import random, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.05)
s.connect(("10.99.0.2", 7007))
back, last, until = 0, False, time.monotonic() + 20
while time.monotonic() < until:
    data = random.randbytes(200)
    s.send(data)
    last = False
    try:
        while s.recv(2000) != data: # one that comes late
            pass
        back, last = back + 1, True
        if back == 1:
            until = time.monotonic() + float(sys.argv[1])
            print("begun", file=sys.stderr, flush=True)
    except OSError: # nothing comes while there is no way
        pass
print(back)
sys.exit(not last)
PY
}
# One that is renamed stays the hop that it was, by the name that was asked for.
for kind in look carry; do
    option=()
    [ $kind = look ] || option=(--carry)
    timeout 60 "$taillight" capsule "${hops[@]}" "${option[@]}" --filter 'udp port 7007' --json >"$work/$kind.json" 2>"$work/$kind.err" &
    capsule=$!
    children+=($capsule)
    measures "$work/$kind.err"
    : >"$work/asked.err"
    ask_on 2 >"$work/back" 2>"$work/asked.err" &
    asked=$!
    await grep -q begun "$work/asked.err" || fail "nothing passes"
    sleep 0.5
    in_namespace "$middle" sh -e -c 'ip link set p0 down; ip link set p0 name other0; ip link set other0 up' ||
        fail "the interface cannot be renamed"
    wait $asked || fail "nothing passes on the renamed way: $(cat "$work/back" "$work/asked.err")"
    kill -INT $capsule
    wait $capsule || fail "$kind: an interface was renamed: exit $?"
    jq -e --arg m "$middle" --argjson back "$(cat "$work/back")" '
        def all_hops(key): [.hops[][key]] | add;
        ([.routes[].complete] | add) >= 2 * $back and all(.hops[]; .gone | not)
        and all(.hops[] | select(.name == "p0:egress@\($m)" or .name == "p0:ingress@\($m)"); .matched >= $back)
        and all_hops("damaged") + all_hops("foreign") + all_hops("dropped") == 0' "$work/$kind.json" >/dev/null ||
        fail "$kind, renamed: $(cat "$work/back") back, $(jq -c '[.routes[] | [.packets, .complete]], (.hops[] | {name, gone, matched, damaged, foreign, dropped})' "$work/$kind.json")"
    for place in "$client" "$middle" "$server"; do
        [ "$(programs_at "$place")" = 0 ] || fail "$kind: programs stay attached to the renamed"
    done
    in_namespace "$middle" sh -e -c 'ip link set other0 down; ip link set other0 name p0; ip link set p0 up' ||
        fail "the interface cannot be named as before"
done

timeout 60 "$taillight" capsule "${hops[@]}" --carry --filter 'udp port 7007' --json >"$work/deleted.json" 2>"$work/deleted.err" &
capsule=$!
children+=($capsule)
measures "$work/deleted.err"
: >"$work/asked.err"
ask_on 3 >"$work/back" 2>"$work/asked.err" &
asked=$!
await grep -q begun "$work/asked.err" || fail "nothing passes"
sleep 0.5
in_namespace "$middle" sh -e -c '
    ip link delete p0
    sleep 0.3
    ip link add p0 type veth peer name p1
    ip link set p0 master br0 up
    ip link set p1 master br1 up' || fail "the interfaces cannot be deleted and made again"
wait $asked || fail "nothing passes on the new way: $(cat "$work/back" "$work/asked.err")"
kill -INT $capsule
wait $capsule || fail "interfaces were deleted: exit $?"
jq -e --arg m "$middle" '
    def all_hops(key): [.hops[][key]] | add;
    ([.hops[] | select(.gone) | .name] | sort) == ["p0:egress@\($m)", "p0:ingress@\($m)", "p1:egress@\($m)", "p1:ingress@\($m)"]
    and all_hops("begun") > all_hops("ended") and all_hops("ended") > 0
    and all_hops("damaged") + all_hops("foreign") + all_hops("dropped") == 0' "$work/deleted.json" >/dev/null ||
    fail "deleted: $(jq -c '.hops[] | {name, gone, begun, stamped, ended, damaged, foreign, dropped}' "$work/deleted.json")"
for place in "$client" "$middle" "$server"; do
    [ "$(programs_at "$place")" = 0 ] || fail "programs stay attached"
done

# A disk of 16 KiB, which some hundred records fill.
mkdir "$work/small"
unshare -m mount -t tmpfs -o size=16k none "$work/small" 2>/dev/null || skip "no small disk can be made here"
# shellcheck disable=SC2016 # the inner shell expands them
timeout 60 unshare -m sh -c '
    work=$1
    shift
    mount -t tmpfs -o size=16k none "$work/small" || exit 9
    "$@"
    status=$?
    ls -A "$work/small" >"$work/left"
    exit $status' sh "$work" "$taillight" capsule --hop "eth0@$client" --hop "eth0@$server" --filter 'udp port 7007' \
    --for 5s --out "$work/small" >"$work/full.out" 2>"$work/full.err" &
full=$!
measures "$work/full.err"
ask_on 1 >/dev/null 2>"$work/asked.err" || fail "nothing passes: $(cat "$work/asked.err")"
wait $full
status=$?
[ $status = 1 ] || fail "a full disk: exit $status: $(cat "$work/full.err")"
grep -q 'hops.tlog.*[Nn]o space left' "$work/full.err" || fail "a full disk: exit $status: $(cat "$work/full.err")"
! grep -q 'tlog' "$work/left" || fail "a full disk leaves $(cat "$work/left")"
grep -q '^Route 1' "$work/full.out" || fail "with the disk the table is gone, too: $(cat "$work/full.out")"
for place in "$client" "$server"; do
    [ "$(programs_at "$place")" = 0 ] || fail "programs stay attached"
done
echo "$(cat "$work/back") came back around the deleted interfaces; a full disk: $(tail -n 1 "$work/full.err")"
