#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` at a macvtap, as virtual machines have it: hops upon it, below and behind see each packet and carry
# their stamps through it, what arrives is what was sent, and it is known who has its other end. (The machine is a program
# that passes frames on between it and a tap of another namespace.)
# Runs beside others: counts packets, asserts no times.
. "$(dirname "$0")/route_lib.sh"
hold client
hold host
hold server
in_namespace "$host" sh -e -c "
    ip link add below type veth peer name eth0 netns $client
    ip link set below up
    ip link add link below name macvtap0 type macvtap mode bridge
    ip link set macvtap0 up" 2>"$work/refused" || skip "there is no macvtap here: $(cat "$work/refused")"
address=$(in_namespace "$host" ip -j link show macvtap0 | jq -r '.[0].address')
# Its character device, of which only the namespace's own /sys has the number.
device=$(in_namespace "$host" unshare -m sh -c 'mount -t sysfs none /sys && cat /sys/class/net/macvtap0/macvtap/tap*/dev') &&
    mknod "$work/end" c "${device%:*}" "${device#*:}" || skip "the macvtap's other end cannot be had here"
cat >"$work/relay.py" <<'PY'
import fcntl, os, select, struct, sys
TUNSETIFF, TAP, NO_INFORMATION = 0x400454CA, 2, 0x1000
def end(path, name):
    fd = os.open(path, os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name, TAP | NO_INFORMATION))
    return fd
ends = [end(sys.argv[1], b""), end("/dev/net/tun", b"eth0")]
print("relays", flush=True)
while True:
    for ready in select.select(ends, [], [])[0]:
        os.write(ends[ready == ends[0]], os.read(ready, 70000))
PY
nsenter -t "$server" -n python3 "$work/relay.py" "$work/end" >"$work/relay" 2>"$work/relay.err" &
relay=$!
children+=($relay)
await grep -q relays "$work/relay" || skip "nothing can be relayed here: $(cat "$work/relay.err")"
in_namespace "$server" sh -e -c "
    ip link set eth0 address $address
    ip addr add 10.99.0.2/24 dev eth0
    ip link set eth0 up" || fail "no addresses"
in_namespace "$client" sh -e -c "ip addr add 10.99.0.1/24 dev eth0; ip link set eth0 up" || fail "no addresses"
serve_echo

for kind in look carry; do
    option=()
    [ $kind = look ] || option=(--carry)
    "$taillight" capsule --hop "eth0@$client=c" --hop "below@$host=h" --hop "macvtap0@$host=h" --hop "eth0@$server=s" \
        "${option[@]}" --filter 'port 7007' --json >"$work/$kind.json" 2>"$work/$kind.err" &
    capsule=$!
    children+=($capsule)
    measures "$work/$kind.err"
    in_namespace "$client" timeout 60 python3 "$here/echo.py" ask 10.99.0.2 7007 0.3 >"$work/$kind.came" 2>"$work/$kind.came.err" ||
        fail "$kind: lost or changed: $(cat "$work/$kind.came.err")"
    kill -INT $capsule
    wait $capsule || fail "$kind: exit $?"
    jq -e --argjson relay $relay '
        def way(hops): [.routes[] | select((.hops | map(.hop) | join(" ")) == hops)];
        def all_hops(key): [.hops[][key]] | add;
        (way("eth0:egress@c below:ingress@h macvtap0:ingress@h eth0:ingress@s")
            + way("eth0:egress@s macvtap0:egress@h below:egress@h eth0:ingress@c") | length) == 2
        and (.routes | length) == 2 and all(.routes[]; .packets > 50 and .complete >= 0.9 * .packets)
        and all_hops("ended") >= 0.9 * all_hops("begun") and all_hops("unreadable") + all_hops("damaged") + all_hops("dropped") == 0
        and ([.hops[] | select(.interface == "macvtap0") | .holder | [.process, .takes_received]] | unique) == [[$relay, true]]
        and ([.hops[] | select(.name | endswith("@s")) | .holder | [.process, .takes_received]] | unique) == [[$relay, false]]' "$work/$kind.json" >/dev/null ||
        fail "$kind: $(jq -c '[.routes[] | [.packets, .complete, (.hops | map(.hop))]], (.hops[] | [.name, .namespace, .holder, .begun, .stamped, .ended])' "$work/$kind.json")"
done
echo "there and back: $(cat "$work"/*.came | tr '\n' ' ')"
