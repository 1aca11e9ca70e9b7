#!/usr/bin/env bash
# However a run ends, it says why, in time, and leaves nothing running and nothing changed: killed
# server, killed load, killed capture, Ctrl-C, SIGTERM, SIGKILL of the run itself, a server that
# cannot start, a full disk. Hosts are network namespaces where they can be made, else local.
# Runs beside others: how a run ends does not hang on what else runs.
. tests/experiments/run_lib.sh
need_program memcached memcached
need_program sqlite3 sqlite3
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
kind=local
unshare -n true 2>/dev/null && kind=netns
claim_port

# A run of 2 minutes, which no stalled test can outlast, in the background: $pid, $run, and its namespaces in $spaces.
start_run() { # NAME [MORE YAML [OPTION...]]
    run="$work/$1"
    experiment "$work/$1.yaml" $kind 2k 120s <<EOF
servers: {cache: {kind: memcached, threads: 1, port: $port}}
${2:-}
EOF
    "$taillight" run "$work/$1.yaml" --out "$run" "${@:3}" >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
    await grep -q 'loading 120' "$work/$1.err" || fail "$1: the load does not begin"
    await grep -qe '"--announce"\|--announce' "$run/commands.log" || fail "$1: no load in commands.log"
    spaces=""
    [ $kind = netns ] && spaces=$(namespaces_of "$run")
    sleep 0.3
}

# It ends half a run before its load would, with that exit code and a line that matches; nothing is
# left.
ended() { # NAME EXIT PATTERN
    run_has_ended "$1" "$2" "$3"
    [ ! -s "$work/$1.out" ] || fail "$1: prints on stdout"
    check_not_whole "$run"
    check_nothing_left "$run" $port "$spaces"
    echo "$1: $(tail -n 1 "$work/$1.err")"
}

start_run killed-server
signal_to KILL "memcached.* -p $port "
ended killed-server 1 'the server `cache` was killed by signal 9 \(Killed\); the last line of .*server-cache.log'

# A load leaves its samples until then, whether they fit into its memory or not.
has_written() { [ -n "$(find "$run/client" -name 'samples.tlog.*.partial' -size +16k)" ]; }
ways=(killed-load)
is_long && ways+=('killed-long-load --set load.memory=16MiB')
for how in "${ways[@]}"; do
    read -r name options <<<"$how"
    # shellcheck disable=SC2086 # several words
    start_run "$name" '' $options
    await has_written || fail "$name: writes no samples"
    signal_to STOP "taillight capture .*$run" # it takes its time to write, as on a busy machine
    signal_to KILL "taillight load .*$run"
    sleep 3
    signal_to CONT "taillight capture .*$run"
    ended "$name" 1 'the load generator was killed by signal 9'
    "$taillight" analyze "$run" --quiet --out "$work/of-load" >"$work/analyzed" 2>"$work/analyze.err"
    [[ $? == [04] ]] && grep -q 'The load was killed: what it had written ends [0-9.]* s after its begin' "$work/of-load/summary.json" ||
        fail "$name: what it left cannot be analyzed: $(cat "$work/analyzed")"
    rm -r "$work/of-load"
done

start_run interrupted
kill -INT $pid
ended interrupted 1 'interrupted'

# Tuning of this very machine, undone also when the run is killed.
setting=/proc/sys/net/ipv4/tcp_autocorking
tuning=""
if [ -w $setting ] && [ $kind = netns ]; then
    before=$(cat /proc/sys/vm/stat_interval)
    # An interrupt that may be moved: to the other core, if it stands on one.
    irq="" irq_before=""
    for file in /proc/irq/[0-9]*/smp_affinity_list; do
        irq_before=$(cat "$file")
        echo "$irq_before" 2>/dev/null >"$file" || continue
        irq=$(basename "$(dirname "$file")")
        break
    done
    core=0
    [ "$irq_before" = 0 ] && core=1
    tuning="tuning: {server: [{sysctl: {vm.stat_interval: 7}}, {rps: {cores: [1]}}, {cstates: 0us},
        {coalescing: {nic: lo, rx_usecs: 0}} ${irq:+, {irq_affinity: {irqs: [$irq], cores: [$core]\}\}}]}"
