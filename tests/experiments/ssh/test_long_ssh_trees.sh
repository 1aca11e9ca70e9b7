#!/usr/bin/env bash
# A server on a host behind ssh whose children leave their session and their parent, forget their
# environment and close their descriptors: nothing of them is left there when the run ends by
# itself, is interrupted, or is killed, and what is said of it is true.
# Time limit: 300 s
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
ssh_hosts server
claim_port
labserver="$(cd "$BUILD" && pwd)/labserver"
sleeper="$work/sleeper" # a program whose name tells whose it is
cp "$(command -v sleep)" "$sleeper"
cat >"$work/server" <<EOF2
#!/bin/bash
close_all() { for fd in /proc/self/fd/*; do fd=\${fd##*/}; eval "exec \$fd>&-"; done 2>/dev/null; }
(setsid "$sleeper" 901 &) # leaves its session and its parent
(setsid env -i "$sleeper" 902 </dev/null >/dev/null 2>&1 &)
(close_all; exec env -i setsid /bin/sh -c '(setsid "$sleeper" 903 &) &' &)
(trap '' TERM INT HUP; close_all; exec env -i setsid "$sleeper" 904 &) # and heeds nothing
exec "$labserver" --port \$1 --threads 1 --protocol memcached
EOF2
chmod 755 "$work/server"
ESCAPED=4

# In the background: $pid, $run. start_run NAME DURATION
start_run() {
    run="$work/$1"
    cat >"$work/$1.yaml" <<EOF2
name: $1
hosts:
  client: {kind: local, cores: [1]}
  server: {kind: ssh, address: server, cores: [0], ssh_config: $ssh_config, directory: $work/server-files}
servers: {lab: {kind: command, command: [$work/server, "{port}"], port: $port, shim: false}}
capture: {backend: none}
workload: {keys: {count: 500}, values: {size: {fixed: 200}}}
load: {rate: 1k, duration: $2, connections: 8, depth: 64, timeout: 1s}
EOF2
    ip netns exec "ssh$$-here" env --default-signal "$taillight" run "$work/$1.yaml" --out "$run" \
        >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
}
left() { pgrep -fa -- "^$sleeper"; }
all_there() { [ "$(left | wc -l)" -eq $ESCAPED ]; }
none_left() { ! left >/dev/null; }

start_run normal 2s
await all_there || fail "normal: of the server's children there are $(left)"
wait $pid
status=$?
[ $status -eq 0 ] || [ $status -eq 4 ] || fail "normal: exit $status"
left && fail "normal: the run has ended, and these have not"
grep -q 'server: everything undone' "$run/commands.log" || fail "normal: does not say that all is undone"
ssh_nothing_left server 10
for signal in INT TERM KILL; do
    start_run $signal 60s
    await grep -q 'loading [0-9]' "$work/$signal.err" || fail "$signal: the load does not begin"
    all_there || fail "$signal: of the server's children there are $(left)"
    kill -$signal $pid
    wait $pid 2>/dev/null
    status=$?
    if [ $signal = KILL ]; then
        ! grep -q 'everything undone' "$run/commands.log" || fail "KILL: says what it cannot know"
    else
        [ $status -eq 1 ] || fail "$signal: exit $status"
        # Who waits for longer than a person does leaves it to the keepers, and says so.
        if ! grep -q 'left the rest to the keepers' "$run/commands.log"; then
            left && fail "$signal: the run has ended, and these have not"
            grep -q 'server: everything undone' "$run/commands.log" || fail "$signal: does not say that all is undone"
        fi
    fi
    await none_left || fail "$signal: left behind: $(left)"
    ssh_nothing_left server 10
done
echo "$ESCAPED children escaped from the server, and none outlived any of the four runs"
