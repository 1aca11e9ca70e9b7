#!/usr/bin/env bash
# Whole runs in other protocols than memcached's: Redis with its dataset, the laboratory server, and
# HTTP from a server that closes its connections now and then; and in sessions, after each of which
# the load does.
# Runs beside others: requests are counted, not timed.
. tests/experiments/run_lib.sh
need_capture
need_program redis-server redis-server

check() { # EXPERIMENT PROTOCOL
    local run="$work/run"
    conclusive_run "$1" --json
    grep -q "^protocol: \"$2\"" "$run/client/workload.yaml" || fail "$2 is not in workload.yaml"
    [ "$(json "$run/client/load.json" '$.protocol')" = "$2" ] || fail "$2 is not in load.json"
    [ "$(json "$run/client/load.json" '$.arrivals')" = "$3" ] || fail "arrivals: not $3 in load.json"
    [ "$(json "$run/client/load.json" '$.errors')" = '{}' ] || fail "$2: errors"
    [ "$(json "$run/client/load.json" '$.misses')" = 0 ] || fail "$2: misses"
    local requests joined
    requests=$(json "$run/summary.json" '$.requests')
    joined=$(json "$run/summary.json" '$.joined')
    [ "$requests" -gt 1500 ] || fail "$2: $requests requests in 1 s at 2000/s"
    [ $((joined * 100)) -ge $((requests * 95)) ] || fail "$2: only $joined of $requests joined"
}

# Each session is a connection of its own, to the join too.
check_sessions() { # PROTOCOL
    local ended connections
    ended=$(json "$work/run/client/load.json" '$.sessions.ended')
    [ "$ended" -gt 100 ] || fail "$1: $ended sessions of 10 requests each"
    connections=$(sqlite3 "$work/run/run.db" 'select count(distinct connection) from requests')
    [ "$connections" -ge "$ended" ] || fail "$1: $ended sessions on $connections connections"
}

experiment "$work/redis.yaml" netns 2k 1s <<'END'
servers:
  store: {kind: redis, memory: 64MiB}
END
sed -i 's/^workload:/&\n  protocol: redis\n  mix: {get: 4, set: 1, lrange: 1, zadd: 1}/; s/rate: 2k/&, session: 10/' "$work/redis.yaml"
check "$work/redis.yaml" redis exponential
check_sessions redis

# Each connection that nginx closes is another one afterwards, to the join too.
PATH=$PATH:/usr/sbin
need_program nginx nginx-light
printf 'page\n' >"$work/0"
claim_port
cat >"$work/nginx.conf" <<END
daemon off; master_process off; pid $work/nginx.pid; error_log $work/nginx.log;
events { worker_connections 64; }
http { access_log off; keepalive_requests 50; client_body_temp_path $work; proxy_temp_path $work;
  fastcgi_temp_path $work; uwsgi_temp_path $work; scgi_temp_path $work;
  server { listen $port; root $work; } }
END
experiment "$work/http.yaml" netns 2k 1s <<END
servers:
  web: {kind: command, command: [nginx, -c, $work/nginx.conf], port: $port}
END
sed -i 's/^workload:/&\n  protocol: http/; s/keys: {count: 2k}/keys: {count: 1, size: {fixed: 1}}/; s/depth: 64/depth: 1/' \
    "$work/http.yaml"
check "$work/http.yaml" http exponential
reconnects=$(json "$work/run/client/load.json" '$.reconnects')
[ "$reconnects" -ge 16 ] || fail "http: $reconnects reconnects"
connections=$(sqlite3 "$work/run/run.db" 'select count(distinct connection) from requests')
[ "$connections" -gt 16 ] || fail "http: the requests lie on $connections connections"
rest_is_long

experiment "$work/memcached.yaml" netns 2k 1s <<'END'
servers:
  cache: {kind: memcached, memory: 64MiB}
END
sed -i 's/rate: 2k/&, session: 10/' "$work/memcached.yaml"
check "$work/memcached.yaml" memcached exponential
check_sessions memcached

experiment "$work/lab.yaml" netns 2k 1s <<END
servers:
  lab: {kind: labserver}
END
sed -i 's/^workload:/&\n  protocol: lab\n  service: "bimodal:5us,100us,0.02"/; s/rate: 2k/&, arrivals: "gpd:0,16.0292,0.154971"/' "$work/lab.yaml"
check "$work/lab.yaml" lab gpd:0,16.0292,0.154971
exit 0
