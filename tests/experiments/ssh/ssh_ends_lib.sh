# SPDX-License-Identifier: MIT
#
# Ways in which a run with its server behind ssh can break in the middle, and what must then hold:
# it ends within 10 s and says why, the host is as it was, and nothing of ours is left on it.
# Sourced by test_ssh_ends.sh and test_long_ssh_ends.sh, after run_lib.sh and ssh_lib.sh.
setting=/proc/sys/net/ipv4/tcp_autocorking
far_dir="$work/server-files"

# A run in the background: $pid, $run; its load has begun, its tuning is done.
ssh_start_run() { # NAME DURATION [CLIENT [MORE YAML]]
    run="$work/$1"
    rm -rf "$run"
    claim_port
    cat >"$work/$1.yaml" <<EOF
name: $1
hosts:
  client: ${3:-{kind: local, cores: [1]\}}
  server: {kind: ssh, address: server, cores: [0], ssh_config: $ssh_config, directory: $far_dir}
servers: {cache: {kind: memcached, threads: 1, port: $port}}
tuning: {server: [{sysctl: {net.ipv4.tcp_autocorking: 0}}]}
neighbours: {idler: {command: [sh, -c, "sleep 100 & sleep 100"]}}
workload: {keys: {count: 500}, values: {size: {fixed: 200}}}
load: {rate: 2k, duration: $2, connections: 8, depth: 64, timeout: 1s, sleep: true}
${4:-}
EOF
    ip netns exec "ssh$$-here" "$taillight" run "$work/$1.yaml" --out "$run" >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
    await grep -q 'loading [0-9]' "$work/$1.err" || fail "$1: the load does not begin"
    await grep -q 'idler\|sleep 100' "$run/commands.log" || fail "$1: no neighbour in commands.log"
    [ "$(far server cat $setting)" = 0 ] || fail "$1: the far host is not tuned"
    [ -n "$(inside server find "$far_dir" -name taillight)" ] || fail "$1: nothing was copied"
    programs=$(far_programs)
}

# BPF programs that processes of the far host hold, by their numbers.
far_programs() {
    local pids
    pids=$(ip netns pids "ssh$$-server" | jq -sc .)
    bpftool -j prog show 2>/dev/null |
        jq -r --argjson ours "$pids" '.[] | select(any(.pids[]?.pid; IN($ours[]))) | .id'
}

ssh_ended() { # NAME EXIT PATTERN BROKEN-AT
    local status left
    has_ended() { ! kill -0 $pid; }
    await has_ended || fail "$1: does not end"
    wait $pid 2>/dev/null
    status=$?
    [ $status -eq "$2" ] || fail "$1: exit $status instead of $2"
    [ -z "$3" ] || grep -Eq "$3" "$work/$1.err" || fail "$1: does not say \"$3\""
    check_not_whole "$run"
    ssh_nothing_left server 10
    [ "$(far server cat $setting)" = 1 ] || fail "$1: the far host is still tuned"
    for left in $programs; do
        bpftool prog show id "$left" >/dev/null 2>&1 && fail "$1: BPF program $left is left"
    done
    is_quiet_here() { [ -z "$(ip netns pids "ssh$$-here" | sed 's|.*|/proc/&/comm|' | xargs cat 2>/dev/null | grep '^taillight')" ]; }
    await is_quiet_here || fail "$1: the capture of the load's cores goes on here"
    left=$(($(date +%s) - $4))
    [ $left -le 11 ] || fail "$1: took $left s"
    echo "$1: $left s, $(tail -n 1 "$work/$1.err" | cut -c1-200)"
}

# SIGKILLs the far host's processes whose command line matches. Not the guards (base/guard.h), which
# have their parents': to end what these leave is what they are for, and who kills both within a
# millisecond leaves the grandchildren.
far_kill() { # PATTERN [HOST]
    local one found=
    for one in $(ip netns pids "ssh$$-${2:-server}"); do
        [ "$(cat "/proc/$one/comm" 2>/dev/null)" != guard ] || continue
        if { tr '\0' ' ' <"/proc/$one/cmdline"; } 2>/dev/null | grep -Eq -- "$1"; then
            kill -9 "$one" && found=yes
        fi
    done
    [ -n "$found" ] || fail "no process of the far host matches $1"
}

