#!/usr/bin/env bash
# Two watched servers, each with a trouble of its own, scraped by the real Prometheus: once as it
# comes, and once with native histograms. Its query API counts the requests that the loads sent, names
# each server's cause, and gives the same p99 by both kinds of histogram; every query of the Grafana
# dashboard has an answer.
# Time limit: 300 s
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
need_program curl curl
need_program redis-server redis-server
need_program prometheus prometheus
ports=()
for ((i = 0; i < 6; i++)); do claim_port && ports+=("$port"); done
memcached_port=${ports[0]} redis_port=${ports[1]}
taskset -c 1 memcached -u root -l 127.0.0.1 -p "$memcached_port" -U 0 -t 1 2>/dev/null &
memcached=$!
taskset -c 0 redis-server --port "$redis_port" --bind 127.0.0.1 --save '' >/dev/null &
redis=$!
for server in "$memcached_port" "$redis_port"; do
    await bash -c "</dev/tcp/127.0.0.1/$server" || fail "nobody listens on port $server"
done
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$work/workload.yaml"

watches=()
for i in 0 1; do
    "$taillight" watch --port "${ports[i]}" --interval 1s --json --budget 0 --metrics ":${ports[i + 2]}" \
        >"$work/watch.$i" 2>"$work/watch.$i.err" &
    watches+=($!)
done
for i in 0 1; do
    await test -s "$work/watch.$i" || fail "watch $i does not begin"
done
cat >"$work/prometheus.yml" <<EOT
global: {scrape_interval: 1s, evaluation_interval: 1s}
scrape_configs:
  - job_name: taillight
    static_configs:
      - {targets: ["127.0.0.1:${ports[2]}"]}
      - {targets: ["127.0.0.1:${ports[3]}"]}
EOT
bounds=${ports[4]} native=${ports[5]}
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/bounds" \
    --web.listen-address="127.0.0.1:$bounds" >"$work/bounds.log" 2>&1 &
servers=($!)
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/native" \
    --web.listen-address="127.0.0.1:$native" --enable-feature=native-histograms >"$work/native.log" 2>&1 &
servers+=($!)

query() { # PORT EXPRESSION: its result, as JSON
    curl -sS --max-time 10 --data-urlencode "query=$2" "http://127.0.0.1:$1/api/v1/query" >"$work/answer" || return 1
    jq -ec 'select(.status == "success") | .data.result' "$work/answer" || fail "\"$2\": $(head -c 300 "$work/answer")"
}
both_up() { [ "$(query "$1" 'sum(up)' | jq -r '.[0].value[1]')" = 2 ]; }
for server in $bounds $native; do
    await both_up "$server" || fail "Prometheus on port $server does not scrape both"
done

# One server is stopped, the other has a real-time program on its core.
install -m 755 "$(command -v yes)" "$work/intruder"
loads=()
for i in 0 1; do
    protocol=$([ $i = 0 ] && echo memcached || echo redis)
    "$taillight" load --server "127.0.0.1:${ports[i]}" --protocol $protocol --workload "$work/workload.yaml" --rate 300 \
        --duration 12s --connections 4 --depth 1 --sleep --timeout 3s --json --quiet >"$work/load.$i.json" 2>"$work/load.$i.err" &
    loads+=($!)
done
sleep 2
for ((i = 0; i < 6; i++)); do
    kill -STOP $memcached && sleep 0.15 && kill -CONT $memcached
    sleep 0.6
    timeout 0.15 chrt -f 10 taskset -c 0 "$work/intruder" >/dev/null
    sleep 0.6
done
for load in "${loads[@]}"; do
    wait "$load"
    [[ $? == [04] ]] || fail "a load ended with an error"
done

counted() { # whether all that was answered is there
    local i seen asked
    for i in 0 1; do
        asked=$(jq .answered "$work/load.$i.json")
        seen=$(query "$1" "taillight_requests_total{instance=\"127.0.0.1:${ports[i + 2]}\"}" | jq -r '.[0].value[1]')
        # The load asks first what the server speaks, on a connection of its own.
        [ "$seen" -ge $((asked * 99 / 100)) ] && [ "$seen" -le $((asked + 10)) ] || return 1
    done
}
for server in $bounds $native; do
    await counted "$server" || fail "not the requests that were sent: $(query "$server" taillight_requests_total)"
done
first_cause() { # INDEX
    query $bounds "topk(1, taillight_cause_seconds_total{instance=\"127.0.0.1:${ports[$1 + 2]}\"})" | jq -r '.[0].metric.cause'
}
[[ $(first_cause 0) == "stopped by a signal"* ]] || fail "memcached was stopped, and $(first_cause 0) is named"
[ "$(first_cause 1)" = intruder ] || fail "intruder had redis-server's core, and $(first_cause 1) is named"

# p99 by both kinds: within the buckets' widths, 2^(1/2) and 2^(1/8).
p99() { query "$1" "histogram_quantile(0.99, $2)" | jq -r '.[0].value[1]'; }
by_bounds=$(p99 $bounds 'sum by (le) (taillight_latency_seconds_bucket)')
by_native=$(p99 $native 'sum(taillight_latency_seconds)')
echo "p99 of both servers: $by_bounds s by bounds, $by_native s by native histograms"
jq -en --argjson a "$by_bounds" --argjson b "$by_native" '$a / $b | . < 1.55 and . > 1 / 1.55' >/dev/null ||
    fail "p99 is $by_bounds s by bounds and $by_native s by native histograms"
for name in latency stage; do
    [ "$(query $native "sum(histogram_count(taillight_${name}_seconds))" | jq -r '.[0].value[1]')" = \
        "$(query $bounds "sum(taillight_${name}_seconds_count)" | jq -r '.[0].value[1]')" ] ||
        fail "the native histograms of ${name} hold another number of requests"
done

# The dashboard's own queries, as Grafana would send them.
asked=0
while IFS= read -r expression; do
    expression=${expression//\$__rate_interval/10s}
    expression=${expression//\$__range/60s}
    expression=${expression//\$instance/.*}
    result=$(query $bounds "$expression")
    [ "$(jq length <<<"$result")" -gt 0 ] || fail "the dashboard's query has no answer: $expression"
    asked=$((asked + 1))
done < <(jq -r '.panels[].targets[].expr' docs/taillight-grafana.json)
[ $asked -ge 10 ] || fail "only $asked queries in the dashboard"
echo "$asked queries of the dashboard answered"
kill "${servers[@]}" && wait "${servers[@]}"
kill -INT "${watches[@]}"
for watch in "${watches[@]}"; do wait "$watch" || fail "a watch ended with $?"; done
kill $memcached $redis
wait $memcached $redis
exit 0
