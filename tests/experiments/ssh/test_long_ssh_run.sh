#!/usr/bin/env bash
# The experiment of test_run_noisy_neighbour.sh, with its hosts behind ssh: it finds the same
# culprit, by name and on the application core, in the half in which it was there; what the run
# leaves here is whole, and it leaves nothing over there. Its schedule is a recorded one and its sizes
# stand in a file, both of which only this side has.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
need_capture
ssh_hosts client server
ssh_host() { echo "{kind: ssh, address: $1, cores: [$2], ssh_config: $ssh_config, directory: $work/$1-files}"; }
sed -e 's/duration: 10s/duration: 2s/' -e 's/start: 5s, stop: 10s/start: 1s, stop: 2s/' \
    -e 's/0s-5s, 5s-10s/0s-1s, 1s-2s/' -e "s|^  client: .*|  client: $(ssh_host client 1)|" \
    -e "s|^  server: .*|  server: $(ssh_host server 0)|" experiments/quickstart-noisy-neighbour.yaml >"$work/ssh.yaml"
mkdir "$work/here" && inside client mount -t tmpfs tmpfs "$work/here" || skip "no tmpfs can be mounted here"
awk 'BEGIN { srand(1); while ((at -= log(1 - rand()) / 20000) < 2) printf "%.9f\n", at }' >"$work/here/times.csv"
printf '200,9\n400,1\n' >"$work/here/sizes.csv"
sed -i -e "s|^  values: .*|  values: {size: {empirical: $work/here/sizes.csv}}\n  arrivals: replay:$work/here/times.csv|" \
    -e 's/arrivals: exponential, //' "$work/ssh.yaml"
echo 'tuning: {server: [{sysctl: {net.ipv4.tcp_autocorking: 0}}]}' >>"$work/ssh.yaml"
grep -c 'kind: ssh' "$work/ssh.yaml" | grep -qx 2 && grep -q 'start: 1s' "$work/ssh.yaml" ||
    fail "the example has changed; so must this test"
taillight_here=$taillight
taillight="$work/near" # conclusive_run's program: the same one, where the controller is
printf '#!/bin/sh\nexec ip netns exec ssh%s-here %s "$@"\n' $$ "$taillight_here" >"$taillight"
chmod +x "$taillight"
run="$work/run"
# On a machine that is busy otherwise, what else it does can hide the culprit.
ssh_try() {
    conclusive_run "$work/ssh.yaml" --quiet
    half=$(sqlite3 "$run/run.db" "select id from diagnoses order by id limit 1 offset 2")
    top=$(sqlite3 "$run/run.db" "select name || ' (' || role || ')' from causes where diagnosis = $half order by total_ns desc limit 1")
    hit=$(sqlite3 "$run/run.db" "select max(messages) from causes where diagnosis = $half and name = 'yes' and role = 'A'")
    echo "the second half blames $top"
    [ "${hit:-0}" -ge 20 ] # a tenth of them at least
}
judged_tries ssh_try || fail "the second half blames $top, and not yes (A)"
# What a dry run says is what was done.
"$taillight" run --dry-run "$work/ssh.yaml" --out "$run" >"$work/dry" 2>"$work/cmd.err" || fail "--dry-run"
grep -q "^server: copy this program there, into $work/server-files/taillight-HASH, and start a keeper, through: ssh -F $ssh_config .* -- server\$" \
    "$work/dry" || fail "how the host is reached: $(grep copy "$work/dry")"
said_is_done "$work/dry" "$run/commands.log"
for wrote in client/samples.tlog client/load.json client/events.tlog server/events.tlog server/calls.tlog server/clock.tlog facts.json; do
    [ -s "$run/$wrote" ] || fail "no $wrote"
done
(cd "$run/workload" && sha256sum -- *) | awk '{ exit substr($2, 1, 16) != substr($1, 1, 16) }' ||
    fail "$run/workload: $(ls "$run/workload")"
[ "$(grep -o 'workload/[0-9a-f]*-[a-z]*.csv' "$run/client/workload.yaml" | wc -l)" = 2 ] || fail "the files' names"
jq -e --argjson recorded "$(wc -l <"$work/here/times.csv")" '(.requests - $recorded | fabs) <= 0.01 * $recorded' \
    "$run/summary.json" >/dev/null || fail "$(jq .requests "$run/summary.json") requests, not the recorded"
jq -e '.joined >= 0.98 * .requests' "$run/summary.json" >/dev/null ||
    fail "$(jq -c '{joined, requests}' "$run/summary.json")"
first=$(sqlite3 "$run/run.db" "select count(*) from causes where name = 'yes' and \
    diagnosis = (select id from diagnoses order by id limit 1 offset 1)")
echo "$(jq .joined "$run/summary.json") of $(jq .requests "$run/summary.json") joined; of the second half's slow requests" \
    "${hit:-none} met yes (A), and its top cause is $top"
[ "$first" = 0 ] || fail "the first half blames yes, which was not there"
[ "$(jq -c '[.tuned[] | [.host, .applied]]' "$run/experiment.json")" = '[["server",true]]' ] || fail "what was tuned"
ssh_nothing_left server 10
ssh_nothing_left client 10
[ "$(far server cat /proc/sys/net/ipv4/tcp_autocorking)" = 1 ] || fail "the far host is still tuned"

# What the far machine says of itself is kept, and its clock's relation to ours.
jq -e --arg boot "$(cat /proc/sys/kernel/random/boot_id)" '.hosts.server | .boot_id == $boot and
    .address == "10.246.0.3" and .ssh == "server" and .monotonic.bound_ns < 1e8 and
    (.monotonic.offset_ns | fabs) <= .monotonic.bound_ns' "$run/experiment.json" >/dev/null ||
    fail "experiment.json: $(jq -c .hosts.server "$run/experiment.json")"
[ -s "$run/client/clock.tlog" ] || fail "no clock log of the client's"
[ "$(jq -c .host.boot_id "$run/facts.json" "$run/facts-client.json" | uniq | wc -l)" = 1 ] || fail "facts"
