#!/usr/bin/env bash
# Users who wait for replies and then think: no more requests than that allows, fewer of a slow server, each counted
# once also when the server is killed, and always told as a closed loop.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/load_lib.sh"
think() { # EXIT-PATTERN OPTIONS...
    timeout 60 "$build/taillight" load --server "127.0.0.1:$port" --protocol lab --rate max --connections 10 --duration 500ms --stamps user \
        --timeout 20s --json --quiet "${@:2}" >"$dir/out" 2>"$dir/err"
    # shellcheck disable=SC2053 # it is a pattern
    [[ $? == $1 ]] || fail "load ${*:2}: wrong exit code"
    [ "$(jq -r .loop "$dir/out")" = closed ] || fail "load ${*:2}: not told as a closed loop"
}
holds() { jq -e "$2" "$dir/out" >/dev/null || fail "$1: $(jq -c '[.scheduled, .answered, .lost, .think, .in_flight_max]' "$dir/out")"; }
refused() { # text, options ...
    timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --protocol lab "${@:2}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: not refused"
}
command -v jq >/dev/null || { echo 'jq is not installed'; exit 77; }
start_server --protocol lab
printf 'protocol: lab\nservice: "fixed:50ms"\n' >"$dir/slow.yaml"
refused 'it needs --rate max' --rate 1k --think fixed:1ms
refused '--think: "often" is no distribution' --rate max --think often

# Of ten users each thinks 50 ms: ten times in half a second, and once more.
think '[04]' --think fixed:50ms
holds 'ten users' '.think == "fixed:50ms" and .scheduled > 20 and .scheduled <= 110 and .answered == .scheduled and .errors == {} and .in_flight_max <= 10'
think '[04]' --think exponential:50ms --depth 4 --threads 2
holds 'four at once' '.scheduled > 40 and .scheduled % 4 == 0 and .answered == .scheduled and .in_flight_max > 4'
# A server that works on each for 50 ms, on one after the other, has no more than ten of them to answer, and ten wait at the end.
think '[04]' --think fixed:1ms --workload "$dir/slow.yaml"
holds 'a slow server' '.scheduled <= 25 and .answered == .scheduled'
timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --protocol lab --rate max --think fixed:1ms --duration 100ms --quiet >"$dir/out" 2>"$dir/err"
grep -q 'closed loop of users who think (fixed:1ms), as asked for' "$dir/out" || fail 'for people'

"$build/taillight" load --server "127.0.0.1:$port" --protocol lab --rate max --connections 10 --duration 60s --think exponential:5ms \
    --reconnect 0 --announce --json --quiet >"$dir/out" 2>"$dir/err" &
loading=$!
await grep -q begin_ns "$dir/out" || fail 'it does not begin'
sleep 0.2
stop_server
wait $loading
[ $? -eq 4 ] || fail 'a server that ended: not inconclusive'
jq -s '.[-1]' "$dir/out" >"$dir/last" && mv "$dir/last" "$dir/out"
holds 'a server that ended' '.scheduled > 0 and .connections_ended == 10 and .scheduled == .answered + .lost + .unsent + .timed_out'
echo "users think, and account for all: $(jq -c '[.scheduled, .answered, .lost]' "$dir/out")"
