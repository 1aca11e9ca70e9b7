#!/usr/bin/env bash
# NGINX as the server and as a neighbour under a load of its own: the run writes all it needs, keeps
# what the neighbour's load found, and leaves no process, also when it is killed.
# Runs beside others: nothing is timed.
. tests/experiments/run_lib.sh
need_capture
PATH=$PATH:/usr/sbin
need_program nginx nginx-light
need_program jq jq

write() { # DURATION
    experiment "$work/web.yaml" netns 1k "$1" <<END
servers:
  front: {kind: nginx, threads: 2, page: 2KiB, port: 8081}
neighbours:
  web: {kind: nginx, workers: 2, rules: 3, nice: 5, load: {from: client, rate: 500, connections: 8}}
END
    sed -i 's/^workload:/&\n  protocol: http/; s/depth: 64/depth: 4/' "$work/web.yaml"
}

write 1s
conclusive_run "$work/web.yaml" --json
run=$work/run
[ "$(json "$run/client/load.json" '$.errors')" = '{}' ] || fail "errors"
[ "$(json "$run/client/load.json" '$.misses')" = 0 ] || fail "misses"
requests=$(json "$run/summary.json" '$.requests')
joined=$(json "$run/summary.json" '$.joined')
[ "$requests" -gt 700 ] && [ $((joined * 100)) -ge $((requests * 95)) ] ||
    fail "only $joined of $requests joined"
jq -e '.neighbour_loads == [{name: "web", file: "nginx-web/load.json", rate: 500,
    achieved_rate: .neighbour_loads[0].achieved_rate, p50_us: .neighbour_loads[0].p50_us,
    p99_us: .neighbour_loads[0].p99_us}] and .neighbour_loads[0].achieved_rate > 300' \
    "$run/experiment.json" >/dev/null || fail "neighbour_loads: $(jq .neighbour_loads "$run/experiment.json")"
[ "$(json "$run/nginx-web/load.json" '$.protocol')" = http ] || fail "no load.json of the neighbour"
[ "$(stat -c %s "$run/nginx-front/page")" = 2048 ] || fail "the page is not of 2 KiB"
grep -Eq '(^|[ "])/(var|etc|usr)' "$run"/nginx-*/nginx.conf && fail "a path outside the run's folder"
[ "$(grep -c '^ *rewrite ' "$run/nginx-web/nginx.conf")" = 3 ] || fail "not three rules"
check_nothing_left "$run" ""

# Killed, it takes nginx' workers along, which are not its children.
write 20s
"$taillight" run "$work/web.yaml" --out "$work/killed" >"$work/out" 2>"$work/run.err" &
controller=$!
await grep -q 'nginx -e stderr.*nginx-web' "$work/killed/commands.log" || fail "nginx does not start"
are_started() {
    workers=$(for master in $(pgrep -f -- "-p $work/killed/nginx-"); do pgrep -P "$master"; done)
    [ "$(echo "$workers" | wc -w)" -ge 4 ]
}
await are_started || fail "nginx has not two workers each: $workers"
kill -9 $controller
wait $controller 2>/dev/null
check_nothing_left "$work/killed" ""
are_gone() {
    left=$(for pid in $workers; do [ -e "/proc/$pid" ] && echo "$pid"; done)
    [ -z "$left" ]
}
await are_gone || fail "workers are left: $left"
