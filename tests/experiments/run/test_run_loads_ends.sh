#!/usr/bin/env bash
# However one of several loads ends, the run ends with it, says which it was and why, and keeps what the
# others measured: here a load beside the first killed, and Ctrl-C, which ends all; the first killed, a full
# disk for one load's samples and SIGTERM in test_long_run_loads_ends.sh.
# Runs beside others: how a run ends does not hang on what else runs.
. "$(dirname "$0")/../run_lib.sh"
need_program jq jq
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
claim_port

# A run of 2 minutes, which no stalled test can outlast, in the background: $pid, $run.
start_run() { # NAME [KEYS OF THE SECOND LOAD [FOLDER]]
    run=${3:-$work}/$1
    cat >"$work/$1.yaml" <<EOF
name: $1
hosts: {client: {cores: [1]}, server: {cores: [0]}}
servers: {lab: {kind: labserver, threads: 1, port: $port}}
workload: {protocol: lab, mix: {call: 1}, keys: {count: 100}, service: "fixed:1us"}
load: {name: ask, rate: 300, duration: 120s, connections: 2, sleep: true}
loads: {batch: {${2:-rate: 200}, connections: 2, sleep: true}}
capture: {backend: none}
EOF
    "$taillight" run "$work/$1.yaml" --out "$run" >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
    has_answers() { [ -n "$(find "$run/$1" -name 'samples.tlog*' -size +128c)" ]; } # behind its header
    has_begun() { grep -q 'loading 120' "$work/$1.err" && [ "$(pgrep -fc "taillight load .*$run")" = 2 ] &&
        has_answers client && has_answers client-batch; }
    await has_begun "$1" || fail "$1: the loads do not begin"
}
# It has ended with that exit code, a line that matches, and nothing left; each load that is named has its summary.
ended() { # NAME EXIT PATTERN [LOAD'S-FOLDER...]
    local folder
    run_has_ended "$1" "$2" "$3"
    [ ! -s "$work/$1.out" ] || fail "$1: prints on stdout"
    for folder in "${@:4}"; do # who interrupts does not wait for them
        has_written() { [ -s "$run/$1/load.json" ]; }
        await has_written "$folder" || fail "$1: there is no $folder/load.json: $(cat "$run"/logs/load*.log)"
        jq -e '.answered > 0 and any(.reasons[]; startswith("interrupted after"))' "$run/$folder/load.json" >/dev/null ||
            fail "$1: $folder: $(jq -c '[.answered, .reasons]' "$run/$folder/load.json" 2>&1)"
    done
    check_not_whole "$run"
    check_nothing_left "$run" ""
    echo "$1: $(tail -n 1 "$work/$1.err")"
}
kept() { # NAME LOAD FOLDER
    grep -q "what the load \`$2\` measured until then is in $3/load.json" "$work/$1.err" || fail "$1: does not say what is left of $2"
}
fit_to_analyze() { # NAME LOAD
    "$taillight" analyze "$run" --load "$2" --quiet --out "$work/analyzed" >"$work/of-load" 2>"$work/analyze.err"
    [[ $? == [04] ]] || fail "$1: what $2 measured cannot be analyzed: $(cat "$work/of-load")"
    rm -r "$work/analyzed"
}

killed_second() {
    start_run killed-second
    signal_to KILL "taillight load .*$run/client-batch"
    ended killed-second 1 'the load `batch` was killed by signal 9' client
    kept killed-second ask client
    fit_to_analyze killed-second ask
}
killed_first() {
    start_run killed-first
    signal_to KILL "taillight load .*$run/client( |$)"
    ended killed-first 1 'the load `ask` was killed by signal 9' client-batch
    kept killed-first batch client-batch
}
interrupted() {
    start_run interrupted
    kill -INT $pid
    ended interrupted 1 'interrupted' client client-batch
}
terminated() {
    start_run terminated
    kill -TERM $pid
    ended terminated 1 'interrupted' client client-batch
}
# The load that writes most finds no room, and says so at its end; then there is room again. If there is none even for
# its last words, nor for the other's summary, the run says what they measured.
full_disk() {
    mkdir "$work/small"
    mount -t tmpfs -o size=4m tmpfs "$work/small" 2>/dev/null || skip "no tmpfs can be mounted here, so no disk can be filled"
    start_run full 'rate: 60k, duration: 1s' "$work/small"
    run_has_ended full 1 'the load `batch`(: .*No space left on device| ended .* its disk is full\))'
    [ -s "$run/client/load.json" ] ||
        grep -Eq 'what the load `ask` measured .*No space left on device\): [0-9,]+ of [0-9,]+ requests answered' "$work/full.err" ||
        fail "full: there is neither a summary of ask nor what it measured"
    ! grep -q 'p99 0 ns' "$work/full.err" || fail "full: a percentile that is not known is written as 0"
    check_not_whole "$run"
    check_nothing_left "$run" ""
    echo "full: $(tail -n 1 "$work/full.err")"
    umount "$work/small"
}
for way in ${LOADS_ENDS_WAYS:-killed_second interrupted}; do
    $way
done
