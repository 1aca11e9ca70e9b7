#!/usr/bin/env bash
# The intel_pt backend of `taillight capture`. Where there is no Intel PT it refuses in the doctor's
# words, before a run begins its load; what it does where there is one is tried with a software
# event in its place, and with a script in perf's.
# Runs beside others: files and words are looked at, no times.
. tests/experiments/run_lib.sh
need_program jq jq
out=$work/capture

# Without Intel PT.
reason=$("$taillight" doctor --json | jq -r '.items[] | select(.name == "Intel PT" and .state != "yes") | .missing')
if [ -n "$reason" ]; then
    "$taillight" capture --out "$out" --backend intel_pt --no-events </dev/null \
        >"$work/out" 2>"$work/cmd.err"
    [ $? -eq 1 ] || fail "without Intel PT it does not end with 1"
    grep -qF "cannot record Intel PT: $reason; needed: " "$work/cmd.err" || fail "not in the doctor's words"
    [ ! -s "$work/out" ] || fail "it says that it is ready"
    if command -v memcached >/dev/null; then
        claim_port
        experiment "$work/pt.yaml" local 1000 1s <<<"servers: {cache: {kind: memcached, port: $port}}
capture: {backend: intel_pt}"
        "$taillight" run "$work/pt.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
        [ $? -eq 1 ] || fail "a run that needs Intel PT does not end with 1"
        grep -qF "$reason" "$work/run.err" || fail "the run does not say what is missing"
        [ ! -e "$work/run/client/samples.tlog" ] || fail "the load began"
        check_not_whole "$work/run"
    fi
    "$taillight" capture --out "$out" --backend auto --no-events </dev/null 2>"$work/cmd.err" |
        jq -e '.intel_pt == false' >/dev/null || fail "auto does not go on without"
fi

# Options.
refused() { # PATTERN OPTIONS...
    local pattern=$1
    shift
    "$taillight" capture --out "$out" --no-events "$@" </dev/null >/dev/null 2>"$work/cmd.err"
    [ $? -eq 2 ] || fail "exit $? instead of 2: $*"
    grep -q -- "$pattern" "$work/cmd.err" || fail "does not say \"$pattern\": $*"
}
refused 'none of auto, none, events, functions, samples, intel_pt' --backend pt
refused 'not light, normal or fine' --pt-detail huge
refused 'not a power of two' --pt-buffer 3MiB
refused 'not a list of process numbers' --pid memcached
refused '--per-thread needs --pid' --per-thread
refused '--pt-keep needs --snapshot' --pt-keep 2
refused 'not all of them are recorded' --cores 0 --pt-cores 0-1

# A script that speaks perf's part, with a recording that perf made before.
if ! perf record -q -e cpu-clock -a -o "$work/made" -- true >/dev/null 2>"$work/perf.err"; then
    skip "perf record does not work here (no perf, or not permitted)"
fi
cat >"$work/perf" <<EOF
#!/bin/bash
echo \$\$ >$work/perf.pid
while read -r word; do
    echo \$word >>$work/words
    [ \$word = stop ] && cp $work/made "\${@: -1}"
    printf 'ack\n\0'
    [ \$word = stop ] && exit 0
done
EOF
chmod 755 "$work/perf"
with_script=(--no-events --backend intel_pt --pt-event cpu-clock --perf "$work/perf")
mkfifo "$work/in"
"$taillight" capture --out "$out" "${with_script[@]}" --snapshot <"$work/in" \
    >"$work/out" 2>"$work/cmd.err" &
capture=$!
exec 7>"$work/in"
await grep -q '"ready":true' "$work/out" || fail "it is not ready"
echo snapshot >&7
await grep -q '{"snapshot":1}' "$work/out" || fail "no snapshot for a line of input"
kill -USR1 $capture
await grep -q '{"snapshot":2}' "$work/out" || fail "no snapshot for SIGUSR1"
exec 7>&-
wait $capture || fail "exit $? at the end of its input"
[ "$(tr '\n' ' ' <"$work/words")" = "ping enable snapshot ping snapshot ping disable stop " ] ||
    fail "perf was commanded: $(tr '\n' ' ' <"$work/words")"
[ "$(jq -c '[.backend, .intel_pt.perf_data, .intel_pt.snapshots, .dropped.trace]' "$out/capture.json")" = \
    '["intel_pt","perf.data",2,0]' ] || fail "capture.json: $(cat "$out/capture.json")"

# From here on standard input never ends.
exec 7<>"$work/in"

begin() { # OUT OPTIONS...: a capture with the script, as $capture
    local out=$1
    shift
    : >"$work/out" # the last one's readiness and perf are not this one's
    : >"$work/perf.pid"
    : >"$work/words"
    "$taillight" capture --out "$out" "${with_script[@]}" "$@" <&7 >"$work/out" 2>"$work/cmd.err" &
    capture=$!
    await grep -q '"ready":true' "$work/out" || fail "it is not ready"
}
finish() { # by SIGINT, since its standard input goes on
    kill -INT $capture
    wait $capture || fail "exit $? at its end"
}
holds() { jq -e "$2" "$1/capture.json" >/dev/null || fail "capture.json lacks $2: $(cat "$1/capture.json")"; }

