#!/usr/bin/env bash
# Servers that nobody prepared, watched as they run: each request is counted once, and with its server;
# a stall of one has its name there, what was recorded around it is saved and can be analyzed by itself,
# and nothing is left.
# Runs beside others: what else is busy makes it wait, and nothing is timed.
. "$(dirname "$0")/watch_lib.sh"
ports=("$port")
for _ in 1 2; do claim_port && ports+=("$port"); done
port=${ports[0]} other_port=${ports[1]} scraped=${ports[2]}
memcached -u root -l 127.0.0.1 -p "$other_port" -U 0 -t 1 2>/dev/null &
other=$!
await bash -c "</dev/tcp/127.0.0.1/$other_port" || fail "the other server does not listen"

# Its folder is removed after it was killed, by the next one.
"$taillight" watch --pid $server --json >"$work/killed" 2>&1 &
watch=$!
folder_is_there() { [ -n "$(find /tmp -maxdepth 1 -name "taillight-watch-$watch-*")" ]; }
await folder_is_there || fail "no folder of the watch"
kill -9 $watch
wait $watch 2>/dev/null

scrape() {
    exec 3<>"/dev/tcp/127.0.0.1/$scraped" || return 1
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    sed '1,/^\r$/d' <&3
    exec 3>&-
}

