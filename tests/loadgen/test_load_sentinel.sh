#!/usr/bin/env bash
# A Redis Sentinel, its master and a replica: the load follows a failover that somebody asks for, and one
# because the master is killed; the dataset is stored at the master.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" sentinel
command -v redis-server >/dev/null && command -v redis-cli >/dev/null || { echo 'redis-server is not installed'; exit 77; }
of_nodes() { # key: a count of the document's "nodes"
    sed -n "/^  \"nodes\": {/,/^  }/s/^    \"$1\": \([0-9]*\).*/\1/p" "$dir/out"
}
failovers() { sed -n '/"failovers": {/,/}/s/^ *"count": \([0-9]*\).*/\1/p' "$dir/out"; }
refused() { # text, options ...
    timeout 20 "$taillight" load --rate 1k --duration 100ms --quiet "${@:2}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] || fail "load ${*:2}: not refused"
    grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: does not say $1"
}
accounted() { # what: every request in one way
    local sum=$(($(value answered) + $(value unsent) + $(value lost) + $(value timed_out)))
    [ "$sum" = "$(value scheduled)" ] || fail "$1: $sum of $(value scheduled) accounted for"
}
begin() { # options ...: in the background, until it is told to end
    rm -f "$dir/out" # of the load before
    timeout 120 "$taillight" load "${at[@]}" --sleep --quiet --json --announce --rate 1k --workload "$dir/workload.yaml" \
        --duration 100s --connections 4 "$@" >"$dir/out" 2>"$dir/err" &
    loading=$!
    await grep -q begin_ns "$dir/out" || fail "load $*: does not begin"
}
end() {
    kill "$loading" # timeout hands it on
    wait "$loading"
    [ $? -eq 4 ] || fail 'an interrupted load is not inconclusive'
}
calls() { # port, command
    redis-cli -p "$1" info commandstats | sed -n "s/^cmdstat_$2:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0
}
called() { [ "$(calls "$1" "$2")" -gt "${3:-0}" ]; }
master() { redis-cli -p "$sentinel" sentinel get-master-addr-by-name cache | tail -n 1; }
is_master() { [ "$(master)" = "$1" ]; }

refused 'exclude each other' --sentinel cache --cluster --protocol redis --server 127.0.0.1:1
refused 'protocol memcached has no clusters and no sentinels' --sentinel cache --server 127.0.0.1:1
start_redis() { # options ...
    start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir" --repl-diskless-sync-delay 0 "$@"
}
start_redis
first=$port first_pid=${servers[-1]}
refused 'it is no sentinel' --sentinel cache --protocol redis --server "127.0.0.1:$first"
start_redis --replicaof 127.0.0.1 "$first"
second=$port second_pid=${servers[-1]}
is_synced() { redis-cli -p "$1" info replication | grep -q master_link_status:up; }
await is_synced "$second" || fail 'the replica does not follow'
printf 'sentinel monitor cache 127.0.0.1 %s 1\nsentinel down-after-milliseconds cache 2000\nsentinel failover-timeout cache 2000\n' \
    "$first" >"$dir/sentinel.conf"
cp "$dir/sentinel.conf" "$dir/other.conf" # each writes its own
start redis-server "$dir/sentinel.conf" --sentinel --port PORT --bind 127.0.0.1 --dir "$dir"
sentinel=$port
start redis-server "$dir/other.conf" --sentinel --port PORT --bind 127.0.0.1 --dir "$dir"
other=$port other_pid=${servers[-1]}
knows() { # sentinel: the replica, and the other sentinel
    redis-cli -p "$1" sentinel replicas cache | grep -qx "$second" && redis-cli -p "$1" sentinel sentinels cache | grep -q .
}
await knows "$sentinel" && await knows "$other" || fail 'the sentinels do not find the replica, or each other'
at=(--server "127.0.0.1:$other" --sentinel cache)

