#!/usr/bin/env bash
# A server that somebody stops for a while: it is said that no reply came, for how long and when, in
# the document and in words; of a closed loop too, and not of a load with a single connection.
# Runs beside others: the stop's length is the least that is told. On a busy machine the stop may
# miss the load, or the load stand still itself for as long: such a try is made again.
set -u
. "$(dirname "$0")/load_lib.sh"
command -v jq >/dev/null || { echo 'not installed: jq' && exit 77; }
says() { # condition
    jq -e "$1" "$dir/load.json" >"$dir/said"
}
stop_in_the_middle() { # options of the load
    rm -rf "$dir/load.json"
    timeout 60 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --duration 2s \
        --timeout 20s --stamps user --sleep --out "$dir" "$@" >"$dir/out" 2>"$dir/err" &
    loader=$!
    await grep -q 'loading 127' "$dir/err" || fail "load $*: did not begin"
    sleep 0.5
    kill -STOP $server && sleep 0.5 && kill -CONT $server
    wait $loader
    case $? in 0 | 4) ;; *) fail "load $*" ;; esac
    says '.answered == .scheduled' || fail "load $*: requests are missing"
}
stopped() { # options of the load
    local tries=8
    until stop_in_the_middle "$@" && says '.silences.longest_us > 400000 and .silences.after_s > 0 and .silences.connections >= 4'; do
        [ $((tries -= 1)) -gt 0 ] || fail "load $*: where is the silence? $(jq -c '[.silences, .standstill]' "$dir/load.json")"
    done
    grep -q 'silence    no reply came on any connection for ' "$dir/out" || fail "load $*: it is not said"
}
start_server --service fixed:50us
stopped --rate 500 --connections 8
stopped --rate max --connections 8 --depth 1
stop_in_the_middle --rate 500 --connections 1
says '.silences == null' || fail 'with one connection it is not known that it was not the connection'
exit 0
