#!/usr/bin/env bash
# A run whose load, capture or dataset's loader is stopped (SIGSTOP) does not wait for ever: it says
# who does not end, and leaves nothing running. A server that ignores SIGTERM costs the person who
# interrupts no more than a moment.
. tests/experiments/run_lib.sh
need_program memcached memcached
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
kind=local
unshare -n true 2>/dev/null && kind=netns
claim_port

# A run in the background: $pid, $run, and its namespaces in $spaces.
start_run() { # NAME DURATION [SERVER]
    run="$work/$1"
    experiment "$work/$1.yaml" $kind 2k "$2" <<EOF
servers: {cache: ${3:-{kind: memcached, threads: 1, port: $port\}}}
EOF
    "$taillight" run "$work/$1.yaml" --out "$run" >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
    await grep -q 'taillight: loading [0-9]' "$work/$1.err" || fail "$1: the load does not begin"
    spaces=""
    [ $kind = netns ] && spaces=$(namespaces_of "$run")
    sleep 0.3
}
ended() { # NAME EXIT PATTERN
    run_has_ended "$1" "$2" "$3"
    check_not_whole "$run"
    check_nothing_left "$run" $port "$spaces"
    echo "$1: $(tail -n 1 "$work/$1.err")"
}

start_run stopped-load 120s
signal_to STOP "taillight load .*$run"
ended stopped-load 1 'taillight load` \(process [0-9]+\) does not end: it has been stopped \(SIGSTOP, or a debugger\) for 10.0 s'

start_run stopped-capture 2s
signal_to STOP "taillight capture .*$run"
ended stopped-capture 1 'taillight capture` \(process [0-9]+\) does not end: it has been stopped'

# Interrupted while nothing goes on: what is stopped is killed.
start_run stopped-interrupted 120s
signal_to STOP "taillight capture .*$run"
signal_to STOP "taillight load .*$run"
kill -INT $pid
ended stopped-interrupted 1 'interrupted'
