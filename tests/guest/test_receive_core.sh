#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A card whose interrupts are moved to another core while a server is loaded over it, as irqbalance
# does: the capture, asked for the server's core only, follows, and says how long it did not see the
# other one. Server, card and capture are in the guest, the load is out here.
# Runs beside others: its machine is emulated, and its timings mean nothing.
set -u
. "$(dirname "$0")/tap_lib.sh"
cat >"$work/inside" <<INSIDE
$guest_begin
interrupts_to() {
    for irq in /sys/class/net/eth0/device/../msi_irqs/*; do
        echo \$1 >/proc/irq/\$(basename \$irq)/smp_affinity_list 2>/dev/null || true # not that of the config
    done
}
interrupts_to 0
# A card moves when it interrupts next: what the host refuses here makes it.
tries=50
until
    before=\$(awk '/virtio.*input/ { n += \$2 } END { print n + 0 }' /proc/interrupts)
    (: >/dev/tcp/10.78.0.1/9) 2>/dev/null
    (: >/dev/tcp/10.78.0.1/9) 2>/dev/null
    [ \$(awk '/virtio.*input/ { n += \$2 } END { print n + 0 }' /proc/interrupts) -ge \$((before + 2)) ]
do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || { cat /proc/interrupts; exit 1; }
done
$(guest_serve '--cores 0' 'taskset -c 0' '(nc -l -p 11213 >/dev/null; interrupts_to 1) 8>&- &')
INSIDE
guest_start -o "$work/run" -f "$work/inside" 'bash inside'

move_interrupts() {
    (sleep 2; : >/dev/tcp/10.78.0.2/11213) 8>&- &
}
tap_load move_interrupts

"$BUILD/taillight" analyze "$work/run" --slice p0-100 --quiet >"$work/report" 2>&1
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "analyze: exit $status: $(cat "$work/report")"
expect() { # FILE FILTER
    jq -e "$2" "$work/run/$1" >/dev/null ||
        fail "$1: not $2: $(jq -c '[.events.followed, .verdict, .unseen, .diagnosis.contexts]' "$work/run/$1")"
}
expect server/capture.json '.cores == "0" and .events.followed == "1" and .dropped.events == 0'
expect summary.json '.requests > 300 and .joined >= 0.95 * .requests'
# Both cores received, and what they did then is known but for the moment of the change.
receiving='[.diagnosis.contexts[] | select(.role == "R" and .context == "NET_RX softirq" and .share > 0) | .core]'
expect summary.json "$receiving | index(0) and index(1)"
expect summary.json '.unseen.requests >= 1 and .unseen.requests < 0.1 * .requests'
expect summary.json '.verdict | test("core 1, which received, was not recorded")'
echo "$(jq -c '[.unseen, .verdict]' "$work/run/summary.json") with Linux $(cat "$work/run/release")"
