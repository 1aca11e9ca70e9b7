#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What packets wait for on their way from a tap into a virtual machine, at known instants: QEMU is stopped by a signal, has
# its core taken by a hog, is in a control group whose quota is used up. Of the requests that this delayed by 10 ms
# (the hog: 3 ms) or more, 90 of 100 were longest on the hop from the tap to the guest for that reason, by its name, or are attributed
# within 15 % what they lost by the clock of who did it (what else this machine runs may have been longer), and so is the sum. The table of hops names it too.
# Time limit: 900 s
set -u
command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || { echo "there is no sshd; install it: apt-get install openssh-server"; exit 77; }
command -v sqlite3 >/dev/null || { echo "there is no sqlite3; install it: apt-get install sqlite3"; exit 77; }
. "$(dirname "$0")/tap_lib.sh"
sshd=$(command -v sshd || echo /usr/sbin/sshd)
programs=(-p "$sshd" -p id)
for part in /usr/lib/openssh/sshd-session /usr/lib/openssh/sshd-auth; do
    [ ! -x $part ] || programs+=(-p $part)
done
emulator=$(command -v qemu-system-x86_64) || { echo "there is no qemu-system-x86_64; install it: apt-get install qemu-system-x86"; exit 77; }
# QEMU, on core 0 alone.
cat >"$work/emulator" <<EMULATOR
#!/bin/sh
echo \$\$ >"$work/qemu.pid"
exec taskset -c 0 $emulator -name guest,debug-threads=on "\$@"
EMULATOR
chmod +x "$work/emulator"

# Does it to QEMU, some 20 times for 40 to 80 ms, and writes down when: disturb.py KIND PID FILE GROUP
cat >"$work/disturb.py" <<'PY'
import ctypes, os, signal, sys, time
kind, pid, had, group = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "w", buffering=1), sys.argv[4]
ctypes.CDLL(None).prctl(15, kind.encode()) # PR_SET_NAME
os.sched_setaffinity(0, {0 if kind != "stop" else 1})
now = lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
def be_behind(nice): # of QEMU, who else wants its core; only as long as need be: to be reached by ssh takes it the core
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.setpriority(os.PRIO_PROCESS, int(thread), nice)
throttled = lambda group: int(open(f"{group}/cpu.stat").read().split("throttled_time")[1].split()[0])
if kind == "quota": # who burns it, in the group of QEMU
    threads = os.listdir(f"/proc/{pid}/task")
    for path, words in ((f"{group}/cpu.cfs_period_us", ["100000"]), (f"{group}/cpu.cfs_quota_us", ["20000"]),
                        (f"{group}/tasks", threads + ["0"])):
        for word in words:
            with open(path, "w") as file:
                file.write(word)
if kind == "hog":
    be_behind(8)
# A hog that ordinary requests met, too, would be a part of what is usual, and the less of it a cause.
times, apart = (24, 0.5) if kind == "hog" else (18, 0.25)
for _ in range(times):
    time.sleep(apart)
    begin = now()
    if kind == "stop":
        os.kill(pid, signal.SIGSTOP)
        while open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
            pass # it stops once it has a core
        begin = now()
        time.sleep(0.04)
        os.kill(pid, signal.SIGCONT)
        had.write(f"{begin} {now()}\n")
    elif kind == "hog": # what it had of the core, which it shares with QEMU
        last = since = begin
        while last < begin + 80000000:
            at = now()
            if at > last + 200000:
                had.write(f"{since} {last}\n")
                since = at
            last = at
        had.write(f"{since} {last}\n")
    else:
        last, before = begin, throttled(group)
        while last < begin + 200000000: # a gap: nobody of the group runs
            at = now()
            if at > last + 10000000 and throttled(group) > before:
                had.write(f"{last} {last + throttled(group) - before}\n") # behind which it waits for the core
                break
            last = at
be_behind(0)
PY
# Of the requests of whose way to the server so many ms or more were disturbed, by the disturber's clock, and most of it (what
# waited for longer for the other programs of a crowded machine is theirs): what their longest hop is, and how much is
# attributed to that.
cat >"$work/compare.py" <<'PY'
import sqlite3, sys
right_words, least_ns = sys.argv[3], int(sys.argv[5]) * 1000000
had = [tuple(map(int, line.split())) for line in open(sys.argv[2])]
base = sqlite3.connect(sys.argv[1])
origin = int(base.execute("select value from meta where key = 'begin_host_ns'").fetchone()[0])
offset = int(sys.argv[4]) # of the guest's clock
usual, = base.execute("select reference_latency_ns from diagnoses where lifetime = 'whole'").fetchone()
if usual > 10e6: # an ordinary request waits for the core as long as a disturbed one
    print(f"{right_words}: an ordinary request takes {usual / 1e6:.1f} ms")
    sys.exit(77)
hops = {}
for request, name, ns in base.execute("""
        select request, name, ns from attributions natural join causes
        where diagnosis = (select id from diagnoses where lifetime = 'whole' limit 1) and name like 'hop tap0%'"""):
    hops.setdefault(request, {})[name] = ns
