#!/usr/bin/env bash
# Two runs that want the same setting: the second is refused in words, and the first puts back what it
# found. A keeper that is killed leaves a journal, which is named then and at the next start.
. tests/experiments/run_lib.sh
setting=/proc/sys/vm/stat_interval
[ -w $setting ] || skip "no setting of this machine can be changed here"
export TAILLIGHT_STATE_DIR="$work/state"
mkdir "$work/state"
before=$(cat $setting)
claim_port
labserver="$(cd "$BUILD" && pwd)/labserver"

# tuned_run NAME VALUE DURATION: prints what it says on stderr into NAME.err, in the background: $pid
tuned_run() {
    experiment "$work/$1.yaml" local 1k "$3" <<EOF
servers: {lab: {kind: command, command: [$labserver, --port, "{port}", --protocol, memcached], port: $port, shim: false}}
capture: {backend: none}
tuning: {server: [{sysctl: {vm.stat_interval: $2}}]}
EOF
    "$taillight" run "$work/$1.yaml" --out "$work/$1" >"$work/$1.out" 2>"$work/$1.err" &
    pid=$!
}
is_set() { [ "$(cat $setting)" = "$1" ]; }

tuned_run first 7 60s
first=$pid
await is_set 7 || fail "the first run does not set it"
tuned_run second 9 60s
wait $pid
status=$?
[ $status -eq 2 ] || fail "the second run ends with exit $status"
grep -Eq "another run has changed $setting .*process $first: .*run .*first.yaml" "$work/second.err" ||
    fail "the second run does not name the first"
is_set 7 || fail "the second run has changed the setting"
kill -TERM $first
wait $first
is_set "$before" || fail "the first run has left $(cat $setting)"
grep -q "everything undone" "$work/first/commands.log" || fail "the first run does not say so"

tuned_run killed 7 60s
await is_set 7 || fail "the third run does not set it"
await grep -q 'loading 60' "$work/killed.err" || fail "the third run does not load"
kill -KILL $(pgrep -P $pid -x taillight-keep)
kill -TERM $pid
wait $pid
grep -q "keeper of a host .* is gone; .*doctor --restore" "$work/killed.err" || fail "the death of a keeper is not said"
is_set 7 || fail "somebody else has undone it"
tuned_run next 7 1s
wait $pid
grep -q "earlier run did not live .*doctor --restore" "$work/next.err" || fail "the next run says nothing"
"$taillight" doctor --restore >/dev/null || fail "doctor --restore fails"
await is_set "$before" || fail "the setting is left at $(cat $setting)"
echo "refused: $(grep -o 'another run .*' "$work/second.err" | head -n 1)"
