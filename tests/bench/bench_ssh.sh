#!/usr/bin/env bash
# The same experiment on this machine (hosts of kind netns) and over a real sshd (the same two cores,
# as hosts behind ssh in namespaces with a cable of the same kind): do both name the same causes, and
# how far are shares and percentiles apart? Rounds alternate the two ways and which goes first. The
# experiment is quickstart-noisy-neighbour.yaml: without its culprit in the first half, with it in
# the second. ROUNDS=N (5), HALF=SECONDS (3).
. tests/experiments/run_lib.sh
. tests/experiments/ssh/ssh_lib.sh
build=$(cd "$BUILD" && pwd)
need_program jq jq
need_capture
# The client's machine is that core; and where the controller is a machine of its own, it is there.
sshd_cores[client]=1
ssh_hosts client server
rounds=${ROUNDS:-5} half=${HALF:-3}

# Between the hosts a cable like the one that netns hosts have, and nothing else's packets on it.
ip link add data0 netns "ssh$$-client" type veth peer name data0 netns "ssh$$-server"
far client ip address add 10.247.0.2 peer 10.247.0.3 dev data0
far server ip address add 10.247.0.3 peer 10.247.0.2 dev data0
for host in client server; do far $host ip link set data0 up; done

# experiment_over WAY: what client and server are; nothing else differs.
experiment_over() {
    local client='{kind: netns, cores: [1]}' server='{kind: netns, cores: [0]}'
    local behind="nic: data0, ssh_config: $ssh_config"
    if [ "$1" = ssh ]; then
        client="{kind: ssh, address: client, cores: [1], $behind, directory: $work/client-files}"
        server="{kind: ssh, address: server, cores: [0], $behind, directory: $work/server-files}"
    fi
    sed -e "s|^  client: .*|  client: $client|" -e "s|^  server: .*|  server: $server|" \
        -e "s/duration: 10s/duration: $((2 * half))s/" -e "s/start: 5s, stop: 10s/start: ${half}s, stop: $((2 * half))s/" \
        -e "s/0s-5s, 5s-10s/0s-${half}s, ${half}s-$((2 * half))s/" experiments/quickstart-noisy-neighbour.yaml
    # Of a netns host's cable this is so anyway.
    [ "$1" != ssh ] || echo 'tuning: {client: [{rps: {nic: data0}}], server: [{rps: {nic: data0}}]}'
}
for way in local ssh; do
    experiment_over $way >"$work/$way.yaml"
    grep -q "start: ${half}s" "$work/$way.yaml" && [ "$(grep -c "kind: ${way/local/netns}" "$work/$way.yaml")" = 2 ] ||
        fail "the example has changed; so must this benchmark"
done

# A half of a run as one line of JSON: its percentiles over all requests, and each cause's part of
# what the slowest 1 % took longer.
half_line() { # WAY ROUND HALF-NUMBER NAME
    sqlite3 "$work/run/run.db" "
        with d as (select * from diagnoses where id = $3),
             r as (select latency_ns, row_number() over (order by latency_ns is null, latency_ns) as place,
                          count(*) over () as requests
                   from requests, d where intended_ns between from_ns and to_ns),
             whole as (select sum(deviation_ns) as ns, count(*) as messages from diagnosed where diagnosis = $3),
             c as (select name || ' (' || role || ')' as cause, 100 * total_ns / whole.ns as share,
                          total_ns / whole.messages / 1000 as us
                   from causes, whole where diagnosis = $3 order by total_ns desc)
        select json_object('way', '$1', 'round', $2, 'half', '$4',
            'p50', (select latency_ns / 1000.0 from r where place = (requests + 1) / 2),
            'p99', (select latency_ns / 1000.0 from r where place = (requests * 99 + 99) / 100),
            'coverage', (select 100 * coverage_median from d),
            'causes', (select json_group_array(json_object('cause', cause, 'share', share, 'us', us)) from c))" \
        >>"$work/lines" || fail "run.db cannot be asked"
}

