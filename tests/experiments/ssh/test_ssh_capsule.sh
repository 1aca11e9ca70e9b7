#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Packets carry their stamps between the machine of the load and that of the server, behind a real sshd, in one
# experiment: each end records the stamps of both, requests and replies are divided by them, and report and summary
# say so; each stamp by the clock of the machine whose hop it is. What one machine recorded alone is not taken for the
# whole.
# Runs beside others: counts packets, asserts no times.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts there
near sh -c 'for setting in /proc/sys/net/bridge/bridge-nf-call-*tables; do [ ! -e "$setting" ] || echo 0 >"$setting"; done'
cat >"$work/x.yaml" <<END
name: carried
hosts:
  client: {kind: local, cores: [1]}
  server: {kind: ssh, address: there, cores: [0], ssh_config: $ssh_config, directory: $work/there-files}
servers: {cache: {threads: 1}}
workload: {keys: {count: 200}, values: {size: {fixed: 200}}}
load: {rate: 1k, duration: 500ms, connections: 64, depth: 1, timeout: 1s} # none behind another in a packet
capsule: {hops: [to-there@client, eth0@server], carry: true}
END
run="$work/run" summary="$work/run/summary.json"
near "$taillight" run "$work/x.yaml" --dry-run --out "$run" 2>"$work/dry.err" | grep 'taillight capsule' >"$work/dry"
[ "$(grep -c -- '--carry .*--part PART' "$work/dry")" = 2 ] || fail "not both are to carry: $(cat "$work/dry")"
near "$taillight" run "$work/x.yaml" --out "$run" >"$work/out" 2>"$work/run.err"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status: $(tail -n 5 "$run"/logs/*capsule.log)"

# What begins on the one ends on the other, and each recorded the stamps of both: two for a packet.
jq -es '
    def own(key): [.[].hops[] | select(.machine == "") | .[key]] | add;
    ([.[].hops[] | select(.machine != "") | .machine] | sort) == ["client", "client", "server", "server"]
    and own("begun") > 200 and own("begun") == own("ended") and own("ended") == own("recorded")
    and own("damaged") + own("foreign") + own("dropped") + own("not_stamped") == 0
    and all(.[]; .records > 200)' "$run/server/capsule.json" "$run/client/capsule.json" >/dev/null ||
    fail "$(jq -c '[.records, (.hops[] | [.name, .machine, .role, .matched, .begun, .ended, .bare, .no_room, .foreign])]' "$run"/*/capsule.json)"
jq -e '.requests as $requests | .hops | .problem == null and .dropped == 0 and .strange == 0 and .backwards == 0
    and .divided_to_server >= 0.9 * $requests and .divided_to_client >= 0.9 * $requests
    and ([.parts[] | select(.part | contains("->")) | [.way, .part]] ==
        [["to server", "to-there@client -> eth0@server"], ["to client", "eth0@server -> to-there@client"]])' "$summary" >/dev/null ||
    fail "$(jq -c '[.requests, .joined, .hops]' "$summary")"
grep -q '^  to-there@client -> eth0@server ' "$work/out" || fail "no table of hops"
ssh_nothing_left there 10

# As if the load's machine were another one, whose CLOCK_MONOTONIC is 5 s ahead: its boot, its clock log, and of both
# ends' records the stamps of its hops, 0 and 1. That the other clocks are the same ones is then the truth to be found.
rm -f "$run"/client/{events,capture}.*
python3 - "$run" <<'END'
import glob, struct, sys
run, ahead = sys.argv[1], 5 * 10**9
def change(path, record, of):
    data = bytearray(open(path, "rb").read())
    for at in range(128, len(data), record):
        of(data, at)
    open(path, "wb").write(data)
def clock(data, at):
    if data[at] == 2:
        struct.pack_into("<q", data, at + 16, struct.unpack_from("<q", data, at + 16)[0] + ahead)
def hop(data, at):
    if data[at + 36] < 2:
        struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] + ahead)
change(run + "/client/clock.tlog", 24, clock)
change(run + "/client/hops.tlog", 48, hop)
change(run + "/server/hops.tlog", 48, hop)
for path in glob.glob(run + "/client/*.tlog"):
    with open(path, "r+b") as log:
        log.seek(40)
        log.write(b"00000000-1111-2222-3333-444444444444")
END
"$taillight" analyze "$run" >/dev/null 2>"$work/apart.err"
jq -e '.requests as $requests | .hops | .problem == null and .strange == 0 and .backwards == 0
    and .divided_to_server >= 0.9 * $requests and .divided_to_client >= 0.9 * $requests
    and (.clock | .exchanges >= 0.9 * $requests and .compared > 0 and .disagreeing == 0
        and (.offset_ns | fabs) <= 1000 * .bound_p99_us)' "$summary" >/dev/null ||
    fail "apart: $(jq -c '[.requests, .hosts, .hops]' "$summary")"
jq -c '[.requests, .hops.divided_to_server, .hops.divided_to_client, .hops.clock]' "$summary"

# What did not fit into the ring of an end, of either machine, is told beside the verdict.
for of in server/2 client/3; do
    printf '%b' "\\x0${of#*/}" | dd of="$run/${of%/*}/hops.tlog" bs=1 seek=32 conv=notrunc status=none
done
"$taillight" analyze "$run" >"$work/dropped" 2>"$work/dropped.err"
grep -q '5 records of hops were lost' "$work/dropped" || fail "dropped: $(head -n 40 "$work/dropped")"

rm "$run/client/capsule.json" "$run/client/hops.tlog"
"$taillight" analyze "$run" >/dev/null 2>"$work/alone.err"
jq -e '.hops.problem | contains("hops of another machine")' "$summary" >/dev/null || fail "alone: $(jq -c .hops "$summary")"
