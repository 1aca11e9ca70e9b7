#!/usr/bin/env bash
# A user without privileges: the run says what is missing and does what it can: hosts without
# namespaces, the shim without kernel events. It claims no verdict that it has no evidence for.
# Runs beside others: what is said and left, not how fast.
. tests/experiments/run_lib.sh
need_program memcached memcached
need_program sqlite3 sqlite3
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
as_user=()
if [ "$(id -u)" = 0 ]; then
    need_program setpriv util-linux
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all)
    "${as_user[@]}" "$taillight" --version >/dev/null 2>&1 ||
        skip "user nobody cannot run what was built here"
elif unshare -n true 2>/dev/null; then
    skip "this user may make network namespaces"
fi
mkdir "$work/runs" && chmod 777 "$work/runs"
run="$work/runs/run"
claim_port
experiment "$work/user.yaml" netns 500 1s <<<"servers: {cache: {kind: memcached, threads: 1, port: $port}}"
"${as_user[@]}" "$taillight" run "$work/user.yaml" --out "$run" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status -eq 4 ] || [ $status -eq 0 ] || fail "exit $status"
[ -s "$run/summary.json" ] && [ -s "$run/report.html" ] || fail "no results"
warnings=$(json "$run/experiment.json" '$.warnings')
grep -q 'cannot make a network namespace.*it takes root' <<<"$warnings" || fail "says nothing of namespaces: $warnings"
grep -q 'no kernel events: .*CAP_BPF' <<<"$warnings" || fail "says nothing of BPF: $warnings"
[ "$(json "$run/experiment.json" '$.hosts.server.kind')" = local ] || fail "the hosts are not said to be local"
[ "$(json "$run/server/capture.json" '$.backend')" = none ] || fail "capture.json claims events"
calls=$(json "$run/server/capture.json" '$.shim.calls')
[ "${calls:-0}" -gt 500 ] || fail "the shim saw only ${calls:-no} calls"
answered=$(json "$run/summary.json" '$.answered')
[ "${answered:-0}" -gt 300 ] || fail "only ${answered:-0} requests were answered"
if [ "$(json "$run/summary.json" '$.joined')" = 0 ]; then
    [ $status -eq 4 ] || fail "a verdict without evidence"
fi
check_nothing_left "$run" $port

# Kernel events demanded: a failure that names what is missing.
sed -i '$a capture: {backend: events}' "$work/user.yaml"
"${as_user[@]}" "$taillight" run "$work/user.yaml" --out "$work/runs/needs" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status -eq 1 ] || fail "exit $status instead of 1 where events are demanded"
grep -q 'CAP_BPF' "$work/run.err" || fail "does not name CAP_BPF"
check_not_whole "$work/runs/needs"
check_nothing_left "$work/runs/needs" $port
