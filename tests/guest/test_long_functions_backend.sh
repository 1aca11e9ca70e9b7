#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The `functions` backend in a guest whose kernel has the tracer: a run with it knows the functions
# that requests spent their time in, loses nothing in silence, and leaves the kernel's tracer as it
# was, also after SIGKILL; a tracer that is in use is left alone.
. tests/guest/guest_lib.sh
guest_experiment functions 60 <<<'capture: {backend: functions}'
cat >"$work/inside" <<'INSIDE'
set -u
tracing=/sys/kernel/tracing
state() { (cd $tracing && head -n 3 tracing_cpumask trace_clock set_ftrace_filter current_tracer tracing_on) >"/out/$1"; }
state before
./taillight run functions.yaml --out /tmp/run --quiet 2>/out/run.err
echo $? >/out/verdict
state after_run
cp /tmp/run/summary.json /tmp/run/server/capture.json /tmp/run/server/functions.sym /out

mkfifo /tmp/in
exec 7<>/tmp/in
./taillight capture --out /tmp/killed --no-events --backend functions --functions 'tcp_*,__x64_sys_*' --cores 0 <&7 >/tmp/ready &
victim=$!
tries=200
until grep -q '"functions":true' /tmp/ready; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
    sleep 0.05
done
cat $tracing/current_tracer $tracing/tracing_cpumask >/out/during
kill -9 $victim
tries=200
until [ "$(cat $tracing/tracing_on $tracing/current_tracer | tr '\n' ' ')" = '1 nop ' ]; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || break
    sleep 0.05
done
state after_kill
ls /tmp/killed >/out/killed

# Core 1 begins to receive, over loopback, while core 0 is recorded.
ip link set lo up
taskset -c 0 memcached -u root -l 127.0.0.1 -p 22222 -t 1 &
server=$!
./taillight capture --out /tmp/follow --port 22222 --backend functions --cores 0 <&7 >/tmp/ready2 &
follower=$!
tries=400
until grep -q '"functions":true' /tmp/ready2; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || exit 1
    sleep 0.05
done
taskset -c 1 ./taillight load --server 127.0.0.1:22222 --rate 50 --connections 2 --duration 1s --sleep \
    --stamps user --quiet >/dev/null 2>&1
kill -INT $follower
wait $follower
cp /tmp/follow/capture.json /out/follow.json
# Of each core whose functions are recorded from some time on: when (ns), the core.
od -An -v -t u8 -w24 -j128 /tmp/follow/functions.tlog | awk '{print $1}' >/tmp/times
od -An -v -t u1 -w24 -j128 /tmp/follow/functions.tlog | awk '{print $23, $21}' |
    paste /tmp/times - | awk '$2 == 3 {print $1, $3}' >/out/watched
kill $server
state after_follow

echo function >$tracing/current_tracer
./taillight capture --out /tmp/used --no-events --backend functions </dev/null >/dev/null 2>/out/used
echo $? >>/out/used
cat $tracing/current_tracer >>/out/used
echo nop >$tracing/current_tracer
./taillight capture --out /tmp/none --no-events --backend functions --functions 'no_such_thing' </dev/null >/dev/null 2>/out/none
echo $? >>/out/none
state after_all
dmesg | grep -E 'WARNING:|BUG:|Oops' && exit 1
exit 0
INSIDE
guest_run -f "$work/functions.yaml" -f "$work/inside" 'bash inside'

for when in after_run after_kill after_follow after_all; do
    diff "$work/out/before" "$work/out/$when" || fail "the tracer is not as it was: $when"
done
[ "$(tr '\n' ' ' <"$work/out/during")" = 'function_graph 1 ' ] || fail "meanwhile: $(cat "$work/out/during")"
grep -q 'functions.tlog$' "$work/out/killed" && fail "a killed capture left a whole log"
grep -q 'the kernel.s tracer is in use' "$work/out/used" || fail "used: $(cat "$work/out/used")"
[ "$(tail -n 2 "$work/out/used" | tr '\n' ' ')" = '1 function ' ] || fail "used: $(cat "$work/out/used")"
grep -q 'no function "no_such_thing" to trace' "$work/out/none" && [ "$(tail -n 1 "$work/out/none")" = 2 ] ||
    fail "a pattern for nothing: $(cat "$work/out/none")"

expect follow.json '.events.followed == "1" and .cores == "0" and .functions.dropped == 0'
expect follow.json '.warnings | any(test("of core")) | not'
awk '$2 == 0 { first = $1 } $2 == 1 { second = $1 } END { exit !(first && second > first + 100000000) }' \
    "$work/out/watched" || fail "core 1 was not followed later: $(cat "$work/out/watched")"

guest_run_is_whole 60
expect capture.json '.backend == "functions" and .functions.records > 1000 and .functions.dropped == .dropped.functions'
expect capture.json '.functions.symbols > 50 and .functions.unnamed == 0'
expect summary.json '.functions.present and .functions.functions > 500 and .functions.damaged == 0'
expect summary.json '.functions.lost > 0 or .functions.unpaired <= 0.001 * .functions.functions'
expect summary.json '.functions.traced_ns > 2e9'
for name in tcp_v4_rcv tcp_recvmsg __x64_sys_epoll_wait try_to_wake_up; do
    grep -q " $name\$" "$work/out/functions.sym" || fail "$name was not met"
done
echo "$(jq -c .functions "$work/out/summary.json")"
