#!/usr/bin/env bash
# `taillight load` as a person runs it: against a real memcached on loopback, and against what goes
# wrong: a closed port, a server killed midway, Ctrl-C, files that are absent or wrong.
# Runs beside others: it asserts words and counts, no times.
set -u
taillight=${BUILD:-build}/taillight
command -v memcached >/dev/null || { echo 'memcached is not installed'; exit 77; }
dir=$(mktemp -d /tmp/test-load-XXXXXX)
server=0
cleanup() {
    [ "$server" -ne 0 ] && kill -9 "$server" 2>/dev/null
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

start_server() {
    memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p $port &
    server=$!
    await ports_listening $port || fail 'memcached did not start'
}
# load EXIT ARGUMENTS...: runs it, bounded, and checks the exit code. EXIT "0|4": a busy machine may
# starve the server for a while, which rightly makes the figures inconclusive; nothing else may.
busy='did not keep up|had its core for only|out of CPU|client biased|arrivals wrong|not stationary|not independent|heavy tail|the load was closed-loop'
load() {
    local expected=$1 status
    shift
    timeout 30 "$taillight" load --server "127.0.0.1:$port" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    case "|$expected|" in *"|$status|"*) ;; *) fail "load $*: exit $status, expected $expected" ;; esac
    [ $status -ne 4 ] || grep -qE "$busy" "$dir/err" ||
        fail "load $*: inconclusive for another reason than a busy machine"
}
says() { grep -qF -- "$1" "$dir/err" || fail "stderr does not say: $1"; }
records() { od -A n -t u8 -j 24 -N 8 "$1" | tr -d ' '; } # of a log's header

cat >"$dir/workload.yaml" <<'YAML'
mix: {get: 90, set: 10}
keys: {count: 2k, size: {fixed: 31}, popularity: {zipf: 0.99}}
values: {size: {fixed: 200}}
YAML

# Bad usage and input: exit 2, and the message names the option, or the file and the place in it.
load 2 --rate 5k --workload "$dir/absent.yaml" && says "$dir/absent.yaml"
printf 'keys: {count: 1k}\nmixx: {get: 1}\n' >"$dir/bad.yaml"
load 2 --rate 5k --workload "$dir/bad.yaml" && says "$dir/bad.yaml:2:1: unknown key \`mixx\`; did you mean \`mix\`?"
printf 'values:\n  size: {fixed: lots}\n' >"$dir/bad.yaml"
load 2 --rate 5k --workload "$dir/bad.yaml" && says "$dir/bad.yaml:2:17: fixed: \"lots\""
load 2 && says '--rate is needed'
load 2 --rate 0 && says '--rate'
load 2 --rate 1e300 && says '--rate must be at most 100M'
load 2 --sweep 1:1e300:x1e299 && says 'TO must be at most 100M'
load 2 --rate 5k --arrivals sometimes && says 'sometimes'
load 2 --rate 5k --stamps nic && says '--stamps'
load 1 --rate 5k --stamps hw && says 'lo gives no hardware stamps'
load 2 --rate 5k --connections 0 && says '--connections'
load 2 --rate 5k --threads 0 && says '--threads'
load 2 --rate 5k --threads 20 --connections 16 && says '--threads'
load 2 --rate 5k --threads 400 --connections 500 && says 'a core each'
load 2 --rate 5k --connections 100 --depth 1000 && says '--depth'
load 2 --rate 5k --protocol gopher && says 'gopher'
load 2 --rate 5k --duration 10x && says '--duration'
load 2 --rate 10M --duration 5h --repetitions 2 && says 'memory'
load 2 --rate 5k surplus && says 'surplus'
load 2 --rate 5k --server nowhere && says 'HOST:PORT'
"$taillight" load nowhere --rate 5k 2>"$dir/err"
[ $? -eq 2 ] || fail "load nowhere: not refused"
says '"nowhere" is not HOST:PORT' # a server by itself is one
load 2 --rate 5k --server ::1:80 && says 'brackets'

# Nobody there: exit 1, at once, and the message says who was not there; who is not connected is not said to be loaded.
sed -n '/^workload:/,/^load:/{//d; s/^  //; p}' experiments/custom-protocol.yaml >"$dir/custom.yaml" # which has no probe
for what in '--rate 5k --duration 1s' --prepare "--rate 5k --workload $dir/custom.yaml" '--rate 5k --agent symmetric'; do
    # shellcheck disable=SC2086
    load 1 $what && says "127.0.0.1:$port" && says 'Connection refused'
    grep '^taillight: loading' "$dir/err" && fail "$what: who is not connected is not loaded"
done

# The dataset, then two seconds: everything answered, one sample for each scheduled request.
start_server
load 0 --prepare --workload "$dir/workload.yaml" --json
[ "$(value verified)" = 2000 ] || fail 'not all keys were verified'
load '0|4' --workload "$dir/workload.yaml" --rate 5k --duration 2s --seed 7 --samples "$dir/s" --json \
    --connections 8 --quiet --timeout 10s