fi
start_run killed "$tuning"
tuned() { sqlite3 :memory: "select json_extract(value, '\$.$2') from
    json_each(readfile('$run/experiment.json'), '\$.tuned')
    where json_extract(value, '\$.setting') = '$1'"; }
if [ -n "$tuning" ]; then
    [ "$(cat /proc/sys/vm/stat_interval)" = 7 ] || fail "killed: not tuned"
    [ "$(tuned sysctl old) $(tuned sysctl applied)" = "$before 1" ] || fail "killed: the sysctl's report"
    [ "$(tuned rps value) $(tuned rps applied)" = "2 1" ] || fail "killed: the report on RPS"
    # What the loopback device lacks is reported and ends nothing.
    [ "$(tuned coalescing applied)" = 0 ] || fail "killed: the report on coalescing"
    grep -q "tuning: coalescing lo is not set on host server: Operation not supported" \
        "$work/killed.err" || fail "killed: no warning of coalescing"
    [ -z "$irq" ] || [ "$(cat "/proc/irq/$irq/smp_affinity_list")" = $core ] || fail "killed: IRQ $irq"
fi
await has_written || fail "killed: its load writes no samples"
kill -9 $pid
ended killed 137 ''
# Its load and its capture have written what they had, which can be analyzed.
for file in client/load.json client/samples.tlog server/capture.json server/clock.tlog; do
    [ -s "$run/$file" ] || fail "killed: there is no $file: $(cat "$run"/logs/load.log "$run"/logs/capture.log)"
done
"$taillight" analyze "$run" --quiet --out "$work/of-killed" >"$work/analyzed" 2>"$work/analyze.err"
[[ $? == [04] ]] && grep -q 'interrupted after' "$work/of-killed/summary.json" || fail "killed: what it left cannot be analyzed"
[ -z "$tuning" ] || [ "$(cat /proc/sys/vm/stat_interval)" = "$before" ] || fail "killed: still tuned"
[ -z "$tuning" ] || [ -z "$irq" ] || [ "$(cat "/proc/irq/$irq/smp_affinity_list")" = "$irq_before" ] ||
    fail "killed: IRQ $irq is not back"
[ -z "$tuning" ] || echo "tuning undone: stat_interval $before, IRQ ${irq:-none} $irq_before"

# A server that ends at once: its own words.
run="$work/refused"
experiment "$work/refused.yaml" $kind 2k 1s <<EOF
servers: {cache: {kind: memcached, port: $port, options: [--no-such-option]}}
EOF
"$taillight" run "$work/refused.yaml" --out "$run" >"$work/refused.out" 2>"$work/refused.err" &
pid=$! spaces=""
ended refused 1 'the server `cache` ended with exit code [0-9]+; the last line of .*: .+'

rest_is_long

start_run killed-capture
signal_to KILL "taillight capture .*$run"
ended killed-capture 1 'the capture was killed by signal 9'

start_run terminated
kill -TERM $pid
ended terminated 1 'interrupted'

# A keeper that does not answer keeps nobody waiting: it undoes all when it goes on.
start_run left
keeper=$(pgrep -P $pid taillight-keep | head -n 1)
[ -n "$keeper" ] || fail "left: there is no keeper"
kill -STOP "$keeper"
kill -INT $pid
await grep -q '^taillight: interrupted' "$work/left.err" || fail "left: does not say that it is interrupted"
kill -CONT "$keeper"
ended left 1 'interrupted: what is not yet undone its keepers undo meanwhile'
grep -q 'run: interrupted: left the rest to the keepers' "$run/commands.log" || fail "left: commands.log does not say so"

# A server has as long to listen as it says.
run="$work/silent" spaces=""
experiment "$work/silent.yaml" $kind 2k 1s <<EOF
servers: {cache: {kind: command, command: [sleep, '60'], port: $port, shim: false, ready_within: 200ms}}
EOF
"$taillight" run "$work/silent.yaml" --out "$run" >"$work/silent.out" 2>"$work/silent.err" &
pid=$!
ended silent 1 'the server `cache` does not listen on .* after 0.2 s; .*\(`ready_within`\)'

# A full disk: the folder on a file system too small for the samples.
if mkdir "$work/small" && mount -t tmpfs -o size=3m tmpfs "$work/small" 2>/dev/null; then
    run="$work/small/run"
    experiment "$work/full.yaml" $kind 20k 2s <<EOF
servers: {cache: {kind: memcached, threads: 1, port: $port}}
EOF
    "$taillight" run "$work/full.yaml" --out "$run" >"$work/full.out" 2>"$work/full.err" &
    pid=$! spaces=""
    ended full 1 'No space left on device'
    umount "$work/small"
else
    skip "no tmpfs can be mounted here, so no disk can be filled; the rest passed"
fi
