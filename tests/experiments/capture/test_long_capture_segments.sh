#!/usr/bin/env bash
# A capture on disk while it goes on: its memory does not grow with time, and when it is killed, or
# the disk is full, what it recorded until then is analysed, and the load's own result is there.
# Time limit: 900 s
. tests/experiments/run_lib.sh
need_capture
claim_port
# CAPTURE_SECONDS=1800 CAPTURE_ONLY=killed: half an hour, and the first part alone.
seconds=${CAPTURE_SECONDS:-60} rate=${CAPTURE_RATE:-20000}

# capture FOLDER [MORE OPTIONS]: a memcached with the shim, a capture of it and a load: $capture, $load
start_capture() {
    local out=$1 shim
    shift
    mkdir -p "$out/client"
    shim=$(mktemp -d -u /dev/shm/taillight-test-XXXXXX)
    sleep 1000 | "$taillight" capture --out "$out/server" --port $port --cores 0-1 --shim "$shim" --quiet "$@" \
        >"$work/ready" 2>"$work/capture.err" &
    await grep -q ready "$work/ready" || fail "the capture does not begin: $(cat "$work/capture.err")"
    capture=$(pgrep -f -- "capture --out $out/server") || fail "no capture"
    TAILLIGHT_SHIM_DIR=$shim LD_PRELOAD="$(cd "$BUILD" && pwd)/libtaillight-shim.so" \
        memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p $port &
    server=$!
    await ports_listening $port || fail "memcached does not listen"
    "$taillight" load --server "127.0.0.1:$port" --rate "$rate" --connections 16 --duration "${seconds}s" \
        --samples "$out/client" --json --quiet >"$out/client/load.json" 2>"$work/load.err" &
    load=$!
}
# What the capture's processes take at their highest, in MiB.
memory() {
    local pid
    for pid in $capture $(pgrep -P "$capture"); do cat "/proc/$pid/status"; done 2>/dev/null |
        awk '/VmHWM/ {sum += $2} END {print int(sum / 1024)}'
}
ends_at() { # FOLDER
    "$taillight" analyze "$1" >"$work/out" 2>"$work/analyze.err"
    [ $? -le 4 ] && grep -Eq 'What there is of the capture (begins [0-9.]* s and )?ends' "$work/out" ||
        fail "$1: $(cat "$work/out" "$work/analyze.err")"
    grep -o 'What there is of the capture[^:]*: [^.;]*' "$work/out"
}

start_capture "$work/killed"
for eighth in 1 2 3 4 5 6; do
    sleep $((seconds / 8))
    late=$(memory)
    echo "after $((eighth * seconds / 8)) s: $late MiB at its highest, $(du -sm "$work/killed/server" | cut -f1) MiB on disk"
done
[ "$late" -le 256 ] || fail "the capture takes $late MiB"
kill -9 "$capture"
wait $load
[ "$(json "$work/killed/client/load.json" '$.answered')" -gt 0 ] || fail "the load has no result"
kill $server
wait $server
ends_at "$work/killed"
[ "${CAPTURE_ONLY:-}" != killed ] || exit 0

mkdir "$work/small"
# Room for the load's samples, 96 bytes each, in the fifth that stays free; all but 60 MiB of the rest
# is taken when the capture has begun, so that its second or third segment is too many.
kib=$((seconds * rate * 600 / 1024))
mount -t tmpfs -o size=${kib}k tmpfs "$work/small" || skip "no tmpfs can be mounted here; the rest passed"
start_capture "$work/small/run"
fallocate -l $(((kib - kib / 5 - 61440) * 1024)) "$work/small/others" || fail "no ballast"
wait $load
[ "$(json "$work/small/run/client/load.json" '$.answered')" -gt 0 ] || fail "the load has no result"
kill "$capture"
has_ended() { ! kill -0 "$capture" 2>/dev/null; }
await has_ended || fail "the capture does not end"
grep -q 'kept free for the load' "$work/capture.err" || fail "the full disk is not said: $(cat "$work/capture.err")"
kill $server
wait $server
cp -r "$work/small/run" "$work/full" # the analysis needs room, too
umount "$work/small"
ends_at "$work/full"

start_capture "$work/kept" --keep 64MiB
wait $load
kill "$capture"
await has_ended || fail "the capture does not end"
kill $server
wait $server
[ "$(du -sm "$work/kept/server" | cut -f1)" -le 160 ] || fail "more is kept: $(du -sm "$work/kept/server")"
"$taillight" analyze "$work/kept" >"$work/out" 2>"$work/analyze.err"
grep -o 'What there is of the capture begins [^:]*: [^.;]*' "$work/out" || fail "kept: $(cat "$work/out" "$work/analyze.err")"
