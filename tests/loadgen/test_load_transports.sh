#!/usr/bin/env bash
# The ways to a server other than TCP over IPv4: UNIX sockets, IPv6 and UDP, dataset and load; every
# server is asked how many requests it has seen.
# Runs beside others: it asserts counts, no times.
set -u
taillight=${BUILD:-build}/taillight
command -v memcached >/dev/null || { echo 'memcached is not installed'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
dir=$(mktemp -d /tmp/test-load-transports-XXXXXX)
chmod 755 "$dir"
server=0
missing=
cleanup() {
    [ "$server" -ne 0 ] && kill "$server" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    for f in "$dir"/out "$dir"/err "$dir"/log; do [ -s "$f" ] && { echo "--- $f"; tail -n 40 "$f"; }; done
    exit 1
}
. "$(dirname "$0")/../ports.sh"
claim_port
user=()
[ "$(id -u)" -eq 0 ] && user=(-u root)
stop() {
    kill "$server"
    wait "$server" 2>/dev/null
    server=0
}
# What a memcached answers to one line, by its UNIX socket (a path), by IPv6 (a port) or at HOST:PORT.
ask() { # place line
    python3 - "$@" <<'PY'
import socket, sys
place, line = sys.argv[1:]
if place[0] == "/":
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(place)
else:
    host, _, port = place.rpartition(":")
    s = socket.create_connection((host or "::1", int(port)), 5)
s.sendall(line.encode() + b"\r\nquit\r\n")
data = b""
while True:
    piece = s.recv(65536)
    if not piece:
        break
    data += piece
sys.stdout.write(data.decode().replace("\r", ""))
PY
}
answers() { # place
    ask "$1" version >/dev/null
}
requests() { ask "$1" stats | awk '/^STAT cmd_[gs]et /{sum += $3} END {print sum}'; }
printf 'mix: {get: 1, set: 1}\nkeys: {count: 500}\n' >"$dir/small.yaml"
load() { # server, options ...: the exit code may be 4, the machine may be busy
    timeout 60 "$taillight" load --server "$1" --sleep --quiet --json --rate 2k --duration 300ms --timeout 20s \
        --connections 4 --workload "$dir/small.yaml" --samples "$dir/logs" "${@:2}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    [ "$(value answered)" = "$(value scheduled)" ] || fail "load $*: not everything was answered"
    grep -q '"errors": {}' "$dir/out" || fail "load $*: errors"
    [ "$(value misses)" = 0 ] || fail "load $*: misses"
}
# Over UDP the kernel drops what a socket has no room for, when the machine is so busy that requests
# leave in one burst. What it counts is all that may be unanswered.
drops() { cat /proc/net/snmp6 /proc/net/snmp | awk '/^Udp6InErrors/ {n += $2} /^Udp: [0-9]/ {n += $4} END {print n}'; }
load_udp() { # place to ask, server, options ...
    local before dropped unanswered counted
    before=$(requests "$1")
    dropped=$(drops)
    timeout 60 "$taillight" load --server "$2" --sleep --quiet --json --rate 2k --duration 300ms --timeout 3s \
        --connections 4 --workload "$dir/small.yaml" --samples "$dir/logs" "${@:3}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    counted=$(($(requests "$1") - before))
    dropped=$(($(drops) - dropped))
    unanswered=$(($(value lost) + $(value timed_out)))
    [ $(($(value answered) + unanswered)) -eq "$(value scheduled)" ] || fail "load $*: unsent"
    [ $unanswered -le $dropped ] || fail "load $*: $unanswered unanswered, the kernel dropped $dropped"
    [ $counted -ge "$(value answered)" ] && [ $((counted - $(value answered))) -le $dropped ] ||
        fail "load $*: the server counts $counted"
    [ $dropped -gt 0 ] || grep -q '"errors": {}' "$dir/out" || fail "load $*: errors"
    [ "$(value misses)" = 0 ] || fail "load $*: misses"
}
prepare() { # server, options ...
    timeout 60 "$taillight" load --server "$1" --quiet --json --prepare --workload "$dir/small.yaml" "${@:2}" \
        >"$dir/out" 2>"$dir/err" || fail "prepare $*"
    [ "$(value verified)" = 500 ] || fail "prepare $*: $(value verified) keys"
}
entry() { # of the first connection: protocol, address of the peer, port of the peer
    python3 - "$dir/logs/connections.tlog" <<'PY'
import ipaddress, struct, sys
entry = open(sys.argv[1], "rb").read()[128:192]
print(entry[4], ipaddress.IPv6Address(entry[32:48]), struct.unpack_from("<H", entry, 50)[0])
PY
}

# --- UNIX sockets --------------------------------------------------------------------------------
sock=$dir/memcached.sock
memcached "${user[@]}" -s "$sock" -a 777 -t 1 2>"$dir/log" &
server=$!
await answers "$sock" || fail "nobody answers at $sock"
prepare "unix:$sock"
for protocol in memcached memcached-binary memcached-meta; do
    before=$(requests "$sock")
    load "unix:$sock" --protocol $protocol
    [ $(($(requests "$sock") - before)) -eq "$(value answered)" ] || fail "$protocol: the server's count"
    grep -q '"sw": 0' "$dir/out" || fail 'stamps of a UNIX socket'
    [ "$(entry)" = '0 :: 0' ] || fail "the entry of a UNIX connection: $(entry)"
done
timeout 10 "$taillight" load --server "unix:$sock" --rate 100 --duration 100ms --stamps sw >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'does not stamp UNIX sockets' "$dir/err" || fail 'kernel stamps of a UNIX socket'
stop
timeout 10 "$taillight" load --sleep --server "unix:$dir/absent" --rate 100 --duration 100ms >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] && grep -q "unix:$dir/absent.*No such file" "$dir/err" || fail 'a socket that is not there'
if command -v redis-server >/dev/null; then
    redis-server --port 0 --unixsocket "$dir/redis.sock" --save '' --dir "$dir" >"$dir/log" &
    server=$!
    await redis-cli -s "$dir/redis.sock" ping >/dev/null || fail 'redis-server does not answer'
    prepare "unix:$dir/redis.sock" --protocol redis
    load "unix:$dir/redis.sock" --protocol redis-resp3
    stop