# --- the master's name, and its data -------------------------------------------------------------
printf 'protocol: redis\nkeys: {count: 100}\nmix: {get: 1, set: 1}\n' >"$dir/workload.yaml"
refused 'it knows no master named "caches"' --server "127.0.0.1:$sentinel" --sentinel caches --workload "$dir/workload.yaml"
timeout 60 "$taillight" load "${at[@]}" --quiet --prepare --workload "$dir/workload.yaml" >"$dir/out" 2>"$dir/err" || fail 'the dataset'
[ "$(redis-cli -p "$first" dbsize)" = 100 ] || fail 'the dataset is not at the master'

# --- a failover that somebody asks for, of another sentinel than the load knew -------------------
begin --threads 2
await called "$first" get 100 || fail 'the master is not loaded'
visits() { redis-cli -p "$other" info stats | tr -d '\r' | sed -n 's/^total_connections_received://p'; }
before=$(visits) looks=0
asked() { # two more times, besides by this
    looks=$((looks + 1))
    [ $(($(visits) - before - looks)) -ge 2 ]
}
await asked || fail 'the sentinel is not asked again'
kill -9 "$other_pid"
redis-cli -p "$sentinel" sentinel failover cache >"$dir/said"
await is_master "$second" || fail 'the sentinel does not fail over'
before=$(calls "$second" get)
await called "$second" get $((before + 200)) || fail 'the new master is not loaded'
sleep 0.2
end
accounted 'a failover'
grep -qE '"(client_error|server_error|mismatched|wrong_value|unexpected)"' "$dir/out" && fail 'a failover: errors'
[ "$(failovers)" = 1 ] || fail "a failover: $(failovers) are told"
[ "$(of_nodes known)" = 2 ] && [ "$(of_nodes connections_opened)" = 4 ] || fail 'a failover: the new master has no connections'
[ $(($(value answered) * 10)) -gt $(($(value scheduled) * 9)) ] || fail 'a failover: requests are missing'

# --- a master that is killed ---------------------------------------------------------------------
at=(--server "127.0.0.1:$sentinel" --sentinel cache)
follows() { redis-cli -p "$first" info replication | tr -d '\r' | grep -qx -e role:slave && is_synced "$first"; }
redis-cli -p "$first" replicaof 127.0.0.1 "$second" >"$dir/said" # as the sentinel will have it in ten seconds
await follows || fail 'the old master does not follow the new one'
redis-server "$dir/other.conf" --sentinel --port "$other" --bind 127.0.0.1 --dir "$dir" >"$dir/log" 2>&1 &
servers+=($!)
can_agree() { redis-cli -p "$sentinel" sentinel ckquorum cache | grep -q ^OK; }
await can_agree || fail 'the sentinel that was killed does not come back'
begin --reconnect 200ms
await called "$second" get 300 || fail 'the new master is not loaded'
kill -9 "$second_pid"
await is_master "$first" || fail 'the sentinel does not replace a master that was killed'
before=$(calls "$first" get)
await called "$first" get $((before + 200)) || fail 'the master that took over is not loaded'
sleep 0.2
end
accounted 'a master was killed'
[ "$(failovers)" = 1 ] || fail "a master was killed: $(failovers) failovers are told"
[ "$(of_nodes connections_opened)" = 4 ] && [ "$(value connections_given_up)" -ge 1 ] || fail 'a master was killed: connections'
[ $(($(value answered) * 10)) -gt $(($(value scheduled) * 9)) ] || fail 'a master was killed: requests are missing'
[ "$(value unsent)" -le $(($(value scheduled) / 10)) ] || fail 'a master was killed: what waited was not sent'

# --- no master is left ---------------------------------------------------------------------------
kill -9 "$first_pid"
timeout 60 "$taillight" load "${at[@]}" --quiet --rate 1k --duration 100ms --protocol redis >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] || fail 'a master that is gone'
grep -qF "the master \"cache\" that 127.0.0.1:$sentinel names: cannot connect to 127.0.0.1:$first" "$dir/err" ||
    fail "a master that is gone is not said to be one: $(cat "$dir/err")"
exit 0
