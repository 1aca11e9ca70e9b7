#!/usr/bin/env bash
# A memcached killed and started again midway, and an nginx that closes its connections now and then:
# the load goes on, every request is accounted for, each reconnect has its own entry in the log.
# Runs beside others: it asserts counts, no times.
set -u
taillight=${BUILD:-build}/taillight
command -v memcached >/dev/null || { echo 'memcached is not installed'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
PATH=$PATH:/usr/sbin
dir=$(mktemp -d /tmp/test-load-reconnect-XXXXXX)
server=0
cleanup() {
    [ "$server" -ne 0 ] && kill "$server" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    for f in "$dir"/out "$dir"/err; do [ -s "$f" ] && { echo "--- $f"; tail -n 40 "$f"; }; done
    exit 1
}
. "$(dirname "$0")/../ports.sh"
claim_port
await_server() {
    await ports_listening $port || fail 'the server did not start'
}
start_memcached() {
    memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p $port &
    server=$!
    await_server
}
# Every request in one way, and every sample on a connection that is in the log, whose requests and
# replies follow one another from offset 0 on.
check() {
    local sum=$(($(value answered) + $(value unsent) + $(value lost) + $(value timed_out)))
    [ $sum = "$(value scheduled)" ] || fail "$1: $sum of $(value scheduled) accounted for"
    python3 - "$dir/logs" "$(value reconnects)" "$2" <<'PY' || fail "$1: the logs"
import struct, sys
folder, reconnects, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connections = open(folder + "/connections.tlog", "rb").read()[128:]
samples = open(folder + "/samples.tlog", "rb").read()[128:]
ids, tuples = [], set()
for at in range(0, len(connections), 64):
    ids.append(struct.unpack_from("<I", connections, at)[0])
    tuples.add(struct.unpack_from("<HH", connections, at + 48) + (ids[-1],))
assert len(ids) == at_once + reconnects, (len(ids), at_once, reconnects)
assert len(set(ids)) == len(ids)
place = {i: [0, 0] for i in ids}
order = range(0, len(samples), 96) # of a connection, in the order they were sent in
for at in sorted(order, key=lambda at: struct.unpack_from("<Q", samples, at + 48)[0]):
    sent = struct.unpack_from("<Q", samples, at + 16)[0]
    request, request_end, reply, reply_end = struct.unpack_from("<4Q", samples, at + 48)
    connection, = struct.unpack_from("<I", samples, at + 80)
    status = samples[at + 86]
    if not sent:
        continue
    assert request == place[connection][0] and request_end > request, (at, request, place[connection])
    place[connection][0] = request_end
    if status <= 2:
        assert reply == place[connection][1] and reply_end > reply, (at, reply, place[connection])
        place[connection][1] = reply_end
PY
}

# --- a restart -----------------------------------------------------------------------------------
start_memcached
timeout 60 "$taillight" load --server "127.0.0.1:$port" --rate 5k --duration 3s --connections 8 --json \
    --quiet --timeout 10s --samples "$dir/logs" >"$dir/out" 2>"$dir/err" &
pid=$!
has_answers() { [ -n "$(find "$dir/logs" -name 'samples.tlog*' -size +100k)" ]; } # of a thousand
await has_answers || fail 'restart: the load does not begin'
kill -9 $server
wait $server 2>/dev/null
sleep 0.3
start_memcached
wait $pid
[ $? -eq 4 ] || fail 'restart: exit code'
check restart 8
grep -q 'server restarted midway: ' "$dir/err" || fail 'restart: not named'
[ "$(value reconnects)" -ge 8 ] && [ "$(value reconnects_failed)" -ge 8 ] || fail 'restart: reconnects'
[ "$(value connections_given_up)" = 0 ] || fail 'restart: given up'
# What came while the server was away waited, and was answered when it was back. It was away from the last request
# on that it took to its grave: a busy machine may have kept it from answering for long before.
python3 - "$dir/logs/samples.tlog" <<'PY' || fail 'restart: what came meanwhile'
import struct, sys
data = open(sys.argv[1], "rb").read()[128:]
samples = [struct.unpack_from("<4Q", data, at) + (data[at + 86],) for at in range(0, len(data), 96)]
replies = sorted(reply for _, _, _, reply, status in samples if status <= 2)
silent, back = max(zip(replies, replies[1:]), key=lambda pair: pair[1] - pair[0])
LOST = 5
away = max((send for _, send, _, _, status in samples if status == LOST and send < back), default=silent)
meanwhile = [status for intended, _, _, _, status in samples if away < intended < back]
answered = sum(status <= 2 for status in meanwhile)
print(f"restart: {answered} of {len(meanwhile)} that came meanwhile answered")
sys.exit(not (len(meanwhile) > 200 and answered * 10 > len(meanwhile) * 9))
PY
kill $server
wait $server 2>/dev/null
server=0

# --- HTTP connections that are closed after some requests ------------------------------------------
command -v nginx >/dev/null || { echo 'nginx is not installed'; exit 77; }
printf 'page\n' >"$dir/0"
chmod 755 "$dir"
cat >"$dir/nginx.conf" <<END
daemon off; pid $dir/nginx.pid; error_log $dir/error.log; worker_processes 1;
events { worker_connections 64; }
http { access_log off; keepalive_requests 100; client_body_temp_path $dir; proxy_temp_path $dir;
  fastcgi_temp_path $dir; uwsgi_temp_path $dir; scgi_temp_path $dir;
  server { listen 127.0.0.1:$port; root $dir; } }
END
nginx -p "$dir" -c "$dir/nginx.conf" >"$dir/log" 2>&1 &
server=$!
await_server
printf 'protocol: http\nkeys: {count: 1, size: {fixed: 1}}\n' >"$dir/http.yaml"
timeout 60 "$taillight" load --server "127.0.0.1:$port" --workload "$dir/http.yaml" --rate 2k --duration 1s \
    --connections 4 --depth 1 --json --quiet --timeout 10s --samples "$dir/logs" >"$dir/out" 2>"$dir/err"
case $? in 0 | 4) ;; *) fail 'http' ;; esac
check http 4
[ "$(value answered)" = "$(value scheduled)" ] || fail 'http: not all answered'
[ "$(value misses)" = 0 ] || fail 'http: misses'
[ "$(value reconnects)" -ge 14 ] || fail "http: only $(value reconnects) reconnects"
[ "$(value connections_ended)" -ge "$(value reconnects)" ] || fail 'http: more reconnects than ends'
grep -q '"errors": {}' "$dir/out" || fail 'http: an orderly close counts as an error'
grep -qE 'broke|restarted' "$dir/err" && fail 'http: an orderly close is held against the server'

