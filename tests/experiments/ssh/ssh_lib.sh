# SPDX-License-Identifier: MIT
#
# Hosts behind ssh for tests: network namespaces on one bridge, each of the far ones with a real
# sshd, its own host key and a key of the test's making; no password, nothing of the user's.
# Sourced after run_lib.sh. $ssh_config names the hosts; far NAME runs a command inside one.
# The namespaces are called ssh<pid>-<name>; `here` is where the controller runs.
#
# What runs there is preferred as tests/preferred.sh does it. Each connection's sshd and each command is a session of its
# own, which may be another user's: so all of them are, again and again.
prefer='{ echo -20 >/proc/self/autogroup; } 2>/dev/null; exec nice -n -20'
near() { ip netns exec "ssh$$-here" "$@"; }
far() { local name=$1; shift; ip netns exec "ssh$$-$name" "$@"; }

ssh_hosts() { # NAME...
    local name number=1 sshd
    need_program ip iproute2
    need_program ssh openssh-client
    need_program ssh-keygen openssh-client
    sshd=$(command -v sshd || echo /usr/sbin/sshd)
    [ -x "$sshd" ] || skip "there is no sshd; install it: apt-get install openssh-server"
    ip netns add "ssh$$-here" 2>/dev/null || skip "network namespaces cannot be made here: it takes root"
    mkdir -p /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$work/user_key" || fail "no key can be made"
    near ip link set lo up
    near ip link add hub type bridge
    near ip address add 10.246.0.1/24 dev hub
    near ip link set hub up
    ssh_config="$work/ssh_config"
    for name in "$@"; do
        number=$((number + 1))
        ip netns add "ssh$$-$name"
        near ip link add "to-$name" type veth peer name eth0 netns "ssh$$-$name"
        near ip link set "to-$name" master hub up
        far "$name" ip address add "10.246.0.$number/24" dev eth0
        far "$name" ip link set eth0 up
        far "$name" ip link set lo up
        mkdir "$work/$name-files"
        ssh-keygen -q -t ed25519 -N '' -f "$work/$name-key"
        cat >"$work/$name-sshd_config" <<EOF
Port 22
HostKey $work/$name-key
PidFile none
AuthorizedKeysFile $work/user_key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin prohibit-password
StrictModes no
SetEnv TAILLIGHT_STATE_DIR=$work/$name-state HOME=$work/$name-files
ForceCommand $prefer sh -c "\$SSH_ORIGINAL_COMMAND"
EOF
        echo "10.246.0.$number $(cut -d' ' -f1,2 "$work/$name-key.pub")" >>"$work/known_hosts"
        cat >>"$ssh_config" <<EOF
Host $name
  HostName 10.246.0.$number
  User root
EOF
        ssh_serve "$name"
    done
    cat >>"$ssh_config" <<EOF
Host *
  IdentityFile $work/user_key
  IdentitiesOnly yes
  UserKnownHostsFile $work/known_hosts
  StrictHostKeyChecking yes
EOF
}

# NAME: starts its sshd, with the priority that one has, and waits for it. The machine has the cores of sshd_cores[NAME], else all.
# What a client sends faster than it is taken sshd keeps in a buffer that it moves to larger memory at each packet: its
# allocator keeps that memory, since each new page costs a virtual machine dearly. Its sessions know nothing of it.
declare -A sshd_cores
ssh_serve() {
    GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=268435456 \
        ip netns exec "ssh$$-$1" nice -n $((-$(nice))) taskset -c "${sshd_cores[$1]:-0-$(($(nproc --all) - 1))}" "${sshd:-$(command -v sshd || echo /usr/sbin/sshd)}" -D -e -f "$work/$1-sshd_config" \
        </dev/null 2>"$work/$1-sshd.log" &
    echo $! >"$work/$1-sshd.pid"
    prefer_sessions $! &
    await grep -q 'Server listening' "$work/$1-sshd.log" || fail "the sshd of $1 does not listen"
}
# SSHD: what it starts, as long as it runs. Makes no process, and looks seldom where nothing changes, lest it is what a
# test finds.
prefer_sessions() {
    local pid pids children all before='' same=0
    while [ -e "/proc/$1" ]; do
        pids=("$1") all=''
        while [ ${#pids[@]} -gt 0 ]; do
            pid=${pids[0]} all+=" $pid" children=()
            read -r -a children <"/proc/$pid/task/$pid/children"
            pids=("${pids[@]:1}" "${children[@]}")
            echo -20 >"/proc/$pid/autogroup"
        done
        if [ "$all" = "$before" ]; then same=$((same + 1)); else same=0; fi
        before=$all
        pause $((same < 10 ? 0 : 1)).1
    done 2>/dev/null
}

# Runs a command where the host's sshd is, its mounts included.
inside() { # NAME COMMAND...
    local pid
    pid=$(cat "$work/$1-sshd.pid")
    shift
    nsenter -t "$pid" -m -n "$@"
}

# Every process of a far host but its sshd listener: what is ours, and the sessions it came over.
far_processes() { # NAME
    local pid
    for pid in $(ip netns pids "ssh$$-$1"); do
        { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qE '^sshd: .*listener|^(.*/)?sshd -D' ||
            echo "$pid $({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null)"
    done
}

# Within SECONDS nothing of ours is left on a far host: no process, no file, no shared memory, no
# BPF program that was not there before, and here no directory for the connection. What a run that died
# had measured may lie there: test_long_ssh_left.sh.
ssh_nothing_left() { # NAME SECONDS
    local left tries=$(($2 * 20))
    while :; do
        left=$(far_processes "$1" | grep -v 'sshd: '
            ls -d "$work/$1-state" 2>/dev/null
            inside "$1" find "$work/$1-files" -mindepth 1 -maxdepth 1 ! -name filler ! -name "taillight-left-*"
            [ -n "${run:-}" ] && sed -n 's/.*TAILLIGHT_SHIM_DIR=\([^ ]*\).*/\1/p' "$run/commands.log" 2>/dev/null |
                while read -r shm; do ls -d "${shm%/*}" 2>/dev/null; done
            pgrep -fa "taillight link .*$work" | grep -v pgrep)
        [ -z "$left" ] && return
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "left behind on $1: $left"
        pause 0.05
    done
}

# Where a test did not see to it, those that tidy up over there get a moment for it.
ssh_cleanup() {
    local status=$? name
    for name in $(jobs -p); do
        kill -9 "$name"
        wait "$name"
    done 2>/dev/null
    [ $status -eq 0 ] || sleep 0.5
    for name in $(ip netns list | sed -n "s/^\(ssh$$-[^ ]*\).*/\1/p"); do
        ip netns pids "$name" | xargs -r kill -9 2>/dev/null
        ip netns delete "$name"
    done
    cleanup
}
trap ssh_cleanup EXIT