once() { # WAY ROUND
    local status
    rm -rf "$work/run"
    setsid --wait ip netns exec "ssh$$-here" taskset -c "$([ "$1" = ssh ] && echo 1 || echo 0,1)" bash -c "$prefer"' "$@"' run \
        "$taillight" run "$work/$1.yaml" --quiet --out "$work/run" >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status = 0 ] || [ $status = 4 ] || fail "$1: exit $status"
    [ $status = 0 ] || echo "round $2, $1: $(json "$work/run/summary.json" '$.verdict')"
    half_line "$1" "$2" 1 quiet
    half_line "$1" "$2" 2 neighbour
}

for ((round = 1; round <= rounds; round++)); do
    order=(local ssh)
    [ $((round % 2)) = 1 ] || order=(ssh local)
    for way in "${order[@]}"; do once $way $round; done
done

# For each half: percentiles and the causes that either way has among its first three, as the
# median and the range over the rounds; and how often the first cause was the same.
jq -s '
    def spread: sort | {value: .[(length - 1) / 2 | floor], runs: length, min: .[0], max: .[-1]};
    def share(cause; key): [.causes[] | select(.cause == cause) | .[key]][0] // 0;
    def both(f): {local: [.[] | select(.way == "local") | f] | spread, ssh: [.[] | select(.way == "ssh") | f] | spread};
    group_by(.half) | map({key: .[0].half, value: (. as $all
        | {p50_us: both(.p50), p99_us: both(.p99), coverage: both(.coverage),
           tops: [group_by(.round)[] | map({key: .way, value: .causes[0].cause}) | from_entries],
           causes: ([$all | group_by(.way)[] | [.[].causes[].cause] | unique[] as $cause
                     | {cause: $cause, share: ([$all[] | share($cause; "share")] | add / length)}]
                    | unique_by(.cause) | sort_by(-.share)[:6]
                    | map(.cause as $cause | {cause: $cause, share: ($all | both(share($cause; "share"))),
                                              us: ($all | both(share($cause; "us")))}))})})
    | from_entries' "$work/lines" >"$work/table" || fail "the table cannot be made"

jq -r '
    def n: if . >= 100 then round else (. * 10 | round / 10) end | tostring;
    def cell: "\(.value | n) (\(.min | n)-\(.max | n))";
    def row(name; unit): "  \(name)|\(.local | cell)|\(.ssh | cell)|\(unit)";
    to_entries[] | "\(.key)|local: median (range)|over ssh|",
    (.value | (.p50_us | row("p50"; "us")), (.p99_us | row("p99"; "us")), (.coverage | row("coverage"; "%")),
        (.causes[] | .cause as $cause | (.share | row($cause; "% of the extra time")),
            (.us | row(""; "us on a slow request"))),
        "  first cause the same in \([.tops[] | select(.local == .ssh)] | length) of \(.tops | length) rounds|" +
            ([.tops[].local] | unique | join(", ")) + "|" + ([.tops[].ssh] | unique | join(", ")) + "|")' \
    "$work/table" | awk -F '|' '{ printf "%-38s  %-24s  %-24s  %s\n", $1, $2, $3, $4 }'

mkdir -p "$build/bench"
jq '{name: "ssh", metrics: ([to_entries[] | .key as $half | .value
    | (["p50_us", "p99_us", "coverage"][] as $what | .[$what] | to_entries[]
        | {key: "\($half)_\($what | sub("_us"; ""))_\(.key)", value: (.value + {unit: (if $what == "coverage" then "%" else "us" end)})}),
      (.causes[] | .cause as $cause | .share | to_entries[]
        | {key: "\($half)_\($cause | gsub(" "; "_"))_share_\(.key)", value: (.value + {unit: "%"})}),
      {key: "\($half)_first_cause_the_same", value:
        ([.tops[] | if .local == .ssh then 100 else 0 end] | {value: (add / length), unit: "%", runs: length, min: min, max: max})}]
    | from_entries)}' "$work/table" >"$build/bench/ssh.json" || fail "no ssh.json"
