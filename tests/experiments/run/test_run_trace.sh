#!/usr/bin/env bash
# What an experiment says of its processor trace, and what becomes of a trace that shows nothing: here
# the machine has an Intel PT that is a folder of the test's, and perf is a script that keeps its part
# and leaves a recording that the real one made before, without any trace.
# Runs beside others: its perf is a script that says how it was commanded, later than the capture says
# how long it recorded; no verdict is about the load's times.
. tests/experiments/run_lib.sh
need_program memcached memcached
need_program jq jq
if [ "${TRACED:-}" != 1 ]; then
    unshare -m true 2>/dev/null || skip "no mount namespace can be made here: it takes root"
    [ -d /sys/bus/event_source/devices ] || skip "/sys is not the kernel's"
    rm -rf "$work"
    TRACED=1 exec unshare -m "$BASH" "$0"
fi
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
perf record -q -e cpu-clock -a -o "$work/made" -- true >/dev/null 2>"$work/perf.err" ||
    skip "perf record does not work here (no perf, or not permitted)"
mount -t tmpfs none /sys/bus/event_source/devices || skip "/sys cannot be mounted over"
mkdir -p /sys/bus/event_source/devices/intel_pt/caps
cd /sys/bus/event_source/devices/intel_pt || exit 1
echo 8 >./type
for cap in mtc psb_cyc; do echo 1 >caps/$cap; done
for mask in mtc_periods cycle_thresholds psb_periods; do echo 3f >caps/$mask; done
cd - >/dev/null || exit 1
mkdir "$work/bin"
cat >"$work/bin/perf" <<END
#!/bin/bash
[ "\$1" = record ] || exit 1
printf '%s\n' "\$@" >$work/arguments
echo \$\$ >$work/perf.pid
while read -r word; do
    echo "\$(date +%s%N) \$word" >>$work/words
    [ \$word = stop ] && [ -e $work/no-room ] && { printf 'ack\n'; echo 'No space left on device' >&2; exit 1; }
    [ \$word = stop ] && cp $work/made "\${@: -1}"
    printf 'ack\n\0'
    [ \$word = stop ] && exit 0
done
END
chmod 755 "$work/bin/perf"
export PATH="$work/bin:$PATH"

claim_port
traced() { # NAME CAPTURE: runs it into $work/NAME
    : >"$work/words"
    experiment "$work/$1.yaml" local 2000 1s <<<"servers: {cache: {kind: memcached, port: $port}}
capture: {backend: intel_pt, calls: none, $2}"
    "$taillight" run "$work/$1.yaml" --out "$work/$1" >"$work/$1.out" 2>"$work/$1.err"
}
flat() { tr -s ' \n' ' ' <"$1"; } # without the terminal's line breaks
words() { cut -d' ' -f2 "$work/words" | tr '\n' ' '; }
holds() { jq -e "$2" "$work/$1" >/dev/null || fail "$1 lacks $2: $(cut -c1-2000 "$work/$1")"; }

# A window, cores, a buffer, a bound. The recording shows nothing: exit 4, and it is said everywhere.
traced window 'window: 200ms-800ms, detail: light, buffer: 1MiB, bytes: 200MiB, cores: [0]'
status=$?
[ $status -eq 4 ] || fail "exit $status instead of 4 where the trace shows nothing"
[ "$(words)" = "ping enable disable stop " ] || fail "perf was commanded: $(words)"
on=$(awk '$2 == "enable" { b = $1 } $2 == "disable" { print int(($1 - b) / 1e6) }' "$work/words")
[ "$on" -ge 300 ] || fail "the trace was on for $on ms instead of 600" # as the script came to see it
tr '\n' ' ' <"$work/arguments" | grep -q -- '--event intel_pt/tsc=1,mtc=1,mtc_period=5,psb_period=5/ --cpu 0 .*--mmap-pages=,1024K' ||
    fail "perf's arguments: $(tr '\n' ' ' <"$work/arguments")"
holds window/experiment.json '.capture.trace | .detail == "light" and .from_ns == 200000000 and .to_ns == 800000000'
holds window/server/capture.json '.intel_pt.on_ns > 300000000 and (.intel_pt | has("ended") | not)'
holds window/summary.json '.trace.lack | length > 0'
if [ -r /proc/kcore ]; then
    grep -qx -- --kcore "$work/arguments" || fail "the kernel's code is not asked for"
else
    holds window/server/capture.json '.intel_pt.kcore == false and (.warnings | any(test("the kernel.s code cannot be copied")))'
fi
flat "$work/window.out" | grep -q 'functions are N/A: ' || fail "the terminal does not say that functions are N/A"
python3 tests/analysis/report/page_data.py "$work/window/report.html" | grep "$(jq -r '.trace.lack' "$work/window/summary.json" | cut -c1-40)" >/dev/null || fail "the page does not say why"
! flat "$work/window.out" | grep -q 'nothing was dropped' || fail "nothing is said to be dropped where nothing was traced"

