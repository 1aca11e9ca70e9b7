#!/usr/bin/env bash
# A workload that reads through: every get that finds nothing is followed by one set, which the server counts
# and no figure of the requests does; then there are no misses left. memcached and Redis, threads, a closed
# loop, and a server that is killed, refuses, or cannot be asked so.
# Runs beside others: it asserts counts and words, no times.
set -u
taillight=${BUILD:-build}/taillight
for program in memcached redis-server redis-cli jq; do
    command -v $program >/dev/null || { echo "$program is not installed"; exit 77; }
done
dir=$(mktemp -d /tmp/through-test-XXXXXX)
server=0
stop_server() {
    [ "$server" -ne 0 ] && kill -9 "$server" && wait "$server" 2>/dev/null
    server=0
}
trap 'stop_server; rm -rf "$dir"' EXIT
fail() {
    echo "FAIL: $*"
    for f in "$dir"/out "$dir"/err; do [ -s "$f" ] && { echo "--- $f"; head -n 60 "$f"; }; done
    exit 1
}
. "$(dirname "$0")/../ports.sh"
cat >"$dir/workload.yaml" <<'YAML'
mix: {get: 1, set: 0}
keys: {count: 200}
values: {size: {uniform: [10, 3k]}}
read_through: true
YAML
workload=$dir/workload.yaml
load() { # STATUS ARGUMENTS...: 0 may be 4, since a busy machine may leave it inconclusive
    [[ "$*" == *'--rate max'* ]] || set -- "$@" --sleep
    timeout 60 "$taillight" load --server "$at" --workload "$workload" --json --quiet --timeout 10s "${@:2}" \
        >"$dir/out" 2>"$dir/err"
    local status=$?
    [ $status = "$1" ] || { [ "$1" = 0 ] && [ $status = 4 ]; } || fail "${*:2}: exit $status"
}
value() { jq -r "$1" "$dir/out"; }
holds() { [ "$(value "$2")" = true ] || fail "$1: not $2: $(value '[.scheduled, .answered, .misses, .fills]')"; }
whole=".answered == .scheduled"
filled='.misses > 100 and .fills.begun == .misses and .fills.stored.count == .misses and .fills.left_out == 0 and .fills.unfinished == 0'
start_memcached() {
    stop_server
    claim_port
    at=127.0.0.1:$port
    memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p $port &
    server=$!
    await ports_listening $port || fail 'memcached does not listen'
}
stat_of() { { printf 'stats\r\nquit\r\n' >&3; tr -d '\r' <&3; } 3<>"/dev/tcp/127.0.0.1/$port" | sed -n "s/^STAT $1 //p"; }
server_agrees() {
    [ "$(stat_of cmd_set)" = "$(value .fills.begun)" ] && [ "$(stat_of get_misses)" = "$(value .misses)" ] ||
        fail "$1: the server counted $(stat_of cmd_set) sets and $(stat_of get_misses) misses"
}

start_memcached
load 0 --rate 3k --duration 1s --samples "$dir/s"
holds 'memcached' "$whole"
holds 'memcached' "$filled"
holds 'memcached' '.fills.stored.mean_us > 0 and .fills.stored.max_us >= .fills.stored.mean_us'
holds 'memcached' '.doubts | index("misses") == null'
server_agrees memcached
[ "$(od -A n -t u8 -j 24 -N 8 "$dir/s/samples.tlog" | tr -d ' ')" = "$(value .scheduled)" ] || fail 'a set is among the samples'
load 0 --rate 3k --duration 1s
holds 'a second load' "$whole and .misses == 0 and .fills == null"
timeout 60 "$taillight" load --server "$at" --workload "$dir/workload.yaml" --rate 1k --duration 200ms >"$dir/out" 2>"$dir/err"
grep -q '^  fills ' "$dir/out" && fail 'there was nothing to fill'

# What was set a second ago is gone, and set again.
sed 's/^values.*/values: {size: {fixed: 10}, expiry: 1s}/; s/200/50/' "$dir/workload.yaml" >"$dir/expiring.yaml"
start_memcached
workload=$dir/expiring.yaml
load 0 --rate 1k --duration 3500ms
workload=$dir/workload.yaml
holds 'expiring' "$whole and .misses > 60 and .fills.begun == .misses"

start_memcached
load 0 --rate max --duration 500ms --connections 4 --depth 8 --threads 2
holds 'a closed loop, two threads' "$whole"
holds 'a closed loop, two threads' "${filled/> 100/> 0}" # how many it asks is the machine's, 32 on a busy one
server_agrees 'a closed loop'

start_memcached
timeout 60 "$taillight" load --server "$at" --workload "$dir/workload.yaml" --protocol memcached-meta --rate 3k --duration 1s >"$dir/out" 2>"$dir/err"
grep -qE '^  fills      [0-9,]+ sets after a miss: [0-9,]+ stored in [0-9.]+ (us|ms) each' "$dir/out" || fail 'for people'
at=udp:$at
load 2 --rate 1k --duration 1s
at=${at#udp:}
grep -q 'read_through needs TCP' "$dir/err" || fail 'over UDP: not refused in words'
load 2 --rate 1k --duration 1s --protocol http
grep -q 'protocol http has no set' "$dir/err" || fail 'another protocol: not refused in words'

# Killed midway: what was under way is lost, and counted.
rm -f "$dir/out"
printf 'mix: {get: 1, set: 0}\nkeys: {count: 1M}\nread_through: true\n' >"$dir/many.yaml"
timeout 60 "$taillight" load --server "$at" --workload "$dir/many.yaml" --sleep --json --quiet --rate 5k --duration 20s --announce \
    --reconnect 300ms >"$dir/out" 2>"$dir/err" &
pid=$!
await grep -q begin_ns "$dir/out" || fail 'the load does not begin'
sleep 0.7
stop_server
wait $pid
[ $? -eq 4 ] || fail 'a killed server: exit code'
sed -i 1d "$dir/out"
holds 'a killed server' '.scheduled == .answered + .unsent + .timed_out + .lost'
holds 'a killed server' '.fills | .begun > 100 and .begun == .stored.count + .refused + .failed + .lost + .unfinished'

# A server that has no room for what it is given says so.
claim_port
at=127.0.0.1:$port
redis-server --port $port --bind 127.0.0.1 --save '' --appendonly no --maxmemory 1500kb --maxmemory-policy noeviction >"$dir/redis" 2>&1 &
server=$!
await ports_listening $port || fail 'Redis does not listen'
load 4 --protocol redis --rate 3k --duration 1s
holds 'Redis without room' '.doubts | index("errors") != null'
holds 'Redis without room' '.reasons | any(test("of [0-9,]+ sets after a miss were not done.*OOM"))'
holds 'Redis without room' '.misses > 100 and .fills.failed > 0 and .fills.begun == .fills.stored.count + .fills.failed'
redis-cli -p $port config set maxmemory 0 >/dev/null
load 0 --protocol redis --rate 3k --duration 1s
holds 'Redis' "$whole and .fills.failed == 0 and .fills.stored.count == .misses"
echo 'each miss was filled once, and told apart'
