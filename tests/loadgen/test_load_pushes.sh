#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# RESP3 with a real Redis that tells each connection what others change (CLIENT TRACKING, which something in between asks
# for): invalidations between replies are no replies, and each request has its own.
# Runs beside others: it asserts counts, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" pushes
have redis-server && have jq && have python3 || { echo "not installed:$missing" && exit 77; }
cat >"$dir/tracks.py" <<'END'
import socket, sys, threading
HELLO = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
pushes = 0
def carry(source, to, counts):
    global pushes
    while some := source.recv(65536):
        if counts and b"$10\r\ninvalidate\r\n" in some:
            pushes += some.count(b"$10\r\ninvalidate\r\n")
            with open(sys.argv[3], "w") as log:
                print(pushes, file=log)
        to.sendall(some)
    to.shutdown(socket.SHUT_WR)
def serve(client):
    server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    first = client.recv(65536)
    if first.startswith(HELLO):
        server.sendall(HELLO + b"*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nBCAST\r\n")
        answer = b""
        while not answer.endswith(b"+OK\r\n"):
            answer += server.recv(1)
        client.sendall(answer[:-5])
        first = first[len(HELLO):]
    server.sendall(first)
    threading.Thread(target=carry, args=(client, server, False), daemon=True).start()
    carry(server, client, True)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir"
redis=$port
start python3 "$dir/tracks.py" PORT "$redis" "$dir/pushes"
printf 'keys: {count: 50}\nmix: {get: 2, set: 2, transaction: 1, multiget: 1, lrange: 1, lpush: 1}\n' >"$dir/workload.yaml"
redis-cli -p "$redis" config resetstat >"$dir/log"
timeout 60 "$taillight" load --sleep --server "redis-resp3://127.0.0.1:$port" --quiet --json --rate 3k --duration 400ms --timeout 20s \
    --connections 4 --workload "$dir/workload.yaml" >"$dir/out" 2>"$dir/err"
case $? in 0 | 4) ;; *) fail 'load' ;; esac
[ "$(value answered)" = "$(value scheduled)" ] && [ "$(jq -c .errors "$dir/out")" = {} ] || fail 'not everything was answered'
calls() { redis-cli -p "$redis" info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"; }
# A transaction gets and sets.
seen=$(($(calls get) + $(calls set) - $(calls exec) + $(calls mget) + $(calls lrange) + $(calls lpush)))
[ "$seen" -eq "$(value answered)" ] || fail "the server counts $seen"
[ "$(cat "$dir/pushes")" -ge 100 ] || fail "only $(cat "$dir/pushes") invalidations came"
echo "$(cat "$dir/pushes") invalidations between $(value answered) replies"
