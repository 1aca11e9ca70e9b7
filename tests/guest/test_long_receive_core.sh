#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Receive work that is moved to another core while a server is loaded (RPS: an emulated card whose
# interrupts are moved may lose one and is deaf then): the capture, asked for the server's core only,
# follows, and says how long it did not see the other one. Server, card and capture are in the guest,
# the load is out here.
# Runs beside others: its machine is emulated, and its timings mean nothing.
set -u
. "$(dirname "$0")/tap_lib.sh"
cat >"$work/inside" <<INSIDE
$guest_begin
receive_on() { # MASK
    echo \$1 >/sys/class/net/eth0/queues/rx-0/rps_cpus
}
receive_on 1
$(guest_serve '--cores 0' 'taskset -c 0' '(nc -l -p 11213 >/dev/null; receive_on 2; nc -l -p 11214 >/dev/null) 8>&- &')
INSIDE
guest_start -o "$work/run" -f "$work/inside" 'bash inside'

# A second after the load began; the guest answers again when it has been done, however busy it is.
# The load goes on for three seconds more.
move_receive() {
    (
        tries=100
        until grep -qs begin_ns "$work/load.out"; do
            tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
            sleep 0.1
        done
        sleep 1
        : >/dev/tcp/10.78.0.2/11213
        tries=200
        until (: >/dev/tcp/10.78.0.2/11214) 2>/dev/null; do
            tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
            sleep 0.1
        done
        sleep 3
        tap_load_ends
    ) 8>&- &
}
load_seconds=40
tap_load move_receive

"$BUILD/taillight" analyze "$work/run" --slice p0-100 --out "$work/run" --quiet >"$work/report" 2>&1
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "analyze: exit $status: $(cat "$work/report")"
expect() { # FILE FILTER
    jq -e "$2" "$work/run/$1" >/dev/null ||
        fail "$1: not $2: $(jq -c '[.events.followed, .verdict, .unseen, .diagnosis.contexts]' "$work/run/$1")"
}
expect server/capture.json '.cores == "0" and .events.followed == "1" and .dropped.events == 0'
expect summary.json '.answered > 300 and .joined >= 0.95 * .answered'
# Both cores received, and what they did then is known but for the moment of the change.
receiving='[.diagnosis.contexts[] | select(.role == "R" and .context == "NET_RX softirq" and .share > 0) | .core]'
expect summary.json "$receiving | index(0) and index(1)"
expect summary.json '.unseen.requests >= 1 and .unseen.requests < 0.1 * .requests'
expect summary.json '.verdict | test("core 1, which received, was not recorded")'
echo "$(jq -c '[.unseen, .verdict]' "$work/run/summary.json") with Linux $(cat "$work/run/release")"
