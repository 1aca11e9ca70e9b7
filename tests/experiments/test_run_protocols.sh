#!/usr/bin/env bash
# Whole runs in other protocols than memcached's: Redis with its dataset, and the laboratory server.
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

experiment "$work/redis.yaml" netns 2k 1s <<'END'
servers:
  store: {kind: command, command: [redis-server, --port, "{port}", --bind, "{address}", --save, "", --protected-mode, "no"]}
END
sed -i 's/^workload:/&\n  protocol: redis\n  mix: {get: 4, set: 1, lrange: 1, zadd: 1}/' "$work/redis.yaml"
check "$work/redis.yaml" redis exponential

experiment "$work/lab.yaml" netns 2k 1s <<END
servers:
  lab: {kind: command, command: [$(realpath "$BUILD")/labserver, --port, "{port}", --protocol, lab]}
END
sed -i 's/^workload:/&\n  protocol: lab\n  service: "bimodal:5us,100us,0.02"/; s/rate: 2k/&, arrivals: "gpd:0,16.0292,0.154971"/' "$work/lab.yaml"
check "$work/lab.yaml" lab gpd:0,16.0292,0.154971
exit 0
