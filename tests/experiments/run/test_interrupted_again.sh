#!/usr/bin/env bash
# Who interrupts a capture or a capsule that does not come to its end interrupts once more, and it ends at once, with exit 1: nothing
# of it runs on, and nothing half written is left. A watch ends by itself after the first, and says what it did not look at; so does a
# capture whose perf hangs, with all else that it recorded.
# Runs beside others: it asserts no times; what would hold it up lasts longer than any wait.
. tests/experiments/run_lib.sh
need_capture
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await ports_listening "$port" || fail "memcached does not listen"

# interrupted NAME PID: signals until it has ended, which is after the second.
interrupted() {
    local signals=0 status
    has_ended() {
        kill -0 "$2" 2>/dev/null || return 0
        kill -INT "$2" 2>/dev/null && signals=$((signals + 1))
        sleep 0.3
        ! kill -0 "$2" 2>/dev/null
    }
    await has_ended "$@" || { kill -9 "$2"; fail "$1: does not end, interrupted $signals times"; }
    wait "$2"
    status=$?
    [ $status = 1 ] || fail "$1: exit $status, interrupted $signals times"
    grep -q 'interrupted again' "$work/$1.err" || fail "$1: does not say why: $(cat "$work/$1.err")"
}

# A perf that takes samples and, when it is told to stop, does what is in at_end.
cat >"$work/perf" <<'PERF'
#!/bin/bash
echo $$ >"${0%/*}/perf.pid"
while read -r word; do
    printf 'ack\n'
    [ "$word" != stop ] || . "${0%/*}/at_end"
done
PERF
chmod +x "$work/perf"
mkfifo "$work/input"
exec 9<>"$work/input"
perf_ended() { ! kill -0 "$(cat "$work/perf.pid")" 2>/dev/null; }
capture() { # OUT: as $pid
    : >"$work/capture.out"
    "$taillight" capture --out "$1" --port "$port" --backend samples --perf "$work/perf" --quiet \
        <"$work/input" >"$work/capture.out" 2>"$work/capture.err" &
    pid=$!
    await grep -q '"ready"' "$work/capture.out" || fail "the capture is not ready: $(cat "$work/capture.err")"
}

# It works, and does not end.
echo 'while :; do read -r up </proc/uptime; done' >"$work/at_end"
capture "$work/run"
interrupted capture $pid
await perf_ended || { kill "$(cat "$work/perf.pid")"; fail "perf runs on"; }
[ -z "$(find "$work/run" -name '*.partial')" ] || fail "something half written is left: $(ls "$work/run")"

# It hangs.
for hang in 'exec sleep 600' 'kill -STOP $$' 'while :; do :; done'; do
    echo "$hang" >"$work/at_end"
    capture "$work/hung"
    kill -INT $pid
    capture_ended() { ! kill -0 $pid 2>/dev/null; }
    await capture_ended || { kill -9 $pid; fail "a capture whose perf hangs ($hang) does not end"; }
    wait $pid || fail "exit $? of a capture whose perf hangs: $(cat "$work/capture.err")"
    await perf_ended || { kill -9 "$(cat "$work/perf.pid")"; fail "perf hangs on"; }
    jq -e '.samples.ended | .broken and (.why | test("did nothing for 500 ms|ran without reading or writing for 2000 ms"))' "$work/hung/capture.json" >/dev/null ||
        fail "not said: $(jq -c .samples "$work/hung/capture.json")"
    grep -q 'the samples may not be whole: perf record \(did nothing\|ran\)' "$work/capture.err" || fail "no warning: $(cat "$work/capture.err")"
    for file in events.tlog clock.tlog; do [ -s "$work/hung/$file" ] || fail "no $file"; done
    rm -r "$work/hung"
done

# A watch whose capture does not answer.
"$taillight" watch --port "$port" --interval 1s >"$work/watch.out" 2>"$work/watch.err" &
pid=$!
capturing() { child=$(pgrep -P $pid -f 'capture --out'); }
await capturing || fail "watch: no capture: $(cat "$work/watch.err")"
await [ -s "$work/watch.out" ] || fail "watch: says nothing: $(cat "$work/watch.err")"
folder=$(tr '\0' '\n' </proc/"$child"/cmdline | grep -A1 '^--out$' | tail -n 1)
kill -STOP "$child"
kill -INT $pid
watch_ended() { ! kill -0 $pid 2>/dev/null; }
await watch_ended || { kill -9 "$child" $pid; fail "watch: does not end"; }
wait $pid || fail "watch: exit $?"
grep -q 'interrupted: the last .* were not looked at' "$work/watch.err" || fail "watch: does not say what it did not look at: $(cat "$work/watch.err")"
child_ended() { ! kill -0 "$child" 2>/dev/null; }
await child_ended || { kill -9 "$child"; fail "watch: its capture runs on"; }
[ -n "$folder" ] && [ ! -e "$folder" ] || fail "watch: $folder is left"
# A capsule whose report nobody reads.
mkfifo "$work/full"
exec 8<>"$work/full"
head -c 65536 /dev/zero >&8
"$taillight" capsule --hop lo --filter "tcp port $port" --json >"$work/full" 2>"$work/capsule.err" &
pid=$!
attached() { grep -q 'measuring' "$work/capsule.err"; }
await attached || fail "capsule: does not begin: $(cat "$work/capsule.err")"
ports_listening "$port" # something passes
interrupted capsule $pid
kill $server
exit 0