[ "$(value verdict)" = ok ] && [ -s "$dir/err" ] && fail '--quiet was not quiet'
scheduled=$(value scheduled)
[ "$scheduled" -gt 9500 ] && [ "$scheduled" -lt 10500 ] || fail "scheduled $scheduled"
[ "$(value answered)" = "$scheduled" ] && [ "$(value sent)" = "$scheduled" ] || fail 'not all answered'
[ "$(value misses)" = 0 ] && [ "$(value seed)" = 7 ] || fail 'misses, or another seed'
[ "$(records "$dir/s/samples.tlog")" = "$scheduled" ] || fail 'samples.tlog has another count'
[ "$(records "$dir/s/connections.tlog")" = 8 ] || fail 'connections.tlog has another count'
ls "$dir"/s/*.partial 2>/dev/null && fail 'a partial log was left'
# Kernel stamps on every request, or counted as missing (sends that TCP merges while a busy server
# keeps them waiting share one); on none where the kernel has none.
stamped=$(sed -n 's/^    "sw": \([0-9]*\).*/\1/p' "$dir/out")
missing=$(($(value tx_stamps_missing) + $(value rx_stamps_missing)))
if [ "$stamped" -gt 0 ]; then
    [ $((stamped + missing)) -ge "$scheduled" ] || fail "$stamped stamped, only $missing missing"
    # A machine that let requests pile up merged sends; one that did not has no excuse.
    [ "$(value in_flight_max)" -gt 200 ] || [ $((missing * 100)) -le "$scheduled" ] ||
        fail "$missing missing"
else
    load 1 --rate 100 --duration 100ms --stamps sw && says '--stamps user'
fi

# The same seed, the same schedule; the other clocks and bounds.
load '0|4' --workload "$dir/workload.yaml" --sleep --rate 5k --duration 2s --seed 7 --json --stamps user \
    --depth 64 --timeout 10s
[ "$(value scheduled)" = "$scheduled" ] || fail 'the same seed drew another schedule'
load '0|4' --workload "$dir/workload.yaml" --rate 2k --duration 500ms --arrivals fixed --timeout 10s
grep -qE '^verdict: (ok|n/a: .+)$' "$dir/out" && grep -q 'latency (from intended)' "$dir/out" || fail 'summary'

# A trace of a cache is sent again: its operations, its keys as they stand there, with their sizes, none
# of which the workload's own keys have.
awk 'BEGIN { for (i = 0; i < 1500; i++) printf "%d,name%d,%d,%d,1,%s,0\n", 1600000000 + i / 1000, i % 40, 40 + i % 40, 1000 * (i % 3),
    i % 5 == 4 ? "delete" : i % 5 == 3 ? "add" : "gets" }' >"$dir/trace.csv"
stat_of() { { printf 'stats\r\nquit\r\n' >&3; tr -d '\r' <&3; } 3<>"/dev/tcp/127.0.0.1/$port" | sed -n "s/^STAT $1 //p"; }
load 0 --prepare --arrivals "replay:$dir/trace.csv" --json
[ "$(value verified)" = 40 ] || fail "a trace's keys: $(value verified) were verified"
sets=$(stat_of cmd_set) gets=$(stat_of cmd_get) deletes=$(stat_of delete_hits) no_deletes=$(stat_of delete_misses)
load '0|4' --arrivals "replay:$dir/trace.csv" --json --timeout 10s
[ "$(value scheduled)" = 1500 ] && [ "$(value answered)" = 1500 ] && [ "$(value misses)" = 0 ] || fail 'a trace: requests'
[ $(($(stat_of cmd_set) - sets)) = 300 ] && [ $(($(stat_of cmd_get) - gets)) = 900 ] || fail 'a trace: operations'
[ $(($(stat_of delete_hits) - deletes)) = 8 ] && [ $(($(stat_of delete_misses) - no_deletes)) = 292 ] ||
    fail 'a trace: deletes'
grep -q '"errors": {}' "$dir/out" || fail 'a trace: to delete what is not there is no error'
if is_long; then
    load '0|4' --protocol memcached-meta --arrivals "replay:$dir/trace.csv" --json --timeout 10s
    [ "$(value answered)" = 1500 ] && grep -q '"errors": {}' "$dir/out" || fail 'a trace: meta deletes'
    load '0|4' --protocol memcached-binary --arrivals "replay:$dir/trace.csv" --json --timeout 10s
    [ "$(value answered)" = 1500 ] && grep -q '"errors": {}' "$dir/out" || fail 'a trace: binary deletes'
fi
sed 's/delete/touch/' "$dir/trace.csv" >"$dir/touched.csv"
load 0 --prepare --arrivals "replay:$dir/touched.csv" --json
load '0|4' --arrivals "replay:$dir/touched.csv" --json --timeout 10s
grep -q 'touched.csv: 300 of 1,500 requests are left out: protocol memcached has no touch' "$dir/out" || fail 'a trace: what is left out'

