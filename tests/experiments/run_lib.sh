# SPDX-License-Identifier: MIT
#
# What the end-to-end tests of `taillight run` share, with all of tests/ports.sh. Sourced;
# expects $BUILD.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/../ports.sh"
taillight="$(cd "$BUILD" && pwd)/taillight"
work=$(mktemp -d /tmp/taillight-run-test-XXXXXX)
chmod 755 "$work"
trap 'cleanup' EXIT

fail() {
    echo "FAIL: $*" >&2
    for log in "$work"/*.err; do [ -s "$log" ] && sed "s/^/    /" "$log" >&2; done
    exit 1
}
skip() {
    echo "$*"
    exit 77
}
need_program() { command -v "$1" >/dev/null || skip "there is no $1; install it: apt-get install $2"; }

# Network namespaces and BPF, or the reason why not.
need_capture() {
    need_program memcached memcached
    need_program ip iproute2
    need_program sqlite3 sqlite3
    # The first of all tests asks ($outcomes is run_tests.sh's), since the doctor tries every program.
    local state file=${outcomes:-$work/doctor}.capture
    [ -s "$file" ] || { asked_capture >"$file.$$" && mv "$file.$$" "$file"; } || fail "doctor does not work"
    state=$(<"$file")
    [ "$state" = yes ] || skip "kernel events cannot be recorded here: $state"
    [ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
}

# "yes", or what is in the way.
asked_capture() {
    unshare -n true 2>/dev/null || { echo 'network namespaces cannot be made: it takes root' && return; }
    "$taillight" doctor --json >"$work/doctor.json" &&
        sqlite3 :memory: "select iif(state = 'yes', state, 'BPF is \"' || state || '\"') from \
            (select json_extract(value, '\$.state') as state from json_each(readfile('$work/doctor.json'), '\$.items') \
            where json_extract(value, '\$.name') like 'BPF%')"
}

# What a JSON file says at a path: json FILE '$.a.b'
json() { sqlite3 :memory: "select json_extract(readfile('$1'), '$2')"; }

# A small experiment: experiment FILE KIND RATE DURATION, more lines from stdin. The load of a test that
# runs beside others leaves them its core while it waits.
grep -q '^# Runs beside others' "$0" && load_waits=', sleep: true' || load_waits=
experiment() {
    cat >"$1" <<EOF
name: test
hosts:
  client: {kind: $2, cores: [1]}
  server: {kind: $2, cores: [0]}
workload:
  keys: {count: 2k}
  values: {size: {fixed: 200}}
load: {rate: $3, duration: $4, connections: 16, depth: 64, timeout: 1s$load_waits}
EOF
    cat >>"$1"
}

# Whatever was asked of the runs (verdict, gates, comparisons), each was analyzed once, by the
# progress on stderr: analyzed_once RUNS STDERR
analyzed_once() {
    local times
    times=$(grep -c '^taillight: joining [0-9,]* requests' "$2")
    [ "$times" = "$1" ] || fail "$1 runs were analyzed $times times"
}

# Some machines have threads of their hypervisor's that the kernel hides from tracing: while one of
# them has the server's core no events are delivered, and what arrives then cannot be joined. The
# capture notices (unseen_switches). True, and said, when so a run has fewer of a thousand requests
# joined than asked for: undisturbed, it might have more.
disturbed() { # RUN PER-MILLE
    local requests joined unseen
    requests=$(json "$1/summary.json" '$.requests')
    joined=$(json "$1/summary.json" '$.joined')
    unseen=$(json "$1/server/capture.json" '$.events.unseen_switches')
    [ $((joined * 1000)) -lt $((requests * $2)) ] && [ "${unseen:-0}" -gt 0 ] || return 1
    echo "$joined of $requests joined, $unseen switches unseen"
}

# What the cores were asked for and what the host gave to others, in ticks: of all cores.
core_ticks() { awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all, $9 }' /proc/stat; }

# How many percent of the cores are taken by other programs or the host, while no try is made: of half a second, without
# what this test has running beside its tries.
cores_taken() {
    local all idle own all_before idle_before own_before
    own_before=$(own_ticks)
    read -r all_before idle_before < <(idle_ticks)
    sleep 0.5
    read -r all idle < <(idle_ticks)
    own=$(own_ticks)
    all=$((all - all_before))
    own=$((100 - 100 * (idle - idle_before + own - own_before) / all))
    echo $((own > 0 ? own : 0))
}
idle_ticks() { awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all, $5 + $6 }' /proc/stat; }
# Of all that this script has started and that still runs.
own_ticks() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v root=$$ '
        {pid = $1; sub(/^.*\) /, ""); parent[pid] = $2; ticks[pid] = $12 + $13}
        END {
            for (pid in parent) {
                for (at = pid; at != root && at in parent; at = parent[at]) {}
                if (at == root && pid != root) sum += ticks[pid]
            }
            print sum + 0
        }'
}
MOST_TAKEN=10 # percent
# Who had the cores in a try that began with these ticks, with so many percent taken before it and after; nothing: we had.
# Other programs are seen before and after it: while it runs, its own have the cores. OLD-TICKS OLD-STOLEN BEFORE AFTER
disturbed_by() {
    local all stolen
    read -r all stolen < <(core_ticks)
    [ $(((stolen - $2) * 200)) -le $((all - $1)) ] || { echo 'the host took cores away'; return; }
    [ "$3" -le $MOST_TAKEN ] && [ "$4" -le $MOST_TAKEN ] || echo "other programs had $3 % of the cores before, $4 % after"
}

# Tries what needs cores that are ours, until it is good. It gets two more chances, and three beyond those when
# the cores were not ours: the host of this virtual machine took them away, by more than a two hundredth of their
# time, or other programs had them. Such a try proves nothing against what is tested, and six of them are a skip
# (or fewer, that take two minutes). That a run says of itself that its load was starved is no such reason: the
# run is what is tested, and what it says without one might be what is wrong; a load that others starve is seen by
# these. judged_tries COMMAND ARGUMENTS...
judged_tries() {
    local attempt ticks by earlier taken=0 judged=0 began=$SECONDS # nothing is known of the time before the first
    for attempt in 1 2 3 4 5 6; do
        read -ra ticks < <(core_ticks)
        "$@" && return 0
        earlier=$taken taken=$(cores_taken)
        by=$(disturbed_by "${ticks[@]}" "$earlier" "$taken")
        echo "attempt $attempt${by:+: $by}"
        [ -n "$by" ] || judged=$((judged + 1))
        [ $judged -lt 3 ] || break
        [ $attempt -lt 3 ] || [ $((SECONDS - began)) -lt 120 ] || break
    done
    [ $judged -gt 0 ] || skip "the host or other programs had the cores in each of $attempt tries"
    return 1
}

# Runs an experiment to its end, in $work/run, stdout in $work/out. When the run itself says that
# nothing can be concluded (exit 4), as on a machine busy with other things, or was disturbed, it gets
# the chances of judged_tries; every other failure is one. A verdict whose load cannot be trusted is one:
# these runs are about what was captured.
conclusive_run() { # EXPERIMENT OPTIONS...
    judged_tries conclusive_try "$@" || [ $status -eq 0 ] || fail "exit $status"
}
conclusive_try() {
    rm -rf "$work/run"
    "$taillight" run "$@" --out "$work/run" >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "exit $status"
    if [ $status -eq 0 ] || [ "$(json "$work/run/summary.json" '$.verdict_available')" = 1 ]; then
        status=0
        ! disturbed "$work/run" "${wanted_joined:-950}"
        return
    fi
    echo "inconclusive: $(json "$work/run/summary.json" '$.verdict')"
    return 1
}

# Runs an experiment in RUN, again while a load of it says that this machine was too busy to conclude
# anything: five times, after which it is false. Leaves its exit code in $status.
# unhurried_run RUN EXPERIMENT OPTIONS...
unhurried_run() {
    local run=$1 attempt
    shift
    for attempt in 1 2 3 4 5; do
        rm -rf "$run"
        "$taillight" run "$@" --out "$run" >"$work/out" 2>"$work/run.err"
        status=$?
        grep -q 'the load .*is inconclusive: ' "$work/run.err" || return 0
        echo "attempt $attempt had a busy machine: $(grep -m 1 'the load .*is inconclusive: ' "$work/run.err")"
    done
    return 1
}

# Sends a signal to the one process whose command line matches, as soon as it is there: a child may
# take a while to become its program. signal_to SIGNAL PATTERN
signal_to() {
    local found
    is_one() { found=$(pgrep -f -- "$1") && [ "$(wc -w <<<"$found")" = 1 ]; }
    await is_one "$2" || fail "not one process like $2: $found"
    kill "-$1" "$found"
}

# What a dry run says is what commands.log holds of the run: without times, process ids, old values,
# what only the run knew of a host behind ssh, and what only ends things. Neighbours that begin
# together are in no order. Leaves what was said in $work/said.
said_is_done() { # DRY COMMANDS.LOG
    local file
    for file in "$1" "$2"; do
        sed -E -e 's/^[0-9T:.Z-]+ //' -e 's/ \(was .*\)$//' -e 's/netns [0-9]+$/netns PID/' \
            -e 's,/proc/[0-9]+/ns/net,/proc/PID/ns/net,g' \
            -e 's/taillight-[0-9]+-[0-9a-f]+(\/[0-9a-f]{32})?/taillight-X/g' \
            -e 's/taillight-([0-9a-f]{16}-[[:alnum:]]{6}|HASH)/taillight-HASH/g' \
            -e 's/10\.246\.0\.[0-9]+|ADDRESS/ADDRESS/g' -e 's/--helper-cores [0-9,-]+|--helper-cores CORES/--helper-cores CORES/' "$file" |
            grep -Ev '^#|: (stopped|start a keeper.*|copy this program there.*|ssh .*: Linux .*|keeper is process.*|everything undone|undo everything|warning.*)$' |
            sort >"$work/$([ "$file" = "$1" ] && echo said || echo "done")"
    done
    diff "$work/said" "$work/done" || fail "what is said (<) is not what is done (>)"
}

# The network namespaces a run made, by its commands.log. Asked while it runs.
namespaces_of() {
    sed -n 's/.*keeper is process \([0-9]*\),.*/\1/p' "$1/commands.log" | while read -r pid; do
        readlink "/proc/$pid/ns/net"
    done | sed 's/[^0-9]//g'
}

