#!/usr/bin/env bash
# Two servers as in containers: each in a PID and a network namespace of its own, with the same address
# and port, and a client each with the same address and source port. Captured from outside: the threads
# of the first, which has the shim, have the numbers that the kernel's events have, the other server is
# left alone, and no stream has bytes of another.
# Runs beside others: bytes and numbers are looked at, no times.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program python3 python3
need_program unshare util-linux
remove_spaces() {
    local status=$? space
    for space in $(ip netns list | sed -n "s/^\(trust$$-[^ ]*\).*/\1/p"); do
        ip netns pids "$space" | xargs -r kill -9 2>/dev/null
        ip netns delete "$space"
    done
    (exit $status)
    cleanup
}
trap remove_spaces EXIT
in_space() { local space=$1; shift; ip netns exec "trust$$-$space" "$@"; }
for one in a b; do
    ip netns add "trust$$-$one" || skip "network namespaces cannot be made here: it takes root"
    ip netns add "trust$$-$one-client"
    in_space $one ip link set lo up
    in_space $one ip link add eth0 type veth peer name eth0 netns "trust$$-$one-client"
    in_space $one ip address add 10.9.0.1/24 dev eth0
    in_space $one ip link set eth0 up
    in_space $one-client ip address add 10.9.0.2/24 dev eth0
    in_space $one-client ip link set eth0 up
done
port=21511
rings=/dev/shm/taillight-trust-$$
start_server() { # SPACE ENVIRONMENT...
    local space=$1
    shift
    in_space "$space" unshare --pid --fork --kill-child --mount-proc env "$@" memcached -u root -t 2 -l 10.9.0.1 -p $port &
    await in_space "$space-client" bash -c "</dev/tcp/10.9.0.1/$port" || fail "server $space does not listen"
}
# Sends requests of 8 bytes, one after the other, and takes their replies.
cat >"$work/client.py" <<'END'
import socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
link = socket.socket()
link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
link.bind(("10.9.0.2", 41234))
link.connect(("10.9.0.1", port))
print("up", flush=True)
for line in sys.stdin:
    for _ in range(count):
        link.sendall(b"get abc\r\n")
        got = b""
        while not got.endswith(b"END\r\n"):
            got += link.recv(1000)
    print("done", flush=True)
END
has_lines() { [ "$(wc -l <"$2")" -ge "$1" ]; }
capture() { # FOLDER OPTIONS...
    coproc capturing { exec "$taillight" capture --out "$@" --port $port --backend events --quiet 2>"$work/capture.err"; }
    local line='' capture_pid=$capturing_PID
    read -r -t 60 line <&"${capturing[0]}" || fail "the capture does not begin"
    [[ $line == *'"ready":true'* ]] || fail "the capture says $line"
    # Both are connected at once, and take turns.
    mkfifo "$1-a" "$1-b"
    in_space a-client python3 "$work/client.py" $port 7 <"$1-a" >"$work/client-a" &
    local clients=($!)
    exec 8>"$1-a"
    in_space b-client python3 "$work/client.py" $port 950 <"$1-b" >"$work/client-b" 8>&- &
    clients+=($!)
    exec 9>"$1-b"
    await grep -q up "$work/client-a" || fail "client a does not connect"
    await grep -q up "$work/client-b" || fail "client b does not connect"
    for one in 1 2; do
        echo go >&8
        await has_lines $((one + 1)) "$work/client-a" || fail "client a gets no replies"
        echo go >&9
        await has_lines $((one + 1)) "$work/client-b" || fail "client b gets no replies"
    done
    exec 8>&- 9>&-
    eval "exec ${capturing[1]}>&-"
    wait "$capture_pid" || fail "the capture ended with $?"
    # What is still open when the next capture begins is one of its connections.
    wait "${clients[@]}" || fail "a client ended with $?"
    await nobody_connected a && await nobody_connected b || fail "the servers keep connections"
}
nobody_connected() { [ -z "$(in_space "$1" ss -Htn state connected sport = :$port)" ]; }
start_server b
start_server a LD_PRELOAD="$(cd "$BUILD" && pwd)/libtaillight-shim.so" TAILLIGHT_SHIM_DIR="$rings"
server=$(for one in $(ip netns pids "trust$$-a"); do [ "$(cat "/proc/$one/comm")" = memcached ] && echo "$one"; done)
[ -n "$server" ] || fail "there is no server"
threads=$(ls "/proc/$server/task" | tr '\n' ' ')

cat >"$work/look.py" <<'END'
import glob, struct, sys
def records(path, layout):
    found = []
    for one in sorted(glob.glob(path.replace(".tlog", "-*.tlog"))) + [path]:  # segments before
        raw = open(one, "rb").read()
        found += [struct.unpack(layout, raw[at:at + struct.calcsize(layout)])
                  for at in range(128, len(raw), struct.calcsize(layout))]
    return found
folder, how, server, *threads = sys.argv[1:]
sockets = records(folder + "/sockets.tlog", "<IBB2xQ16s16sHHIQ")
events = records(folder + "/events.tlog", "<QBBHIQQ")
known = {socket[0] for socket in sockets}
arrivals = {}
for time, kind, flags, core, id, a, b in events:
    if kind in (10, 13) and (how == "both" or id in known):  # SEGMENT, ARRIVAL
        arrivals.setdefault(id, []).append(a)
ends = sorted(max(offsets) for offsets in arrivals.values())
assert all(offset <= 9 * 1900 for offset in sum(arrivals.values(), [])), f"an offset of {max(sum(arrivals.values(), []))}"
if how == "both":
    assert len(sockets) == 2, f"{len(sockets)} connections instead of 2"
    assert ends == [126, 17100], f"the streams end at {ends}"
    sys.exit()
assert len(sockets) == 1, f"{len(sockets)} connections instead of 1"
assert ends == [126], f"the stream ends at {ends}"
calls = records(folder + "/calls.tlog", "<QQQIIIIIHHHBBIQ")
assert len(calls) > 10
switched = {id for time, kind, flags, core, id, a, b in events if kind == 1}
for call in calls:
    process, thread = call[5], call[6]
    assert str(process) == server, f"a call of process {process}, which is {server}"
    assert str(thread) in threads, f"a call of thread {thread}, which are {threads}"
    assert thread in switched, f"thread {thread} was never seen to run"
END
# Without the shim nobody knows which of the two is meant: both are, each with its own bytes.
capture "$work/both"
python3 "$work/look.py" "$work/both" both "$server" || fail "the streams of both"
capture "$work/one" --shim "$rings"
python3 "$work/look.py" "$work/one" one "$server" $threads || fail "the threads and streams of one"
[ "$(json "$work/one/capture.json" '$.shim.untold')" = 0 ] || fail "threads untold"
