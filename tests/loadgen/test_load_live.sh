#!/usr/bin/env bash
# The live view: on a terminal (a pty) the line shows rate, in flight and percentiles and ends
# before the result; with --quiet, and without a terminal, nothing of it. Ctrl-C still ends the run.
# Runs beside others: its line waits for a moment that nobody else wants, and is given longer.
set -u
command -v python3 >/dev/null || { echo 'no python3 to make a terminal with'; exit 77; }
. "$(dirname "$0")/load_lib.sh"
start_server --service fixed:20us

# Runs the load on a terminal; what it shows goes to out. $1: on what of it Ctrl-C is pressed, a pattern; empty: on nothing.
on_terminal() { python3 tests/on_terminal.py "$1" 0 "${@:2}" >"$dir/out" 2>"$dir/err"; }
load=("$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml")
line='[0-9]+/s, [0-9,]+ in flight, p50 [0-9.]+ [nmu]?s, p99 [0-9.]+ [nmu]?s, p99.9 [0-9.]+ [nmu]?s(, the client [^;]*)?; waiting for'

# The line waits for a moment that nobody else wants: a machine that has none yet is given longer.
for seconds in 1 2 4 8 16; do
    on_terminal "" "${load[@]}" --rate 2k --duration ${seconds}s
    status=$?
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "a run: exit $status"
    seen=$(tr '\r' '\n' <"$dir/out" | grep -cE "$line the end of $seconds(\.[0-9]+)? s")
    [ "$seen" -lt 2 ] || break
done
[ "$seen" -ge 2 ] || fail "the line was shown $seen times"
tr '\r' '\n' <"$dir/out" | grep -qE '^verdict: ' || fail 'no result behind the line'

# Neither the tables of the result nor its sentences are wider than the terminal; what says how it was judged follows.
python3 tests/on_terminal.py '' 80 bash -c '"$@" 2>/dev/null' _ "${load[@]}" --rate 2k --duration 300ms >"$dir/out" 2>"$dir/err"
tr -d '\r' <"$dir/out" | sed '/^  method /,$d' >"$dir/result"
[ "$(wc -l <"$dir/result")" -gt 10 ] || fail 'no result on 80 columns'
awk 'length($0) > 80 {print; wide = 1} END {exit wide}' "$dir/result" || fail 'wider than 80 columns'

for seconds in 1.5 3 6 12; do
    on_terminal "" "${load[@]}" --rate 2k --target p50 --ci 1ns --max-duration ${seconds}s
    waits=$(tr '\r' '\n' <"$dir/out" | grep -cE "$line (the load to be as asked for|the interval of p50)")
    [ "$waits" -eq 0 ] || break
done
[ "$waits" -gt 0 ] || fail 'what the method waits for'

on_terminal "" "${load[@]}" --rate 2k --duration 500ms --quiet
grep -q 'in flight, p50' "$dir/out" && fail 'shown in spite of --quiet'
"${load[@]}" --rate 2k --duration 500ms >"$dir/out" 2>"$dir/err"
[ "$(wc -l <"$dir/err")" -le 2 ] && ! grep -q 'in flight, p50' "$dir/err" || fail 'shown without a terminal'

on_terminal "p50 [0-9]" "${load[@]}" --rate 2k --duration 30s
[ $? -eq 4 ] && grep -q 'interrupted after' "$dir/out" || fail 'Ctrl-C'
exit 0
