#!/usr/bin/env bash
# What Time Capsule costs those whose packets it stamps: the paper's own table. Requests to memcached pass ten
# interfaces (two ends, four bridges) on their way; none, some or all of them are hops, which look or carry, and
# sample 1/1 or 1/16. Each round has every setting once, in an order of its own, and is compared with itself: the
# median over the rounds of what a setting adds to the latency at RATE (20k/s; 0: it is not measured) and takes from the
# throughput of a closed loop. No hops are measured twice a round: what the second time (0,again,1) differs from the first
# is what this machine makes of nothing, and a smaller figure in another row says nothing. What others have the cores for
# does not count in the first figure: ns in the programs for each packet that passes all of the way, and ns a run of each
# program, as the kernel times them (kernel.bpf_stats_enabled) in a closed loop of its own, since the timing takes as long
# as a short program. Nor does it in what the capsule's own process takes of a core for each of these packets (reader),
# in the closed loop. ROUNDS=N (7), SECONDS_EACH=S (1), HOPS="1 2 5 10", SAMPLES="1 1/16". For a busy machine REALTIME=1:
# the server, the load and the capsule are real-time processes (chrt -f), so that others do not have their cores; or
# SLEEP=1: the load at RATE sleeps between its requests, so that it has its core when it wants it. Requests only: fifteen
# hops are the most, and replies would pass ten more.
set -u
BUILD=${BUILD:-build}
export BUILD
. tests/profiler/capsule/route_lib.sh
rounds=${ROUNDS:-7} each=${SECONDS_EACH:-1} rate=${RATE:-20k}
read -r -a hop_counts <<<"${HOPS:-1 2 5 10}"
read -r -a samples <<<"${SAMPLES:-1 1/16}"
between=()
[ -z "${SLEEP:-}" ] || between=(--sleep)
ahead=()
[ -z "${REALTIME:-}" ] || ahead=(chrt -f 20)
hold_seconds=7200
stats=/proc/sys/kernel/bpf_stats_enabled
stats_were=$(cat $stats 2>/dev/null) || skip "the kernel times no BPF programs here"
[ -w $stats ] || skip "the kernel's timing of BPF programs cannot be turned on"
trap 'echo "$stats_were" >$stats; cleanup' EXIT
command -v bpftool >/dev/null || skip "there is no bpftool"
[ "$(nproc)" -ge 2 ] || skip "it takes two cores, one for the server and one for the load"

hold client
hold middle
hold server
in_namespace "$middle" sh -e -c "
    ip link add a0 type veth peer name eth0 netns $client
    ip link add d1 type veth peer name eth0 netns $server
    ip link add a1 type veth peer name b0
    ip link add b1 type veth peer name c0
    ip link add c1 type veth peer name d0
    for bridge in a b c d; do
        ip link add \$bridge-bridge type bridge
        for port in 0 1; do ip link set \$bridge\$port master \$bridge-bridge up; done
        ip link set \$bridge-bridge up
    done" || skip "bridges and veth pairs cannot be made here"
