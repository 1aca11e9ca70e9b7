#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A token bucket makes one link of a bridge slow for a tenth of a second, then another on the way back: the run's
# first cause of the requests that the client's and the server's own stamps show to have been long on the network is
# the queue at that link, in 95 of 100 of them, and the links' times add up to the network's.
. tests/experiments/run_lib.sh
need_capture
need_program tc iproute2
unshare -n tc qdisc add dev lo root tbf rate 1gbit burst 100k limit 10m 2>/dev/null || skip "tc makes no token bucket here"

experiment "$work/x.yaml" netns 2k 2s <<'END'
servers: {cache: {threads: 1}}
neighbours:
  slow-links:
    host: switch
    command:
      - sh
      - -e
      - -c
      - >-
        fast="tbf rate 1gbit burst 100k limit 10m" slow="burst 1600 limit 10m";
        for link in to2 to0; do tc qdisc add dev $link root $fast; done;
        sleep 0.4; tc qdisc change dev to2 root tbf rate 800kbit $slow;
        sleep 0.1; tc qdisc change dev to2 root $fast;
        sleep 0.5; tc qdisc change dev to0 root tbf rate 2mbit $slow;
        sleep 0.1; tc qdisc change dev to0 root $fast
diagnose: {slice: '>1ms'}
capsule: {hops: [to1@client, to0@switch, to2@switch, to1@server]}
END
# Hosts are numbered as they are listed: client 0, switch 1, server 2.
sed -i -e '/^  server:/i \  switch: {kind: bridge}' \
    -e 's/connections: 16, depth: 64/connections: 256, depth: 4/' "$work/x.yaml"

# How many requests were long on a way, above all, and of how many of them the first cause is a queue: WAY INTERFACE
blamed() {
    sqlite3 -separator ' ' "$run/run.db" "
        with first as (select request, name, max(ns) from attributions natural join causes
            where diagnosis = (select id from diagnoses where lifetime = 'whole' limit 1) group by request)
        select count(*), coalesce(sum(name = 'in the queue of $2 (tbf)'), 0)
        from stages join first using (request) join requests on id = request
        where $1 > 2000000 and $1 * 2 > latency_ns"
}
check_ways() {
    local way queue long right
    run="$work/run"
    conclusive_try "$work/x.yaml" || return 1
    while IFS='|' read -r way queue; do
        read -r long right < <(blamed "$way" "$queue")
        echo "the queue of $queue: the first cause of $right of $long requests"
        [ "$long" -ge 30 ] && [ $((right * 100)) -ge $((long * 95)) ] || return 1
    done <<END
network_to_server_ns|to2@switch
network_to_client_ns|to0@switch
END
}
judged_tries check_ways || fail "$(tail -n 40 "$work/out")"

# What the parts of a way take adds up to it, on average, as each message's does.
sqlite3 :memory: "select json_extract(value, '\$.way'), sum(json_extract(value, '\$.mean_us') *
    iif(json_extract(value, '\$.part') like 'all of%', -1, 1) * json_extract(value, '\$.messages')) /
    max(json_extract(value, '\$.messages')) from json_each(readfile('$run/summary.json'), '\$.hops.parts') group by 1" \
    >"$work/sums"
[ "$(wc -l <"$work/sums")" = 2 ] || fail "not two ways: $(cat "$work/sums")"
awk -F'|' '$2 > 0.001 || $2 < -0.001 { exit 1 }' "$work/sums" || fail "parts do not add up: $(cat "$work/sums")"
for way in server client; do
    divided=$(json "$run/summary.json" "\$.hops.divided_to_$way") requests=$(json "$run/summary.json" '$.hops.requests')
    [ $((divided * 100)) -ge $((requests * 99)) ] || fail "only $divided of $requests are divided on the way to the $way"
done
grep -q 'Hop by hop' "$work/out" || fail "no table of hops"

# Packets that carry their stamps are longer on their way, and to the capture of events what they were.
sed -e 's/duration: 2s/duration: 300ms/' -e '/^neighbours:/,/^diagnose:/d' -e 's/^capsule: {/&carry: true, /' \
    "$work/x.yaml" >"$work/carry.yaml"
check_carried() {
    "$taillight" run "$work/carry.yaml" --out "$work/carry$1" --quiet >"$work/carry.out" 2>"$work/run.err"
    local status=$? requests joined divided
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "exit $status"
    requests=$(json "$work/carry$1/summary.json" '$.requests') joined=$(json "$work/carry$1/summary.json" '$.joined')
    divided=$(json "$work/carry$1/summary.json" '$.hops.divided_to_client')
    echo "carried: $joined of $requests requests joined, the replies of $divided divided"
    [ $((joined * 100)) -ge $((requests * 95)) ] && [ $((divided * 100)) -ge $((requests * 75)) ]
}
check_carried 1 || check_carried 2 || fail "$(tail -n 30 "$work/carry.out")"