# As fast as it answers: a closed loop, and that is said wherever a figure might be taken for more.
load 2 --rate max --target p99 --ci 10us && says 'exclude each other'
load 2 --rate max --slo 'p99<=1ms' && says 'exclude each other'
timeout 30 "$taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --rate max \
    --duration 500ms --connections 4 --json >"$dir/out" 2>"$dir/err"
status=$? # that it is a closed loop is no error; that this machine is busy may leave it inconclusive
[ $status -eq 0 ] || { [ $status -eq 4 ] && grep -qE "$busy" "$dir/err"; } ||
    fail "--rate max: exit code $status"
[ "$(value loop)" = closed ] && [ "$(value rate)" = max ] && [ "$(value depth)" = 1 ] &&
    [ "$(value in_flight_max)" = 4 ] || fail '--rate max: what was asked'
[ "$(value answered)" -gt 0 ] && [ "$(value answered)" = "$(value scheduled)" ] ||
    fail "--rate max: $(value answered) of $(value scheduled) answered"

# A directory that cannot be made, a disk that is full.
load 1 --rate 1k --duration 100ms --samples /proc/nowhere && says '/proc/nowhere'
# What cannot be written is found out before the load, which is not waited for then: it would take an hour.
for file in "--hgrm /proc/nowhere" "--out /proc/nowhere" "--hgrm $dir/none/latency.hgrm" "--hgrm $dir"; do
    # shellcheck disable=SC2086
    timeout 30 "$taillight" load --server "127.0.0.1:$port" --rate 100 --duration 1h $file >"$dir/out" 2>"$dir/err"
    [[ $? = [12] ]] && ! grep -q loading "$dir/err" || fail "$file: not found out before the load"
done
# The document of any load, in a folder.
load '0|4' --workload "$dir/workload.yaml" --rate 2k --duration 200ms --json --out "$dir/kept"
cmp -s "$dir/out" "$dir/kept/load.json" || fail "--out: not what --json prints"
mkdir "$dir/full"
if mount -t tmpfs -o size=64k tmpfs "$dir/full" 2>/dev/null; then
    timeout 30 "$taillight" load --server "127.0.0.1:$port" --sleep --rate 5k --duration 1s \
        --samples "$dir/full" >"$dir/out" 2>"$dir/err"
    status=$?
    left=$(ls "$dir/full")
    umount "$dir/full"
    [ $status -eq 1 ] || fail "a full disk: exit $status"
    says 'No space left'
    case "$left" in
        *partial*) fail "a full disk left $left" ;;
        *samples*) says 'samples.tlog has only the first' ;;
    esac
fi

# Ctrl-C: ends soon, inconclusive, logs whole; also where it comes twice at once, as from timeout(1) or a run that was killed.
rm -f "$dir/out"
timeout 60 "$taillight" load --server "127.0.0.1:$port" --sleep --rate 5k --duration 20s --json \
    --announce --samples "$dir/i" >"$dir/out" 2>"$dir/err" &
pid=$!
await grep -q begin_ns "$dir/out" || fail 'Ctrl-C: the load does not begin'
sleep 1
loading=$(ps -o pid= --ppid $pid | tr -d ' ')
kill -INT "$loading" && sleep 0.01 && kill -INT "$loading"
wait $pid
[ $? -eq 4 ] || fail 'Ctrl-C: exit code'
says 'interrupted'
[ "$(records "$dir/i/samples.tlog")" = "$(value scheduled)" ] || fail 'Ctrl-C: samples'

# The server dies midway: the rest is unanswered, the run ends, the logs are whole.
rm -f "$dir/out"
timeout 60 "$taillight" load --server "127.0.0.1:$port" --sleep --rate 5k --duration 20s --json \
    --announce --reconnect 300ms --samples "$dir/k" >"$dir/out" 2>"$dir/err" &
pid=$!
await grep -q begin_ns "$dir/out" || fail 'killed server: the load does not begin'
sleep 1
kill -9 $server
wait $server 2>/dev/null
server=0
wait $pid
[ $? -eq 4 ] || fail 'killed server: exit code'
[ "$(value verdict)" = n/a ] || fail 'killed server: verdict'
# A dying memcached closes its listener last: a connection may come about once more, and end again.
grep -qE 'connections (broke|ended)' "$dir/err" || fail 'killed server: it does not say that connections ended'
[ "$(value connections_given_up)" = 16 ] || fail 'killed server: not all given up'
total=$(($(value answered) + $(value unsent) + $(value lost) + $(value timed_out)))
[ "$total" = "$(value scheduled)" ] || fail "killed server: $total accounted for"
[ "$(records "$dir/k/samples.tlog")" = "$(value scheduled)" ] || fail 'killed server: samples'
exit 0
