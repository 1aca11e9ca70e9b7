#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule --carry` into a ring that is too small for a burst: every datagram comes to its end as it was sent,
# without its trailer, what is not recorded is counted at that end, and the report says so.
# Runs beside others: counts packets, asserts no times.
. "$(dirname "$0")/route_lib.sh"
make_route
need_carrying
for kind in json text; do
    option=()
    [ $kind = text ] || option=(--json)
    "$taillight" capsule --carry "${hops[@]}" --filter 'udp dst port 7007' --buffer 4KiB "${option[@]}" \
        >"$work/$kind" 2>"$work/$kind.err" &
    measuring=$!
    children+=($measuring)
    measures "$work/$kind.err"
    # Of 2,000 in a row none may be lost: the receiver's buffer has room for all of them, and none waits for an address.
    in_namespace "$client" bash -c 'exec 3<>/dev/tcp/10.99.0.2/7007' 2>/dev/null # refused: somebody is there
    nsenter -t "$server" -n python3 - >"$work/$kind.got" 2>"$work/$kind.got.err" <<'PY' &
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
s.bind(("10.99.0.2", 7007))
s.settimeout(20)
print("ready", flush=True)
print(sum(s.recv(2000) == b"%08d" % n * 8 for n in range(2000)))
PY
    sink=$!
    children+=($sink)
    await grep -q ready "$work/$kind.got" || fail "nobody receives"
    in_namespace "$client" python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.99.0.2", 7007))
for n in range(2000): s.send(b"%08d" % n * 8)' || fail "not sent"
    wait $sink || fail "not all came"
    [ "$(tail -n 1 "$work/$kind.got")" = 2000 ] || fail "$(tail -n 1 "$work/$kind.got") of 2000 came as they were sent"
    kill -INT $measuring
    wait $measuring || fail "exit $?"
done
jq -e '(.hops[] | select(.ended > 0)) as $last
    | [.hops[].begun] == [0, 2000] + [.hops[2:][].begun]
    and $last.ended == 2000 and $last.recorded + $last.dropped == 2000 and $last.dropped > 0 and $last.recorded > 0
    and .records == 6 * $last.recorded and .forgotten == 0
    and ([.hops[] | .damaged + .foreign + .not_stamped] | add) == 0' "$work/json" >/dev/null ||
    fail "$(jq -c '.records, .packets, [.hops[] | [.name, .begun, .ended, .recorded, .dropped]]' "$work/json")"
grep -q "^  eth0:ingress@$server: [1-9][0-9,]* not recorded because the ring was full" "$work/text" || fail "$(cat "$work/text")"
grep -q '^  2,000 packets got a trailer, which was taken off 2,000\.' "$work/text" || fail "$(cat "$work/text")"
echo "recorded and not: $(jq -c '[.hops[] | select(.ended > 0) | .recorded, .dropped]' "$work/json") of 2000"
