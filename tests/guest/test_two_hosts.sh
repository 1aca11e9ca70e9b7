#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Client and server with kernels, boots and clocks of their own: the server and its capture in the
# guest, the load out here, a tap device between them. Their logs, put together, make a run whose
# clocks are related within a bound; without the client's clock log it is refused.
set -u
. "$(dirname "$0")/tap_lib.sh"
cat >"$work/inside" <<INSIDE
$guest_begin
mkdir -p /out/server /tmp/shim
mkfifo /tmp/end
./taillight capture --out /out/server --port 11211 --shim /tmp/shim --backend events \
    </tmp/end >/tmp/capture 2>&1 &
capture=\$!
exec 8>/tmp/end
tries=300
until grep -q '"ready": *true' /tmp/capture; do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || { cat /tmp/capture; exit 1; }
    sleep 0.1
done
TAILLIGHT_SHIM_DIR=/tmp/shim LD_PRELOAD=./libtaillight-shim.so \
    memcached -u root -l 10.78.0.2 -p 11211 -t 1 8>&- &
server=\$!
$guest_wait
exec 8>&-
wait \$capture || { cat /tmp/capture; exit 1; }
kill \$server
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
guest_start -o "$work/run" -f "$work/inside" 'bash inside'

cat >"$work/few.yaml" <<'YAML'
keys: {count: 200}
values: {size: {fixed: 200}}
YAML
load=("$BUILD/taillight" load --workload "$work/few.yaml" --server 10.78.0.2:11211 --connections 4 --timeout 10s --seed 1 --quiet)
tries=10
until "${load[@]}" --prepare --json >/dev/null 2>"$work/prepare"; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || fail "no dataset: $(cat "$work/prepare")"
    sleep 0.2
done
mkdir "$work/client"
mkfifo "$work/end"
"$BUILD/taillight" capture --backend none --no-events --out "$work/client" <"$work/end" >"$work/clock" 2>&1 &
clock=$!
ours+=($clock)
exec 8>"$work/end"
tries=100
until grep -q '"ready": *true' "$work/clock"; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || fail "no clock log: $(cat "$work/clock")"
    sleep 0.1
done
"${load[@]}" --rate 100 --duration 4s --samples "$work/client" --json >"$work/client/load.json" 2>"$work/load.err" 8>&-
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "the load: exit $status: $(cat "$work/load.err")"
exec 8>&-
wait $clock || fail "the clock log: $(cat "$work/clock")"
guest_end
mv "$work/client" "$work/run/"
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$KEEP"

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
