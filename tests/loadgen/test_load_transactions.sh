#!/usr/bin/env bash
# What MULTI and EXEC enclosed is sent again as it was: in one piece, in order, as one request. A Redis is
# recorded (MONITOR, packets), and what it then executes of the replay is what it executed before: its calls,
# its values, and what MONITOR prints. What is no whole transaction is counted.
# Runs beside others: it asserts counts and words, no times.
set -u
taillight=${BUILD:-build}/taillight
for program in redis-server redis-cli jq python3; do
    command -v $program >/dev/null || { echo "$program is not installed"; exit 77; }
done
dir=$(mktemp -d /tmp/transactions-test-XXXXXX)
server=0 monitor=0 capture=0
cleanup() {
    for process in $monitor $capture $server; do [ "$process" -ne 0 ] && kill "$process" 2>/dev/null; done
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    for f in "$dir"/out "$dir"/err; do [ -s "$f" ] && { echo "--- $f"; head -n 60 "$f"; }; done
    exit 1
}
here=$(dirname "$0")
. "$here/../ports.sh"
clients() { timeout 60 python3 "$here/redis_transactions.py" "$@"; }
claim_port
redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$dir" >"$dir/server" 2>&1 &
server=$!
await ports_listening "$port" || fail 'redis-server does not listen'
redis() { redis-cli -p "$port" "$@"; }
calls() { redis info commandstats | sed -n 's/^cmdstat_\(get\|set\|incr\|lpush\|lpop\):calls=\([0-9]*\).*/\1 \2/p' | sort; }
calls_of() { redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\).*/\1/p"; }
begin() { # FILE: empty, counting from 0, and MONITOR prints into it
    redis flushall >"$dir/log"
    redis config resetstat >"$dir/log"
    redis-cli -p "$port" monitor >"$1" 2>&1 &
    monitor=$!
    await grep -q '^OK' "$1" || fail 'MONITOR does not answer'
}
end() { # FILE: once all is printed
    redis echo the-last-of-it >"$dir/log"
    await grep -q the-last-of-it "$1" || fail 'MONITOR does not print all'
    kill "$monitor"
    wait "$monitor" 2>/dev/null
    monitor=0
}
replay() { # RECORDING ARGUMENTS...: a busy machine may leave it inconclusive
    timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol redis --sleep --quiet --json --duration 20s \
        --timeout 20s --arrivals "replay:$1" "${@:2}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "replay:$*" ;; esac
    [ "$(jq '.answered == .scheduled and .errors == {}' "$dir/out")" = true ] || fail "replay:$*: errors, or not all is answered"
}
# As many EXECs as were recorded, each one request; all else by itself; and the same values at the end.
check() { # WHAT TRANSACTIONS
    [ "$(calls)" = "$before" ] || fail "$1: calls: $(calls | xargs), recorded $(echo "$before" | xargs)"
    [ "$(calls_of multi) $(calls_of exec)" = "$2 $2" ] || fail "$1: $(calls_of multi) MULTI and $(calls_of exec) EXEC, not $2"
    [ "$(jq .scheduled "$dir/out")" = "$requests" ] || fail "$1: $(jq .scheduled "$dir/out") requests, not $requests"
}
note_recorded() { # FILE: what was executed, and how many requests that makes
    before=$(calls)
    clients values "$port" >"$dir/values" || fail 'no values'
    requests=$(awk '/"(MULTI|DISCARD|RESET)"/ { inside[$3] = $0 ~ /MULTI/ } /"EXEC"/ { if (inside[$3] && held[$3]) n++; inside[$3] = held[$3] = 0 }
        /"(GET|SET|INCR|LPUSH|LPOP)"/ { if (inside[$3]) held[$3]++; else n++ } END { print n }' "$1")
}

begin "$dir/monitor"
if [ "$(id -u)" = 0 ]; then
    python3 "$here/capture_packets.py" "$port" "$dir/packets" 2>"$dir/log" &
    capture=$!
    await test -s "$dir/packets" || fail 'no capture of packets'
fi
executed=$(clients run "$port") || fail 'the clients failed'
end "$dir/monitor"
if [ $capture -ne 0 ]; then
    kill "$capture"
    wait "$capture" 2>/dev/null
    capture=0
fi
note_recorded "$dir/monitor"

# One connection, a request at a time: all of it in the recorded order.
begin "$dir/again"
replay "$dir/monitor" --connections 1 --depth 1
check 'one connection' "$executed"
grep -q 'transactions are left out' "$dir/out" && fail 'transactions are left out'
end "$dir/again"
clients values "$port" | cmp "$dir/values" - || fail 'other values than those that were recorded'
clients same "$dir/monitor" "$dir/again" || fail 'another order than the recorded one'
timeout 60 "$taillight" load --server "127.0.0.1:$port" --protocol redis --cluster --quiet --arrivals "replay:$dir/monitor" \
    >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'a cluster takes no transactions of keys in several slots' "$dir/err" || fail 'a cluster is not refused'
rest_is_long

# Threads, many connections and requests in flight: each transaction in itself.
begin "$dir/again"
replay "$dir/monitor" --connections 6 --depth 8 --threads 2
check 'two threads' "$executed"
end "$dir/again"
clients same "$dir/monitor" "$dir/again" any-order || fail 'other transactions than those that were recorded'
begin "$dir/again"
replay "$dir/monitor" --connections 2 --protocol redis-resp3
check 'RESP3' "$executed"
end "$dir/again"
if [ -s "$dir/packets" ]; then
    begin "$dir/again"
    replay "$dir/packets" --connections 1 --depth 1
    check 'packets' "$executed"
    clients values "$port" | cmp "$dir/values" - || fail 'packets: other values than those that were recorded'
    end "$dir/again"
fi

# The last request of any recording is sent: these three end, by a rounding, after what their rate says.
printf '0\n0.05\n0.124\n' >"$dir/times"
replay "$dir/times" --connections 1
[ "$(jq .scheduled "$dir/out")" = 3 ] || fail "$(jq .scheduled "$dir/out") of 3 requests are sent"

# What MONITOR cannot show as a transaction is not sent as one, and none of it in silence.
begin "$dir/odd"
executed=$(clients run "$port") || fail 'the clients failed'
clients odd "$port" || fail 'the odd clients failed'
end "$dir/odd"
note_recorded "$dir/odd"
begin "$dir/again"
replay "$dir/odd" --connections 1 --depth 1
check 'odd ones' "$executed"
clients values "$port" | cmp "$dir/values" - || fail 'odd ones: other values'
end "$dir/again"
words="6 of $((executed + 6)) transactions are left out, with 0 commands in them: 2 discarded, 1 without EXEC, 3 that did nothing"
grep -q "$words" "$dir/out" || fail "not said: $words"
words='the MULTI of 1 transactions is missing, and their commands are sent one by one; 1 MULTI within a transaction are left out'
grep -q "$words" "$dir/out" || fail "not said: $words"

# Pushes, of RESP3, come when nothing is asked: what comes next still has the parts of what it answers. Another client
# has the server tell the load's connection of each key that it sets.
printf 'protocol: redis-resp3\nkeys: {count: 100}\nmix: {transaction: 1}\n' >"$dir/pushed.yaml"
redis flushall >"$dir/log"
timeout 60 "$taillight" load --server "127.0.0.1:$port" --workload "$dir/pushed.yaml" --connections 1 --sleep --quiet --json \
    --rate 300 --duration 1s --timeout 20s >"$dir/out" 2>"$dir/err" &
load=$!
pushed() { redis client list | sed -n 's/^id=\([0-9]*\) .*resp=3.*/\1/p' | grep . >"$dir/ids"; }
await pushed || fail 'the load does not connect'
{
    echo "client tracking on redirect $(cat "$dir/ids") bcast"
    while kill -0 $load 2>/dev/null; do sleep 0.1; done
} | redis-cli -p "$port" >"$dir/log"
wait $load
case $? in 0 | 4) ;; *) fail 'pushes' ;; esac
grep -q OK "$dir/log" || fail 'nothing is pushed'
[ "$(jq '.answered == .scheduled and .errors == {}' "$dir/out")" = true ] || fail 'pushes are taken for replies'
echo "$executed transactions as they were recorded"
