#!/usr/bin/env bash
# Two servers of one program, on one port of one address, in network namespaces of their own, as containers are, whose
# clients have the same few ports, too: a watch has two, each with its own requests, in lines, page, metrics and windows.
# Runs beside others: what else is busy makes it wait, and nothing is timed.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program jq jq
claim_port
scraped=$port
shared=7000 # nobody else is in these namespaces
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$work/workload.yaml"

# The server of a namespace: begin_server NAME SERVICE. Its process is in ${server[NAME]}.
declare -A server asked
begin_server() {
    unshare -n sh -c 'ip link set lo up && sysctl -qw net.ipv4.ip_local_port_range="40000 40015" && exec "$@"' -- \
        "$BUILD/labserver" --port $shared --service "$2" >"$work/$1.out" 2>"$work/$1.err" &
    server[$1]=$!
    await grep -q ready "$work/$1.out" || fail "the $1 server does not listen"
}
begin_server quick fixed:10us
begin_server slow fixed:30ms

watch_try() {
    rm -rf "$work/saved" "$work/lines" "$work/page"
    "$taillight" watch --pid "${server[quick]},${server[slow]}" --json --budget 0 --trigger '>25ms' --save "$work/saved" --saves 2 \
        --metrics ":$scraped" >"$work/lines" 2>"$work/watch.err" &
    watch=$!
    "$taillight" watch --pid "${server[quick]},${server[slow]}" >"$work/page" 2>"$work/page.err" &
    page=$!
    await test -s "$work/lines" -a -s "$work/page" || fail "the watches do not begin"
    loads=()
    for load in "quick 200" "slow 20"; do
        nsenter -t "${server[${load% *}]}" -n "$taillight" load --server 127.0.0.1:$shared --workload "$work/workload.yaml" \
            --rate "${load#* }" --duration 2s --connections 8 --depth 1 --sleep --json --quiet >"$work/${load% *}.json" 2>"$work/load.err" &
        loads+=($!)
    done
    for load in "${loads[@]}"; do
        wait "$load"
        [[ $? == [04] ]] || fail "a load ended with an error"
    done
    for name in quick slow; do asked[$name]=$(jq .answered "$work/$name.json"); done
    seen() { jq -es --argjson all $((asked[quick] + asked[slow])) 'map(.requests) | add >= $all' "$work/lines" >/dev/null; }
    await seen || { echo "of ${asked[*]} requests are seen: $(jq -c .requests "$work/lines" | tr '\n' ' ')"; return 1; }
    exec 3<>"/dev/tcp/127.0.0.1/$scraped" && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3 >"$work/metrics"
    kill -INT $watch $page
    wait $watch || fail "the watch ended with $?"
    wait $page || fail "the watch with a page ended with $?"
    # A load asks first what the server speaks, on a connection of its own.
    jq -es --argjson quick "${asked[quick]}" --argjson slow "${asked[slow]}" '[.[].servers[]] | group_by(.server)
        | map({name: .[0].server, requests: (map(.requests) | add), p50: (map(.latency_us.p50 // 0) | max)}) | sort_by(.p50)
        | length == 2 and (.[0].requests | . >= $quick and . <= $quick + 10) and (.[1].requests | . >= $slow and . <= $slow + 10)
            and .[0].p50 < 25000 and .[1].p50 > 25000
            and ([.[].name] | sort | .[0] == "labserver:7000" and (.[1] | test("^labserver:7000 \\([0-9]+\\)$")))' "$work/lines" >/dev/null ||
        { echo "of ${asked[quick]} and ${asked[slow]}: $(jq -c '[.servers[] | [.server, .requests, .latency_us.p50]]' "$work/lines" | tr '\n' ' ')"; return 1; }
    mapfile -t names < <(jq -r '.servers[].server' "$work/lines" | sort -u)
    for name in "${names[@]}"; do
        grep -qF "server=\"$name\"" "$work/metrics" || fail "not among the metrics: $name"
    done
    # The page is another watch's: whichever server that one saw second has its process in its name.
    pages=$(grep -oE '  labserver:7000( \([0-9]+\))? ' "$work/page" | sort -u)
    [ "$(wc -l <<<"$pages")" = 2 ] || fail "on the page there are not two servers: $pages"
    folder=$(find "$work/saved" -mindepth 1 -maxdepth 1 -name 'slow-*' | head -1)
    "$taillight" analyze "$folder" --quiet --json >"$work/window.json" 2>"$work/analyze.err"
    [[ $? == [04] ]] || fail "what was saved cannot be analyzed"
    jq -e '.without_client and .joined > 0 and .latency_us.max > 25000' "$work/window.json" >/dev/null ||
        { echo "saved: $(jq -c '[.verdict, .joined, .latency_us.max]' "$work/window.json")"; return 1; }
}
judged_tries watch_try || fail "two servers on one port of two namespaces are not told apart"
kill "${server[@]}"
exit 0
