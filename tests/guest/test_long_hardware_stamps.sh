#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight load --stamps hw` over a pair of NICs that stamp every packet by clocks that drift
# (tests/guest/phcpair): nearly every request has both stamps, told in the host's time; the NIC's
# setting is back as it was after an ordinary end and after SIGKILL; a NIC that delivers nothing, or
# stamps no direction, is found out; of one that stamps one only, that one is used.
# Runs beside others: its machine is emulated, and its timings mean nothing.
set -u
work=$(mktemp -d /tmp/taillight-hardware-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*"
    cat "$work/said"
    exit 1
}
module=$(tests/guest/build_module.sh "$BUILD" phcpair) || {
    echo "$module"
    exit 77
}
cat >"$work/inside" <<'INSIDE'
set -u
parameters=/sys/module/phcpair/parameters
settings() { cat $parameters/setting >>/out/settings; }
# A machine that stalls sends what it is late with in one piece, which has one stamp: then once more.
load() { # NAME OPTIONS...
    local name=$1
    shift
    for _ in 1 2 3; do
        ./taillight load --server 10.77.0.2:11211 --rate 100 --workload few.yaml --duration 2s \
            --connections 4 --timeout 10s --seed 1 --sleep --json --quiet "$@" >"/out/$name.json" 2>"/out/$name.err"
        echo $? >"/out/$name.status"
        grep -q 'rate not reached' "/out/$name.err" ||
            { grep -q 'client biased: late' "/out/$name.err" && jq -e '.stamps.user > 0.1 * .answered' "/out/$name.json" >/dev/null; } ||
            return 0
    done
}
insmod phcpair.ko || exit 1
unshare -n sleep 600 &
server=$!
until [ "$(readlink /proc/$server/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
there() { nsenter -t $server -n "$@"; }
ip link set phc1 netns $server
ip addr add 10.77.0.1/24 dev phc0
ip link set phc0 up
there ip addr add 10.77.0.2/24 dev phc1
there ip link set phc1 up
there memcached -u root -l 10.77.0.2 -p 11211 -t 1 &
tries=50
printf 'keys: {count: 100}\n' >few.yaml # emulated, the 100,000 of a preset take seconds
until ./taillight load --server 10.77.0.2:11211 --prepare --workload few.yaml --quiet --json >/dev/null 2>&1; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
    sleep 0.2
done
./taillight doctor --facts >/out/doctor.json

echo '1 0' >$parameters/setting # not what it was after booting, and not what a load sets
settings
load warm # the first load translates the program's code, and stalls: TCP then merges its sends
load hardware --stamps hw
settings
load lo --stamps hw --server 127.0.0.1:11211

./taillight load --server 10.77.0.2:11211 --rate 200 --duration 60s --stamps hw --quiet >/dev/null 2>&1 &
victim=$!
tries=100
until [ "$(cat $parameters/setting)" = '1 1' ]; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
    sleep 0.1
done
kill -9 $victim
tries=100
until [ "$(cat $parameters/setting)" = '1 0' ]; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
    sleep 0.1
done
settings

echo 1 >$parameters/mute
load mute
echo 0 >$parameters/mute
echo 1 >$parameters/ptp_only # of what is received; all that is sent
load tx_only --stamps hw
settings
echo 1 >$parameters/rx_only
load neither --stamps hw
settings
echo 0 >$parameters/ptp_only
echo '0 0' >$parameters/setting
load rx_only --stamps hw
kill %1 %2
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
tests/guest/run_guest.sh -o "$work/out" -f "$module" -f "$work/inside" 'bash inside' >"$work/said" 2>&1
status=$?
[ $status -ne 77 ] || { tail -n 1 "$work/said"; exit 77; }
if [ -n "${KEEP:-}" ]; then cp -r "$work/out" "$KEEP"; fi
[ $status -eq 0 ] || fail "exit $status"

expect() { # NAME FILTER
    jq -e "$2" "$work/out/$1.json" >/dev/null ||
        fail "$1: not $2: $(jq -c '[.answered, .stamps, .hardware_stamps, .network_us, .reasons]' "$work/out/$1.json"; cat "$work/out/$1.err")"
}
expect doctor '.items[] | select(.name == "phc0 hardware stamps") | .state == "yes"'
# A few of a request's two stamps may be missing (sends that TCP merges: the slower the emulated machine,
# the more; 11 of 218 once), not many.
expect hardware '.answered > 150 and .stamps.hw >= 0.9 * .answered and .stamps.user <= 0.1 * .answered'
expect hardware '.hardware_stamps.on and .hardware_stamps.error_us != null'
# The clock is 50 ppm fast, which is 100 us over the run, and began at an arbitrary time: only
# converted stamps give a network time that the latency holds.
expect hardware '.network_us.p50 > 0 and .network_us.p50 < .uncorrected_latency_us.p50'
expect hardware '.method | tostring | test("hw")'
grep -q 'lo gives no hardware stamps' "$work/out/lo.err" || fail "lo: $(cat "$work/out/lo.err")"
[ "$(cat "$work/out/lo.status")" = 1 ] || fail "lo: exit $(cat "$work/out/lo.status")"
[ "$(sort -u "$work/out/settings")" = '1 0' ] || fail "the setting was not put back: $(cat "$work/out/settings")"
[ "$(wc -l <"$work/out/settings")" = 5 ] || fail "not every step was taken"
# Accepted and never delivered: the kernel's stand in, and that is counted.
expect mute '.stamps.hw == 0 and .stamps.sw >= 0.9 * .answered and .hardware_stamps.on'
# One direction is used where there is no other, and the rest is the kernel's.
for way in tx_only rx_only; do
    expect $way '.stamps.hw == 0 and .stamps.hw_one_way >= 0.9 * .answered and .hardware_stamps.on'
    expect $way '.network_us.p50 > 0 and .network_us.p50 < .uncorrected_latency_us.p50'
done
expect tx_only '.hardware_stamps.why | test("phc0 stamps only what is sent")'
expect rx_only '.hardware_stamps.why | test("phc0 stamps only what is received")'
grep -q 'phc0 gives no hardware stamps: the NIC stamps every packet in neither direction' "$work/out/neither.err" ||
    fail "neither: $(cat "$work/out/neither.err")"
echo "$(jq -c .stamps "$work/out/hardware.json"), within $(jq .hardware_stamps.error_us "$work/out/hardware.json") us"