else
    missing="$missing redis-server"
fi

# --- IPv6 ----------------------------------------------------------------------------------------
if python3 -c 'import socket; socket.socket(socket.AF_INET6).bind(("::1", 0))' 2>/dev/null; then
    memcached "${user[@]}" -l '[::1]' -p $port -U $port -t 1 2>"$dir/log" &
    server=$!
    await answers $port || fail "nobody answers at $port"
    prepare "[::1]:$port"
    before=$(requests $port)
    load "[::1]:$port"
    [ $(($(requests $port) - before)) -eq "$(value answered)" ] || fail "IPv6: the server's count"
    [ "$(entry)" = "6 ::1 $port" ] || fail "the entry of an IPv6 connection: $(entry)"
    load_udp $port "udp:[::1]:$port"
    stop
    if command -v redis-server >/dev/null; then
        redis-server --port $port --bind ::1 --save '' --dir "$dir" >"$dir/log" &
        server=$!
        await redis-cli -h ::1 -p $port ping >/dev/null || fail 'redis-server does not answer'
        prepare "[::1]:$port" --protocol redis
        load "[::1]:$port" --protocol redis
        stop
    fi
else
    missing="$missing IPv6"
fi

# --- UDP -----------------------------------------------------------------------------------------
# Values of up to six datagrams.
printf 'mix: {get: 1, set: 1}\nkeys: {count: 500}\nvalues: {size: {uniform: [0, 7000]}}\n' >"$dir/small.yaml"
memcached "${user[@]}" -l 127.0.0.1 -p $port -U $port -t 1 2>"$dir/log" &
server=$!
await answers 127.0.0.1:$port || fail "nobody answers at 127.0.0.1:$port"
prepare "udp:127.0.0.1:$port" # goes over TCP
for protocol in memcached memcached-binary memcached-meta; do
    load_udp 127.0.0.1:$port "udp:127.0.0.1:$port" --protocol $protocol
    [ "$(entry)" = "17 ::ffff:7f00:1 $port" ] || [ "$(entry)" = "17 ::ffff:127.0.0.1 $port" ] ||
        fail "the entry of a UDP connection: $(entry)"
done
kill -STOP "$server" # what is not answered is lost
timeout 60 "$taillight" load --sleep --server "udp:127.0.0.1:$port" --quiet --json --rate 1k --duration 300ms \
    --timeout 100ms --workload "$dir/small.yaml" >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] || fail 'UDP: a silent server'
# A client that others keep from its core may not get to sending all.
[ $(($(value lost) + $(value timed_out))) -gt 0 ] && [ $(($(value lost) + $(value timed_out) + $(value unsent))) -eq "$(value scheduled)" ] ||
    fail 'UDP: not everything is lost'
grep -q '"unanswered": ' "$dir/out" || fail 'UDP: not counted as unanswered'
kill -CONT "$server"
stop
timeout 10 "$taillight" load --server "udp:127.0.0.1:$port" --rate 100 --duration 100ms --protocol redis \
    >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'redis does not go over UDP' "$dir/err" || fail 'Redis over UDP'

[ -z "$missing" ] || { echo "not here:$missing" && exit 77; }
exit 0
