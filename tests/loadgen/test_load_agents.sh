#!/usr/bin/env bash
# Several agents load one memcached, each from a network namespace of its own: what they say they
# sent is what the server counted; an agent that dies or falls silent is named; no agent outlives
# its controller or its link.
# Runs beside others: it asserts counts and words, no times.
set -u
build=${BUILD:-build}
taillight=$build/taillight
dir=$(mktemp -d /tmp/agents-test-XXXXXX)
keepers=() started=()
cleanup() {
    for pid in "${started[@]}" "${keepers[@]}"; do kill -9 "$pid" 2>/dev/null; done
    wait 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    for f in "$dir"/*.err "$dir/out"; do [ -s "$f" ] && { echo "--- $f"; head -n 20 "$f"; }; done
    exit 1
}
. "$(dirname "$0")/../ports.sh"
skip() { echo "$*" && exit 77; }
command -v memcached >/dev/null || skip "there is no memcached; install it: apt-get install memcached"
command -v jq >/dev/null || skip "there is no jq; install it: apt-get install jq"
command -v ip >/dev/null || skip "there is no ip; install it: apt-get install iproute2"
unshare -n true 2>/dev/null || skip "network namespaces cannot be made here: it takes root"

# --- a server and two clients, each in a namespace without a name --------------------------------
namespace() { # sets $pid
    unshare -n sleep 1000 &
    pid=$!
    keepers+=("$pid")
    is_moved() { [ "$(readlink /proc/$pid/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
    await is_moved
    inside "$pid" ip link set lo up || fail "no namespace"
}
inside() { nsenter -t "$1" -n "${@:2}"; }
namespace && server=$pid
inside "$server" ip addr add 10.77.0.1/32 dev lo
clients=()
for i in 1 2; do
    namespace && clients[i]=$pid
    inside "$server" ip link add "to$i" type veth peer name eth0 netns "$pid" || fail "no veth"
    inside "$server" ip addr add "10.77.$i.1/24" dev "to$i"
    inside "$server" ip link set "to$i" up
    inside "$pid" ip addr add "10.77.$i.2/24" dev eth0
    inside "$pid" ip link set eth0 up
    inside "$pid" ip route add 10.77.0.1 via "10.77.$i.1" || fail "no route"
done
claim_port
nsenter -t "$server" -n memcached -u root -l 10.77.0.1 -p $port -t 1 -U 0 &
started+=($!)
at=10.77.0.1:$port
said() { # NAME: a counter of the server's
    inside "$server" bash -c "exec 3<>/dev/tcp/10.77.0.1/$port; printf 'stats\r\nquit\r\n' >&3; tr -d '\r' <&3" |
        sed -n "s/^STAT $1 //p"
}
answers() { [ -n "$(said cmd_get)" ]; }
await answers || fail "memcached does not answer"
printf 'keys: {count: 100}\n' >"$dir/w.yaml"
inside "$server" "$taillight" load --server $at --workload "$dir/w.yaml" --prepare -q >/dev/null || fail "prepare"
throughput=throughput,netns=${clients[1]},rate=2k
latency=latency,netns=/proc/${clients[2]}/ns/net,rate=200
symmetric=symmetric,netns=${clients[2]},name=both,rate=1k,cores=0
command=("$taillight" load --server $at --workload "$dir/w.yaml" --json --quiet)
load() { "${command[@]}" "$@"; }
# Zombies are dead; somebody else's init collects them.
living() { for pid in $1; do [ "$(ps -o stat= -p "$pid" | cut -c1)" ] && [ "$(ps -o stat= -p "$pid" | cut -c1)" != Z ] && echo "$pid"; done; }
# Not with pgrep -f: it waits for every process of the machine that is just being given memory.
agents_of() { cat "/proc/$1"/task/*/children | tr -s ' ' '\n' | sed '/^$/d'; }
wait_loading() { # until the agents have announced the begin in $dir/out
    await grep -q begin_ns "$dir/out" || fail "the agents do not begin"
    sleep 0.3
}

# --- the links that must time out take their time meanwhile --------------------------------------
(exec 3< <(exec sleep 20); "$taillight" agent <&3 >"$dir/silent.out" 2>"$dir/silent.err"; echo $? >"$dir/silent.rc") &
silent=$!
"${command[@]}" --agent $throughput --agent $latency,name=mute --duration 9s >"$dir/mute.out" 2>"$dir/mute.err" &
mute=$!
both_began() { [ "$(agents_of $mute | wc -l)" = 2 ]; }
await both_began || fail "the two agents do not begin"
sleep 1
kill -STOP "$(agents_of $mute | tail -n 1)"

