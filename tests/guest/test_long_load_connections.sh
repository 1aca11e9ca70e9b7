#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Thirty thousand connections to one memcached, more than many a machine allows a process to have files
# (and its ports a client): in a guest, whose root says so. All come about and all are used; each request
# is answered once, by its own connection, and the server counted as many; each has its kernel's stamps.
# Runs beside others: its machine is emulated, and its timings mean nothing.
. tests/guest/guest_lib.sh
connections=30000 requests=60000

cat >"$work/inside.sh" <<INSIDE
echo 1024 65000 >/proc/sys/net/ipv4/ip_local_port_range
memcached -u root -l 127.0.0.1 -p 11211 -U 0 -t 1 -c $((connections + 100)) &
tries=100
until (: </dev/tcp/127.0.0.1/11211) 2>/dev/null; do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || exit 1
    sleep 0.1
done
load='./taillight load --server 127.0.0.1:11211 --workload workload.yaml'
\$load --prepare --quiet 2>/out/load.err || exit 1
counted() { printf 'stats\r\nquit\r\n' | nc 127.0.0.1 11211 | sed -n 's/\r//; s/^STAT //p'; }
counted >/out/before
ulimit -S -n 1024 # it raises that itself
\$load --rate 3k --duration $((requests / 3000))s --connections $connections --timeout 60s --stamps sw \\
    --json --quiet --samples /out/logs >/out/load.json 2>/out/load.err
echo \$? >/out/verdict
counted >/out/after
INSIDE
printf 'mix: {get: 90, set: 10}\nkeys: {count: 1000}\nvalues: {size: {fixed: 200}}\n' >"$work/workload.yaml"
guest_run -t 500 -f "$work/inside.sh" -f "$work/workload.yaml" '. ./inside.sh'
grep -qE '^[04]$' "$work/out/verdict" || fail "the load ended with $(cat "$work/out/verdict" "$work/out/load.err")"
expect load.json ".connections == $connections and .scheduled > 0.95 * $requests"
expect load.json '.answered == .scheduled and .misses == 0 and .errors == {}
    and ([.unsent, .timed_out, .lost, .connections_ended, .reconnects] | add) == 0'
expect load.json '.stamps.sw == .answered and .tx_stamps_missing == 0 and .rx_stamps_missing == 0 and .unmatched_stamps == 0'
grown() { # NAME: by how much the server's count did
    echo $(($(sed -n "s/^$1 //p" "$work/out/after") - $(sed -n "s/^$1 //p" "$work/out/before")))
}
answered=$(jq .answered "$work/out/load.json")
[ $(($(grown cmd_get) + $(grown cmd_set))) = "$answered" ] ||
    fail "$answered answered, and the server saw $(grown cmd_get) gets and $(grown cmd_set) sets"
python3 - "$work/out/logs" $connections "$answered" <<'PY' || fail 'the logs'
import collections, struct, sys
folder, at_once, answered = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connections = open(folder + "/connections.tlog", "rb").read()[128:]
samples = open(folder + "/samples.tlog", "rb").read()[128:]
assert len(connections) // 64 == at_once, f"{len(connections) // 64} connections"
assert len(samples) // 96 == answered, f"{len(samples) // 96} samples of {answered}"
streams = collections.defaultdict(list)
for at in range(0, len(samples), 96):
    request_and_reply = struct.unpack_from("<QQQQ", samples, at + 48)
    streams[struct.unpack_from("<I", samples, at + 80)[0]].append(request_and_reply)
assert len(streams) == at_once, f"{len(streams)} connections used"
for connection, messages in streams.items():
    asked = told = 0
    for begin, end, reply, reply_end in sorted(messages):  # its bytes follow one another, both ways
        assert (begin, reply) == (asked, told) and end > begin and reply_end > reply, (connection, messages)
        asked, told = end, reply_end
PY
echo "$connections connections: $answered requests answered, $(grown total_connections) connections by the server's count"
