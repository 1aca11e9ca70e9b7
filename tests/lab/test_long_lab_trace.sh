#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The lab's processor trace, by stock perf in the guest: kernel and user, user only, of one function, with cycle
# and crystal clock packets, without compressed returns, with a ring that is too small, with perf's
# buffer too small, and into one that is written over and over. libipt decodes all that the plugin wrote, and finds every call that the
# emulator executed, in order, and as many instructions; perf's files hold the same bytes.
# Runs beside others: its machine is emulated, and its timings mean nothing.
# Time limit: 600 s
set -u
work=$(mktemp -d /tmp/taillight-lab-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*"
    cat "$work/said"
    exit 1
}
cat >"$work/inside" <<'INSIDE'
set -u
pmu=/sys/bus/event_source/devices/intel_pt
record() { # NAME EVENT OPTIONS... -- COMMAND
    local name=$1 event=$2
    shift 2
    perf record -q -o "/out/$name" -e "intel_pt/$event" "$@" >/dev/null 2>"/tmp/$name.err" ||
        { cat "/tmp/$name.err"; exit 1; }
}
[ "$(cat $pmu/caps/mtc)" = 1 ] && [ "$(cat $pmu/max_nonturbo_ratio)" -gt 0 ] || exit 1
record whole mtc=0/ -a --kcore -- ls -R /usr
record user mtc=0/u -- ls -R /usr
record plain mtc=0,noretcomp=1/u -- ls /usr
record clocks mtc=1,mtc_period=3,cyc=1/u -- ls /usr
record function mtc=0/k --filter 'filter vfs_read' -a --kcore -- cat /proc/version /proc/cmdline
echo 40000 >/sys/module/intel_pt/parameters/ring_bytes
echo 50000 >/sys/module/intel_pt/parameters/drain_us
record overflow mtc=0/ -a -- ls -R /usr
echo 5000 >/sys/module/intel_pt/parameters/drain_us
echo 0 >/sys/module/intel_pt/parameters/ring_bytes
record truncated mtc=0/ -a -m,2 -- ls -R /usr
perf record -q -o /out/snapshot -a -S65536 -m,64 -e intel_pt/mtc=0/ -- sleep 600 >/dev/null 2>/tmp/snapshot.err &
recorder=$!
tries=300 # until it takes the signal
until [ $((0x$(sed -n 's/^SigCgt:\t//p' /proc/$recorder/status) & 0x800)) != 0 ]; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || { cat /tmp/snapshot.err; exit 1; }
    sleep 0.1
done
sleep 2
kill -INT $recorder
wait $recorder
[ -s /out/snapshot ] || { cat /tmp/snapshot.err; exit 1; }
perf report -D -i /out/truncated 2>/dev/null | grep -c 'PERF_RECORD_AUX .*\[.*T' >/out/cuts
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
tests/lab/lab.sh -t 540 -o "$work/out" -x raw=on,ctc=64 -p ls -p cat -f "$work/inside" 'bash inside' >"$work/said" 2>&1
status=$?
[ $status -ne 77 ] || { tail -n 1 "$work/said"; exit 77; }
[ -z "${KEEP:-}" ] || cp -r "$work/out" "$KEEP"
[ $status -eq 0 ] || fail "exit $status"
for cpu in 0 1; do
    "$BUILD/tests/lab/lab_check" "$work/out/lab/cpu$cpu.pt" "$work/out/lab/cpu$cpu.truth" 64 3 \
        >"$work/check.$cpu" 2>"$work/said" || fail "cpu $cpu: $(cat "$work/check.$cpu")"
done
jq -se 'all(.differences == 0 and .errors == 0 and .doubts == 0 and .unseen_calls == 0) and
    (map(.instructions) | add) > 5e6 and (map(.overflows) | add) > 0' "$work"/check.? >/dev/null ||
    fail "$(cat "$work"/check.?)"
[ "$(cat "$work/out/cuts")" -gt 0 ] || fail "perf's small buffer was never full"
# A buffer that is written over and over tells where it stands, and that all of it counts.
perf report -D -i "$work/out/snapshot" 2>/dev/null | grep -q 'PERF_RECORD_AUX offset: .* size: 0x40000 flags: 0x2 \[O\]' ||
    fail "the buffer for snapshots is not as it should be"
analyzed() { "$BUILD/taillight" analyze "$work/out/$1" --json 2>"$work/said" >"$work/$1.json" || fail "analyze $1"; }
for name in whole user function; do
    analyzed $name
    jq -e '[.streams[].instructions] | add > 100' "$work/$name.json" >/dev/null ||
        fail "$name: $(jq -c '[.streams[] | [.cpu, .instructions, .errors]]' "$work/$name.json")"
done
jq -e '[.functions[].name] | any(. == "vfs_read [k]" or . == "vfs_read")' "$work/function.json" >/dev/null ||
    fail "vfs_read alone is not there: $(jq -c '[.functions[].name] | .[:20]' "$work/function.json")"
cat "$work"/check.?