# --- what they sent is what came -----------------------------------------------------------------
for seed in 5 5; do
    before=$(($(said cmd_get) + $(said cmd_set)))
    load --agent $throughput --agent $latency --agent $symmetric --duration 1s --seed $seed \
        --samples "$dir/logs" >"$dir/out" 2>"$dir/load.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
    after=$(($(said cmd_get) + $(said cmd_set)))
    counts=$(jq -c '[.agents.list[].report.scheduled]' "$dir/out")
    [ "${counts_before:-$counts}" = "$counts" ] || fail "the same seed scheduled $counts_before, then $counts"
    counts_before=$counts
done
jq -e '[.agents.list[].lost] == [null, null, null]' "$dir/out" >/dev/null || fail "an agent was lost"
jq -e '[.agents.list[].seed] | unique | length == 3' "$dir/out" >/dev/null || fail "seeds are not distinct"
total=$(jq .agents.total.sent "$dir/out")
# The load with the mute agent went on beside it, stopped or not.
[ $((after - before)) -ge "$total" ] || fail "$total sent, the server counted $((after - before))"
jq -e '.agents.total.sent == ([.agents.list[].report.sent] | add)' "$dir/out" >/dev/null || fail "totals"
jq -e '.scheduled == .agents.list[1].report.scheduled + .agents.list[2].report.scheduled' "$dir/out" >/dev/null ||
    fail "the pool is not that of the two that measure"
jq -e '.agents.list[0].report.stamps.sw == 0 and .agents.list[1].report.stamps.sw == .agents.list[1].report.answered' \
    "$dir/out" >/dev/null || fail "stamps are not as the kinds have them"
jq -e '.agents.list[1].busy_poll == true and .agents.list[1].depth == 1' "$dir/out" >/dev/null || fail "no busy polling"
records() { od -A n -t u8 -j 24 -N 8 "$1" | tr -d ' '; } # of a log's header
[ "$(records "$dir/logs/samples.tlog")" = "$(jq .scheduled "$dir/out")" ] || fail "samples.tlog"
[ "$(records "$dir/logs/connections.tlog")" = 48 ] || fail "connections.tlog"
[ "$(od -A n -t u4 -v -w64 -j 128 "$dir/logs/connections.tlog" | awk '{print $1}' | sort -un | wc -l)" = 48 ] ||
    fail "ids of connections are not distinct"

if is_long; then
    # --- a sweep: the throughput agent carries it, the latency agent measures the same at each rate ---
    load --agent throughput,netns=${clients[1]} --agent $latency,name=probe --sweep 1k:2k:1k --duration 1s --seed 5 \
        >"$dir/out" 2>"$dir/sweep.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "a sweep by agents: exit $status"
    jq -e '.agents | length == 2' "$dir/out" >/dev/null || fail "the sweep does not say who loaded"
    jq -e '[.points[].rate] == [1000, 2000]' "$dir/out" >/dev/null || fail "the sweep's rates"
    jq -e '[.points[] | .scheduled / .rate | . > 0.8 and . < 1.2] == [true, true]' "$dir/out" >/dev/null ||
        fail "the points are not those of all agents"

    # --- rounds: all of them are in the logs, and the interval is never so narrow ---------------------
    load --agent throughput,rate=500,netns=${clients[1]} --agent symmetric,rate=10k,netns=${clients[2]} \
        --target p50 --ci 1ns --max-duration 2500ms --seed 5 --samples "$dir/rounds" >"$dir/out" 2>"$dir/rounds.err"
    [ $? = 4 ] || fail "a target that cannot be reached: exit $?"
    jq -e '.method.rounds + .method.stabilising_rounds >= 2 and (.method.stop == "budget" or .method.stop == "load")' \
        "$dir/out" >/dev/null || fail "rounds by agents"
    jq -e '[.agents.list[].lost] == [null, null] and .agents.list[0].report.scheduled > 0' "$dir/out" >/dev/null ||
        fail "the rounds do not say who loaded"
    [ "$(records "$dir/rounds/samples.tlog")" = "$(jq .scheduled "$dir/out")" ] || fail "samples.tlog of rounds"
    [ "$(records "$dir/rounds/connections.tlog")" = $((32 * $(jq .method.rounds "$dir/out"))) ] || fail "connections of rounds"
