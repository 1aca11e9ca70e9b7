#!/usr/bin/env bash
# A capture and a watch whose output nobody reads, into a pipe that is full or onto a terminal that is stopped, end at the first
# signal: the capture with all that it recorded, the watch without a folder left.
# Runs beside others: it asserts no times; who waits for a reader would wait for ever.
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await ports_listening "$port" || fail "memcached does not listen"

# Starts a command whose stdout, or both of whose outputs, take nothing more: unread.py pipe|terminal LOG COMMAND...
cat >"$work/unread.py" <<'PYTHON'
import os, pty, subprocess, sys, termios
kind, log, *command = sys.argv[1:]
if kind == 'pipe':
    end, out = os.pipe()
    os.set_blocking(out, False)
    try:
        while True:
            os.write(out, b'\0')
    except BlockingIOError:
        os.set_blocking(out, True)
    error = open(log, 'wb')
else:
    end, out = pty.openpty()
    termios.tcflow(out, termios.TCOOFF)
    error = out
child = subprocess.Popen(command, stdin=sys.stdin, stdout=out, stderr=error)
print(child.pid, flush=True)
sys.exit(child.wait() & 255)
PYTHON
mkfifo "$work/input"
exec 9<>"$work/input" # which never ends
# Tells the command once, when what is awaited is there, and has it end with that status: told KIND SIGNAL STATUS AWAITED COMMAND...
told() {
    local kind=$1 signal=$2 status=$3 awaited=$4
    shift 4
    rm -f "$work/child"
    python3 "$work/unread.py" "$kind" "$work/err" "$taillight" "$@" <&9 >"$work/child" &
    starter=$!
    await test -s "$work/child" || fail "$1: is not started"
    child=$(cat "$work/child")
    await "$awaited" || { kill -9 "$child"; fail "$1, $kind: does not begin"; }
    kill "-$signal" "$child"
    has_ended() { ! kill -0 $starter 2>/dev/null; }
    await has_ended || { kill -9 "$child"; fail "$1, $kind: does not end at SIG$signal"; }
    wait $starter
    ended=$?
    [ $ended = "$status" ] || fail "$1, $kind: exit $ended"
}
segment_is_there() { [ -n "$(find "$work/capture" -name 'events-*.tlog' 2>/dev/null)" ]; }
for kind in pipe terminal; do
    rm -rf "$work/capture"
    told $kind TERM 0 segment_is_there capture --out "$work/capture" --port "$port" --backend events --segment 500ms
    jq -e '.segments.ended' "$work/capture/capture.json" >/dev/null || fail "$kind: the capture is not whole"
    [ $kind != pipe ] || grep -q 'lines\? on stdout that nobody read' "$work/err" || fail "does not say so: $(cat "$work/err")"
done

# What else is in /tmp may be such that find complains of it: a file system in user space that has died.
watched() { folder=$(find /tmp -maxdepth 1 -name "taillight-watch-$child-*" 2>/dev/null); [ -n "$folder" ] && [ -n "$(find "$folder" -name 'events-00000[2-9].tlog')" ]; }
for kind in pipe terminal; do
    told $kind INT 1 watched watch --port "$port" --interval 500ms --json
    [ ! -e "$folder" ] || fail "watch, $kind: $folder is left"
    [ $kind != pipe ] || grep -q 'nobody reads what it says' "$work/err" || fail "watch: does not say so: $(cat "$work/err")"
done
kill $server
exit 0
