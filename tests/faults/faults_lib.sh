# SPDX-License-Identifier: MIT
#
# Runs labserver under a fault of tests/faults/faults.table and scores the diagnosis. Sourced;
# expects $BUILD.
. tests/experiments/run_lib.sh
build=$(cd "$BUILD" && pwd)

need_faults() {
    need_capture
    need_program jq jq
    need_program chrt util-linux
    chrt -r 10 true 2>/dev/null || skip "no real-time scheduling here: it takes root"
}

# One column of a class's row: column CLASS NUMBER
column() {
    awk -F ' *[|] *' -v class="$1" -v column="$2" '$1 == class { print $column }' \
        tests/faults/faults.table
}

classes() { awk -F ' *[|] *' '!/^#/ && NF == 6 { print $1 }' tests/faults/faults.table; }

# How long a run takes that meets enough of them. The timer, which shows a call, comes every 4 ms where the kernel has 250 a
# second: so these last long, and come rarely.
duration_of() { case "$1" in 'kernel work in a call') echo 6s ;; *) echo 3s ;; esac; }

# Writes the experiment: fault_experiment CLASS DURATION LOG. With BYSTANDER set, a program of the
# lowest priority uses all that is left of the server's core, and of the client's where the fault is
# there.
fault_experiment() {
    local by fault server second='' neighbours='' client=1 tuning='' sleep='' rate=5k protocol=''
    local connections=32 depth=16 timeout=''
    by=$(column "$1" 2)
    fault=$(column "$1" 3)
    server="\"$build/labserver\", \"--port\", \"{port}\", \"--service\", \"fixed:10us\""
    local burn=burn # real-time programs take the core from it at once
    [[ $fault = quota* ]] && burn='burn-idle'
    local inject="\"$build/tests/faults/inject\", \"${fault// /\", \"}\", \"$3\""
    case "$by" in
        limited)
            server+=", \"--fault\", \"$fault\", \"--fault-log\", \"$3\""
            neighbours="  limit: {host: server, kind: command, command: [\"$build/tests/faults/inject\", limit], cores: [1]}"
            ;;
        held) # what lets its writes go again are kernel threads, which real-time programs go before
            sleep=', sleep: true'
            server+=", \"--fault\", \"sync,1us,40ms\", \"--fault-log\", \"$3\""
            neighbours="  hold: {host: server, kind: command, command: [$(printf '"%s", ' "$build/tests/faults/inject" $fault "$work" | sed 's/, $//')], cores: [0]}"
            ;;
        compacts) # the kernel's worker on the client's core has a part in it, which the load must let run
            sleep=', sleep: true'
            server+=", \"--fault\", \"$fault\", \"--fault-log\", \"$3\""
            ;;
        lasting) # each holds up a part of a second's requests: not all of so many are taken apart
            rate=500
            server+=", \"--fault\", \"$fault\", \"--fault-log\", \"$3\""
            ;;
        labserver) server+=", \"--fault\", \"$fault\", \"--fault-log\", \"$3\"" ;;
        inject)
            neighbours="  fault: {host: server, kind: command, command: [$inject], cores: [0]}"
            ;;
        load) neighbours="  fault: {host: client, kind: command, command: [$inject], cores: [1]}" ;;
        receiver) # the client, which sleeps between requests, shares the server's core
            client=0 sleep=', sleep: true'
            tuning="tuning: {server: [{rps: {cores: [1]}}]}"
            neighbours="  fault: {host: server, kind: command, command: [$inject], cores: [1]}"
            ;;
        second) # asked at its own pace, before the load that spins beside it; it notes when it is at it
            second="  second: {host: server, kind: command, port: 11212, shim: true, command: [\"$build/labserver\",
         \"--port\", \"{port}\", \"--service\", \"fixed:10us\", \"--fault\", \"$fault\", \"--fault-log\", \"$3\"]}"
            neighbours="  fault: {host: client, kind: command, cores: [1],
         command: [chrt, -r, \"20\", \"$build/tests/faults/inject\", request, 1ms, 7ms, \"$3.asked\", \"10.181.0.2\"]}"
            ;;
        client | reader) # another client of the same server, which notes when it waits for its replies
            sleep=', sleep: true' server+=', "--protocol", "lab"' protocol='protocol: lab'
            if [ "$by" = reader ]; then # when the server waits for it is known to the server only
                server+=", \"--fault\", \"room,1us,2us\", \"--fault-log\", \"$3\""
                inject=${inject/%"\"$3\""/"\"$3.asked\""}
            fi
            neighbours="  fault: {host: client, kind: command, command: [$inject, \"10.181.0.2\"], cores: [1]}"
            ;;
        backend*) # it is asked once a request: over one connection, or over one for four workers
            local seen=true pool=1 threads=1
            [ "$by" = backend_unseen ] && seen=false
            [ "$by" = backend_pool ] && threads=4
            server+=", \"--backend\", \"11212,$pool\", \"--threads\", \"$threads\""
            rate=500
            second="  second: {host: server, kind: command, port: 11212, shim: $seen, command: [\"$build/labserver\",
         \"--port\", \"{port}\", \"--service\", \"fixed:10us\", \"--fault\", \"$fault\", \"--fault-log\", \"$3\"]}"
            ;;
        link_*) # from the server to the client, or back; what is lost takes TCP 200 ms
            local host=${by#link_from_} to=10.181.0.1
            [ "$host" = client ] && to=10.181.0.2
            rate=1k sleep=', sleep: true'
            neighbours="  fault: {host: $host, kind: command, command: [$inject, \"$to\"], cores: [1]}"
            ;;
        firewall)
            rate=1k sleep=', sleep: true'
            neighbours="  fault: {host: server, kind: command, command: [$inject], cores: [1]}"
            ;;
        deaf | syn) # few connections, none of which has room for a second request
            rate=400 connections=2 depth=1 timeout=', timeout: 10s' sleep=', sleep: true'
            server+=", \"--fault\", \"$fault\", \"--fault-log\", \"$3\""
            ;;
        python) # its only thread; Debian's has the places where collections begin and end
            rate=1k sleep=', sleep: true' protocol='protocol: http'
            server="\"/usr/bin/python3\", \"$PWD/tests/faults/collecting_server.py\", \"{port}\", $(printf '"%s", ' $fault)\"$3\""
            ;;
        halves) rate=1k sleep=', sleep: true' server+=", \"--fault\", \"$fault\", \"--fault-log\", \"$3\"" ;;
        network) # 10.181.0.2 is the second host
            neighbours="  sink: {host: server, kind: command, cores: [0],
         command: [\"$build/tests/faults/inject\", \"sink\"]}
  fault: {host: client, kind: command, command: [$inject, \"10.181.0.2\"], cores: [1]}"
            ;;
    esac
    [ -n "${BYSTANDER:-}" ] &&
        neighbours+="
  bystander: {host: server, kind: command, command: [\"$build/tests/faults/inject\", $burn], cores: [0]}"
    [ -n "${BYSTANDER:-}" ] && [ "$by" = load ] &&
        neighbours+="
  beside: {host: client, kind: command, command: [\"$build/tests/faults/inject\", burn], cores: [1]}"
    cat <<EOF
name: fault
hosts:
  client: {kind: netns, cores: [$client]}
  server: {kind: netns, cores: [0]}
$tuning
servers:
  lab: {host: server, kind: command, command: [$server], shim: true}
${second}
${neighbours:+neighbours:
$neighbours}
workload:
  $protocol
  keys: {count: 1k}
  values: {size: {fixed: 200}}
load: {to: lab, rate: $rate, arrivals: exponential, connections: $connections, depth: $depth, duration: $2, seed: 1$sleep$timeout}
EOF
}

# Somewhere to page out to, until the subshell that scores the class ends.
swap_on() {
    fallocate -l 320M "$work/swap" && chmod 600 "$work/swap" && mkswap -q "$work/swap" >/dev/null &&
        swapon "$work/swap" 2>"$work/swap.err" && trap 'swapoff "$work/swap"; rm "$work/swap"' EXIT
}

# How many pages this machine has read from its swap space.
pages_swapped_in() { awk '$1 == "pswpin" { print $2 }' /proc/vmstat; }

# The fault is nothing where the kernel keeps what it has written to its swap space.
# skip_unless_swapped CLASS PAGES_BEFORE STATUS
skip_unless_swapped() {
    local least=500 pages
    [[ $(column "$1" 3) = swap,* ]] || return 0
    grep -qs 'stay in memory' "$work"/run/logs/*.log "$work/run.err" &&
        skip "$1: $(grep -hs -m 1 'stay in memory' "$work"/run/logs/*.log "$work/run.err")"
    pages=$(($(pages_swapped_in) - $2))
    [ "$3" -eq 1 ] || [ $pages -ge $least ] || skip "$1: only $pages pages were read from the swap space"
}

# Whether the verdict says that a firewall threw segments away, where one did.
names_drops() {
    [[ $(column "$1" 2) != @(firewall|syn) ]] ||
        jq -e '.verdict | test("threw segments away: .*\\(NETFILTER_DROP\\)")' "$work/run/summary.json" >/dev/null
}

# Runs it and prints the scores, a line of JSON. Everything is a real-time program, so that what else
# the machine does is not what is measured; the load's arrivals are not what is tested either, so that
# its verdict of them (exit 4) does not matter. fault_score CLASS DURATION
fault_score() {
    local status attempt swapped
    if [[ $(column "$1" 2)$(column "$1" 3) = *@(limited|swap,)* ]]; then
        swap_on || skip "$1: nothing can be swapped to: $(cat "$work/swap.err")"
    fi
    [[ $(column "$1" 2) != @(firewall|syn) ]] || need_program nft nftables
    [ "$(column "$1" 2)" != python ] || need_program /usr/bin/python3 python3
    [ "$(column "$1" 2)" != held ] || [ -e "/sys/dev/block/$(stat -c %Hd:%Ld "$work")" ] ||
        skip "$1: $work is on no disk"
    for attempt in 1 2 3; do
        rm -rf "$work/run" "$work/fault.log"
        fault_experiment "$1" "$2" "$work/fault.log" >"$work/fault.yaml"
        swapped=$(pages_swapped_in)
        chrt -r 10 "$taillight" run "$work/fault.yaml" --out "$work/run" --quiet \
            >"$work/out" 2>"$work/run.err"
        status=$?
        rmdir /sys/fs/cgroup/{cpu/,}taillight-quota /sys/fs/cgroup/{memory/,}taillight-memory \
            /sys/fs/cgroup/{blkio/,}taillight-disk 2>/dev/null
        skip_unless_swapped "$1" "$swapped" $status
        [ $status -eq 0 ] || [ $status -eq 4 ] || fail "$1: the run ends with exit $status"
        names_drops "$1" || fail "$1: the verdict does not name the firewall: $(jq -r .verdict "$work/run/summary.json")"
        "$build/tests/faults/score" "$1" "$work/run" "$work/fault.log" "$(column "$1" 4)" \
            "$(column "$1" 5)" 2>"$work/score.err" && return
    done
    fail "$1: no score"
}

# Whether the scores are as good: good_enough JSON RIGHT ERROR COVERAGE_MEDIAN COVERAGE_MIN EXPLAINED
# The last: yes, or no where the fault must be located but not explained.
good_enough() {
    jq -e --argjson right "$2" --argjson error "$3" --argjson median "$4" --argjson least "$5" \
        --arg explained "$6" '
        .affected >= 10 and .stolen <= .affected and .untold <= 0.25 * .affected and .right >= $right * .affected and .bystander_ms <= 0.01 * .injected_ms
        and (if $explained == "yes" then
                 (.attributed_ms / .injected_ms - 1 | fabs) <= $error
                 and .coverage_median >= $median and .coverage_min >= $least
             else .coverage_median < 0.5 end)' >/dev/null <<<"$1"
}

# Whether one run of a class scores as good: score_try CLASS DURATION RIGHT ERROR COVERAGE_MEDIAN
# COVERAGE_MIN. Leaves its scores in $scores.
score_try() {
    local class=$1 duration=$2
    shift 2
    scores=$(fault_score "$class" "$duration")
    case $? in
        0) ;;
        77) skip "$scores" ;;
        *) echo "$scores"; exit 1 ;;
    esac
    print_scores "$scores"
    good_enough "$scores" "$@" "$(column "$class" 6)"
}

print_header() {
    printf '%-28s %8s %7s %7s %7s %7s %7s %10s %10s %9s %9s %9s\n' class affected right unseen lesser stolen \
        untold injected attributed coverage lowest bystander
}

print_scores() {
    jq -r '[.name, .affected, .right, .unseen, .lesser, .stolen, .untold, .injected_ms, .attributed_ms,
            100 * .coverage_median, 100 * .coverage_min, .bystander_ms] | @tsv' <<<"$1" |
        while IFS=$'\t' read -r name affected right unseen lesser stolen untold injected attributed median \
            least bystander; do
            printf '%-28s %8d %7d %7d %7d %7d %7d %7.1f ms %7.1f ms %7.1f %% %7.1f %% %6.2f ms\n' "$name" \
                "$affected" "$right" "$unseen" "$lesser" "$stolen" "$untold" "$injected" "$attributed" "$median" \
                "$least" "$bystander"
        done
    jq -r '.wrong | to_entries[] | "    taken for \(.key): \(.value)"' <<<"$1"
}
