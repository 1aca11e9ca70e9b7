#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule --carry` over six interfaces: packets carry their stamps from one end to the other
# and back, and what arrives is what was sent, bit for bit, whether it is a datagram of the MTU's length,
# one in fragments, or a stream that the kernel sends in bundles; where checksums are computed on the way,
# and when the command is killed in the middle of it. What others put behind packets is left alone.
# Runs beside others: it counts packets, and times nothing.
set -u
. "$(dirname "$0")/route_lib.sh"
make_route
need_carrying
serve_echo
ask() { # ADDRESS SECONDS
    in_namespace "$client" timeout 60 python3 "$here/echo.py" ask "$1" 7007 "$2"
}

carried() { # FILE EXTRA: whole ways there and back, and nothing unexplained
    jq -e --arg there "$there" --arg back "$back" '
        def all_hops(key): [.hops[][key]] | add;
        ([.routes[].hops | map(.hop) | join(" ")] | sort) == ([$there, $back] | sort)
        and all(.routes[]; .complete == .packets and .packets > 50
            and (([.hops[].from_previous.mean_ns // 0] | add) - .end_to_end.mean_ns | fabs) < 1)
        and all_hops("begun") == all_hops("ended") and all_hops("ended") == all_hops("recorded")
        and all_hops("stamped") == 4 * all_hops("begun")
        and all_hops("damaged") + all_hops("not_stamped") + all_hops("dropped") + .rare == 0
        and '"$2" "$1" >/dev/null ||
        fail "$1: $(jq -c '[.routes[] | {packets, complete, hops: [.hops[].hop]}], (.hops[] | {name, role, matched, begun, stamped, ended, no_room, bundled, fragments, foreign, damaged, sent_again, not_stamped})' "$1")"
}

# IPv4 and IPv6 at once, with the longest datagrams, fragments and bundles; and meanwhile frames with
# something behind the packet that is not ours, which the server gets and answers as if it were not there.
timeout 60 "$taillight" capsule "${hops[@]}" --carry --filter 'port 7007' --json >"$work/carry.json" 2>"$work/carry.err" &
capsule=$!
children+=($capsule)
measures "$work/carry.err"
ask fd99::2 0.7 >"$work/six" 2>"$work/six.err" &
six=$!
ask 10.99.0.2 0.7 >"$work/four" 2>"$work/four.err" || fail "IPv4: what came back was changed"
wait $six || fail "IPv6: what came back was changed"
in_namespace "$client" python3 - <<'PY' || fail "foreign bytes behind a packet kept it from arriving"
import fcntl, socket, struct
answers = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
answers.bind(("10.99.0.1", 7100))
answers.settimeout(10)
mac = lambda text: bytes.fromhex(text.replace(":", ""))
own = fcntl.ioctl(answers, 0x8927, struct.pack("256s", b"eth0"))[18:24] # SIOCGIFHWADDR
answers.sendto(b"hello", ("10.99.0.2", 7007)) # so that the neighbour is known
assert answers.recv(100) == b"hello"
there = [line.split()[3] for line in open("/proc/self/net/arp") if line.startswith("10.99.0.2 ")][0]
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
for n in range(20):
    payload = b"foreign%03d" % n + bytes(40)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), n, 0x4000, 64, 17, 0,
                       socket.inet_aton("10.99.0.1"), socket.inet_aton("10.99.0.2"))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    udp = struct.pack(">HHHH", 7100, 7007, 8 + len(payload), 0)
    # As ours would be, of another run.
    behind = struct.pack("<HBBHHQQQ", 0x4354, 1, 1, 0x7fff, 0, 42, 43, 44)
    raw.send(mac(there) + own + b"\x08\x00" + head + udp + payload + behind)
    assert answers.recv(100) == payload
PY
kill -INT $capsule
wait $capsule || fail "carrying: exit $?"
carried "$work/carry.json" '([.hops[] | select(.role == "begins") | .foreign] | add) == 20 and
    all_hops("no_room") > 0 and all_hops("bundled") > 0 and all_hops("fragments") > 0'

# An interface of the way gets a smaller MTU meanwhile: what would be too long for it with a trailer is left alone.
timeout 60 "$taillight" capsule "${hops[@]}" --carry --filter 'udp port 7007' --json >"$work/narrow.json" 2>"$work/narrow.err" &
capsule=$!
children+=($capsule)
measures "$work/narrow.err"
in_namespace "$middle" sh -e -c 'ip link set p0 mtu 1000; ip link set p1 mtu 1000' || fail "no smaller MTU"
in_namespace "$client" python3 - <<'PY' || fail "what is sent on a way that became narrow is lost"
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.1)
s.connect(("10.99.0.2", 7007))
for length in 972, 940, 901: # with 72 bytes more they are longer than 1000
    for tries in range(200): # until the change is seen
        s.send(bytes(length))
        try:
            if len(s.recv(2000)) == length:
                break
        except TimeoutError:
            pass
    else:
        raise SystemExit(f"{length} bytes never came back")
s.send(bytes(900))
s.settimeout(20)
assert len(s.recv(2000)) == 900
PY
in_namespace "$middle" sh -e -c 'ip link set p0 mtu 1500; ip link set p1 mtu 1500' || fail "no larger MTU"
kill -INT $capsule
wait $capsule || fail "a narrow way: exit $?"
jq -e --arg first "eth0:egress@$client" '.hops[] | select(.name == $first) | .no_room >= 3 and .begun >= 1' "$work/narrow.json" >/dev/null ||
    fail "a narrow way: $(jq -c '.hops[] | {name, begun, no_room}' "$work/narrow.json")"

# A queue that is too short, between two hops: by what each of them counted it is known where, and how many, though what
# was lost there has no record.
if in_namespace "$middle" tc qdisc add dev p0 root tbf rate 256kbit burst 2000 limit 200 2>"$work/tbf"; then
    timeout 60 "$taillight" capsule "${hops[@]}" --carry --filter 'udp port 7007' --out "$work/lost" \
        >"$work/lost.text" 2>"$work/lost.err" &
    capsule=$!
    children+=($capsule)
    measures "$work/lost.err"
    lost=$(in_namespace "$client" python3 - <<'PY'
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.99.0.2", 7007))
back = 0
for n in range(300):
    s.send(bytes(60))
    time.sleep(0.001)
s.settimeout(1)
try:
    while True:
        back += len(s.recv(2000)) == 60
except TimeoutError:
    print(300 - back)
PY
    )
    kill -INT $capsule
    wait $capsule || fail "losses of packets that carry: exit $?"
    jq -e --arg at "p1:ingress@$middle" --argjson lost "$lost" '$lost > 10 and $lost < 300 and
        ([.routes[].hops[] | select(.lost_from_previous > 0) | [.hop, .lost_from_previous]] == [[$at, $lost]])' \
        "$work/lost/capsule.json" >/dev/null || fail "not $lost lost: $(cat "$work/lost.text")"
    grep -q "^  lost, or without their trailer, between p0:egress@$middle and p1:ingress@$middle: $lost\$" "$work/lost.text" ||
        fail "lost: $(cat "$work/lost.text")"
    in_namespace "$middle" tc qdisc del dev p0 root
fi

# Without a network card's help: checksums are computed by the kernel at the first interface, to the
# packet's end, trailer and all.
in_namespace "$client" python3 - <<'PY' || fail "the checksums' offload cannot be turned off"
import array, fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
GET, SET, SIOCETHTOOL = 0x16, 0x17, 0x8946
def ask(command):
    value = array.array("I", [command, 0])
    fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP16x", b"eth0", value.buffer_info()[0]))
    return value[1]
ask(SET)
assert ask(GET) == 0
PY
# Killed: the rest of what is under way arrives, too.
timeout 60 "$taillight" capsule "${hops[@]}" --carry --filter 'port 7007' >/dev/null 2>"$work/killed.err" &
capsule=$!
measures "$work/killed.err"
ask 10.99.0.2 0.6 >"$work/killed" 2>"$work/asked.err" &
asked=$!
sleep 0.3
{ kill -9 "$(pgrep -P $capsule)" && wait $capsule; } 2>/dev/null
[ $? -gt 128 ] || fail "it has ended by itself"
wait $asked || fail "what came back was changed when the command was killed: $(cat "$work/asked.err")"
for place in "$client" "$middle" "$server"; do
    [ "$(programs_at "$place")" = 0 ] || fail "a killed command leaves programs attached"
done
# A hop that is taken away while packets carry, first one between, then the one that takes trailers off.
timeout 60 "$taillight" capsule "${hops[@]}" --carry --filter 'port 7007' --json >"$work/removed.json" 2>"$work/removed.err" &
capsule=$!
children+=($capsule)
measures "$work/removed.err"
ask 10.99.0.2 0.1 >"$work/removed" || fail "what came back was changed"
for place in "$middle p1" "$server eth0"; do
    ask 10.99.0.2 0.5 >"$work/removed" 2>"$work/asked.err" &
    asked=$!
    in_namespace "${place% *}" python3 "$here/detach.py" "${place#* }" || fail "nothing can be taken from $place"
    wait $asked || fail "what came back was changed when a hop was taken away: $(cat "$work/asked.err")"
    ask 10.99.0.2 0.1 >"$work/removed" || fail "what came back was changed after a hop was taken away"
done
kill -INT $capsule
wait $capsule || fail "hops were taken away: exit $?"
jq -e --arg there "$there" --arg between "p1:ingress@$middle" --arg last "eth0:ingress@$server" '
    def all_hops(key): [.hops[][key]] | add;
    (.hops | map({key: .name, value: .}) | from_entries) as $hop
    | any(.routes[]; (.hops | map(.hop) | join(" ")) == $there and .packets > 0)
    and $hop[$between].stamped > 0 and $hop[$last].ended > $hop[$between].stamped
    and all_hops("begun") > all_hops("ended") and all_hops("ended") == all_hops("recorded")
    and all_hops("damaged") + all_hops("dropped") == 0' "$work/removed.json" >/dev/null ||
    fail "hops taken away: $(jq -c '[.routes[] | {packets, complete, hops: [.hops[].hop]}], (.hops[] | {name, role, matched, begun, stamped, ended, recorded, damaged, not_stamped, dropped})' "$work/removed.json")"
# Nobody ever had to send again because a trailer had become part of a checksum.
for place in "$client" "$server"; do
    in_namespace "$place" python3 - <<'PY' || fail "checksums were wrong, or their count is not known"
names = {}
for line in open("/proc/net/snmp"):
    kind, *rest = line.split()
    names.setdefault(kind, []).append(rest)
for kind in "Tcp:", "Udp:":
    count = dict(zip(*names[kind]))
    assert count["InCsumErrors"] == "0", (kind, count)
PY
done
echo "datagrams and streams, IPv4: $(cat "$work/four"); IPv6: $(cat "$work/six"); killed: $(cat "$work/killed")"
