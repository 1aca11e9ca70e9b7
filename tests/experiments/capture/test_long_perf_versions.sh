#!/usr/bin/env bash
# The real perf, of this machine's version and of a newer one (Debian's backport, unpacked and not
# installed): a trace ends as promised, by itself, when perf is killed, and when the disk is nearly full.
# A software event stands in for Intel PT.
. tests/experiments/run_lib.sh
need_program jq jq
need_program perf linux-perf
perf record -q -e cpu-clock -a -o /dev/null -- true 2>/dev/null || skip "perf record does not work here"
unshare -m true 2>/dev/null || skip "no disk can be mounted here: it takes root"

begin() { # PERF OUT
    : >"$work/out"
    "$taillight" capture --out "$2" --no-events --backend intel_pt --pt-event cpu-clock --perf "$1" \
        <&7 >"$work/out" 2>"$work/cmd.err" &
    capture=$!
    await grep -q '"ready":true' "$work/out" || fail "it is not ready"
    sleep 0.5
}
finish() {
    kill -INT $capture
    wait $capture || fail "exit $? at its end"
    capture=
    [ -s "$1/clock.tlog" ] || fail "there is no clock log"
    jq -e "$2" "$1/capture.json" >/dev/null || fail "capture.json lacks $2: $(cat "$1/capture.json")"
}
capture=
mkfifo "$work/in"
exec 7<>"$work/in"
each() { # PERF
    local out=$work/capture
    begin "$1" "$out"
    finish "$out" '.intel_pt.perf_data == "perf.data" and .intel_pt.ended == null and .intel_pt.complaints == 0 and .warnings == []'
    [ "$("$1" script -i "$out/perf.data" 2>/dev/null | wc -l)" -gt 10 ] || fail "the recording is empty"

    begin "$1" "$out.killed"
    kill -9 "$(pgrep -P $capture -x perf)"
    await grep -q 'the trace ends before the capture: perf record ended while it was recording (signal 9)' "$work/cmd.err" ||
        fail "perf's death is not reported"
    finish "$out.killed" '.intel_pt.ended.broken and (.intel_pt.ended.why | contains("signal 9"))'

    mkdir "$out.full"
    mount -t tmpfs -o size=200m tmpfs "$out.full" || fail "no disk"
    begin "$1" "$out.full"
    fallocate -l 190m "$out.full/others" || fail "the disk cannot be filled"
    await grep -q 'the trace ends before the capture: [0-9]* MiB are left on the disk' "$work/cmd.err" ||
        fail "a disk that is nearly full is not noticed"
    finish "$out.full" '.intel_pt.ended.why | contains("left on the disk")'
    [ "$("$1" script -i "$out.full/perf.data" 2>/dev/null | wc -l)" -gt 10 ] || fail "what there was room for is not kept"
    pgrep -f "$out" >/dev/null && fail "something is still running"
    umount "$out.full"
    rm -rf "$out" "$out.killed" "$out.full"
    echo "as promised: $("$1" --version)"
}
trap '[ -z "$capture" ] || kill -9 $capture; umount "$work/capture.full" 2>/dev/null; cleanup' EXIT
each "$(command -v perf)"
newer=$(tests/lab/fetch_perf.sh "$BUILD") || skip "as this machine's perf does; no newer one: $(tail -n 1 <<<"$newer")"
each "$newer"
