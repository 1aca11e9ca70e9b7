#!/usr/bin/env bash
# The quickstart, shorter, against real memcached: every request is joined and every number adds up.
. tests/experiments/run_lib.sh
need_capture
sed 's/duration: 10s/duration: 2s/' experiments/quickstart.yaml >"$work/quickstart.yaml"
run="$work/run"
# If none of three runs is undisturbed, 98 % must do, and it is said.
wanted_joined=999 wanted=999
conclusive_run "$work/quickstart.yaml" --json
! disturbed "$run" $wanted || wanted=980
requests=$(json "$run/summary.json" '$.requests')
joined=$(json "$run/summary.json" '$.joined')

# stdout is the summary and nothing else; the folder has the same.
[ "$(json "$work/out" '$.run_dir')" = "$run" ] || fail "run_dir is not $run"
for name in experiment.yaml experiment.json facts.json commands.log client/workload.yaml \
    client/load.json client/samples.tlog client/connections.tlog server/capture.json \
    server/events.tlog server/sockets.tlog server/calls.tlog server/connections.tlog \
    server/clock.tlog run.db summary.json report.html; do
    [ -s "$run/$name" ] || fail "$name is missing or empty"
done
find "$run" -name '*.partial' | grep -q . && fail "something partial is left"
grep -q '</html>' "$run/report.html" || fail "report.html is not whole"

[ "$requests" -gt 35000 ] && [ "$requests" -lt 45000 ] || fail "$requests requests in 2 s at 20000/s"
for kind in events calls samples; do
    dropped=$(json "$run/summary.json" "\$.dropped.$kind")
    [ "$dropped" = 0 ] || fail "$dropped $kind dropped"
done
[ "$(json "$run/server/capture.json" '$.dropped.events')" = 0 ] || fail "capture.json disagrees"

violations=$(json "$run/summary.json" '$.order_violations')
[ "$violations" = 0 ] || fail "$violations stamps out of order by more than the clock error"

unanswered=$(sqlite3 "$run/run.db" "select count(*) from requests where latency_ns is null")
[ $((joined * 1000)) -ge $(((requests - unanswered) * wanted)) ] ||
    fail "only $joined of $requests joined ($unanswered unanswered): $(json "$run/summary.json" '$.unmatched')"

# The stages of every request add up to what the client saw, to within the clock error.
error_ns=$(json "$run/summary.json" '$.clock_error_ns')
worst=$(sqlite3 "$run/run.db" "select max(abs(latency_ns - (client_queue_ns + client_stack_ns + \
    network_to_server_ns + r_core_ns + a_core_ns + stages.application_ns + server_stack_ns + \
    network_to_client_ns + client_receive_ns))) from requests join stages on request = id \
    where state = 'whole'")
[ -n "$worst" ] || fail "run.db has no whole request"
sqlite3 :memory: "select $worst <= $error_ns + 10" | grep -q 1 || fail "stages miss by $worst ns"
[ "$(sqlite3 "$run/run.db" 'select count(*) from requests')" = "$requests" ] || fail "run.db misses requests"

# The same seed asks the same thing again.
[ "$(json "$run/experiment.json" '$.load.seed')" = 1 ] || fail "the seed is not recorded"
check_nothing_left "$run" ""