is_right = lambda name: name.startswith("hop tap0@client -> eth0@guest, ") and name.endswith(right_words)
truth, said, right, near, count = 0, 0, 0, 0, 0
others = {}
for request, sent, came in base.execute("select id, client_tx_ns, nic_ns from requests where client_tx_ns and nic_ns"):
    own = sum(max(0, min(end + offset, came + origin) - max(begin + offset, sent + origin)) for begin, end in had)
    if own < max(least_ns, 0.6 * (came - sent)):
        continue
    of = hops.get(request, {})
    attributed = sum(ns for name, ns in of.items() if is_right(name))
    count, truth, said = count + 1, truth + own, said + attributed
    near += abs(attributed - own) <= 0.15 * own
    longest = max(of, key=of.get, default="nothing")
    right += is_right(longest) or abs(attributed - own) <= 0.15 * own
    others[longest] = others.get(longest, 0) + 1
print(f"{right_words}: the longest hop of, or exactly in, {right} of {count} requests; {truth / 1e6:.1f} ms disturbed, "
      f"{said / 1e6:.1f} ms attributed to it; {near} within 15 %; {others}")
sys.exit(not (count >= 8 and right >= 0.9 * count and abs(said - truth) <= 0.15 * truth))
PY

guest_ssh guest 10.78.0.2
cat >"$work/inside" <<INSIDE
$guest_begin
mkdir -p /run/sshd
chmod 600 host_key
$sshd -e -f sshd_guest
$guest_wait
INSIDE
group=/sys/fs/cgroup/cpu/taillight-vm-$$
experiment_of() { # KIND LEAST-MS SECONDS
    cat >"$work/$1.yaml" <<YAML
name: $1
hosts:
  client: {kind: local, cores: [1]}
  guest: {kind: ssh, address: guest, ssh_config: $work/ssh_config, cores: [0], silence: 60s}
servers:
  cache: {host: guest, kind: memcached, threads: 1, memory: 64MiB, shim: true}
workload:
  keys: {count: 200}
  values: {size: {fixed: 200}}
load: {from: client, to: cache, rate: 40, duration: ${3}s, connections: 16, depth: 64, timeout: 10s, seed: 1, sleep: true}
neighbours:
  disturber: {host: client, command: [python3, $work/disturb.py, $1, '$(cat "$work/qemu.pid")', $work/$1.had, $group]}
diagnose: {slice: '>$2ms'}
capsule: {hops: [tap0@client, eth0@guest]}
YAML
}
guest_start -t 800 -q "$work/emulator" "${programs[@]}" -f "$work/inside" -f "$work/host_key" -f "$work/user_key.pub" \
    -f "$work/sshd_guest" 'bash inside'
trap 'kill $guest "${ours[@]}" 2>/dev/null; wait; rmdir "$group" 2>/dev/null; rm -rf "$work"' EXIT

disturbed() { # KIND WORDS LEAST-MS SECONDS
    local try status judged=0
    experiment_of "$1" "$3" "$4"
    for try in 1 2 3 4 5; do
        rm -rf "$work/run"
        "$BUILD/taillight" run "$work/$1.yaml" --out "$work/run" >"$work/report" 2>"$work/run.err"
        status=$?
        if [ $status != 0 ] && [ $status != 4 ]; then # a crowded machine leaves a guest without a sign of life
            [ $try != 5 ] || fail "$1: exit $status: $(tail -n 20 "$work/run.err" "$work"/run/logs/*.log)"
            continue
        fi
        [ -z "${KEEP:-}" ] || { cp -r "$work/run" "$KEEP/$1-$try" && cp "$work/report" "$work/$1.had" "$KEEP/$1-$try"; }
        python3 "$work/compare.py" "$work/run/run.db" "$work/$1.had" "$2" "$(jq .hosts.offset_ns "$work/run/summary.json")" "$3"
        status=$?
        [ $status != 0 ] || break
        [ $status = 77 ] || judged=$((judged + 1))
        [ $try != 5 ] || [ $judged != 0 ] || { echo "other programs had the cores in each try"; exit 77; }
        [ $try != 5 ] || fail "$1: $(sed -n '/^Hop by hop/,/^$/p' "$work/report")"
    done
    jq -e --arg words "$2" 'any(.hops.parts[] | select(.part == "tap0@client -> eth0@guest") | .waits[]; .for | endswith($words))' \
        "$work/run/summary.json" >/dev/null || fail "$1: the table of hops does not name it: $(jq -c .hops.parts "$work/run/summary.json")"
    grep -q 'of slow messages: .* of them)' "$work/report" || fail "$1: nor does the report: $(cat "$work/report")"
}
disturbed stop 'stopped by a signal of stop' 10 6
disturbed hog 'behind hog' 3 15
if mkdir "$group" 2>/dev/null && [ -e "$group/cpu.cfs_quota_us" ]; then
    disturbed quota "throttled (CPU quota of $(basename "$group" | cut -c1-16))" 10 6
    while read -r task; do echo "$task" >/sys/fs/cgroup/cpu/tasks; done <"$group/tasks" 2>/dev/null # QEMU's, which goes on
else
    echo "without its quota: no control group of version 1 can be made here"
fi
guest_end