for end in "$client 1" "$server 2"; do
    in_namespace "${end% *}" sh -e -c "
        ip link set lo up
        ip addr add 10.99.0.${end#* }/24 dev eth0
        ip link set eth0 up" || fail "no addresses"
done
stop_cutting || skip "bridges here hand packets to iptables, and that cannot be changed"
way=("eth0:egress@$client=client" "a0:ingress@$middle" "a1:egress@$middle" "b0:ingress@$middle" "b1:egress@$middle"
    "c0:ingress@$middle" "c1:egress@$middle" "d0:ingress@$middle" "d1:egress@$middle" "eth0:ingress@$server=server")
nsenter -t "$server" -n "${ahead[@]}" taskset -c 0 memcached -u root -t 1 -l 10.99.0.2 -p 11211 -U 0 >"$work/memcached.err" 2>&1 &
children+=($!)
await in_namespace "$client" bash -c 'exec 3<>/dev/tcp/10.99.0.2/11211' || fail "memcached does not come up"
load() { in_namespace "$client" "${ahead[@]}" taskset -c 1 "$taillight" load --server 10.99.0.2:11211 --connections 8 --quiet --json "$@" </dev/null; }
load --prepare >/dev/null 2>"$work/prepare.err" || fail "no dataset"

# ns for which a process has had a core.
taken_of_cores() { awk '{ ns += $1 } END { printf "%.0f\n", ns }' /proc/"$1"/task/*/schedstat; }

# COUNT of the ten: both ends, and the others evenly between; one is the first.
hops_of() {
    for ((i = 0; i < $1; i++)); do printf -- '--hop %s ' "${way[$(($1 > 1 ? i * 9 / ($1 - 1) : 0))]}"; done
}

# A load's document, once it has the figures that are asked for: where others have the cores, a second may be too little
# for a percentile. What is measured again is said.
figures() { # NAME WHAT OPTION...
    local try status
    for try in 1 2 3 4 5; do
        printf -v "$1" %s "$(load --duration "${each}s" "${@:3}" 2>"$work/load.err"; echo $? >"$work/status")"
        read -r status <"$work/status"
        [ "$status" = 0 ] || [ "$status" = 4 ] || grep -q 'nothing was answered' "$work/load.err" || fail "the load ${*:3}: exit $status"
        jq -e "$2" <<<"${!1}" >/dev/null && return
        echo "measured again, no $2: $(tail -n 1 "$work/load.err")" >&2
    done
    fail "the load ${*:3}: no $2 in $try tries"
}

measure() { # ROUND SETTING: hops, kind and sample
    local hops kind sample capsule='' option=() lat='{}' thr timed reader=0 programs='{"all": 0, "each": {}}'
    IFS=, read -r hops kind sample <<<"$2"
    if [ "$hops" != 0 ]; then
        [ "$kind" = look ] || option=(--carry)
        # shellcheck disable=SC2046 # words
        "${ahead[@]}" "$taillight" capsule $(hops_of "$hops") "${option[@]}" --sample "$sample" --filter 'tcp dst port 11211' \
            --json >"$work/capsule.json" 2>"$work/capsule.err" &
        capsule=$!
        children+=($capsule)
        measures "$work/capsule.err"
    fi
    [ "$rate" = 0 ] || figures lat '.latency_us | .p50 and .p99' --rate "$rate" "${between[@]}"
    [ -z "$capsule" ] || reader=$(taken_of_cores "$capsule")
    figures thr .achieved_rate --rate max
    if [ -n "$capsule" ]; then
        reader=$(jq --argjson ns $(($(taken_of_cores "$capsule") - reader)) --argjson each "$each" '$ns / (.achieved_rate * $each)' <<<"$thr")
        echo 1 >$stats
        figures timed .achieved_rate --rate max
        echo "$stats_were" >$stats
        programs=$(bpftool -j prog show | jq -c --argjson hops "$hops" --argjson own "$(cat "/proc/$capsule/fdinfo/"* | awk '/^prog_id:/ { print $2 }' | jq -s -c unique)" '
        [.[] | select(.id as $id | $own | index($id)) | select(.run_cnt > 0)] | {
            all: ((map(.run_time_ns) | add) / (map(.run_cnt) | add) * $hops),
            each: (group_by(.name) | map({key: .[0].name, value: ((map(.run_time_ns) | add) / (map(.run_cnt) | add))}) | from_entries)}')
        kill -INT $capsule
        wait $capsule || fail "$2: the capsule: exit $?"
        jq -e --argjson hops "$hops" '[.routes[] | select((.hops | length) == $hops) | .packets] | add > 0' \
            "$work/capsule.json" >/dev/null || fail "$2: packets did not pass all hops: $(jq -c '[.routes[] | [.packets, (.hops | length)]]' "$work/capsule.json")"
    fi
    jq -n -c --arg setting "$2" --argjson round "$1" --argjson lat "$lat" --argjson thr "$thr" --argjson programs "$programs" --argjson reader "$reader" '{$setting, $round, $programs, $reader,
        p50: $lat.latency_us?.p50, p99: $lat.latency_us?.p99, rps: $thr.achieved_rate}' >>"$work/lines"
    rm -f "$work/capsule.err"
}

settings=("0,none,1" "0,again,1")
for hops in "${hop_counts[@]}"; do
    for sample in "${samples[@]}"; do
        settings+=("$hops,look,$sample")
        [ "$hops" = 1 ] || settings+=("$hops,carry,$sample") # one hop is no way
    done
done
for ((round = 1; round <= rounds; round++)); do
    while read -r setting; do measure "$round" "$setting"; done < <(printf '%s\n' "${settings[@]}" | shuf)
done

# What each setting adds to the round's own 0,none.
jq -s '
    def added(before): if . and before then 100 * (. / before - 1) else null end;
    def spread: map(numbers) | sort | if length == 0 then null else {value: .[(length - 1) / 2 | floor], runs: length, min: .[0], max: .[-1],
        low: .[(length - 1) / 4 | floor], high: .[(length - 1) * 3 / 4 | floor]} end;
    group_by(.round) | map((map(select(.setting == "0,none,1"))[0]) as $plain | map({setting,
        p50: (.p50 | added($plain.p50)), p99: (.p99 | added($plain.p99)), rps: (.rps | added($plain.rps)),
        ns: .programs.all, each: .programs.each, reader, plain: [.p50, .p99, .rps]})) | add | group_by(.setting)
    | map({key: .[0].setting, value: {p50: (map(.p50) | spread), p99: (map(.p99) | spread), rps: (map(.rps) | spread),
        ns: (map(.ns) | spread), reader: (map(.reader) | spread), each: (map(.each | to_entries) | add | group_by(.key) | map("\(.[0].key) \(map(.value) | spread.value | round)")),
        plain: [(map(.plain[0]), map(.plain[1]), map(.plain[2])) | spread.value?]}}) | from_entries' "$work/lines" >"$work/table" ||
    fail "the table cannot be made"
jq -r '
    def n: if . == null then "-" else . * 10 | round / 10 | tostring end;
    def cell: if . == null then "-" else "\(.value | n) (\(.low | n) to \(.high | n))" end;
    "hops,kind,sample|ns a packet|reader|p50, added %|p99, added %|throughput, added %|p50 us, p99 us, requests/s|ns a run",
    (to_entries | sort_by(.key | split(",") | [(.[0] | tonumber), .[1], .[2]])[]
        | "\(.key)|\(.value.ns | cell)|\(.value.reader | cell)|\(.value.p50 | cell)|\(.value.p99 | cell)|\(.value.rps | cell)|\(.value.plain | map(n) | join(", "))|\(.value.each | join(", "))")' "$work/table" |
    awk -F '|' '{ printf "  %-16s %-26s %-24s %-24s %-26s %-24s %-30s %s\n", $1, $2, $3, $4, $5, $6, $7, $8 }'
mkdir -p "$BUILD/bench"
jq '{name: "capsule", metrics: ([to_entries[] | .key as $setting | (.value | {ns, reader, p50, p99, rps}) | to_entries[] | select(.value)
    | {key: (($setting | gsub("[,/]"; "_")) + "_" + .key), value: (.value + {unit: (if .key == "ns" or .key == "reader" then "ns" else "%" end)})}] | from_entries)}' "$work/table" \
    >"$BUILD/bench/capsule.json" || fail "no capsule.json"
