#!/usr/bin/env bash
# TX stamps of the client's kernel when packets are lost: those that never come, of what its own queue
# throws away, and those that come twice, of what is sent again since no answer comes, are counted, and stand
# beside the verdict.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program jq jq
need_program tc iproute2
experiment "$work/loss.yaml" netns 2k 3s <<'YAML'
servers:
  cache: {host: server}
neighbours:
  client-link:
    host: client
    start: 1s
    command: [sh, -ec, 'tc qdisc add dev to1 root tbf rate 800kbit burst 1600 limit 1600; sleep 0.3; tc qdisc del dev to1 root']
  server-link:
    host: server
    start: 2s
    command:
      - sh
      - -ec
      - >-
        for p in $(ip -4 neigh show dev to0 | cut -d' ' -f1); do
        ip neigh replace $p lladdr 02:00:00:00:00:01 dev to0 nud permanent; done; sleep 0.4;
        ip neigh flush dev to0 nud permanent
YAML
sed -i 's/timeout: 1s/timeout: 1s, stamps: sw/' "$work/loss.yaml" # all, whatever they cost
"$taillight" run "$work/loss.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
[[ $? == [04] ]] || fail "the run ended with an error"
counts=$(jq -c '[.tx_stamps_missing, .tx_stamps_late, .tx_stamps_double, .tx_stamps_unknown, .rx_stamps_missing]' "$work/run/client/load.json")
echo "missing, late, double, unknown, RX missing: $counts"
jq -e '.tx_stamps_double > 0 and .tx_stamps_missing > 0 and .tx_stamps_unknown == 0 and .unmatched_stamps ==
    .tx_stamps_missing + .tx_stamps_late + .tx_stamps_double + .tx_stamps_unknown + .rx_stamps_missing' \
    "$work/run/client/load.json" >/dev/null || fail "not counted: $counts"
verdict=$(json "$work/run/summary.json" '$.verdict')
[[ $verdict == *"of the client's stamps "*" of sends are missing, "*" came twice"* ]] || fail "it is not said: $verdict"
check_nothing_left "$work/run" ""