# Nothing of a run may be left: no process that names its folder (load, capture, the keepers), no
# server on its port, no namespace, no shared memory. A SIGKILLed run has a minute for it.
check_nothing_left() { # FOLDER PORT [NAMESPACES]
    local left shm tries=1200
    while :; do
        left=$(pgrep -fa -- "$1" | grep -v pgrep
            [ -n "$2" ] && pgrep -fa "memcached.* -p $2 "
            for ns in ${3:-}; do lsns -t net -n -o NS,PID,COMMAND | grep "^ *$ns "; done)
        shm=$(sed -n 's/.*TAILLIGHT_SHIM_DIR=\([^ ]*\).*/\1/p' "$1/commands.log" 2>/dev/null)
        shm=${shm%/*} # around it is a folder that nobody can list
        [ -z "$left" ] && { [ -z "$shm" ] || [ ! -e "$shm" ]; } && return
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "left behind: $left ${shm:+$(ls -d "$shm" 2>/dev/null)}"
        pause 0.05
    done
}

# A run that did not end well must not look like one that did.
check_not_whole() {
    [ ! -e "$1/summary.json" ] || fail "$1 has a summary.json"
    [ ! -e "$1/report.html" ] || fail "$1 has a report.html"
}

cleanup() {
    local pid
    # Waited for, that the shell does not tell of each: what a skip says last is its reason.
    { for pid in $(jobs -p); do kill -9 "$pid" && wait "$pid"; done; } 2>/dev/null
    umount "$work/small" 2>/dev/null
    rm -rf "$work"
}

# The run in the background, $pid, has ended with that exit code and a line that matches ("": any):
# run_has_ended NAME EXIT PATTERN
run_has_ended() {
    local status
    has_ended() { ! kill -0 $pid 2>/dev/null; }
    await has_ended || fail "$1: does not end: $(ps -o pid=,stat=,wchan:20=,args= --ppid $pid -p $pid)"
    wait $pid 2>/dev/null
    status=$?
    [ $status -eq "$2" ] || fail "$1: exit $status instead of $2"
    [ -z "$3" ] || grep -Eq "$3" "$work/$1.err" || fail "$1: does not say \"$3\""
}
