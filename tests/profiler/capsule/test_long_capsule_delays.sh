#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A delay put into each link of a way in turn, by a token bucket that lets the first datagram of a pair
# through and holds up the second, as the bucket counts itself: `taillight capsule` finds the second's time where the bucket is, with
# hops that look and with hops that carry, in 99 of 100 of all; and of what those that look see leave the bucket, it was
# there for all of that time but 15 % in 99 of 100.
set -u
. "$(dirname "$0")/route_lib.sh"
command -v tc >/dev/null || skip "there is no tc"
make_route
need_carrying
serve_echo

# Datagrams of 900 and 1000 bytes, as far apart as it takes to fill the bucket again, until of 60 pairs the second was held
# up: where the client, or a softirq, loses its core between the two for long enough, the bucket lets both through. Prints a
# line for each pair: whether it was held up. PLACE DEVICE
pairs() {
    in_namespace "$client" python3 - "$@" <<'PY'
import json, random, socket, subprocess, sys, time
place, device = sys.argv[1:]
def waits():
    answer = subprocess.check_output(["nsenter", "-t", place, "-n", "tc", "-s", "-j", "qdisc", "show", "dev", device, "root"])
    return json.loads(answer)[0]["overlimits"]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect(("10.99.0.2", 7007))
held, before = 0, waits()
for _ in range(240):
    sent = {random.randbytes(900), random.randbytes(1000)}
    for data in sorted(sent, key=len):
        s.send(data)
    assert {s.recv(2000), s.recv(2000)} == sent
    time.sleep(0.03)
    after = waits()
    print(after > before, flush=True)
    held += after > before
    before = after
    if held == 60:
        sys.exit(0)
sys.exit(f"the bucket held up {held} of 240")
PY
}

# Prints how many of the second datagrams were held up, of how many of these the longest time from hop to hop is that
# from FROM to TO, how many of them were seen as they left the bucket, and of how many the time in it is the longest
# and that from hop to hop within 15 %: held_up PAIRS FOLDER FROM TO
held_up() {
    python3 - "$@" <<'PY'
import collections, json, struct, sys
pairs, folder, *link = sys.argv[1:]
held = [line == "True\n" for line in open(pairs)]
names = [hop["name"] for hop in json.load(open(f"{folder}/capsule.json"))["hops"]]
packets = collections.defaultdict(list)
data = open(f"{folder}/hops.tlog", "rb").read()[128:]
for time, flow, datagram, first, end, ip_bytes, hop, protocol, flags, _, queued in struct.iter_unpack("<QQQIIIBBBBQ", data):
    if ip_bytes == 1028:
        packets[flow, datagram].append((time, names[hop], queued))
right = seen = waited = 0
passed = []
for stamps in packets.values():
    stamps.sort()
    steps = [(b[0] - a[0], [a[1], b[1]]) for a, b in zip(stamps, stamps[1:])]
    if link in [step for _, step in steps]: # those of the other direction do not pass it
        passed.append((stamps, steps))
assert len(passed) == len(held), f"{len(passed)} of {len(held)} passed it"
for was_held, (stamps, steps) in zip(held, sorted(passed)): # no pair is sent before the one before is back
    if was_held:
        right += max(steps)[1] == link
        took = next(took for took, step in steps if step == link)
        queued = [queued for _, hop, queued in stamps if hop == link[0]][0]
        seen += queued > 0
        waited += queued == max(queued for _, _, queued in stamps) and 0.85 * took <= queued <= took
print(sum(held), right, seen, waited)
PY
}

all=0 right=0 seen=0 waited=0
while read -r place device from to; do
    in_namespace "${!place}" tc qdisc add dev "$device" root tbf rate 800kbit burst 1540 limit 300000 ||
        skip "tc makes no token bucket here"
    for kind in look carry; do
        option=()
        [ $kind = look ] || option=(--carry)
        timeout 60 "$taillight" capsule "${hops[@]}" "${option[@]}" --filter 'udp port 7007' --out "$work/$kind" \
            >"$work/$kind.out" 2>"$work/$kind.err" &
        printf -v "$kind" %s $!
        children+=($!)
        measures "$work/$kind.err"
    done
    pairs "${!place}" "$device" >"$work/pairs" 2>"$work/pairs.err" || fail "datagrams are lost, or go on at once"
    # shellcheck disable=SC2154 # look and carry are assigned by name
    kill -INT "$look" "$carry"
    wait "$look" || fail "looking: exit $?"
    wait "$carry" || fail "carrying: exit $?"
    for kind in look carry; do
        read -r n at_link left in_queue < <(held_up "$work/pairs" "$work/$kind" "$from" "$to")
        [ "${n:-0}" = 60 ] || fail "$kind: not all packets passed from $from to $to: $(cat "$work/$kind.out")"
        all=$((all + n)) right=$((right + at_link)) seen=$((seen + left)) waited=$((waited + in_queue))
        echo "$kind: $from to $to: $at_link of $n, $left seen as they left the queue, $in_queue of them were in it for the time"
    done
    in_namespace "${!place}" tc qdisc del dev "$device" root
    rm -rf "$work/look" "$work/carry" "$work"/*.err # or the next ones would be taken to measure already
done <<EOF
client eth0 eth0:egress@$client vc:ingress@$middle
middle p0 p0:egress@$middle p1:ingress@$middle
middle vs vs:egress@$middle eth0:ingress@$server
server eth0 eth0:egress@$server vs:ingress@$middle
middle p1 p1:egress@$middle p0:ingress@$middle
middle vc vc:egress@$middle eth0:ingress@$client
EOF
[ $all -eq 720 ] || fail "$all packets of 720"
[ $((right * 100)) -ge $((all * 99)) ] || fail "$right of $all at the right hop"
echo "$right of $all at the right hop"
[ $((seen * 100)) -ge $((360 * 97)) ] || fail "$seen of 360 were seen as they left the queue"
[ $((waited * 100)) -ge $((seen * 99)) ] || fail "$waited of $seen were in the queue for the time"
echo "$waited of $seen were in the queue for the time"
