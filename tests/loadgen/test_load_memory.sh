#!/usr/bin/env bash
# A load of more requests than its memory holds: all are scheduled as without that bound, all are counted and in the
# file, a sample is kept, and its memory stays what it may be; so it is when it is interrupted, when nobody answers and
# when the disk is full. What cannot be bounded is refused.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/load_lib.sh"
start_server

load=("$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --quiet)
# run EXITS ARGUMENTS...
run() {
    timeout 60 "${load[@]}" "${@:2}" >"$dir/out" 2>"$dir/err"
    status=$?
    case "|$1|" in *"|$status|"*) ;; *) fail "${*:2}: exit $status, expected $1" ;; esac
}
says() { grep -qF -- "$1" "$dir/err" || fail "stderr does not say: $1"; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$dir/out" | head -n 1; }

# Whole: nothing is bounded, and nothing is said of it.
run '0|4' --sleep --rate 60k --duration 2s --seed 5 --json --samples "$dir/whole" --timeout 20s
[ "$(value bounded)" = null ] || fail 'a load that fits is bounded'
scheduled=$(value scheduled)

# Bounded: the same requests, in the same order.
run '0|4' --sleep --rate 60k --duration 2s --seed 5 --json --samples "$dir/bounded" --timeout 20s --memory 16MiB --hgrm "$dir/hgrm"
[ "$(value scheduled)" = "$scheduled" ] || fail "the same seed drew $(value scheduled) and not $scheduled requests"
[ $(($(value answered) + $(value unsent) + $(value timed_out) + $(value lost))) = "$scheduled" ] || fail 'not all are counted'
[ "$(value kept_of)" -ge 2 ] && [ "$(value kept)" -lt "$scheduled" ] && [ "$(value kept)" -gt 20000 ] || fail 'what is kept'
[ "$(value spooled)" = "$scheduled" ] && [ "$(records "$dir/bounded/samples.tlog")" = "$scheduled" ] || fail 'the file'
[ "$(grep -c '"at_s"' "$dir/out")" = 256 ] || fail 'the slowest'
grep -q "Total count    = *$scheduled\]" "$dir/hgrm" || fail '--hgrm'
# keys and operations of the samples: bytes 92 to 95 and 84 of each
what() { tail -c +129 "$1/samples.tlog" | od -v -A n -w96 -t u4 | awk '{ print $24, $22 % 256 }' | cksum; }
[ "$(what "$dir/whole")" = "$(what "$dir/bounded")" ] || fail 'other requests than without the bound'

# A closed loop: all are counted, whole where they fit, and in the file.
counted() { echo $(($(value answered) + $(value unsent) + $(value timed_out) + $(value lost))); }
loop=(--sleep --rate max --depth 4 --json)
run '0|4' "${loop[@]}" --duration 2s --memory 16MiB
{ { [ "$(value kept_of)" -ge 2 ] && [ "$(value kept)" -le 58000 ]; } || [ "$(value scheduled)" -lt 56320 ]; } &&
    [ "$(counted)" = "$(value scheduled)" ] || fail "a closed loop kept $(value kept) of $(value scheduled)"
run 2 "${loop[@]}" --duration 200ms --memory 16MiB --threads 32 --connections 32 && says 'do not suffice for the requests of 32 threads'
run '0|4' "${loop[@]}" --duration 200ms
[ "$(value bounded)" = null ] && [ "$(counted)" = "$(value scheduled)" ] || fail 'a short closed loop is bounded'
run '0|4' "${loop[@]}" --duration 500ms --samples "$dir/loop"
[ "$(value bounded)" = null ] && [ "$(records "$dir/loop/samples.tlog")" = "$(value scheduled)" ] || fail "a closed loop's file"

# Interrupted: what was offered until then.
timeout -s INT 2 "${load[@]}" --rate 20k --duration 1h --memory 16MiB --json --samples "$dir/ended" >"$dir/out" 2>"$dir/err"
grep -q 'interrupted after' "$dir/out" || fail 'Ctrl-C'
[ "$(value scheduled)" -lt 60000 ] && [ "$(value scheduled)" -gt 100 ] &&
    [ "$(records "$dir/ended/samples.tlog")" = "$(value scheduled)" ] || fail "interrupted: $(value scheduled) scheduled"

# A full disk ends the file, not the load.
mkdir "$dir/full"
if mount -t tmpfs -o size=1m tmpfs "$dir/full" 2>/dev/null; then
    trap 'stop_server; umount "$dir/full" 2>/dev/null; rm -rf "$dir"' EXIT
    run 1 --rate 60k --duration 2s --memory 16MiB --json --samples "$dir/full/s"
    says 'has only the first'
    taken=$(records "$dir/full/s/samples.tlog")
    [ "$taken" -gt 5000 ] && [ "$(stat -c %s "$dir/full/s/samples.tlog")" = $((taken * 96 + 128)) ] &&
        [ "$(value spooled)" = "$taken" ] && [ "$(value scheduled)" -gt 110000 ] || fail "a full disk: $taken samples"
    umount "$dir/full"
fi

# What cannot be bounded, and what is too little.
run 2 --rate 60k --memory 1MiB && says '16MiB at least'
run 2 --rate 60k --duration 10s --memory 16MiB --repetitions 2 && says '--memory allows 16 MiB'
run 2 --sweep 10k:1M:x2 --memory 16MiB && says '--memory allows 16 MiB'
run 2 --rate 60k --target p99 --ci 1us --memory 16MiB && says '--memory allows 16 MiB'
run 2 --rate 60k --duration 10s --memory 16MiB --stamps hw && says 'use --stamps sw'
rest_is_long

# Five times as many requests than the server, or anybody, can answer: memory stays bounded, and all are counted.
timeout 60 "${load[@]}" --rate 500k --duration 3s --memory 16MiB --json --timeout 100ms >"$dir/out" 2>"$dir/err" &
loading=$!
while peak=$(sed -n 's/^VmHWM:[ \t]*\([0-9]*\) kB/\1/p' "/proc/$loading/status" 2>/dev/null) && [ -n "$peak" ]; do
    most=$peak
    sleep 0.1
done
wait $loading
[ $? -ne 2 ] || fail 'a long load was refused'
[ "$(value scheduled)" -gt 1400000 ] || fail "scheduled $(value scheduled)"
[ $(($(value answered) + $(value unsent) + $(value timed_out) + $(value lost))) = "$(value scheduled)" ] || fail 'not all are counted'
[ "$most" -lt 50000 ] || fail "a load in 16 MiB took $most KiB in all"
exit 0
