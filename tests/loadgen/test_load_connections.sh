#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Many connections: all come about, all are used, every request is accounted for and has its stamps;
# and what is said when there are no local ports for so many.
# Runs beside others: requests are counted, not timed.
set -u
. "$(dirname "$0")/../ports.sh"
taillight=${BUILD:-build}/taillight
connections=${CONNECTIONS:-1000}
rate=${RATE:-10k}
may_lag=${MAY_LAG:-} # a rate that the server, or a busy machine, need not keep up with
command -v memcached >/dev/null || { echo 'memcached is not installed'; exit 77; }
[ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null || { echo 'needs root, for a network namespace'; exit 77; }
ulimit -n $((2 * connections + 200)) 2>/dev/null || ulimit -n "$(ulimit -Hn)"
[ "$(ulimit -n)" -gt $((connections + 200)) ] || { echo "the limit is $(ulimit -n) open files"; exit 77; }
dir=$(mktemp -d /tmp/test-load-connections-XXXXXX)
trap 'rm -rf "$dir"' EXIT

claim_port

TAILLIGHT=$taillight PORT=$port DIR=$dir CONNECTIONS=$connections RATE=$rate MAY_LAG=$may_lag unshare -n bash -u -s <<'END'
fail() {
    echo "FAIL: $*"
    cat "$DIR/err"
    exit 1
}
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$DIR/out" "$1"; }
ip link set lo up
memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p "$PORT" -c $((CONNECTIONS + 100)) &
server=$!
trap 'kill $server' EXIT
for _ in $(seq 100); do
    (: </dev/tcp/127.0.0.1/$PORT) 2>/dev/null && break
    sleep 0.05
done

"$TAILLIGHT" load --server 127.0.0.1:$PORT --rate "$RATE" --duration 1s --connections "$CONNECTIONS" \
    --timeout 20s --stamps sw --json --quiet --samples "$DIR/logs" >"$DIR/out" 2>"$DIR/err"
case $? in 0 | 4) ;; *) fail 'many connections' ;; esac
ways="$(value answered) answered, $(value unsent) unsent, $(value timed_out) timed out, $(value lost) lost"
[ $(($(value answered) + $(value unsent) + $(value timed_out) + $(value lost))) = "$(value scheduled)" ] ||
    fail "of $(value scheduled): $ways"
[ "$MAY_LAG" ] || [ "$(value answered)" = "$(value scheduled)" ] || fail "of $(value scheduled): $ways"
achieved=$(value achieved_rate) offered=$(value offered_rate)
[ ! "$MAY_LAG" ] || awk "BEGIN {exit !($achieved >= 0.95 * $offered)}" || {
    echo "this machine is too busy for $offered requests/s: $ways at $achieved/s"
    exit 77
}
[ "$(value connections_ended)" = 0 ] || fail "$(value connections_ended) connections ended"
python3 - "$DIR/logs" "$CONNECTIONS" "$(value scheduled)" <<'PY' || fail 'the logs'
import struct, sys
folder, at_once, scheduled = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connections = open(folder + "/connections.tlog", "rb").read()[128:]
samples = open(folder + "/samples.tlog", "rb").read()[128:]
assert len(connections) // 64 == at_once, f"{len(connections) // 64} connections"
used, calls, unstamped = set(), set(), 0
for at in range(0, len(samples), 96):
    if not struct.unpack_from("<Q", samples, at + 24)[0]:
        continue  # not answered
    connection = struct.unpack_from("<I", samples, at + 80)[0]
    used.add(connection)
    calls.add((connection, struct.unpack_from("<Q", samples, at + 8)[0]))
    unstamped += 0 in struct.unpack_from("<QQ", samples, at + 32)
# Each its turn; a client that comes late to its core sends several requests in one call.
assert len(used) == min(at_once, len(calls)), f"{len(used)} connections used in {len(calls)} calls"
assert unstamped <= scheduled / 1000, f"{unstamped} samples without both stamps"
PY

echo '30000 30099' >/proc/sys/net/ipv4/ip_local_port_range
"$TAILLIGHT" load --server 127.0.0.1:$PORT --rate 1k --duration 1s --connections 200 >"$DIR/out" 2>"$DIR/err"
[ $? = 1 ] || fail 'connections without ports'
grep -q 'no local port is left.*ip_local_port_range' "$DIR/err" || fail 'it does not say what to do'
echo "$CONNECTIONS connections, $achieved of $offered requests/s: $ways; with both stamps"
END
