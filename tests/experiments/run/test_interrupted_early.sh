#!/usr/bin/env bash
# A signal that is there before a command can have begun ends it all the same, and what it would have begun is not:
# each is started with SIGTERM blocked and pending, which a program inherits, so that it comes at the first moment
# at which it can be taken.
# Runs beside others: it asserts no times; who did not take the signal would wait for ever.
. tests/experiments/run_lib.sh
need_capture
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await ports_listening "$port" || fail "memcached does not listen"
# told NAME ARGUMENTS...: $status and $work/NAME.err
told() {
    local name=$1
    shift
    timeout -s KILL 60 python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.kill(os.getpid(), signal.SIGTERM)
os.execv(sys.argv[1], sys.argv[1:])' "$taillight" "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null
    status=$?
    [ $status -ne 137 ] || fail "$name: goes on"
}
# While hops settle, before anything is measured.
told capsule capsule --hop lo --filter "tcp port $port"
[ $status = 4 ] || fail "capsule: exit $status"
grep -q 'no packet that is asked for was seen' "$work/capsule.err" || fail "capsule: says nothing"
# While its capture is armed, which takes seconds on a busy machine.
told watch watch --port "$port" --interval 1s
[ $status = 1 ] || fail "watch: exit $status"
grep -q 'interrupted before the capture was armed' "$work/watch.err" || fail "watch: says nothing"

# Nobody is asked who the master is.
cat >"$work/silent.py" <<'PYTHON'
import socket, sys
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    print('asked', flush=True)
    connections = [connection] # and says nothing
PYTHON
python3 "$work/silent.py" >"$work/silent" &
silent=$!
await test -s "$work/silent" || fail "nobody listens"
told sentinel load --server "127.0.0.1:$(head -n 1 "$work/silent")" --protocol redis --sentinel main --rate 1k --duration 1s
[ $status = 1 ] || fail "sentinel: exit $status"
! grep -q asked "$work/silent" || fail "a sentinel was asked after the signal"
kill $silent $server
exit 0
