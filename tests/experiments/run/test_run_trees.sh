#!/usr/bin/env bash
# Servers and neighbours whose children leave their session and their parent, and forget their
# environment: nothing of them is left when the run ends by itself, is asked to, or is killed.
# Runs beside others: which processes are left, not how fast.
. tests/experiments/run_lib.sh
kinds=local # the harder: what forgets its environment is in no namespace of the run's
unshare -n true 2>/dev/null && is_long && kinds="local netns"
claim_port
labserver="$(cd "$BUILD" && pwd)/labserver"
sleeper="$work/sleeper" # a program whose name tells whose it is
cp "$(command -v sleep)" "$sleeper"
cat >"$work/server" <<EOF
#!/bin/sh
setsid "$sleeper" 901 </dev/null >/dev/null 2>&1 &
(setsid sh -c '"$sleeper" 902 & ' &)
setsid env -i "$sleeper" 903 </dev/null >/dev/null 2>&1 &
env -i setsid sh -c '(setsid "$sleeper" 905 &) & ' &
exec "$labserver" --port \$1 --threads 1 --protocol memcached
EOF
chmod 755 "$work/server"

# In the background: $pid. start_run NAME KIND DURATION
start_run() {
    experiment "$work/$1.yaml" "$2" 1k "$3" <<EOF
servers: {lab: {kind: command, command: [$work/server, "{port}"], port: $port, shim: false}}
neighbours:
  beside: {host: server, kind: command, command: [sh, -c, "(setsid $sleeper 904 &) ; sleep 100"]}
capture: {backend: none}
EOF
    "$taillight" run "$work/$1.yaml" --out "$work/$1" >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
}
left() { pgrep -fa -- "^$sleeper"; }
all_there() { [ "$(left | wc -l)" -ge "$1" ]; }
none_left() { ! left >/dev/null; }

for one in $kinds; do
    start_run normal-$one $one 1s
    wait $pid
    left && fail "normal: the run has ended, and these have not"
    grep -q "everything undone" "$work/normal-$one/commands.log" || fail "normal: does not say so"
    for signal in TERM KILL; do
        start_run $signal-$one $one 60s
        await all_there 5 || fail "$signal: the server's children do not come"
        kill -$signal $pid
        wait $pid 2>/dev/null
        # An interrupted run waits for its keepers for a time only, and says when they still undo.
        [ $signal = KILL ] || grep -q 'its keepers undo meanwhile' "$work/$signal-$one.err" || ! left ||
            fail "TERM: the run has ended, and these have not"
        await none_left || fail "$signal: left behind: $(left)"
    done
    echo "$one: no process left behind"
done
