#!/usr/bin/env bash
# A load that somebody stops for a while: every request is sent, and late by as long; that it stood
# still is said, and the server is not blamed.
# Runs beside others: the stop's length is the least that is told.
set -u
. "$(dirname "$0")/load_lib.sh"
have_jq() { command -v jq >/dev/null; }
have_jq || { echo 'not installed: jq' && exit 77; }
stopped() { # options ...
    timeout 60 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --rate 500 --duration 1s \
        --timeout 20s --connections 4 --stamps user --json "$@" >"$dir/out" 2>"$dir/err" &
    local loader=$!
    local load
    await grep -q 'loading 127' "$dir/err" || fail "load $*: did not begin"
    load=$(pgrep -P $loader)
    sleep 0.3
    kill -STOP "$load" && sleep 0.5 && kill -CONT "$load"
    wait $loader
    local status=$?
    jq -e '.standstill.lasted_us > 400000 and .standstill.after_s > 0' "$dir/out" >"$dir/said" || fail "load $*: what is its standstill?"
    jq -e '.reasons | join(" ") | contains("did not keep up") | not' "$dir/out" >"$dir/said" || fail "load $*: blames the server"
    # A closed loop has no schedule to be late for: few of its requests, then, know of it.
    case " $* " in *' max '*) return ;; esac
    [ $status -eq 4 ] || fail "load $*: is believed"
    jq -e '.answered == .scheduled and .latency_us.max > 300000' "$dir/out" >"$dir/said" || fail "load $*: requests are missing, or in time"
    jq -e '.reasons | join(" ") | test("stood still for|had its core for only")' "$dir/out" >"$dir/said" || fail "load $*: it is not said"
}
start_server --service fixed:50us
stopped
stopped --sleep
stopped --sleep --rate max
exit 0