# Snapshots, when replies are slow; all of them are, here.
traced snapshot "snapshot: {on: '>1us', keep: 2}"
[ $? -eq 4 ] || fail "exit $? of a run with snapshots"
holds snapshot/server/capture.json '.intel_pt.snapshots == 2 and .intel_pt.snapshots_refused > 0'
[ "$(words)" = "ping enable snapshot ping snapshot ping disable stop " ] || fail "perf was commanded: $(words)"
traced never "snapshot: {on: '>20s'}"
holds never/server/capture.json '.intel_pt.snapshots == 0 and .intel_pt.snapshots_refused == 0'

# perf cannot write its last bytes: the run is there, and says so.
touch "$work/no-room"
traced full 'duration: 500ms'
[ $? -eq 4 ] || fail "exit $? where perf fails at its end"
rm "$work/no-room"
for file in client/load.json server/clock.tlog server/capture.json report.html; do
    [ -s "$work/full/$file" ] || fail "no $file where perf fails at its end"
done
holds full/server/capture.json '.intel_pt.ended.broken'
flat "$work/full.out" | grep -q "the processor's trace ended early" || fail "the verdict does not say how far the trace is whole"

# A disk that is too small for what is expected: before the load begins.
mkdir "$work/small"
mount -t tmpfs -o size=128m none "$work/small"
experiment "$work/small.yaml" local 1000 60s <<<"servers: {cache: {kind: memcached, port: $port}}
capture: {backend: intel_pt}"
"$taillight" run "$work/small.yaml" --out "$work/small/run" --quiet >"$work/out" 2>"$work/cmd.err"
status=$?
[ $status -ne 0 ] && grep -q 'MiB of trace are expected' "$work/cmd.err" || fail "a disk that is too small is not refused ($status)"
[ ! -e "$work/small/run/client/samples.tlog" ] || fail "the load began"

# One that fills in its middle, and where nobody asked for the trace and it has grown to its bound: it ends, and the capture goes on.
mkfifo "$work/in"
exec 7<>"$work/in"
ends() { # OUT BACKEND WHY GROW...: a capture whose trace ends for that reason where that is done
    : >"$work/out" # what the one before said is no answer of this one
    "$taillight" capture --out "$1" --backend "$2" --no-events <&7 >"$work/out" 2>"$work/cmd.err" &
    capture=$!
    await grep -q '"ready":true' "$work/out" || fail "it is not ready"
    "${@:4}"
    await grep -q "the trace ends before the capture: .*$3" "$work/cmd.err" || fail "no end: $3: $(tail -n 5 "$work/cmd.err")"
    kill -INT $capture
    wait $capture || fail "exit $? at its end"
    jq -e '.intel_pt.ended.broken == false' "$1/capture.json" >/dev/null || fail "no end in $1: $(cat "$1/capture.json")"
    [ -s "$1/clock.tlog" ] || fail "the capture did not go on"
}
fill() { head -c $((($(stat -f -c '%a * %S' "$work/small")) - (3 << 20))) /dev/zero >"$work/small/filler"; }
ends "$work/small/fills" intel_pt 'MiB are left on the disk, and kept free for the other logs' fill
ends "$work/auto" auto 'it has 1024 MiB, and unless intel_pt is asked for no more is taken than 1024' truncate -s 1G "$work/auto/perf.data"
umount "$work/small"

# What cannot be is refused, with its place.
refused() { # PATTERN CAPTURE
    experiment "$work/bad.yaml" local 1000 2s <<<"servers: {cache: {kind: memcached, port: $port}}
capture: {$2}"
    "$taillight" run "$work/bad.yaml" --dry-run >"$work/out" 2>"$work/cmd.err"
    [ $? -eq 2 ] || fail "exit $? instead of 2: $2"
    grep -q "bad.yaml:[0-9]*:[0-9]*: .*$1" "$work/cmd.err" || fail "does not say \"$1\": $2: $(cat "$work/cmd.err")"
}
refused '.detail. is for .backend: intel_pt.' 'detail: fine'
refused '.snapshot. is for' "backend: events, snapshot: {on: '>2ms'}"
refused 'not a latency to exceed' "backend: intel_pt, snapshot: {on: 2ms}"
refused '.on. is missing' "backend: intel_pt, snapshot: {keep: 2}"
refused 'not a stretch of the load' 'backend: intel_pt, window: 1s-3s'
refused 'leave one of them out' 'backend: intel_pt, window: 0s-1s, duration: 500ms'
refused 'longer than the load' 'backend: intel_pt, duration: 3s'
refused 'power of two' 'backend: intel_pt, buffer: 3MiB'
refused 'not all of them are the host' 'backend: intel_pt, cores: [1]'
echo "traced for $on ms"