break_sshd() { # the listener, too
    local since
    ssh_start_run sshd 30s
    since=$(date +%s)
    far_kill '^sshd: '
    ssh_serve server
    ssh_ended sshd 1 'the link to host server.*broke' "$since"
}
break_agent() {
    ssh_start_run agent 30s
    far_kill 'taillight agent --start'
    ssh_ended agent 1 'the link to host server.*broke' "$(date +%s)"
}
break_server() {
    ssh_start_run server 30s
    far_kill '^memcached'
    ssh_ended server 1 'the server `cache` was killed by signal 9' "$(date +%s)"
}
break_controller() {
    ssh_start_run controller 30s
    kill -9 $pid
    ssh_ended controller 137 '' "$(date +%s)"
}
far_loads_write() { [ "$(inside loader find "$work/loader-files" -name 'samples.tlog.*' -size +16k | grep -c .)" = 2 ]; }
# Its loads are on a third machine: what each of them measured comes here all the same.
far_load_ends() { # NAME SIGNAL EXIT PATTERN
    local folder
    ssh_start_run "$1" 30s "{kind: ssh, address: loader, cores: [1], ssh_config: $ssh_config, directory: $work/loader-files}" \
        'loads: {batch: {rate: 1k, connections: 2, sleep: true}}'
    await far_loads_write || fail "$1: they write no samples"
    kill "-$2" $pid
    ssh_ended "$1" "$3" "$4" "$(date +%s)"
    ssh_nothing_left loader 10
    for folder in client client-batch; do
        jq -e '.answered > 0 and any(.reasons[]; startswith("interrupted after"))' "$run/$folder/load.json" >/dev/null ||
            fail "$1: $folder/load.json says $(head -c 2000 "$run/$folder/load.json"), its log $(cat "$run"/logs/load*.log)"
        echo "$1: $folder $(jq -c '[.answered, .reasons[0]]' "$run/$folder/load.json")"
    done
}
break_far_load() { far_load_ends far-load KILL 137 ''; }
break_far_load_interrupted() { far_load_ends far-load-interrupted INT 1 interrupted; }
# One of two loads there: what the other measured comes here, each request of it.
break_one_of_far_loads() {
    ssh_start_run one-load 30s "{kind: ssh, address: loader, cores: [1], ssh_config: $ssh_config, directory: $work/loader-files}" \
        'loads: {batch: {rate: 300, connections: 2, sleep: true}}'
    await far_loads_write || fail "one-load: they write no samples"
    far_kill 'taillight load .*client-batch' loader
    ssh_ended one-load 1 'the load `batch` was killed by signal 9' "$(date +%s)"
    ssh_nothing_left loader 10
    jq -e '.answered > 0 and any(.reasons[]; startswith("interrupted after"))' "$run/client/load.json" >/dev/null ||
        fail "one-load: load.json says $(head -c 2000 "$run/client/load.json")"
    [ -s "$run/client/samples.tlog" ] && [ -s "$run/client/connections.tlog" ] && [ -s "$run/client/clock.tlog" ] ||
        fail "one-load: the other's requests are not here: $(ls "$run/client"): $(cat "$work/one-load.err")"
    echo "one-load: $(jq -c '[.answered, .reasons[0]]' "$run/client/load.json")"
}
break_link() {
    local since
    ssh_start_run link 30s
    since=$(date +%s)
    near ip link set to-server down
    ssh_ended link 1 'the link to host server.*is down: nothing has come over it for [3-6] s' "$since"
    near ip link set to-server up
    # The bridge takes a moment.
    await near bash -c '</dev/tcp/10.246.0.2/22' || fail "link: it does not come up again"
}
break_disk() {
    inside server mount -t tmpfs -o size=80m tmpfs "$far_dir" || skip "no tmpfs can be mounted here"
    ssh_start_run disk 2s
    inside server sh -c "cat /dev/zero >'$far_dir/filler'" 2>/dev/null
    await grep -q 'writing what was captured' "$work/disk.err" || fail "disk: the load does not end"
    ssh_ended disk 1 'No space left on device' "$(date +%s)"
    [ "$(inside server ls "$far_dir")" = filler ] || fail "disk: left behind $(inside server ls "$far_dir")"
    inside server umount "$far_dir"
}

# As a power cut leaves it: nobody undid anything. The journal does.
break_keeper() {
    local status one
    ssh_start_run keeper 30s
    for one in $(ip netns pids "ssh$$-server"); do # the keeper first: it would undo
        [ "$(cat "/proc/$one/comm" 2>/dev/null)" != taillight-keep ] || kill -9 "$one"
    done
    far_kill 'taillight agent'
    wait $pid 2>/dev/null
    status=$?
    [ $status -eq 1 ] || fail "keeper: exit $status instead of 1"
    [ "$(far server cat $setting)" = 0 ] || fail "keeper: somebody has restored the setting"
    rm -rf "$work/next" # of the time before
    near "$taillight" run "$work/keeper.yaml" --out "$work/next" --set load.duration=200ms --set capture.backend=none \
        >"$work/next.out" 2>"$work/next.err"
    grep -q 'earlier run did not live to undo its changes on host server: `taillight doctor server --restore`' "$work/next.err" ||
        fail "keeper: the next run does not say it"
    [ "$(far server cat $setting)" = 0 ] || fail "keeper: the next run has restored the setting"
    near "$taillight" doctor server --restore --json --ssh-config "$ssh_config" --directory "$far_dir" \
        --into "$run" >"$work/restored.json" 2>"$work/restore.err" || fail "keeper: doctor --restore: exit $?"
    jq -e '.journals == 1 and .settings == 1 and .directories >= 2 and .live == 1 and .failed == 0' \
        "$work/restored.json" >/dev/null || fail "keeper: restored $(jq -c . "$work/restored.json")"
    ssh_nothing_left server 10
    [ "$(far server cat $setting)" = 1 ] || fail "keeper: the far host is still tuned"
    echo "keeper: restored $(jq -c . "$work/restored.json")"
}
