#!/usr/bin/env bash
# Receive processing on a core that nobody asked the capture for, and that a program holds with
# softirqs off for 1 ms every 20: that program is the cause, on the receive core, from when RPS is
# set in the middle of the run, and not before; nearly nothing is lost, and what was is said.
. tests/experiments/run_lib.sh
need_capture
need_program chrt util-linux
need_program jq jq
chrt -r 10 true 2>/dev/null || skip "no real-time scheduling here: it takes root"
build=$(cd "$BUILD" && pwd)
cat >"$work/receive.yaml" <<EOF
name: receive
hosts:
  client: {kind: netns, cores: [0]}
  server: {kind: netns, cores: [0]}
servers:
  lab: {host: server, kind: command, shim: true,
        command: ["$build/labserver", "--port", "{port}", "--service", "fixed:10us"]}
neighbours:
  hold: {host: server, kind: command, cores: [1],
         command: ["$build/tests/faults/inject", softoff, 1ms, 20ms, "$work/fault.log"]}
  # What it has to start is started before the second window: programs take their time on core 0, too.
  move: {host: server, kind: command, cores: [0], command: [unshare, -m, sh, -c,
         "mount -t sysfs none /sys; sleep 60 & sleep 1.5; echo 2 >/sys/class/net/to0/queues/rx-0/rps_cpus; wait"]}
workload:
  keys: {count: 1k}
  values: {size: {fixed: 200}}
load: {rate: 5k, arrivals: exponential, connections: 32, depth: 16, duration: 3s, seed: 1,
       sleep: true}
diagnose: {slice: p97-100, windows: [0s-1500ms, 1500ms-3s]}
EOF
run="$work/run"
# What window NUMBER says: window NUMBER FILTER
window() { jq -r "[.windows[$1].causes[] | select(.cause != \"taillight overhead\")] | $2" "$run/summary.json"; }
receive_try() {
    local status top lost before
    rm -rf "$run" "$work/fault.log"
    chrt -r 10 "$taillight" run "$work/receive.yaml" --out "$run" --quiet >"$work/out" 2>"$work/run.err"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "the run ends with exit $status"
    before=$(window 0 '[.[] | select(.cause == "inject")] | length')
    top=$(window 1 '.[0] | "\(.cause) (\(.role))"')
    lost=$(window 1 '([.[] | select(.role == "R" and (.cause | startswith("lost records"))) | .total_us] | add // 0)
        / ([.[].total_us] | add // 1)')
    echo "top cause since RPS was set: $top; lost on R: $lost of the time; inject before: $before"
    jq -c '.verdict, .unseen' "$run/summary.json"
    [ "$top" = "inject (R)" ] && [ "$before" = 0 ] && jq -en "$lost < 0.05" >/dev/null
}
judged_tries receive_try || fail "not so"
[ "$(json "$run/server/capture.json" '$.events.followed')" = 1 ] || fail "core 1 was not followed"
[ "$(json "$run/server/capture.json" '$.cores')" = 0 ] || fail "the capture was asked for core 1"
jq -e '.unseen.unrecorded_us > 0 and .unseen.unrecorded_us < 20000
    and (.verdict | test("core 1, which received, was not recorded"))
    and (.verdict | test("nothing was dropped") | not)' "$run/summary.json" >/dev/null ||
    fail "it is not said that core 1 was unrecorded: $(jq -c '[.verdict, .unseen]' "$run/summary.json")"
check_nothing_left "$run" ""
