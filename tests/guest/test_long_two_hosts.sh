#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Client and server with kernels, boots and clocks of their own: the server and its capture in the
# guest, the load out here, a tap device between them. Their logs, put together, make a run whose
# clocks are related within a bound; without the client's clock log it is refused.
# Runs beside others: its machine is emulated, and its timings mean nothing.
set -u
. "$(dirname "$0")/tap_lib.sh"
cat >"$work/inside" <<INSIDE
$guest_begin
$(guest_serve '' '' '')
INSIDE
guest_start -o "$work/run" -f "$work/inside" 'bash inside'

tap_load

boot() { dd if="$work/run/$1" bs=1 skip=40 count=36 status=none; }
[ "$(boot client/samples.tlog)" != "$(boot server/events.tlog)" ] || fail "both logs are of one boot"
mv "$work/run/client/clock.tlog" "$work/clock.tlog"
"$BUILD/taillight" analyze "$work/run" --quiet >"$work/report" 2>&1
[ $? = 2 ] && grep -q 'client/clock.tlog: no such file' "$work/report" ||
    fail "clocks that nothing relates are not refused: $(cat "$work/report")"
mv "$work/clock.tlog" "$work/run/client/clock.tlog"
"$BUILD/taillight" analyze "$work/run" --quiet >"$work/report" 2>&1
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "analyze: exit $status: $(cat "$work/report")"
expect() {
    jq -e "$1" "$work/run/summary.json" >/dev/null ||
        fail "not $1: $(jq -c '[.requests, .joined, .unmatched, .order_violations, .hosts]' "$work/run/summary.json")"
}
expect '.requests > 300 and .joined >= 0.95 * .requests'
expect '.hosts.exchanges >= .joined and .hosts.round_trip_us.p50 > 0 and .hosts.negative_trips == 0'
expect '.hosts.bound_p50_us > 0 and .order_violations <= 0.01 * .requests'
expect '.hosts.both_ways or .hosts.bound_p99_us <= .hosts.round_trip_us.p50'
expect '.worst_stage_sum_error_ns == 0'
echo "$(jq -c .hosts "$work/run/summary.json") with Linux $(cat "$work/run/release")"