# perf dies meanwhile: that costs the trace, and it is said; the rest of the capture is whole.
begin "$out.dies"
kill -9 "$(cat "$work/perf.pid")"
await grep -q 'the trace ends before the capture: perf record ended while it was recording (signal 9)' \
    "$work/cmd.err" || fail "perf's death is not reported"
finish
[ -s "$out.dies/clock.tlog" ] || fail "no clock log where perf died"
holds "$out.dies" '.intel_pt.ended.broken and (.intel_pt.ended.why | contains("signal 9")) and .intel_pt.ended.at_ns > 0'
holds "$out.dies" '.warnings | any(contains("the trace ends before the capture"))'

# perf fails when it writes the last of it, as on a full disk: the same.
sed 's/^    \[ \$word = stop \] && cp.*/    [ $word = stop ] \&\& { printf "ack\\n"; echo "failed to write perf data, error: No space left on device" >\&2; exit 1; }/' \
    "$work/perf" >"$work/perf.full"
chmod 755 "$work/perf.full"
begin "$out.full" --perf "$work/perf.full"
finish
grep -q 'the trace may not be whole: perf record ended badly .*No space left on device' "$work/cmd.err" ||
    fail "what perf could not write is not said"
[ -s "$out.full/clock.tlog" ] || fail "no clock log where perf failed at the end"
holds "$out.full" '.intel_pt.ended.broken'

# It is killed: what perf wrote until then belongs to what is left of the capture.
begin "$out.killed" --segment 100ms
await grep -q '"segment":2' "$work/out" || fail "no segment: $(cat "$work/out" "$work/cmd.err")"
kill -9 $capture
wait $capture
holds "$out.killed" '.intel_pt.perf_data == "perf.data" and .intel_pt.on_ns > 0 and .segments.ended == false'

# It begins and ends when it is told to; snapshots beyond those that are kept are counted.
begin "$out.told" --pt-waits --snapshot --pt-keep 1
printf 'trace on\nsnapshot\nsnapshot\nsnapshot\ntrace off\n' >&7
await grep -q disable "$work/words" || fail "it is not turned off"
finish
[ "$(tr '\n' ' ' <"$work/words")" = "ping enable snapshot ping disable stop " ] ||
    fail "perf was commanded: $(tr '\n' ' ' <"$work/words")"
holds "$out.told" '[.intel_pt.snapshots, .intel_pt.snapshots_refused] == [1, 2] and .intel_pt.on_ns > 0'

# It ends at its bound, and perf runs neither on the client's cores nor, where there are others, on the server's.
if [ "$(nproc)" -ge 2 ]; then
    begin "$out.bound" --pt-bytes 4KiB --cores 0 --client-cores 1 --helper-cores 1
    [ "$(taskset -cp "$(cat "$work/perf.pid")" | grep -o '[^ ]*$')" != 1 ] || fail "perf is on the client's core"
else
    begin "$out.bound" --pt-bytes 4KiB
fi
cp "$work/made" "$out.bound/perf.data"
await grep -q 'the trace ends before the capture: it has .* no more was asked for' "$work/cmd.err" || fail "no end at its bound"
finish
[ "$(tr '\n' ' ' <"$work/words")" = "ping enable disable stop " ] || fail "perf was commanded: $(tr '\n' ' ' <"$work/words")"
holds "$out.bound" '.intel_pt.ended.broken == false and .intel_pt.complaints == 0'

# The capture is killed: perf dies with it. Interrupted: everything is written.
real=(--no-events --backend intel_pt --pt-event cpu-clock)
for signal in KILL INT; do
    : >"$work/out" # the last one's readiness is not this one's
    "$taillight" capture --out "$out.$signal" "${real[@]}" <&7 >"$work/out" 2>"$work/cmd.err" &
    capture=$!
    await grep -q '"ready":true' "$work/out" || fail "it is not ready"
    [ -n "$(pgrep -f "perf record .*$out.$signal")" ] || fail "perf does not run"
    kill -$signal $capture
    wait $capture
    status=$?
    is_gone() { ! pgrep -f "perf record .*$out.$signal" >/dev/null; }
    await is_gone || fail "perf is left behind after SIG$signal"
done
[ $status -eq 0 ] || fail "exit $status after Ctrl-C"
perf script -i "$out.INT/perf.data" -F comm >"$work/comms" 2>/dev/null
[ -s "$work/comms" ] || fail "perf finds no samples in the recording"
# On a busy machine perf itself may lose some: then that is what is said.
lost=$(perf script -i "$out.INT/perf.data" --show-lost-events 2>/dev/null |
    awk '/PERF_RECORD_LOST lost/ { n += $NF } END { print n + 0 }')
jq -e ".intel_pt.lost_records == $lost and .intel_pt.complaints == 0" "$out.INT/capture.json" >/dev/null ||
    fail "perf lost $lost: $(cat "$out.INT/capture.json")"
echo "captured with $(perf --version)"
