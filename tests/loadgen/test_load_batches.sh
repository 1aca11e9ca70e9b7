#!/usr/bin/env bash
# Requests that wait for others: by the samples they leave in as many calls as is said, none waits longer than was allowed by
# the plan, and what they waited is told as it is; the arrivals are allowed that much and no more; and what is refused.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/load_lib.sh"
for program in jq python3; do
    command -v $program >/dev/null || { echo "$program is not installed"; exit 77; }
done
load() { # ARGUMENTS...: inconclusive on a busy machine
    timeout 60 "$build/taillight" load --server "127.0.0.1:$port" --protocol lab --json --quiet --seed 1 --timeout 20s --stamps user \
        "$@" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "$*" ;; esac
}
holds() { jq -e "$2" "$dir/out" >/dev/null || fail "$1: $(jq -c '[.scheduled, .sent, .batches, .method.ks_best]' "$dir/out")"; }
refused() { # text, options ...
    timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --protocol lab "${@:2}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: not refused: $(cat "$dir/err")"
}
start_server --protocol lab

load --rate 10k --duration 300ms --batch-within 500us --sleep --samples "$dir/s"
holds 'half a millisecond' '.batches.within_us == 500 and .batches.requests == .scheduled and .sent == .scheduled and
    .batches.calls * 3 < .scheduled and .batches.largest > 5 and .batches.waited.max_us <= 500 and .batches.waited.mean_us > 20'
holds 'the allowance' '.method.ks_best > 0.98' # 1 - exp(-500 us / 100 us), and 0.01
# What the samples say: calls, requests of the largest, and the mean wait in ns.
read -r calls largest waited < <(python3 - "$dir/s/samples.tlog" "$(jq .tsc_hz "$dir/out")" <<'PYTHON'
import struct, sys
log, hz = open(sys.argv[1], 'rb').read(), float(sys.argv[2])
samples = [struct.unpack_from('<10QI', log, at) for at in range(128, len(log), 96)]
calls = {}
for sample in samples:
    assert sample[1] >= sample[0], 'sent before it was due'
    calls.setdefault((sample[10], sample[1]), []).append(sample[0])
waits = [max(0, due[0] + 500e-6 * hz - one) / hz * 1e9 for due in calls.values() for one in due]
print(len(calls), max(map(len, calls.values())), round(sum(waits) / len(waits)))
PYTHON
)
# What a full buffer held back may leave in a call of its own, or with the next.
holds 'calls' "(.batches.calls - $calls) * 50 <= $calls and ($calls - .batches.calls) * 50 <= $calls"
holds 'the largest' ".batches.largest <= $largest"
holds 'the wait' "(.batches.waited.mean_us * 1000 - $waited) * 50 <= $waited and ($waited - .batches.waited.mean_us * 1000) * 50 <= $waited"
load --rate 2k --duration 200ms --sleep
holds 'none' '.batches == null'
load --rate 2k --duration 300ms --batch-within 100us --threads 2
holds 'two threads' '.batches.requests == .scheduled and .batches.waited.max_us <= 100'
timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --protocol lab --rate 10k --batch-within 200us --duration 200ms --sleep --quiet \
    >"$dir/out" 2>"$dir/err"
grep -q 'batches    of what is due within 200 us: ' "$dir/out" || fail 'for people'

refused '--batch-within must be at most 1ms' --rate 1k --batch-within 2ms
refused '--batch-within excludes --rate max' --rate max --batch-within 5us
refused '--batch-within excludes a fan-out' --rate 1k --fanout 2 --batch-within 5us
refused '--batch-within excludes --agent' --agent symmetric,rate=1k --batch-within 5us
echo "$calls calls for what waited $waited ns on average, and is told so"
