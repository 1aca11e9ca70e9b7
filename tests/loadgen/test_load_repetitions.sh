#!/usr/bin/env bash
# Repetitions: each its own seed, logs and percentiles; the pool; and a server that settles on
# another level at each start, which no single run could show.
# Runs beside others: a request takes its service time at least, however busy the machine is.
set -u
build=${BUILD:-build}
dir=$(mktemp -d /tmp/repeat-test-XXXXXX)
trap 'kill -9 $(cat "$dir/pid" 2>/dev/null) 2>/dev/null; rm -rf "$dir"' EXIT
fail() {
    echo "FAIL: $*"
    for f in "$dir"/err "$dir"/out; do [ -s "$f" ] && { echo "--- $f"; head -n 30 "$f"; }; done
    exit 1
}
command -v jq >/dev/null || { echo "there is no jq; install it: apt-get install jq" && exit 77; }
. "$(dirname "$0")/../ports.sh"
claim_port
# Each start takes twice as long for a request as the one before: 0.5, 1, 2 ms.
cat >"$dir/restart" <<EOF
level=\$(cat "$dir/level" 2>/dev/null || echo 250)
echo \$((level * 2)) >"$dir/level"
if [ -s "$dir/pid" ]; then
    kill \$(cat "$dir/pid")
    while grep -qs '^State:.[^Z]' /proc/\$(cat "$dir/pid")/status; do sleep 0.02; done
fi
"$build/labserver" --port $port --service fixed:\$((level * 2))us >"$dir/ready" 2>&1 &
echo \$! >"$dir/pid"
while ! grep -q ready "$dir/ready"; do sleep 0.02; done
EOF
sh "$dir/restart"
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$dir/w.yaml"
load() { "$build/taillight" load --sleep --server 127.0.0.1:$port --workload "$dir/w.yaml" --json --quiet "$@" >"$dir/out" 2>"$dir/err"; }

load --rate 200 --duration 600ms --seed 3 --repetitions 3 --restart "sh $dir/restart" --samples "$dir/logs"
status=$?
[ $status = 0 ] || [ $status = 4 ] || fail "exit $status"
jq -e '.repetitions.count == 3 and (.repetitions.list | length == 3)' "$dir/out" >/dev/null || fail "three repetitions"
jq -e '[.repetitions.list[].seed] | (unique | length == 3) and .[0] == 3' "$dir/out" >/dev/null || fail "seeds"
jq -e '.scheduled == ([.repetitions.list[].scheduled] | add)' "$dir/out" >/dev/null || fail "the pool is not their sum"
# A request takes its service time at least: the levels show in each repetition's own figures.
jq -e '[.repetitions.list[].latency_us.p50 // 1e9] | .[0] >= 500 and .[1] >= 1000 and .[2] >= 2000' "$dir/out" >/dev/null ||
    fail "the levels of the three starts"
jq -e '(.latency_us.p50 // 1e9) as $p | [.repetitions.list[].latency_us.p50 // 1e9] | $p >= min and $p <= max' "$dir/out" >/dev/null ||
    fail "the pooled median is not between theirs"
jq -e '.repetitions.between.percentile == "p99"' "$dir/out" >/dev/null || fail "the percentile compared"
records() { od -A n -t u8 -j 24 -N 8 "$1" | tr -d ' '; } # of a log's header
for i in 1 2 3; do
    [ "$(records "$dir/logs/repetition-$i/samples.tlog")" = "$(jq ".repetitions.list[$i - 1].scheduled" "$dir/out")" ] ||
        fail "the logs of repetition $i"
done

jq -e '.repetitions.between | .counted < 2 or (.range_us[0] < .range_us[1] and .p < 0.5)' "$dir/out" >/dev/null ||
    fail "servers of three levels are called alike"

# The first is the run that the seed draws without repetitions.
load --rate 200 --seed 3 --target p50 --ci 1ms --repetitions 2
[ $? = 2 ] && grep -q 'exclude each other' "$dir/err" || fail "--target and --repetitions"
load --rate 100 --duration 300ms --seed 3
jq .scheduled "$dir/out" >"$dir/alone"
load --rate 100 --duration 300ms --seed 3 --repetitions 2
[ "$(jq '.repetitions.list[0].scheduled' "$dir/out")" = "$(cat "$dir/alone")" ] || fail "the first repetition is another run"
load --rate 100 --duration 100ms --repetitions 2 --restart 'exit 3'
[ $? = 1 ] && grep -q 'repetition 2: --restart: `exit 3` ended with exit code 3' "$dir/err" || fail "a restart that fails"
[ -s "$dir/out" ] && jq -e '.repetitions.count == 1 and .scheduled > 0 and (.reasons | any(test("1 of 2 repetitions")))' "$dir/out" >/dev/null ||
    fail "what was measured before a restart that fails is not reported"
# Told to end while the server restarts, it does so soon, with all that the command has begun, and reports what it has.
"$build/taillight" load --sleep --server 127.0.0.1:$port --workload "$dir/w.yaml" --json --quiet --rate 100 --duration 100ms \
    --repetitions 3 --restart "trap '' TERM; sleep 600 & echo \$! >$dir/restarting; wait" >"$dir/out" 2>"$dir/err" &
for _ in $(seq 600); do [ -s "$dir/restarting" ] && break || sleep 0.1; done
kill $!
wait $!
[ $? = 4 ] || fail "interrupted while the server restarts"
is_gone() { ! grep -qs '^State:.[^Z]' "/proc/$(cat "$dir/restarting")/status"; }
await is_gone || { kill -9 "$(cat "$dir/restarting")"; fail "what the interrupted restart began goes on"; }
[ -s "$dir/out" ] && jq -e '.repetitions.count == 1 and .answered > 0 and (.reasons | any(test("interrupted: 1 of 3 repetitions")))' \
    "$dir/out" >/dev/null || fail "what was measured before a restart that was interrupted is not reported"
load --rate 100 --restart true
[ $? = 2 ] && grep -q -- '--restart is for --repetitions' "$dir/err" || fail "--restart alone"
echo "repetitions: seeds, logs and levels of each; their pool"