# Pipelined: what was sent behind the request whose reply announced the end is asked again.
timeout 60 "$taillight" load --server "127.0.0.1:$port" --workload "$dir/http.yaml" --rate 20k --duration 0.5s \
    --connections 4 --depth 16 --json --quiet --timeout 10s --samples "$dir/logs" >"$dir/out" 2>"$dir/err"
case $? in 0 | 4) ;; *) fail 'http, pipelined' ;; esac
check 'http, pipelined' 4
[ "$(value answered)" = "$(value scheduled)" ] || fail 'http, pipelined: not all answered'
[ "$(value repeated)" -gt 0 ] || fail 'http, pipelined: nothing was repeated'
grep -qE 'broke|restarted' "$dir/err" && fail 'http, pipelined: an announced close is held against the server'
kill $server # its worker would outlive a SIGKILL
wait $server 2>/dev/null

# --- HTTP bodies that end with their connection ---------------------------------------------------
cat >"$dir/until.py" <<'END'
import socket, sys, threading, time
listener, replies = socket.create_server(("127.0.0.1", int(sys.argv[1]))), int(sys.argv[2])
def serve(peer):
    with peer:
        text = b""
        for left in range(replies, 0, -1):
            while b"\r\n\r\n" not in text:
                piece = peer.recv(65536)
                if not piece:
                    return
                text += piece
            text = text.split(b"\r\n\r\n", 1)[1]
            time.sleep(0.005)
            if left > 1:
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny")
        peer.sendall(b"HTTP/1.1 200 OK\r\nConnection: x, close\r\n\r\n" + 100000 * b"y")
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
start_until() { # replies of each connection
    python3 "$dir/until.py" "$port" "$1" >"$dir/log" 2>&1 &
    server=$!
    await_server
}
start_until 1
timeout 60 "$taillight" load --server "127.0.0.1:$port" --workload "$dir/http.yaml" --rate 100 --duration 1s \
    --connections 4 --depth 4 --json --quiet --timeout 20s --samples "$dir/logs" >"$dir/out" 2>"$dir/err"
case $? in 0 | 4) ;; *) fail 'http, until the end' ;; esac
check 'http, until the end' 4
[ "$(value answered)" = "$(value scheduled)" ] || fail 'http, until the end: not all answered'
grep -q '"errors": {}' "$dir/out" || fail 'http, until the end: an error'
grep -qE 'broke|restarted' "$dir/err" && fail 'http, until the end: held against the server'

# Faster than it answers, and as deep as may be: after its first reply nothing is pipelined to it, of which each
# reply would have had everything behind it sent again.
for replies in 1 3; do
    kill $server
    wait $server 2>/dev/null
    start_until $replies
    name="http, $replies a connection"
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --workload "$dir/http.yaml" --rate 2k --duration 0.5s \
        --connections 4 --json --quiet --timeout 20s --samples "$dir/logs" >"$dir/out" 2>"$dir/err"
    [ $? -eq 4 ] || fail "$name: exit code"
    check "$name" 4
    [ "$(value answered)" = "$(value scheduled)" ] || fail "$name: not all answered"
    [ "$(value repeated)" -le $((4 * $(value scheduled))) ] || fail "$name: $(value repeated) repeated"
    # Each waited once, however often it was put.
    [ "$(value delayed_by_depth)" -le "$(value scheduled)" ] || fail "$name: $(value delayed_by_depth) waited"
    grep -q 'flight on all of them, which the server closed' "$dir/out" || fail "$name: not said"
done
exit 0
