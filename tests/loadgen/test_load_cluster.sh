#!/usr/bin/env bash
# A Redis Cluster: each key at its node; slots that move while it is loaded, to a node that appears;
# a node that is killed; and clusters that send requests elsewhere as none should.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" cluster
. "$here/cluster_lib.sh"
command -v redis-server >/dev/null && command -v redis-cli >/dev/null || { echo 'redis-server is not installed'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
load() { # options ...: its exit code may be 4, the machine may be busy
    [[ "$*" =~ --rate\ max|--agent ]] || set -- --sleep "$@"
    timeout 60 "$taillight" load --quiet --json --seed 5 --workload "$dir/workload.yaml" "$@" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    accounted "load $*"
}
accounted() { # what: every request in one way
    local sum=$(($(value answered) + $(value unsent) + $(value lost) + $(value timed_out)))
    [ "$sum" = "$(value scheduled)" ] || fail "$1: $sum of $(value scheduled) accounted for"
}
of_nodes() { # key: a count of the document's "nodes", in which `moved` is not the document's own
    sed -n "/^  \"nodes\": {/,/^  }/s/^    \"$1\": \([0-9]*\).*/\1/p" "$dir/out"
}
refused() { # text, options ...
    timeout 20 "$taillight" load --rate 1k --duration 100ms --quiet "${@:2}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] || fail "load ${*:2}: not refused"
    grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: does not say $1"
}
begin() { # options ...: in the background
    rm -f "$dir/out" # of the load before
    timeout 120 "$taillight" load --server "$at" --quiet --json --announce --workload "$dir/workload.yaml" \
        "$@" >"$dir/out" 2>"$dir/err" &
    loading=$!
    await grep -q begin_ns "$dir/out" || fail "load $*: does not begin"
}
calls() { # number of the node, command: those that did not fail
    local all='' failed=''
    read -r all failed < <(at_node "$1" info commandstats | sed -n "s/^cmdstat_$2:calls=\([0-9]*\),.*failed_calls=\([0-9]*\).*/\1 \2/p")
    echo $((all - failed))
}
called() { [ "$(calls "$1" "$2")" -gt "${3:-0}" ]; }

# --- what is wrong before anybody is asked -------------------------------------------------------
refused 'protocol memcached has no clusters and no sentinels' --cluster --server 127.0.0.1:1
refused 'protocol http has no clusters' --server http+cluster://127.0.0.1:1
refused 'a cluster has database 0 only' --server redis+cluster://127.0.0.1:1/3
refused 'the server is at HOST:PORT' --cluster --protocol redis --server unix:/run/nobody

# --- a cluster with its keys ---------------------------------------------------------------------
start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir"
refused 'it is no node of a cluster' --server "redis+cluster://127.0.0.1:$port"
printf 'protocol: redis\nkeys: {count: 300}\nmix: {get: 2, set: 1, hget: 1, lrange: 1}\n' >"$dir/workload.yaml"
start_cluster 3
at=redis+cluster://127.0.0.1:${nodes[1]}
refused '3 nodes, with 1 thread each of which has a connection to each, need 3 connections at least, not 2' \
    --server "$at" --connections 2
timeout 60 "$taillight" load --server "$at" --quiet --prepare --workload "$dir/workload.yaml" >"$dir/out" 2>"$dir/err" ||
    fail 'the dataset'
sum=0
for i in 0 1 2; do
    keys=$(at_node $i dbsize)
    [ "$keys" -gt 200 ] || fail "node $i has $keys keys"
    sum=$((sum + keys))
    at_node $i config resetstat >"$dir/said"
done
[ $sum = 900 ] || fail "$sum of 900 keys are stored"
for threads in 1 2; do
    load --server "$at" --rate 20k --duration 500ms --timeout 20s --connections 7 --threads $threads
    [ "$(value answered)" = "$(value scheduled)" ] || fail "$threads threads: not everything was answered"
    [ "$(value misses)" = 0 ] && grep -q '"errors": {}' "$dir/out" || fail "$threads threads: misses or errors"
    [ "$(of_nodes known)" = 3 ] || fail "$threads threads: not three nodes"
    for count in moved asked retried given_up unreachable; do
        [ "$(of_nodes $count)" = 0 ] || fail "$threads threads: $count"
    done
    sum=0
    for i in 0 1 2; do
        for command in get set hget lrange; do sum=$((sum + $(calls $i $command))); done
        [ "$(at_node $i info errorstats | grep -c MOVED)" = 0 ] || fail "$threads threads: node $i was asked for others' keys"
        at_node $i config resetstat >"$dir/said"
    done
    [ $sum = "$(value answered)" ] || fail "$threads threads: the nodes were asked $sum times for $(value answered) answers"
done
load --server "$at" --rate max --duration 200ms --timeout 20s --connections 6 --depth 4
[ "$(value answered)" = "$(value scheduled)" ] && [ "$(value scheduled)" -gt 0 ] || fail 'closed loop: not everything was answered'
load --server "redis-resp3+cluster://127.0.0.1:${nodes[0]}" --rate 4k --duration 200ms --timeout 20s --agent symmetric,name=a --agent symmetric,name=b
[ "$(value answered)" = "$(value scheduled)" ] && [ "$(of_nodes known)" = 3 ] || fail 'agents: not everything was answered'
timeout 60 "$taillight" load --server "127.0.0.1:${nodes[0]}" --protocol redis --quiet --rate 1k --duration 100ms >"$dir/out" 2>"$dir/err"
grep -q 'MOVED.*--cluster' "$dir/out" || fail 'who loads one node is not told of --cluster'
timeout 60 "$taillight" load --prepare --server "127.0.0.1:${nodes[0]}" --workload "$dir/workload.yaml" --quiet >"$dir/out" 2>"$dir/err" &&
    fail 'a dataset is stored at one node'
grep -q 'MOVED.*--cluster' "$dir/err" || fail 'who stores a dataset at one node is not told of --cluster'

# --- slots that move, and a node that appears ----------------------------------------------------
printf 'protocol: redis\nkeys: {count: 60}\nmix: {get: 1, set: 1, transaction: 1}\n' >"$dir/workload.yaml"
mapfile -t slots < <(for key in $(at_node 0 keys '*' | grep -v : | sort | head -n 12); do at_node 0 cluster keyslot "$key"; done)
start_node
join_node 3
knows() { [ "$(at_node 3 cluster info | tr -d '\r' | grep -cx -e cluster_state:ok -e cluster_known_nodes:4)" = 2 ]; }
await knows || fail 'the fourth node does not come'
for i in 0 1 2 3; do at_node $i config resetstat >"$dir/said"; done
begin --sleep --rate 1k --duration 10s --timeout 20s --connections 6 --threads 2 # longer than the moves take
for slot in "${slots[@]:0:6}"; do begin_move "$slot" 0 1; done
await called 1 asking || fail 'nobody was asked behind ASKING'
(
    out=$dir/deep
    mkdir "$out"
    dir=$out
    cp "$dir/../workload.yaml" "$dir"
    load --server "$at" --rate max --duration 300ms --timeout 20s --connections 12 --depth 8 # many of them at once
    [ "$(value answered)" = "$(value scheduled)" ] && grep -q '"errors": {}' "$dir/out" && [ "$(of_nodes asked)" -gt 10 ] || fail 'many behind ASKING'
    value answered >"$dir/answered"
) || exit 1
for slot in "${slots[@]:0:6}"; do end_move "$slot" 0 1; done
before=$(calls 1 get)
await called 1 get "$before" || fail 'the second node is not asked for what it was given'
for slot in "${slots[@]:6}"; do begin_move "$slot" 0 3 && end_move "$slot" 0 3; done
await called 3 get || fail 'the node that appeared is not asked for what it was given'
wait "$loading"
code=$?
[ $code -eq 0 ] || [ $code -eq 4 ] || fail "moving slots: exit $code"
accounted 'moving slots'
[ "$(value answered)" = "$(value scheduled)" ] || fail 'moving slots: not everything was answered'
# The nodes did each of them once, whatever they were sent elsewhere: a transaction's get and set are counted with its exec.
sum=0
for i in 0 1 2 3; do sum=$((sum + $(calls $i get) + $(calls $i set) - $(calls $i exec))); done
answered=$(($(value answered) + $(cat "$dir/deep/answered")))
[ $sum = $answered ] || fail "moving slots: the nodes did $sum requests, of which $answered were answered"
grep -qE '"(client_error|server_error|mismatched|wrong_value|unexpected)"' "$dir/out" && fail 'moving slots: errors'
[ "$(of_nodes moved)" -ge 2 ] || fail 'moving slots: nothing moved'
[ "$(of_nodes asked)" -ge 1 ] || fail 'moving slots: nobody was sent on once'
[ "$(of_nodes known)" = 4 ] && [ "$(of_nodes connections_opened)" -ge 1 ] || fail 'moving slots: the fourth node is not known'
[ "$(of_nodes given_up)" = 0 ] && [ "$(of_nodes unreachable)" = 0 ] || fail 'moving slots: given up, or out of reach'

# --- a node that is killed -----------------------------------------------------------------------
begin --rate 2k --timeout 500ms --duration 1500ms
kill -9 "${pids[2]}"
wait "$loading"
[ $? -eq 4 ] || fail 'a node was killed, and the load says nothing'
accounted 'a node was killed'
[ "$(value answered)" -gt 500 ] || fail 'a node was killed: the others are not asked'
[ "$(of_nodes unreachable)" -gt 100 ] && [ "$(value unsent)" -ge "$(of_nodes unreachable)" ] || fail 'a node was killed: nothing is out of reach'
grep -q 'requests waited in vain for a connection to the node that has their key' "$dir/err" "$dir/out" || fail 'a node was killed: not told'
grep -q "a node was lost, 127.0.0.1:${nodes[2]}: [0-9]* of [0-9]* connections ended" "$dir/err" "$dir/out" || fail 'a node was killed: not named'

rest_is_long

# --- clusters that send requests elsewhere as none should ----------------------------------------
printf 'protocol: redis\nkeys: {count: 100}\nmix: {get: 1}\nvalues: {size: {fixed: 1}}\n' >"$dir/workload.yaml"
hostile=(nowhere nobody nonsense circle itself ask-circle another-slot long down closes wavers)
loads=()
places=()
ports=()
for behaviour in "${hostile[@]}"; do
    claim_port
    ports+=("$port")
    places+=("$behaviour" "$port")
    claim_port
    places+=("$port")
done
python3 "$here/servers/cluster_server.py" "${places[@]}" >"$dir/log" 2>&1 &
servers+=($!)
await ports_listening "$port" || fail 'the hostile clusters do not listen'
for i in "${!hostile[@]}"; do
    behaviour=${hostile[i]}
    await ports_listening "${ports[i]}" || fail "$behaviour does not listen"
    timeout 60 "$taillight" load --server "redis+cluster://127.0.0.1:${ports[i]}" --quiet --json --sleep --rate 400 --duration 200ms --timeout 1s \
        --connections 2 --stamps user --workload "$dir/workload.yaml" >"$dir/$behaviour.out" 2>"$dir/$behaviour.err" &
    loads+=($!)
done
for i in "${!hostile[@]}"; do
    behaviour=${hostile[i]}
    wait "${loads[i]}"
    code=$?
    mv "$dir/$behaviour.out" "$dir/out"
    mv "$dir/$behaviour.err" "$dir/err"
    case $code in 0 | 1 | 4) ;; *) fail "$behaviour: exit $code" ;; esac
    accounted "$behaviour"
    case $behaviour in
        nonsense | another-slot) # errors like any others
            [ "$(of_nodes moved)$(of_nodes asked)$(of_nodes given_up)" = 000 ] || fail "$behaviour: taken for a redirection" ;;
        nowhere | nobody | long)
            [ "$(of_nodes to_unknown)" -ge "$(of_nodes given_up)" ] && [ "$(of_nodes map_reads)" -ge 1 ] || fail "$behaviour: a node that is none" ;;
        circle | itself | ask-circle)
            [ $(($(of_nodes moved) + $(of_nodes asked))) -le $((16 * $(value scheduled))) ] || fail "$behaviour: sent on without end" ;;
        down) [ "$(of_nodes retried)" -ge 1 ] || fail 'down: not tried again' ;;
        closes) [ "$(value lost)" -ge 1 ] || fail 'closes: nothing is lost' ;;
        wavers) [ "$(of_nodes retried)" -ge 1 ] && [ "$(value answered)" = "$(value scheduled)" ] || fail 'wavers: not answered in the end' ;;
    esac
    # The time allowed is enough for all of their redirections, if the machine is not too busy.
    case $behaviour in
        nowhere | nobody | long | circle | itself | ask-circle)
            [ $(($(of_nodes given_up) + $(value unsent) + $(value timed_out))) = "$(value scheduled)" ] || fail "$behaviour: given up otherwise" ;;
    esac
done
exit 0