fi

# --- ends ----------------------------------------------------------------------------------------
rm -f "$dir/out"
"${command[@]}" --agent $throughput,name=load --agent $symmetric --duration 30s --announce >"$dir/out" 2>"$dir/killed.err" &
controller=$!
wait_loading
kill -9 "$(agents_of $controller | head -n 1)"
wait $controller
[ $? = 4 ] || fail "a killed agent: exit $?"
sed 1d "$dir/out" | jq -e '.verdict == "n/a" and any(.reasons[]; . == "agent load was lost: was killed by signal 9 (Killed)")' \
    >/dev/null || fail "the killed agent is not named"

rm -f "$dir/out"
"${command[@]}" --agent "${throughput/2k/40k}" --agent "${symmetric/1k/20k}" --duration 30s --announce >"$dir/out" 2>"$dir/int.err" &
controller=$!
wait_loading
sleep 1 # until there is so much to send that it takes longer than until the next signal
agents=$(agents_of $controller)
# One wish, as from each thread of who dies.
python3 -c "import os, time; [(os.kill($controller, 2), time.sleep(0.002)) for _ in range(5)]" 2>"$dir/kill.err"
wait $controller
[ $? = 4 ] || fail "an interrupted run: exit $?"
# Slurped: nothing at all is no answer, too.
sed 1d "$dir/out" | jq -se '.[0].reasons | any(test("was lost")) | not' >/dev/null || fail "agents of an interrupted run were lost"
sed 1d "$dir/out" | jq -se '.[0].reasons | any(test("interrupted after"))' >/dev/null || fail "interrupted"
[ -z "$(living "$agents")" ] || fail "agents outlive Ctrl-C"

rm -f "$dir/out"
"${command[@]}" --agent $throughput --agent $symmetric --duration 30s --announce >"$dir/out" 2>"$dir/int.err" &
controller=$!
wait_loading
agents=$(agents_of $controller)
[ "$(wc -w <<<"$agents")" = 2 ] || fail "two agents were asked for, there are: $agents"
kill -9 $controller
wait $controller 2>/dev/null
all_ended() { [ -z "$(living "$agents")" ]; }
await all_ended || fail "agents outlive their controller"

# --- what cannot be ------------------------------------------------------------------------------
refused() { # STATUS PATTERN ARGUMENTS...
    load "${@:3}" >"$dir/out" 2>"$dir/refused.err"
    local status=$?
    [ $status = "$1" ] || fail "${*:3}: exit $status, not $1"
    grep -q -- "$2" "$dir/refused.err" || fail "${*:3}: does not say $2"
}
refused 2 '"fast" is no kind of agent' --agent fast
refused 2 'throughput agents only load' --agent throughput --rate 1k
refused 2 'sweep changes the rate of the agents that have none' --agent symmetric,rate=1k --sweep 1k:2k:1k
refused 2 'slo changes the rate of the agents that have none' --agent latency --slo 'p99<=1ms'
refused 2 'come to 2,000 requests/s before' --agent throughput --agent latency,rate=2k --sweep 1k:2k:1k
refused 1 'agent agent1: .*network namespace' --agent symmetric,rate=1k,netns=999999999
refused 1 'agent both: .*127.0.0.1' --agent symmetric,name=both,rate=1k --server "127.0.0.1:$port" # nobody, in this namespace
"$taillight" agent </dev/null >/dev/null 2>"$dir/eof.err"
[ $? = 1 ] && grep -q 'controller is gone' "$dir/eof.err" || fail "an agent without a link"
"$taillight" agent < <(printf 'Permission denied'; sleep 3) >/dev/null 2>"$dir/noise.err"
[ $? = 1 ] && grep -q 'no message' "$dir/noise.err" || fail "an agent that hears noise"

wait $mute
[ $? = 4 ] || fail "a silent agent: exit $?"
grep -q 'agent mute was lost: fell silent for 5 s' "$dir/mute.err" || fail "the silent agent is not named"
wait $silent
[ "$(cat "$dir/silent.rc")" = 1 ] && grep -q 'controller is silent' "$dir/silent.err" ||
    fail "an agent whose controller is silent"
echo "agents: what they sent came, who was lost was named, nobody was left"
