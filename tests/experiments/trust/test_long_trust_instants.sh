#!/usr/bin/env bash
# SIGINT and SIGTERM at any instant of whatever takes longer than a moment: a fixed set of commands,
# each interrupted INSTANTS times (2), at instants that SEED (1) draws within the time that it takes when left
# alone; those that wait for a machine that is gone or stopped among them. Each time to the end is
# printed; none takes ten seconds, on a machine as busy as it may be, nothing of ours goes on, and no
# file is left under construction.
# ONLY=PATTERN runs those whose name it matches.
# Runs beside others: times are printed, and nothing hangs on them.
# Time limit: 600 s
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/../ssh/ssh_lib.sh"
need_capture
ssh_hosts server
claim_port
RANDOM=${SEED:-1}
instants=${INSTANTS:-2}
far_dir="$work/server-files"
now_ms() { echo $(($(date +%s%N) / 1000000)); }
times=()

cat >"$work/run.yaml" <<EOF2
name: test
hosts:
  client: {kind: local, cores: [1]}
  server: {kind: ssh, address: server, cores: [0], ssh_config: $ssh_config, directory: $far_dir}
servers: {cache: {kind: memcached, threads: 1, port: $port, shim: true}}
workload: {keys: {count: 20k}, values: {size: {fixed: 200}}}
load: {rate: 10k, duration: 1s, connections: 16, depth: 64, timeout: 1s}
EOF2
near() { exec env --default-signal ip netns exec "ssh$$-here" "$@"; } # a background command becomes what it starts

# What other commands need: a run of many requests, and a server here.
echo "making a run"
(near "$taillight" run "$work/run.yaml" --set load.rate=10k --set load.duration=4s --out "$work/whole" --quiet) >"$work/whole.out" 2>"$work/whole.err"
[[ $? == [04] ]] || fail "the run: $(tail -n 1 "$work/whole.err")"
claim_port
memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p "$port" &
memcached=$!
await ports_listening "$port" || fail "memcached does not listen"

# before_NAME: what is wrong with the world when NAME runs; after_NAME sets it right again.
cmd_analyze() { exec env --default-signal "$taillight" analyze "$work/whole" --out "$work/analyzed"; }
cmd_report() { exec env --default-signal "$taillight" report "$work/whole"; }
cmd_compare() { exec env --default-signal "$taillight" compare "$work/whole" "$work/whole"; }
cmd_run() { near "$taillight" run "$work/run.yaml" --out "$work/run"; }
cmd_doctor() { near "$taillight" doctor server --ssh-config "$ssh_config" --directory "$far_dir"; }
cmd_unreachable() { near "$taillight" run "$work/run.yaml" --out "$work/run"; }
before_unreachable() { ip netns exec "ssh$$-here" ip link set to-server down; }
after_unreachable() {
    ip netns exec "ssh$$-here" ip link set to-server up
    await ip netns exec "ssh$$-here" bash -c '</dev/tcp/10.246.0.2/22' || fail "the link does not come up again"
}
cmd_silent() { near "$taillight" run "$work/run.yaml" --out "$work/run"; }
before_silent() { kill -STOP "$(cat "$work/server-sshd.pid")"; }
after_silent() { kill -CONT "$(cat "$work/server-sshd.pid")"; }
cmd_silent_doctor() { near "$taillight" doctor server --ssh-config "$ssh_config" --directory "$far_dir"; }
before_silent_doctor() { before_silent; }
after_silent_doctor() { after_silent; }
cmd_watch() {
    "$taillight" load --server "127.0.0.1:$port" --rate 5k --duration 6s --quiet >"$work/load.out" 2>&1 &
    exec env --default-signal "$taillight" watch --pid $memcached --interval 1s --trigger '>1us' --save "$work/saved" --for 6s
}
cmd_load() { exec env --default-signal "$taillight" load --server "127.0.0.1:$port" --rate 50k --duration 2s --samples "$work/samples"; }
cmd_sweep() { exec env --default-signal "$taillight" load --server "127.0.0.1:$port" --sweep 1k:8k:1k --duration 300ms; }
# These are broken while they go on: what is there of the other machine stops, or the cable is cut.
cmd_stopped() { near "$taillight" run "$work/run.yaml" --set load.duration=30s --out "$work/run"; }
meanwhile_stopped() {
    await grep -qs 'loading 30' "$work/err" || fail "stopped: the load does not begin"
    stopped=$(ip netns pids "ssh$$-server" | grep -vxF "$(cat "$work/server-sshd.pid")")
    # shellcheck disable=SC2086 # a list
    kill -STOP $stopped
}
after_stopped() {
    # shellcheck disable=SC2086
    kill -CONT $stopped 2>/dev/null
    return 0
}
cmd_cut() { near "$taillight" run "$work/run.yaml" --set load.duration=30s --out "$work/run"; }
meanwhile_cut() {
    await grep -qs 'loading 30' "$work/err" || fail "cut: the load does not begin"
    before_unreachable
}
after_cut() { after_unreachable; }

