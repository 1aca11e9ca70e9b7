#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# memcached over UDP through a bridge: of 99 in 100 requests the hops say where their datagram and the reply's were, all
# of both ways, from where the server's own interface sent it.
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
experiment "$work/x.yaml" netns 2k 2s <<'END'
servers: {cache: {threads: 1, transport: udp}}
capsule: {hops: [to1@client, to0@switch, to2@switch, to1@server]}
END
sed -i '/^  server:/i \  switch: {kind: bridge}' "$work/x.yaml"
run="$work/run"
"$taillight" run "$work/x.yaml" --out "$run" >"$work/out" 2>"$work/run.err"
status=$? # of 4 the load may have been late, which changes nothing of the packets
[ $status -eq 0 ] || [ $status -eq 4 ] || fail "exit $status: $(tail -n 5 "$work/run.err")"
jq -e '.hops | .requests > 3000 and .divided_to_server >= .requests * 0.99 and .divided_to_client >= .requests * 0.99
    and .backwards == 0 and .strange == 0
    and (["to1@client -> to0@switch", "to0@switch -> to2@switch", "to2@switch -> to1@server", "to1@server -> to2@switch",
        "to2@switch -> to0@switch", "to0@switch -> to1@client"] - [.parts[].part] == [])
    and all(.parts[] | select(.part == "to1@server -> to2@switch"); .messages >= 0.99 * 3000 and .p50_us > 0)' \
    "$run/summary.json" >/dev/null || fail "$(jq -c '.hops | del(.clock)' "$run/summary.json")"
jq -c '.hops | [.requests, .divided_to_server, .divided_to_client]' "$run/summary.json"
