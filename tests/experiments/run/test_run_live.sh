#!/usr/bin/env bash
# A run on a terminal shows what `load` would: rate, in flight, percentiles so far, in the line that says how
# long it goes on, and no line is longer than the terminal is wide. Without a terminal there is nothing of it.
# The line waits for a moment in which nobody else wants the load's core, and is given longer.
. tests/experiments/run_lib.sh
command -v python3 >/dev/null || skip 'no python3 to make a terminal with'
claim_port
narrow=60
line='loading, [0-9]+ s to go: [0-9]+/s, [0-9,]+ in flight'
for seconds in 3 6 12 24; do
    experiment "$work/live.yaml" local 500 ${seconds}s <<EOF
servers: {lab: {kind: labserver, port: $port}}
capture: {backend: none}
EOF
    rm -rf "$work/live"
    python3 tests/on_terminal.py '' $narrow "$taillight" run "$work/live.yaml" --out "$work/live" >"$work/shown" 2>"$work/live.err"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 4 ] || fail "exit $status: $(cat "$work/shown")"
    tr '\r' '\n' <"$work/shown" >"$work/lines"
    ! grep -qE "$line" "$work/lines" || break
done
grep -qE "$line" "$work/lines" || fail "not shown: $(cat "$work/lines")"
# A line that is rewritten begins with the sequence that clears it.
sed -n 's/^\x1b\[K//p' "$work/lines" | awk -v most=$narrow 'length($0) >= most {exit 1}' || fail "too wide: $(cat "$work/lines")"
jq -e .verdict "$work/live/client/load.json" >/dev/null || fail 'the summary is not what follows'
"$taillight" run "$work/live.yaml" --out "$work/plain" --dry-run >"$work/dry" 2>&1
grep -q -- '--announce' "$work/dry" && ! grep -q -- '--tell-live' "$work/dry" || fail 'without a terminal nobody looks'
echo "$(grep -cE "$line" "$work/lines") lines: $(grep -E "$line" "$work/lines" | tail -n 1 | tr -d "\033")"

# What `analyze` says is no wider, but for the files' names, and a quiet `report` says why there is none.
python3 tests/on_terminal.py '' 80 "$taillight" analyze "$work/live" --quiet >"$work/shown" 2>"$work/live.err"
[ $? -eq 4 ] || fail "exit of analyze: $(cat "$work/shown")"
sed '/^written: /d' "$work/shown" | tr -d '\r' >"$work/lines"
[ "$(wc -c <"$work/lines")" -gt 90 ] && awk 'length($0) > 80 {exit 1}' "$work/lines" || fail "too wide: $(cat "$work/lines")"
"$taillight" report "$work/live" --message 0 --quiet >"$work/out" 2>"$work/quiet.err"
[ $? -eq 4 ] && [ "$(cat "$work/out")" = "$work/live/view.html" ] && grep -qE '^(N/A|Inconclusive)' "$work/quiet.err" ||
    fail "a quiet report: $(cat "$work/out" "$work/quiet.err")"