has() { declare -F "$1" >/dev/null; }
start() { # NAME
    ! has "before_$1" || "before_$1"
    rm -rf "$work/run" "$work/saved" "$work/samples" "$work/analyzed"
    rm -f "$work/whole/run.db" "$work/whole/report.html" "$work/err"
    "cmd_$1" </dev/null >"$work/out" 2>"$work/err" &
    pid=$!
    ! has "meanwhile_$1" || "meanwhile_$1"
}
# Nothing of ours is there any more.
is_over() {
    local left
    left=$(pgrep -f -- "taillight.*$work" | grep -vxF "$$")
    [ -z "$left" ]
}
finish() { # NAME
    ! has "after_$1" || "after_$1"
    wait $pid 2>/dev/null
    ended_with=$?
    await is_over || fail "$1: goes on: $(pgrep -fa -- "taillight.*$work")"
    ssh_nothing_left server 20
    [ -z "$(find "$work" -name '*.partial')" ] || fail "$1: leaves $(find "$work" -name '*.partial')"
}

interrupt() { # NAME SIGNAL MS
    local began took i
    start "$1"
    sleep "$(($3 / 1000)).$(printf '%03d' $(($3 % 1000)))"
    began=$(now_ms)
    kill "-$2" $pid 2>/dev/null || {
        finish "$1"
        echo "$1, SIG$2 after $3 ms: over before"
        return
    }
    for ((i = 0; i < 2000; i++)); do
        kill -0 $pid 2>/dev/null || break
        sleep 0.005
    done
    took=$(($(now_ms) - began))
    [ $i -lt 2000 ] || fail "$1: SIG$2 after $3 ms has not ended it: $(ps -o pid=,stat=,wchan:20=,args= -p $pid --ppid $pid) $(tail -c 300 "$work/err")"
    local where
    where=$(tr '\r' '\n' <"$work/err" | grep '^taillight: ' | grep -v interrupted | tail -n 1 | cut -c12-60)
    finish "$1"
    echo "$1, SIG$2 after $3 ms: $took ms, exit $ended_with${where:+ ($where)}"
    times+=("$took $1")
}

for name in analyze report compare run doctor unreachable silent silent_doctor watch load sweep stopped cut; do
    # shellcheck disable=SC2053 # a pattern
    [[ $name == ${ONLY:-*} ]] || continue
    span=4000
    if ! has "before_$name" && ! has "meanwhile_$name"; then # left alone
        began=$(now_ms)
        start $name
        wait $pid 2>/dev/null
        span=$(($(now_ms) - began))
        finish $name
        echo "$name: $span ms when left alone"
    fi
    for ((n = 0; n < instants; n++)); do
        [ $((n % 2)) = 0 ] && signal=INT || signal=TERM
        interrupt $name $signal $((RANDOM % span))
    done
done
kill $memcached
wait $memcached 2>/dev/null
sorted=$(printf '%s\n' "${times[@]}" | sort -n)
echo "${#times[@]} signals: median $(sed -n "$(((${#times[@]} + 1) / 2))p" <<<"$sorted") ms, slowest $(tail -n 1 <<<"$sorted") ms," \
    "$(awk '$1 > 1000' <<<"$sorted" | wc -l) over 1 s"
[ -n "${ONLY:-}" ] || [ "${#times[@]}" -ge $((instants * 7)) ] || fail "only ${#times[@]} ends were measured"
