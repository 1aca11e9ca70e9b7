#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The core that takes packets in at a bridge's port is taken away, for 3 ms now and then, by a program of real-time
# priority: of the requests that were long on their way by the client's and the server's own stamps, 99 of 100 were
# longest on the link to that port, behind that program.
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
import ctypes, time
ctypes.CDLL(None).prctl(15, b"hog") # PR_SET_NAME
for _ in range(40):
    time.sleep(0.045)
    until = time.monotonic() + 0.003
    while time.monotonic() < until:
        pass
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
        exec taskset -c 0 chrt -f 50 python3 $work/hog.py
diagnose: {slice: '>1ms'}
capsule: {hops: [to1@client, to0@switch, to2@switch, to1@server]}
END
sed -i -e '/^  server:/i \  switch: {kind: bridge}' -e 's/connections: 16, depth: 64/connections: 256, depth: 4/' "$work/x.yaml"

check_hog() {
    local long right status
    run="$work/run"
    rm -rf "$run"
    "$taillight" run "$work/x.yaml" --out "$run" >"$work/out" 2>"$work/run.err"
    status=$? # of 4 the load may have been late, which changes nothing of the packets
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "exit $status"
    # What came before the first that was behind it came while the port's thread was still being set up.
    read -r long right < <(sqlite3 -separator ' ' "$run/run.db" "
        with hops as (select request, name, ns, client_tx_ns as sent from attributions natural join causes join requests on id = request
                where diagnosis = (select id from diagnoses where lifetime = 'whole' limit 1) and name like 'hop %'),
            first as (select request, name, sent, max(ns) from hops group by request)
        select count(*), coalesce(sum(name = 'hop to1@client -> to0@switch, behind hog'), 0) from stages join first using (request)
        where network_to_server_ns > 1000000 and sent >= (select min(sent) from hops where name like '%behind hog')")
    echo "behind the hog: the longest hop of $right of $long requests"
    [ "$long" -ge 30 ] && [ $((right * 100)) -ge $((long * 99)) ]
}
judged_tries check_hog || fail "$(tail -n 40 "$work/out"; cat "$work"/run/logs/neighbour*)"
grep -q 'behind hog' "$work/out" || fail "the report does not name it"
