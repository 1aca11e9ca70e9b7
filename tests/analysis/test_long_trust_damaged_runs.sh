#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Two runs' folders, of a calm network and of one that loses bytes, damaged at random in many ways, and read:
# damaged_runs.py. With sanitizers as well
# where such a build is there. test_long_trust_damaged_runs.sh [SEED [SECONDS EACH]]
# Needs the machine to itself: it records them.
# Time limit: 240 s
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
need_program redis-server redis-server
need_program tc iproute2
experiment "$work/calm.yaml" netns 1k 1s <<END
servers: {cache: {kind: memcached}}
END
# Bytes that are thrown away, held back and sent again, and a server that passes requests on to another one.
experiment "$work/troubled.yaml" netns 300 1s <<'END'
servers:
  proxy:
    host: server
    kind: command
    port: 6380
    shim: true
    command:
      - python3
      - -c
      - |
        import socket, threading
        def serve(client):
            store = socket.create_connection(("{address}", 6379))
            while request := client.recv(65536):
                store.sendall(request)
                client.sendall(store.recv(65536))
        for client, _ in iter(socket.create_server(("", {port})).accept, None):
            threading.Thread(target=serve, args=(client,), daemon=True).start()
  store: {host: server, kind: redis, port: 6379, shim: true}
neighbours:
  full: {host: client, command: [sh, -ec, 'tc qdisc add dev to1 root tbf rate 800kbit burst 1600 limit 1600; sleep 0.4; tc qdisc del dev to1 root']}
  deaf:
    host: server
    start: 500ms
    command:
      - sh
      - -ec
      - >-
        for p in $(ip -4 neigh show dev to0 | cut -d' ' -f1); do
        ip neigh replace $p lladdr 02:00:00:00:00:01 dev to0 nud permanent; done; sleep 0.25;
        ip neigh flush dev to0 nud permanent
END
sed -i 's/^workload:/&\n  protocol: redis/; s/^load: {/&to: proxy, /; s/depth: 64/depth: 1, sleep: true/; s/count: 2k/count: 1/' "$work/troubled.yaml"
for run in calm troubled; do
    "$taillight" run "$work/$run.yaml" --out "$work/$run" --quiet >"$work/out" 2>"$work/run.err"
    case $? in 0 | 4) ;; *) fail "the $run run to be damaged" ;; esac
done
mkdir "$work/damaged"
[ "$(sqlite3 "$work/troubled/run.db" "select count(*) from causes where name like 'sent again%'")" -gt 0 ] ||
    fail "no bytes were sent again in the run to be damaged"
programs=("$taillight")
sanitized=build-address-undefined/taillight
[ -x $sanitized ] && programs+=("$PWD/$sanitized")
export ASAN_OPTIONS=detect_leaks=0
for run in calm troubled; do
    python3 tests/analysis/damaged_runs.py "$work/$run" "$work/damaged" "${2:-40}" "${1:-$(date +%s)}" "${programs[@]}" ||
        fail "a damaged folder is not told well"
done