watch_try() {
    local asked folder
    rm -rf "$work/saved"
    coproc watching { exec "$taillight" watch --pid $server,$other --interval 1s --json --budget 0 --trigger '>131.072ms' \
        --save "$work/saved" --saves 2 --metrics ":$scraped" 2>"$work/watch.err"; }
    watch=$watching_PID
    exec {lines}<&"${watching[0]}"
    read -r -t 60 line <&$lines || fail "the watch does not begin"
    "$taillight" load --server "127.0.0.1:$port" --workload "$work/workload.yaml" --rate 500 --duration 3s \
        --connections 8 --depth 1 --sleep --json --quiet >"$work/load.json" 2>"$work/load.err" &
    load=$!
    "$taillight" load --server "127.0.0.1:$other_port" --workload "$work/workload.yaml" --rate 50 --duration 3s \
        --connections 2 --depth 1 --sleep --json --quiet >"$work/other.json" 2>"$work/other.err" &
    other_load=$!
    sleep 1.3
    kill -STOP $server && sleep 0.3 && kill -CONT $server
    sleep 0.5 # two stalls that may lie in one interval, or on its border, have a window each
    kill -STOP $server && sleep 0.3 && kill -CONT $server
    wait $load
    [[ $? == [04] ]] || fail "the load ended with an error"
    wait $other_load
    [[ $? == [04] ]] || fail "the other load ended with an error"
    echo "$line" >"$work/lines"
    grep -q '^CapEff:[[:space:]]*0*$' "/proc/$watch/status" || fail "who reads the records has capabilities"
    for wanted in 1 2 3 4 5 6; do # the last request's interval has ended when one is without any
        read -r -t 20 line <&$lines || fail "no line"
        echo "$line" >>"$work/lines"
    done
    scrape >"$work/metrics"
    kill -INT $watch
    wait $watch || fail "the watch ended with $?"
    cat <&$lines >>"$work/lines" # of an interval that has ended since
    exec {lines}<&-
    # A load asks first what the server speaks, on a connection of its own.
    for of in "load $port" "other $other_port"; do
        asked=$(jq '.answered' "$work/${of% *}.json")
        jq -es --argjson asked "$asked" --arg server "memcached:${of#* }" 'map(.servers[] | select(.server == $server) | .requests)
            | add | (. >= 0.99 * $asked and . <= $asked + 10)' "$work/lines" >/dev/null ||
            { echo "$of: $asked answered, seen: $(jq -c '[.servers[] | [.server, .requests]]' "$work/lines" | tr '\n' ' ')"; return 1; }
    done
    jq -es 'all(.requests == ([.servers[].requests] | add // 0))' "$work/lines" >/dev/null || fail "the servers' requests are not the sum"
    jq -es '.[0].seconds > 0.9' "$work/lines" >/dev/null || # also where the watch heard late that it has begun
        fail "the first interval is said to be shorter than it was: $(jq -c .seconds "$work/lines" | tr '\n' ' ')"
    jq -es 'map(select(.saved)) | length >= 1 and
        (max_by(.latency_us.max) | .latency_us.max > 200000 and .slowest.latency_us > 200000
            and (.causes[0].cause | startswith("stopped by a signal")) and .causes[0].role == "A"
            and (.servers[] | select(.server == "memcached:'"$port"'") | (.causes[0].cause | startswith("stopped by a signal"))))
        and ([.[].servers[] | select(.server == "memcached:'"$other_port"'") | .causes[]?.cause]
            | any(startswith("stopped by a signal")) | not)' "$work/lines" >/dev/null ||
        { echo "the stall: $(jq -c '[.latency_us.max, .saved, .causes[0].cause, .reason]' "$work/lines" | tr '\n' ' ')"; return 1; }
    jq -es 'map(.windows) | add == 2' "$work/lines" >/dev/null ||
        { echo "two stalls, windows: $(jq -c '[.windows, .latency_us.max]' "$work/lines" | tr '\n' ' ')"; return 1; }
    for folder in "$work"/saved/slow-*; do
        jq -e '.segments | (.counted | map(.until_ns)) as $ends | $ends[0] <= .from_ns and $ends[-1] >= .until_ns and $ends == ($ends | sort)' \
            "$folder/capture.json" >/dev/null || fail "what the kernel counted is not known of what was saved"
        "$taillight" analyze "$folder" --quiet --json >"$work/stall.json" 2>"$work/analyze.err"
        [[ $? == [04] ]] || fail "what was saved cannot be analyzed"
        jq -e '.without_client and (.causes[0].cause | startswith("stopped by a signal")) and .latency_us.max > 200000' \
            "$work/stall.json" >/dev/null || { echo "saved: $(jq -c '[.verdict, .latency_us.max]' "$work/stall.json")"; return 1; }
    done
}
judged_tries watch_try || fail "the watch does not show what happened"
[ -z "$(find /tmp -maxdepth 1 -name "taillight-watch-$watch-*")" ] || fail "its folder is still there"
for left in /tmp/taillight-watch-*; do
    [ -e "$left" ] || continue
    left=${left#/tmp/taillight-watch-}
    kill -0 "${left%%-*}" 2>/dev/null || fail "a killed watch's folder is still there: $left"
done
# What was scraped before its end is OpenMetrics, by somebody else's parser, and adds up to the lines
# and to what the windows hold.
/usr/bin/python3 tests/experiments/watch/openmetrics.py "$work/metrics" "$work/lines" "$work/saved" || {
    status=$?
    [ $status -ne 77 ] || echo "without a look at the metrics: there is no prometheus_client for python3"
    [ $status -eq 77 ] || fail "the metrics: $(head -c 400 "$work/metrics")"
}
saved=$(find "$work/saved" -mindepth 1 -maxdepth 1 -name 'slow-*' | wc -l)
[ "$saved" -eq 2 ] || fail "$saved folders were saved"
kill -0 $server || fail "the server has ended"

# Of a short watch all is looked at.
"$taillight" watch --pid $server --for 1s --json >"$work/short" 2>"$work/watch.err"
[ $? = 0 ] && [ "$(wc -l <"$work/short")" = 1 ] || fail "a watch of a second: $(cat "$work/short" "$work/watch.err")"

# Where nobody listens it says so, and waits.
nobody=$scraped # nobody serves metrics any more
"$taillight" watch --port "$nobody" --for 1s --json >"$work/short" 2>"$work/watch.err" || fail "a watch of nobody: exit $?"
jq -e --arg port "$nobody" '.requests == 0 and (.reason | contains("nobody listens") and contains("TCP port " + $port + ";"))' \
    "$work/short" >/dev/null || fail "nobody is watched: $(cat "$work/short")"
grep -q "TCP port $nobody; on which somebody does: .*; it is waited for" "$work/watch.err" || fail "nothing is said at once"
"$taillight" capture --port "$nobody" --out "$work/nobody" --backend events </dev/null >"$work/ready" 2>"$work/capture.err" ||
    fail "a capture of nobody: exit $?"
jq -es '.[0].warnings | any(contains("nobody listens"))' "$work/ready" >/dev/null || fail "a capture of nobody does not say so"

refused() { # PATTERN OPTIONS...
    "$taillight" watch "${@:2}" >"$work/out" 2>"$work/refused.err"
    [ $? -eq 2 ] || fail "exit $? instead of 2: ${*:2}"
    grep -qF -- "$1" "$work/refused.err" || fail "does not say \"$1\": ${*:2}"
}
refused 'there is no process 4194303' --pid 4194303
refused 'what is to be watched?'
refused 'neither like' --port 1 --trigger 'p98>1ms'
refused 'cannot listen there: Cannot assign' --port 1 --metrics 192.0.2.1:9
refused 'cannot resolve "256.1.1.1"' --port 1 --metrics 256.1.1.1:9
refused 'not like 127.0.0.1:9411' --port 1 --metrics ::1:9411
refused 'not like 127.0.0.1:9411' --port 1 --metrics 9411
refused 'half a second' --port 1 --interval 1ms
refused 'nothing would be shown' --port 1 --for 1s --interval 2s
kill $server $other
exit 0
