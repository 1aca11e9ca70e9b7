#!/usr/bin/env bash
# The method's options: which are refused together; that Ctrl-C ends the rounds, and what was measured is
# kept; a rate in steps; a recording sent again.
# Runs beside others: it asserts words and counts; a busy machine may make a load inconclusive.
set -u
. "$(dirname "$0")/load_lib.sh"
start_server --service fixed:50us
command=("$build/taillight" load --sleep --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --json --quiet)
load() { timeout 30 "${command[@]}" "$@" >"$dir/out" 2>"$dir/err"; }
value() { sed "1{/begin_ns/d}" "$dir/out" | jq -r "$1"; }
refused() {
    load "${@:2}"
    [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err" || fail "${*:2}: not refused with $1"
}
refused '--target and --ci belong together' --rate 1k --target p99
refused '--target and --ci belong together' --rate 1k --ci 10us
refused '--target: "99" is not a percentile' --rate 1k --target 99 --ci 10us
refused '--target: "p100" is not a percentile' --rate 1k --target p100 --ci 10us
refused '--duration and --target exclude each other' --rate 1k --target p99 --ci 10us --duration 1s
refused '--max-duration needs --target' --rate 1k --max-duration 1s
refused '--max-duration: must be more than 0' --rate 1k --target p99 --ci 10us --max-duration 0
refused '--confidence' --rate 1k --target p99 --ci 10us --confidence 95

# Ctrl-C ends the rounds; what was measured is kept.
rm -f "$dir/out"
"${command[@]}" --announce --rate 1k --target p99 --ci 1ns --samples "$dir/i" >"$dir/out" 2>"$dir/err" &
load=$!
await grep -q begin_ns "$dir/out" || fail 'Ctrl-C: the load does not begin'
sleep 2
kill -INT $load
wait $load
[ $? -eq 4 ] || fail 'Ctrl-C: exit code'
case "$(value .method.stop)" in interrupted | load) ;; *) fail 'Ctrl-C: stop' ;; esac
[ "$(records "$dir/i/samples.tlog")" = "$(value .scheduled)" ] || fail 'Ctrl-C: samples'

# A rate in steps: each level has its own percentiles; --target wants one that holds still.
printf 'keys: {count: 100}\nmix: {get: 0, set: 1}\npattern: step:0.5,1.5\n' >"$dir/steps.yaml"
load --workload "$dir/steps.yaml" --rate 1k --duration 2s
status=$?
[ $status -eq 0 ] || { [ $status -eq 4 ] && [ "$(value '.reasons | length')" -gt 0 ]; } || fail "steps: exit $status"
[ "$(value '[.. | .factor? // empty] == [0.5, 1.5]')" = true ] || fail 'steps: levels'
refused 'target needs a rate that holds still' --workload "$dir/steps.yaml" --rate 1k --target p99 --ci 1ms

# A recording is sent again: every request of it, also of what was recorded here.
awk 'BEGIN {for (i = 0; i < 900; i++) printf "%.4f\n", i / 600 + (i % 7) / 10000}' >"$dir/times.csv"
load --arrivals "replay:$dir/times.csv" --samples "$dir/r"
[ "$(value .scheduled)" = 900 ] || fail 'replay: CSV'
load --arrivals "replay:$dir/r/samples.tlog" --rate 1200
[ "$(value .scheduled)" = 900 ] && [ "$(value .rate)" = 1200 ] || fail 'replay: samples.tlog'
printf '1\n2\n1.5\n' >"$dir/times.csv"
refused "$dir/times.csv:3: what stands here is before" --arrivals "replay:$dir/times.csv"
refused 'a recording (replay:' --arrivals "replay:$dir/r/samples.tlog" --target p99 --ci 1ms
echo 'the rounds end when they are to, the steps are told apart, a recording is sent again'
