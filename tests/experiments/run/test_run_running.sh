#!/usr/bin/env bash
# A server that was started before, by somebody else and without the shim: an experiment loads and explains
# it, and a capture from outside finds one in a network namespace and control group of its own, of a
# process that comes after the capture. Both servers are left as they were.
# Runs beside others: requests are counted, not timed.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program jq jq
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 4 2>/dev/null &
server=$!
await bash -c "</dev/tcp/127.0.0.1/$port" || fail "the server does not listen"
stat_of() { { printf 'stats\r\nquit\r\n' >&3; tr -d '\r' <&3; } 3<>"/dev/tcp/127.0.0.1/$port" | sed -n "s/^STAT $1 //p"; }

experiment "$work/running.yaml" local 500 1s <<EOF
servers:
  cache: {host: server, kind: running, pid: $server}
EOF
"$taillight" run "$work/running.yaml" --out "$work/run" --quiet >/dev/null 2>"$work/run.err"
[[ $? == [04] ]] || fail "the run ended with an error"
requests=$(json "$work/run/summary.json" '$.requests') joined=$(json "$work/run/summary.json" '$.joined')
answered=$(json "$work/run/summary.json" '$.answered')
[ "$requests" -gt 400 ] || fail "$requests requests"
[ $((joined * 1000)) -ge $((answered * 990)) ] || disturbed "$work/run" 990 || fail "$joined of $answered requests joined"
[ "$(json "$work/run/summary.json" '$.calls.by_shim')" = 0 ] || fail "there is a shim"
[ "$(json "$work/run/server/capture.json" '$.ports[0]')" = "$port" ] || fail "another port"
kill -0 $server || fail "the server has ended"
# Nothing but the load's own requests: the keys were not written.
[ "$(stat_of curr_items)" -lt 200 ] || fail "the keys were written: $(stat_of curr_items)"

refused() { # PATTERN SERVER
    experiment "$work/wrong.yaml" "${3:-local}" 500 1s <<<"servers: {cache: {host: server, kind: running, $2}}"
    "$taillight" run "$work/wrong.yaml" --out "$work/wrong" >/dev/null 2>"$work/wrong.err"
    [ $? -eq 2 ] || fail "exit $? instead of 2: $2"
    grep -q -- "$1" "$work/wrong.err" || fail "does not say \"$1\": $2"
}
refused 'there is no process 4194303' 'pid: 4194303'
refused 'no control group no/such' 'cgroup: no/such'
refused 'needs one of' 'fill: false'
refused 'cannot come into a server that runs already' "port: $port, shim: true"
refused 'which is made for the run' "port: $port" netns
kill $server

# A container from outside.
for mount in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    [ -f $mount/cgroup.procs ] && mkdir "$mount/taillight-test-$$" 2>/dev/null && group=$mount/taillight-test-$$ && break
done
[ -n "${group:-}" ] || { echo "without a container: no control group can be made here"; exit 0; }
remove_group() {
    local status=$?
    kill "$container" 2>/dev/null && wait "$container" 2>/dev/null
    rmdir "$group"
    (exit $status)
    cleanup
}
trap remove_group EXIT
coproc capturing { exec "$taillight" capture --out "$work/capture" --cgroup "$group" --backend events --quiet 2>"$work/capture.err"; }
capture=$capturing_PID
read -r -t 60 line <&"${capturing[0]}" || fail "the capture does not begin"
[[ $line == *'"ready":true'* ]] || fail "the capture says $line"

unshare --net bash -c "echo \$\$ >$group/cgroup.procs && ip link set lo up &&
    exec memcached -u root -l 127.0.0.1 -p $port -U 0 -t 1" &
container=$!
cat >"$work/client.sh" <<END
exec 3<>/dev/tcp/127.0.0.1/$port || exit 1
for i in 1 2 3 4 5; do
    printf 'get a\r\n' >&3
    read -r -u 3 line
done
END
await nsenter -t $container -n bash -c "</dev/tcp/127.0.0.1/$port" || fail "the container does not listen"
read -r -t 60 line <&"${capturing[0]}" || fail "the capture does not find the server"
[ "$line" = "{\"found\":{\"port\":$port,\"process\":$container}}" ] || fail "the capture says $line"
nsenter -t $container -n bash "$work/client.sh" || fail "the container does not answer"
eval "exec ${capturing[1]}>&-"
wait "$capture" || fail "the capture ended with $?"
[ "$(json "$work/capture/capture.json" '$.ports[0]')" = "$port" ] || fail "the container's port was not found"
for kind in received sent; do
    calls=$(json "$work/capture/capture.json" "\$.events.events.$kind")
    [ "$calls" = 5 ] || [ "$(json "$work/capture/capture.json" '$.events.unseen_switches')" -gt 0 ] ||
        fail "$calls calls of the container's instead of 5: $kind"
done
kill -0 $container || fail "the container's server has ended"

# What its clients asked is found without them; five requests are too few for a verdict.
"$taillight" analyze "$work/capture" --quiet >"$work/found" 2>"$work/analyze.err"
[ $? -eq 4 ] || fail "analyze: $(cat "$work/found")"
jq -e '.without_client and .requests == 5 and .joined == 5 and .latency_us.p50 > 0 and .unasked_sends == 0
    and (.verdict | test("from a request.s arrival to the last byte of its answer"))' \
    "$work/capture/summary.json" >/dev/null ||
    [ "$(json "$work/capture/capture.json" '$.events.unseen_switches')" -gt 0 ] ||
    fail "the capture alone shows $(jq -c '[.requests, .joined, .verdict]' "$work/capture/summary.json")"
exit 0
