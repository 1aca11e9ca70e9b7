#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# How long packets are in an interface's queueing discipline, which begins while they pass: a token bucket lets the
# first datagram of a pair through and holds the second until it has filled again, by its rate. What it drops or
# divides is no gap, and is counted as `tc` counts it; and where nobody looks, that is said. (There are kernels that run
# no tracing program while some task has the core: of what leaves then it is not known how long it waited, and each is
# counted, `left_unwatched`.)
set -u
. "$(dirname "$0")/route_lib.sh"
command -v tc >/dev/null || skip "there is no tc"
make_route
in_namespace "$middle" tc qdisc add dev lo root tbf rate 1gbit burst 100k limit 10m 2>/dev/null ||
    skip "tc makes no token bucket here"
serve_echo
hops=(--hop "p0:egress@$middle" --hop "vs:egress@$middle" --hop "eth0:ingress@$server")
around=()
capsule() { # NAME OPTION...
    timeout 60 "${around[@]}" "$taillight" capsule "${hops[@]}" --out "$work/$1" "${@:2}" >"$work/$1.text" 2>"$work/$1.err" &
    capsule=$!
    children+=("$capsule")
    measures "$work/$1.err"
}
ended() { # NAME
    kill -INT "$capsule"
    wait "$capsule" || fail "$1: exit $?"
}
bucket() { in_namespace "$middle" tc qdisc "$1" dev vs root tbf rate "$2" burst 1540 limit "$3" || fail "no bucket"; }
send() { # COUNT [LENGTH...]: so many times datagrams of these lengths, from one socket, and no reply is waited for
    in_namespace "$client" python3 - "$@" <<'PY'
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[1])):
    for length in sys.argv[2:]:
        s.sendto(n.to_bytes(4, "big") + bytes(int(length) - 4), ("10.99.0.2", 7007))
    time.sleep(0.08)
PY
}

# No packet leaves before the bucket, to which bytes come by its rate, has as many as the frame, and none after it has
# come to the other end of the link, which is at once but where others have the core: all that holds on a busy machine, too.
capsule pairs --filter 'udp dst port 7007'
bucket add 200kbit 300000
sleep 0.05
send 25 900 1000
ended pairs
python3 - "$work/pairs" <<'PY' || fail "the bucket's time: $(cat "$work/pairs.text")"
import collections, json, struct, sys
hops = json.load(open(sys.argv[1] + "/capsule.json"))["hops"]
names = [hop["name"].split("@")[0] for hop in hops]
sent = collections.defaultdict(dict)
data = open(sys.argv[1] + "/hops.tlog", "rb").read()[128:]
for time, flow, datagram, first, end, length, hop, _, _, _, queued in struct.iter_unpack("<QQQIIIBBBBQ", data):
    assert queued == 0 or names[hop] == "vs:egress", names[hop]
    sent[datagram][names[hop]] = time, length + 14, queued
RATE, BURST = 200e3 / 8 / 1e9, 1540 # bytes a ns, and bytes
held, tokens, at, unseen = [], BURST, 0, 0
for number, stamps in enumerate(sorted(sent.values(), key=lambda stamps: stamps["vs:egress"])):
    time, length, queued = stamps["vs:egress"]
    arrived = stamps["eth0:ingress"][0] - time
    unseen += queued == 0
    assert queued <= arrived, (number, queued, arrived)
    left = time + (queued or arrived)
    tokens = min(BURST, tokens + (left - at) * RATE) - length
    assert tokens > -1, f"packet {number} left before the bucket had its bytes: {tokens} are left"
    at = left
    if queued > 5e6:
        held.append((queued, arrived))
near = sum(arrived - queued <= 0.15 * arrived for queued, arrived in held)
print(f"{near} of {len(held)} were in the bucket for all of their time to the next hop but 15 %, {unseen} not seen")
assert unseen <= 3 and len(held) >= 20 and near >= 0.75 * len(held)
PY
grep -q '^    in its queue (tbf)' "$work/pairs.text" || fail "$(cat "$work/pairs.text")"

# What finds no room is dropped: as many as tc says, and no more. The next datagram has the dropped one's buffer, all of
# its words that show whose it is, and leaves by an interface of the same number first, in the client's namespace.
bucket change 200kbit 3000
dropped() { in_namespace "$middle" tc -s -j qdisc show dev vs root | jq '.[0].drops'; }
is_empty() { in_namespace "$middle" tc -s -j qdisc show dev vs root | jq -e '.[0].backlog == 0' >/dev/null; }
before=$(dropped)
capsule dropped --filter 'udp dst port 7007'
mapfile -t lengths < <(yes 800 | head -n 40)
send 2 "${lengths[@]}"
await is_empty || fail "the bucket does not run empty"
sleep 0.2
ended dropped
jq -e --argjson drops $(($(dropped) - before)) '.hops[] | select(.name | startswith("vs:egress"))
    | $drops > 40 and .queued == 80 and .left + .left_unwatched + $drops == 80 and .left_divided == 0 and .queue_unseen == ""' "$work/dropped/capsule.json" >/dev/null ||
    fail "tc has dropped $(($(dropped) - before)): $(jq -c '.hops[] | select(.queued > 0)' "$work/dropped/capsule.json")"
grep -q 'packets were not seen as they left its queue (tbf)' "$work/dropped.text" || fail "$(cat "$work/dropped.text")"

# What the bucket divides leaves it as other packets: whole at every hop, and not seen to leave. (What a busy machine lets TCP
# send again meanwhile may be missing at some.)
bucket change 20mbit 1000000
capsule divided --filter 'tcp dst port 7007'
in_namespace "$client" python3 - <<'PY'
import socket
s = socket.create_connection(("10.99.0.2", 7007))
s.sendall(bytes(200000))
got = 0
while got < 200000:
    got += len(s.recv(65536))
PY
ended divided
jq -e '(([.routes[].gaps] | add) == 0 or .repeated > 0) and ([.routes[].complete] | add) > 0
    and (.hops[] | select(.name | startswith("vs:egress")) | .queued > 0 and .left < .queued and .left_divided > 0)' \
    "$work/divided/capsule.json" >/dev/null || fail "divided: $(cat "$work/divided.text")"

# Where the kernel lets no program look, that is said, and what it says.
around=(python3 "$here/no_tcx.py" --no-tracing)
capsule untraced --filter 'udp dst port 7007'
around=()
send 1 100
ended untraced
jq -e '.hops[] | select(.name | startswith("vs:egress")) | .recorded == 1 and .queued == 0
    and .queue_unseen == "no program can be attached to net_dev_start_xmit: Invalid argument"' "$work/untraced/capsule.json" >/dev/null ||
    fail "untraced: $(cat "$work/untraced.text")"
grep -q "vs:egress@$middle: how long packets are in its queue (tbf) is not known: no program" "$work/untraced.text" ||
    fail "untraced: $(cat "$work/untraced.text")"

# Hops that carry do not look for it, and say so.
stop_cutting || exit 0
capsule carried --carry --filter 'udp port 7007'
send 1 100
ended carried
grep -q "vs:egress@$middle: how long packets are in its queue (tbf) is not known: hops that carry" "$work/carried.text" ||
    fail "carried: $(cat "$work/carried.text")"
jq -e '.hops[] | select(.name | startswith("vs:egress")) | .queue_unseen == "hops that carry do not look for it"' \
    "$work/carried/capsule.json" >/dev/null || fail "carried: $(jq -c '.hops[].queue_unseen' "$work/carried/capsule.json")"
