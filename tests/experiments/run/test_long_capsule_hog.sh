#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The core that takes packets in at a bridge's port is taken away, for 3 ms now and then, by a program of real-time
# priority that writes down when: of the requests that it delayed, 99 of 100 were longest on the link to that port,
# behind that program, and its time is what they were attributed, within 15 %.
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
need_program chrt util-linux
chrt -f 1 true 2>/dev/null || skip "no program gets real-time priority here"

# What arrives at the port is taken in by a thread of the kernel's (threaded NAPI), which no other program shall hold
# up, and which veth has where it merges packets (GRO) and the other end sends none that are to be divided (TSO).
cat >"$work/offload.py" <<'PY'
import array, fcntl, socket, struct, sys
STSO, SGRO = 0x1f, 0x2c # ethtool(8)'s requests
device, request, value = sys.argv[1], {"tso": STSO, "gro": SGRO}[sys.argv[2]], int(sys.argv[3])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    command = array.array("I", [request, value])
    fcntl.ioctl(any_socket, 0x8946, struct.pack("16sQ", device.encode(), command.buffer_info()[0]).ljust(40, b"\0"))
PY
cat >"$work/hog.py" <<'PY'
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"hog") # PR_SET_NAME
now = lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
had = open(sys.argv[1], "w", buffering=1) # when it had the core, by its own clock
# Until here it was like any other program, which packets do not wait for.
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
for _ in range(40):
    time.sleep(0.045)
    begin = end = now()
    while end < begin + 3000000:
        end = now()
    had.write(f"{begin} {end}\n")
PY
# Of the requests on whose way to the server the program had the core for a millisecond or more, by its own clock: what
# their longest hop is, and how much is attributed to the program; of the sum and of nine in ten, that is to be within
# 15 % of what it had. What else was long, others on this machine did.
cat >"$work/compare.py" <<'PY'
import sqlite3, sys
RIGHT = "hop to1@client -> to0@switch, behind hog"
had = [tuple(map(int, line.split())) for line in open(sys.argv[2])]
base = sqlite3.connect(sys.argv[1])
origin = int(base.execute("select value from meta where key = 'begin_host_ns'").fetchone()[0])
hops = {}
for request, name, ns in base.execute("""
        select request, name, ns from attributions natural join causes
        where diagnosis = (select id from diagnoses where lifetime = 'whole' limit 1) and name like 'hop %'"""):
    hops.setdefault(request, {})[name] = ns
truth, said, near, right, count = 0, 0, 0, 0, 0
for request, sent, came in base.execute("""
        select id, client_tx_ns, nic_ns from requests join stages on stages.request = id where network_to_server_ns > 1000000"""):
    own = sum(max(0, min(end, came + origin) - max(begin, sent + origin)) for begin, end in had)
    if own < 1000000:
        continue
    of = hops.get(request, {})
    attributed = of.get(RIGHT, 0)
    count, truth, said = count + 1, truth + own, said + attributed
    near += abs(attributed - own) <= 0.15 * own
    right += max(of, key=of.get, default="") == RIGHT
print(f"behind the hog: the longest hop of {right} of {count} requests; {truth / 1e6:.1f} ms of its own, "
      f"{said / 1e6:.1f} ms attributed to it; {near} within 15 %")
sys.exit(not (count >= 30 and right >= 0.99 * count and abs(said - truth) <= 0.15 * truth and near >= 0.9 * count))
PY
experiment "$work/x.yaml" netns 2k 2s <<END
servers: {cache: {threads: 1}}
neighbours:
  sends-whole-packets:
    host: client
    command: [python3, $work/offload.py, to1, tso, '0']
  thread-and-hog:
    host: switch
    command:
      - unshare
      - -m
      - sh
      - -ec
      - >-
        mount -t sysfs sysfs /sys;
        python3 $work/offload.py to0 gro 1;
        echo 0 >/sys/class/net/to0/queues/rx-0/rps_cpus;
        echo 1 >/sys/class/net/to0/threaded;
        napi=\$(pgrep -n napi/to0);
        taskset -pc 0 \$napi >/dev/null;
        chrt -f -p 10 \$napi;
        exec taskset -c 0 python3 $work/hog.py $work/hog.had
diagnose: {slice: '>1ms'}
capsule: {hops: [to1@client, to0@switch, to2@switch, to1@server]}
END
sed -i -e '/^  server:/i \  switch: {kind: bridge}' -e 's/connections: 16, depth: 64/connections: 256, depth: 4/' "$work/x.yaml"

check_hog() {
    local status
    run="$work/run"
    rm -rf "$run"
    "$taillight" run "$work/x.yaml" --out "$run" >"$work/out" 2>"$work/run.err"
    status=$? # of 4 the load may have been late, which changes nothing of the packets
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "exit $status"
    python3 "$work/compare.py" "$run/run.db" "$work/hog.had"
}
judged_tries check_hog || fail "$(tail -n 40 "$work/out"; cat "$work"/run/logs/neighbour*)"
grep -q 'behind hog' "$work/out" || fail "the report does not name it"
