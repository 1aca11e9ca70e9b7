#!/usr/bin/env bash
# More connections at once than a capture knows (65,536) are counted, named in a warning and in the
# verdict; as others end, new ones are known again, and those that ended are known still.
# Time limit: 240 s
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
need_program jq jq
claim_port
trap 'pkill -9 -f "$work/many.py"; cleanup' EXIT
cat >"$work/many.py" <<'PY'
# Servers and clients of 16,000 connections each, since a process may open 20,000 files.
import os, selectors, signal, socket, sys, time
EACH, PROCESSES = 16000, 5
port = int(sys.argv[2])

def serve(listener):
    listener.setblocking(False)
    waiting, held = selectors.EpollSelector(), 0
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is listener:
                try:
                    connection = listener.accept()[0]
                except BlockingIOError:
                    continue
                waiting.register(connection, selectors.EVENT_READ)
                held += 1
                if held == EACH + 500:
                    waiting.unregister(listener)
            elif data := key.fileobj.recv(100):
                key.fileobj.sendall(data)
            else:
                waiting.unregister(key.fileobj)
                key.fileobj.close()

def connect(address):
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    connection.bind((address, 0))
    connection.connect(("127.0.0.1", port))
    return connection

def ask(connection):
    connection.sendall(b"echo")
    assert connection.recv(100) == b"echo"

if sys.argv[1] == "server":
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    for _ in range(PROCESSES):
        if os.fork() == 0:
            serve(listener)
    signal.pause()
which = int(sys.argv[3])
held = [connect(f"127.1.{which}.1") for _ in range(int(sys.argv[4]))]
for connection in held[-1000:]:
    ask(connection)
print("here", flush=True)
time.sleep(240)  # until it is told to end
PY
python3 "$work/many.py" server "$port" 2>"$work/server.err" &
server=$!
await ports_listening "$port" || fail "the server does not listen"
mkfifo "$work/until"
"$taillight" capture --port "$port" --pid $server --out "$work/capture" --backend events --quiet \
    <"$work/until" >"$work/ready" 2>"$work/capture.err" &
capture=$!
exec 9>"$work/until" # its end is the capture's
await grep -q '"ready": *true' "$work/ready" || fail "the capture does not become ready"

# Of those that came from an address.
known() { find "$work/capture" -name 'sockets*.tlog' -exec cat {} + | LC_ALL=C grep -aoP "\\xff\\xff\\x7f\\x01\\x0$1\\x01" | wc -l; }
pids=()
clients() { # FROM TO EACH: begins them, and waits until all are connected
    local which
    for which in $(seq "$1" "$2"); do
        python3 "$work/many.py" client "$port" "$which" "$3" >"$work/here$which" 2>"$work/client$which.err" &
        pids[which]=$!
    done
    for which in $(seq "$1" "$2"); do
        await test -s "$work/here$which" || fail "client $which does not get there"
    done
}
clients 1 5 14000 # 70,000
kill "${pids[1]}" "${pids[2]}"
# Until those that ended are taken out of the table; the next segment has them.
taken_out() { find "$work/capture" -name 'sockets-*.tlog' -printf '%s\n' | awk '{ bytes += $1 } END { exit bytes < (28000 - 4464) * 64 }'; }
await taken_out || fail "those that ended stay in the table"
clients 6 6 1000
kill "${pids[@]:3}"
exec 9>&-
wait $capture
[ $? -eq 0 ] || fail "the capture: exit $?"
jq -e '.events.sockets_dropped >= 70000 - 65536 and .events.sockets_dropped <= 70000 - 65536 + 20 and .dropped.sockets > 0
    and (.warnings | map(select(test("connections found no room"))) | length == 1)' \
    "$work/capture/capture.json" >/dev/null ||
    fail "not told: $(jq -c '[.events.sockets, .events.sockets_dropped, .warnings]' "$work/capture/capture.json")"
# Of the 28,000 that ended those that had room, in whichever segment, and the 1,000 that came then.
ended=$(($(known 1) + $(known 2)))
[ $ended -ge $((28000 - 4464)) ] || fail "of 28,000 connections that ended $ended are known"
[ "$(known 6)" -ge 1000 ] || fail "of 1,000 connections that came when others had ended $(known 6) are known"
"$taillight" analyze "$work/capture" --quiet >"$work/out" 2>"$work/analyze.err" || [ $? -eq 4 ] || fail "analyze"
grep -q 'the capture of kernel events had no room for [0-9,]* connections' "$work/out" ||
    fail "the verdict does not say it: $(cat "$work/out")"
# Each log of those that ended is named, so that one that is missing does not go unsaid.
[ "$(jq -r '.segments.sockets[] | tostring' "$work/capture/capture.json")" = \
    "$(cd "$work/capture" && ls sockets-*.tlog | sed 's/sockets-0*//; s/\.tlog//')" ] || fail "not named: $(jq -c .segments "$work/capture/capture.json")"
gone=$(cd "$work/capture" && ls sockets-*.tlog | tail -n 1)
rm "$work/capture/$gone"
"$taillight" analyze "$work/capture" --quiet >"$work/out" 2>"$work/analyze.err" || [ $? -eq 4 ] || fail "analyze without $gone"
grep -q "what the capture lost is not known: server/$gone is missing" "$work/out" || fail "$gone is missing, and not said: $(cat "$work/out")"
echo "$(jq .events.sockets_dropped "$work/capture/capture.json") connections had no room, and it is said; all that ended and all 1,000 later ones are known"
