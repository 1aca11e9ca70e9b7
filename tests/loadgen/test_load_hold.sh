#!/usr/bin/env bash
# Loads that begin together: each says that it is ready, waits, and begins at the instant that it is
# told, not before; without one it does not begin.
# Runs beside others: it is told to begin long after it was ready.
. "$(dirname "$0")/load_lib.sh"
command -v jq >/dev/null || { echo 'no jq'; exit 77; }
start_server
load=("$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --rate 200 --duration 200ms
    --seed 1 --json --quiet --announce --hold)
line() { sed -n "$2p" "$dir/$1" | jq -r ".$3"; } # of what a load printed

mkfifo "$dir/tell1" "$dir/tell2"
for i in 1 2; do "${load[@]}" <"$dir/tell$i" >"$dir/said$i" 2>"$dir/err$i" & pid[i]=$!; done
exec 8>"$dir/tell1" 9>"$dir/tell2"
for i in 1 2; do await grep -q ready_ns "$dir/said$i" || fail "load $i is not ready"; done
ready=$(line said1 1 ready_ns) needs=$(line said1 1 needs_ns)
[ "$needs" -gt 0 ] && [ "$needs" -lt 1000000000 ] || fail "it needs $needs ns"
at=$(($(awk '{printf "%d", $1 * 1000}' /proc/uptime) * 1000000))
at=$(((at > ready ? at : ready) + 2000000000))
echo "$at" >&8
echo "$at" >&9
exec 8>&- 9>&-
for i in 1 2; do
    wait "${pid[i]}"
    [[ $? = [04] ]] || fail "load $i: $(cat "$dir/err$i")"
    apart=$(($(line "said$i" 2 begin_ns) - at))
    [ "${apart#-}" -lt 500000000 ] || fail "load $i begins $apart ns off"
    [ "$(tail -n +3 "$dir/said$i" | jq .scheduled)" -gt 10 ] || fail "load $i: its summary"
done

# Nobody says when: the end of the input, what is no instant, and a signal.
"${load[@]}" </dev/null >"$dir/out" 2>"$dir/err"
[ $? = 1 ] && grep -q 'asked not to begin' "$dir/err" || fail 'the end of the input'
"${load[@]}" <<<soon >"$dir/out" 2>"$dir/err"
[ $? = 1 ] && grep -q 'asked not to begin' "$dir/err" || fail 'no instant'
[ "$(wc -l <"$dir/out")" = 1 ] || fail 'it begins all the same'
"${load[@]}" <"$dir/tell1" >"$dir/said1" 2>"$dir/err" & held=$!
exec 8>"$dir/tell1"
await grep -q ready_ns "$dir/said1" || fail 'a load that is to be ended is not ready'
kill -TERM $held
wait $held
[ $? = 1 ] || fail 'a signal while it waits'
"${load[@]}" --slo 'p99<=1ms' >"$dir/out" 2>"$dir/err"
[ $? = 2 ] && grep -q 'excludes .* --hold' "$dir/err" || fail 'with a search'
exit 0
