#!/usr/bin/env bash
# An experiment whose load comes to a Redis Cluster of three nodes that run already: each node gets the requests for
# its keys, and those of all three are joined with what was captured of them. Then one through a Sentinel to its master.
# Runs beside others: requests are counted, not timed.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program redis-server redis-server
dir=$work
servers=()
end_servers() {
    local status=$?
    kill "${servers[@]}" 2>/dev/null && wait "${servers[@]}"
    (exit $status)
    cleanup
}
trap end_servers EXIT
start() { # command ...; with PORT in its words
    claim_port
    "${@//PORT/$port}" >"$dir/log" 2>&1 &
    servers+=($!)
    await ports_listening "$port" || fail "$1 does not listen"
}
. "$(dirname "$0")/../../loadgen/cluster_lib.sh"

loaded() { # WORKLOAD-AND-LOAD SERVERS: a run of 1 s at 1000/s, of which every request is answered and joined
    experiment "$work/e.yaml" local 1k 1s <<<"servers: {$2}"
    sed -i "s/^workload:/&\n  protocol: redis/; s/^load: {/&$1, /; s/timeout: 1s/timeout: 20s/" "$work/e.yaml"
    rm -rf "$work/run"
    "$taillight" run "$work/e.yaml" --out "$work/run" --quiet >/dev/null 2>"$work/run.err"
    [[ $? == [04] ]] || fail "$1: the run ended with an error"
    load=$work/run/client/load.json
    requests=$(json "$load" '$.answered')
    [ "$requests" -gt 800 ] && [ "$requests" = "$(json "$load" '$.scheduled')" ] || fail "$1: $requests requests"
    [ "$(json "$load" '$.misses')" = 0 ] && [ "$(json "$load" '$.errors')" = '{}' ] || fail "$1: misses, or errors"
    joined=$(json "$work/run/summary.json" '$.joined')
    [ $((joined * 1000)) -ge $((requests * 950)) ] || disturbed "$work/run" 950 || fail "$1: $joined of $requests joined"
}
calls() { redis-cli -p "$1" info commandstats | sed -n "s/^cmdstat_[gs]et:calls=\([0-9]*\),.*/\1/p" | awk '{ sum += $1 } END { print sum }'; }

start_cluster 3
loaded 'to: a, cluster: true' "a: {host: server, kind: running, port: ${nodes[0]}, fill: true}, b: {host: server, kind: running, port: ${nodes[1]}}, c: {host: server, kind: running, port: ${nodes[2]}}"
[ "$(json "$load" '$.nodes.known')" = 3 ] || fail 'not three nodes'
for i in 0 1 2; do # of 2000 keys, and of the calls that stored them, read them again and asked for them
    [ "$(at_node "$i" dbsize)" -gt 500 ] && [ "$(calls "${nodes[$i]}")" -gt 1200 ] || fail "node $i has $(at_node "$i" dbsize) keys"
done
shares=$(sqlite3 "$work/run/run.db" "select count(*) from requests where state = 'whole' group by thread having count(*) > 200")
[ "$(wc -w <<<"$shares")" = 3 ] || fail "whole lives of three nodes' threads: $(xargs <<<"$shares")"
echo "of three nodes' threads $(xargs <<<"$shares") whole lives"

# --- a master, by its sentinel -------------------------------------------------------------------
start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir"
master=$port
printf 'sentinel monitor cache 127.0.0.1 %s 1\n' "$master" >"$dir/sentinel.conf"
start redis-server "$dir/sentinel.conf" --sentinel --port PORT --bind 127.0.0.1 --dir "$dir"
loaded 'to: watcher, sentinel: cache' "watcher: {host: server, kind: running, port: $port, fill: true}, store: {host: server, kind: running, port: $master}"
[ "$(redis-cli -p "$master" dbsize)" = 2000 ] || fail "the master has $(redis-cli -p "$master" dbsize) keys"
echo "$joined of $requests requests to a sentinel's master were joined"
