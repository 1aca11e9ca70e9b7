#!/usr/bin/env bash
# Recorders whose cores are fixed when they start take those that will receive along, by what the
# devices' settings say; and where another core received all the same, the capture says so.
# Runs beside others: cores are counted, not timed.
. tests/experiments/run_lib.sh
need_capture
need_program jq jq
need_program taskset util-linux
build=$(cd "$BUILD" && pwd)
if ! perf record -q -e cpu-clock -a -o "$work/made" -- true >/dev/null 2>"$work/perf.err"; then
    skip "perf record does not work here (no perf, or not permitted)"
fi
# It speaks perf's part, with a recording that perf made before.
cat >"$work/perf" <<EOF
#!/bin/bash
echo "\$*" >$work/perf.arguments
while read -r word; do
    [ \$word = stop ] && cp $work/made "\${@: -1}"
    printf 'ack\n\0'
    [ \$word = stop ] && exit 0
done
EOF
chmod 755 "$work/perf"
claim_port
capture=("$taillight" capture --out "$work/capture" --port "$port" --cores 0 --quiet
    --backend intel_pt --pt-event cpu-clock --perf "$work/perf")

# In a network namespace whose loopback has an RPS mask: core 1. RPS_MASK: "0" for none.
in_namespace() { # RPS_MASK COMMAND...
    unshare -n -m bash -c 'ip link set lo up && mount -t sysfs none /sys &&
        echo "$0" >/sys/class/net/lo/queues/rx-0/rps_cpus && "$@"' "$@"
}
recorded() { grep -oE -- '(-C|--cpu)[ =]?[0-9,-]+' "$work/perf.arguments" | grep -oE '[0-9][0-9,-]*'; }

in_namespace 2 "${capture[@]}" --no-events </dev/null >/dev/null 2>"$work/cmd.err" || fail "the capture fails"
[ "$(recorded)" = 0-1 ] || fail "perf records $(recorded), not 0-1"
[ "$(json "$work/capture/capture.json" '$.receive_cores')" = 1 ] || fail "$(cat "$work/capture/capture.json")"
[ "$(json "$work/capture/capture.json" '$.cores')" = 0 ] || fail "what was asked for is not told"

# Nothing says that core 1 will receive, but the load and what it sends over loopback is there.
cat >"$work/talk.sh" <<EOF
mkfifo $work/in
taskset -c 0 "$build/labserver" --port $port & server=\$!
${capture[@]@Q} <$work/in >$work/out 2>>$work/cmd.err & capture=\$!
exec 7>$work/in
for i in {1..100}; do grep -q '"ready":true' $work/out && break; sleep 0.1; done
taskset -c 1 "$taillight" load --server 127.0.0.1:$port --protocol lab --rate 500 --connections 4 \
    --duration 300ms --sleep --stamps user --quiet >/dev/null 2>>$work/cmd.err
exec 7>&-
wait \$capture
status=\$?
kill \$server
exit \$status
EOF
rm -r "$work/capture"
in_namespace 0 bash "$work/talk.sh" || fail "the capture of a load ends with $?"
[ "$(recorded)" = 0 ] || fail "perf records $(recorded), not 0"
[ "$(json "$work/capture/capture.json" '$.events.followed')" = 1 ] || fail "core 1 did not receive"
jq -e '.warnings | any(test("no function calls of core 1, which received"))' "$work/capture/capture.json" \
    >/dev/null || fail "it is not said: $(jq -c .warnings "$work/capture/capture.json")"
[ "$(json "$work/capture/capture.json" '$.receive_cores')" = "" ] || fail "core 1 was not recorded"
