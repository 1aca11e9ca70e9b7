#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A Redis that does not know the script that requests name: never loaded, told to forget it while it is loaded, or
# started again. It is sent the script, and what it had refused once more; the server's count says that each request
# was executed once. And one that knows no script whatever it is sent.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" scripts
. "$here/cluster_lib.sh"
have redis-server && have jq && have python3 || { echo "not installed:$missing" && exit 77; }
printf 'keys: {count: 100}\nmix: {get: 1, script: 3}\n' >"$dir/workload.yaml"
load() { # SERVER DURATION OPTION ...
    timeout 60 "$taillight" load --sleep --server "$1" --quiet --json --rate 4k --duration "$2" --timeout 20s --connections 4 \
        --workload "$dir/workload.yaml" "${@:3}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
}
ask() { redis-cli -p "$port" "$@"; }
executed() { # a script has one GET and one SET
    ask info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"
}
each_once() {
    [ "$(value answered)" = "$(value scheduled)" ] && grep -q '"errors": {}' "$dir/out" || fail "$1: not everything was answered"
    [ "$(value spelled_out)" -ge 1 ] || fail "$1: nothing was sent again"
    [ "$(value answered)" -eq "$(executed get)" ] && [ "$(executed set)" -gt 0 ] ||
        fail "$1: the server has executed $(executed get), with $(executed set) scripts"
}

start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir"
for how in '' '--depth 1' '--rate max' '--threads 2'; do
    [[ $how = --threads* && $(nproc) -lt 2 ]] && continue
    ask script flush >"$dir/log" && ask config resetstat >"$dir/log"
    load "redis://127.0.0.1:$port" 200ms $how
    each_once "never loaded $how"
done
for protocol in redis redis-resp3; do
    ask config resetstat >"$dir/log"
    (while sleep 0.02; do ask script flush; done >"$dir/log" 2>&1) &
    forgetting=$!
    load "$protocol://127.0.0.1:$port" 500ms
    kill $forgetting
    wait $forgetting 2>/dev/null
    each_once "$protocol: told to forget"
done

# Started again: what had been sent is lost or answered, and the next one does not know it.
ask config resetstat >"$dir/log"
load "redis://127.0.0.1:$port" 3s &
loading=$!
under_way() { [ "$(executed set)" -gt 100 ]; }
await under_way || fail 'started again: nothing is loaded'
kill -9 "${servers[0]}" && wait "${servers[0]}" 2>/dev/null
redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$dir" >"$dir/log" 2>&1 &
servers[0]=$!
wait $loading || fail 'started again'
[ $(($(value answered) + $(value lost) + $(value unsent))) -eq "$(value scheduled)" ] ||
    fail 'started again: not every request is accounted for'
[ "$(jq -c '.errors | del(.lost, .connections_broken, .unsent)' "$dir/out")" = {} ] || fail 'started again: errors'
[ "$(value reconnects)" -ge 4 ] && [ "$(value spelled_out)" -ge 1 ] || fail 'started again: nothing was sent again'

# Each node of a cluster has its own.
start_cluster 3
for node in 0 1 2; do at_node $node config resetstat >"$dir/said"; done
load "redis+cluster://127.0.0.1:${nodes[0]}" 300ms --connections 6
[ "$(value answered)" = "$(value scheduled)" ] && [ "$(jq -c .errors "$dir/out")" = {} ] && [ "$(value spelled_out)" -ge 3 ] ||
    fail 'a cluster: not everything was answered'
all=0
for port in "${nodes[@]}"; do all=$((all + $(executed get))); done
[ "$all" -eq "$(value answered)" ] || fail "a cluster: it has executed $all"

# Whatever it is sent: that is an error then, of each request once.
cat >"$dir/forgetful.py" <<'END'
import socket, sys, threading
def serve(client):
    rest = b""
    while some := client.recv(65536):
        rest += some
        while (at := rest.find(b"\r\n")) >= 0 and rest.count(b"\r\n") > 2 * int(rest[1:at]):
            words = rest.split(b"\r\n", 2 * int(rest[1:at]) + 1)
            rest, name = words.pop(), words[2]
            client.sendall({b"GET": b"$-1\r\n", b"COMMAND": b"*0\r\n", b"PING": b"+PONG\r\n"}.get(name, b"-NOSCRIPT No matching script\r\n"))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
start python3 "$dir/forgetful.py" PORT
load "redis://127.0.0.1:$port" 200ms
[ "$(value answered)" = "$(value scheduled)" ] || fail 'forgetful: not everything was answered'
[ "$(jq '[.errors[]] | add' "$dir/out")" = $(($(value answered) - $(value misses))) ] || fail 'forgetful: not every script is an error'
grep -q NOSCRIPT "$dir/err" "$dir/out" || fail 'forgetful: what it said is not told'
echo 'scripts were spelled out'
