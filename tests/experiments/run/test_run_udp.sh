#!/usr/bin/env bash
# memcached over UDP: its requests are joined as TCP's are, and those that are lost have a place:
# the server is stopped until its socket is full, then each end's link loses some.
. tests/experiments/run_lib.sh
. tests/experiments/losses_lib.sh
need_capture
need_program jq jq
need_program yes coreutils
need_program tc iproute2
run="$work/run"
experiment "$work/udp.yaml" netns 3k 3s <<YAML
servers:
  cache: {host: server, threads: 2, transport: udp}
neighbours:
  stop: $(stopped 1s)
  client-link: $(narrow client to1 2s)
  server-link: $(narrow server to0 2500ms)
YAML
sed -i 's/timeout: 1s/timeout: 300ms/' "$work/udp.yaml" # what the socket holds is answered after that
"$taillight" run "$work/udp.yaml" --out "$run" >"$work/out" 2>"$work/run.err"
[[ $? == [04] ]] || fail "the run ended with an error"
jq -c '[.requests, .answered, .joined, .lost, .order_violations, .join.datagrams_lost]' "$run/summary.json"
jq -e '.joined >= 0.99 * .answered and .order_violations == 0 and .worst_stage_sum_error_ns < 2' "$run/summary.json" >/dev/null ||
    disturbed "$run" 990 || fail "not joined"
jq -e '.join.datagrams_lost as $at | ([$at[]] | add) == .lost and $at.server_socket > 50 and
    $at.to_server > 50 and $at.to_client > 50 and $at.too_late > 50 and $at.unknown == null' "$run/summary.json" >/dev/null ||
    fail "losses are not where they were made"
jq -e '.join.datagrams_thrown_away | .server_socket["the socket, its receive buffer full (SOCKET_RCVBUFF)"] > 50 and
    ([.to_server, .to_client | to_entries[] | select(.key | test("queueing discipline"))] | length == 2 and all(.value > 50))' \
    "$run/summary.json" >/dev/null || fail "it is not said what threw them away: $(jq -c .join.datagrams_thrown_away "$run/summary.json")"
grep -q "by the socket, its receive buffer full" "$work/out" && grep -q "by a .*queueing discipline" "$work/out" ||
    fail "the terminal does not say what threw requests away"
grep -q "lost in the server's socket" "$work/out" || fail "it is not said where requests were lost"
jq -e '.events.programs.udp_kfree_skb.attached and .events.events.dropped > 150' "$run/server/capture.json" >/dev/null ||
    fail "no drops are recorded"
grep -q 'memcached .*-U 11211' "$run/commands.log" || fail "memcached was not asked for UDP"

# A program on the server's core is the cause there, by name, as it is over TCP. What keeps the client
# from its core on a busy machine is another cause, and none of UDP's; nor is what the virtual machine's host does.
sed -e 's/duration: 10s/duration: 2s/' -e 's/start: 5s, stop: 10s/start: 1s, stop: 2s/' -e 's/20k/8k/' \
    -e 's/0s-5s, 5s-10s/0s-1s, 1s-2s/' experiments/memcached-udp.yaml >"$work/noisy.yaml"
grep -q 'start: 1s' "$work/noisy.yaml" && grep -q '0s-1s, 1s-2s' "$work/noisy.yaml" ||
    fail "the example has changed; so must this test"
noisy_try() {
    conclusive_run "$work/noisy.yaml" --quiet
    top=$(sqlite3 "$run/run.db" "select name || ' (' || role || ')' from causes where role <> 'client' and name <> 'virtual CPU taken away' and \
        diagnosis = (select id from diagnoses order by id limit 1 offset 2) order by total_ns desc limit 1")
    echo "top cause of the second half on the server: $top"
    [ "$top" = "yes (A)" ]
}
judged_tries noisy_try || fail "the second half blames $top first, not yes (A)"

# Of TCP nothing of this is loaded, and over UDP nothing is joined without the shim.
printf 'servers: {c: {transport: udp, shim: false}}\n' | experiment "$work/bad.yaml" netns 1k 1s
"$taillight" run --check "$work/bad.yaml" 2>"$work/bad.err" && fail "UDP without the shim is taken"
grep -q 'bad.yaml:[0-9:]* shim: over UDP only the shim sees socket calls' "$work/bad.err" || fail "the wrong refusal"
check_nothing_left "$run" ""
