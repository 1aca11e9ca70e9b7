#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Servers that have no room for more connections, end those there are, or keep them waiting: Redis (maxclients, CLIENT
# KILL and PAUSE, timeout), memcached (-c, idle_timeout), and HTTP's 408. Each request is counted once, and the verdict
# has the server's own words.
# Runs beside others: it asserts counts and words, no times.
set -u
. "$(dirname "$0")/secured_lib.sh" limits
have jq || { echo 'not installed: jq' && exit 77; }
load() { # server, options ...
    timeout 60 "$taillight" load --sleep --server "$1" --quiet --json --timeout 20s "${@:2}" >"$dir/out" 2>"$dir/err"
    case $? in 0 | 1 | 4) ;; *) fail "load $*" ;; esac
    jq -e '.scheduled > 0 and .answered + .lost + .timed_out + .unsent == .scheduled and .errors.unexpected == null' "$dir/out" \
        >/dev/null || fail "load $*: requests are not counted once"
}
ends() { # what is expected of the document
    jq -e "$1" "$dir/out" >/dev/null || fail "not: $1"
}
says() { jq -r '.reasons[]' "$dir/out" | grep -qF -- "$1" || fail "does not say $1"; }

if have redis-server; then
    start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir" --maxclients 12
    at=redis://127.0.0.1:$port
    ask() { redis-cli -p "$port" >>"$dir/log" 2>&1; }
    # One that had sent a request by then may lose it, or have the refusal for its answer.
    load "$at" --rate 100 --duration 500ms --connections 24
    ends '.connections_ended > 0 and .errors.client_error == null'
    says 'it said "-ERR max number of clients reached"'
    # In the middle of a load: those that are thrown out find no room any more.
    { sleep 0.5 && printf 'config set maxclients 5\nclient kill type normal skipme yes\n' | ask; } &
    later=$!
    load "$at" --rate 500 --duration 1500ms --connections 8 --reconnect 300ms
    wait "$later"
    ends '.connections_ended > 8 and .connections_given_up > 0 and .answered > 0'
    sleep 1 | redis-cli -p "$port" config set maxclients 64 >>"$dir/log" 2>&1
    { for _ in 1 2 3; do sleep 0.3 && echo 'client kill type normal skipme yes' | ask; done; } &
    later=$!
    load "$at" --rate 500 --duration 1500ms --connections 8
    wait "$later"
    ends '.connections_ended >= 8 and .reconnects == .connections_ended and .unsent == 0'
    { sleep 0.3 && echo 'client pause 400 all' | ask; } &
    later=$!
    load "$at" --rate 500 --duration 1s --connections 8
    wait "$later"
    ends '.answered == .scheduled and .connections_ended == 0 and .latency_us.max > 100000'
    # A request may meet the end on its way. Otherwise nothing is broken, whether or not the connection had had one.
    echo 'config set timeout 1' | ask
    load "$at" --rate 4 --duration 4s --connections 8
    ends '.answered + .lost == .scheduled and .connections_ended > .lost and (.errors.connections_broken // 0) <= .lost'
fi
if have memcached; then
    user=()
    [ "$(id -u)" -eq 0 ] && user=(-u root)
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -c 20
    load "127.0.0.1:$port" --rate 100 --duration 500ms --connections 40
    ends '.connections_ended > 0 and .errors.malformed == null and .lost_by.malformed == null'
    says 'it said "ERROR Too many open connections"'
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -o idle_timeout=1
    # It looks for idle connections every few seconds, on a busy machine more seldom.
    for _ in 1 2 3 4; do
        load "127.0.0.1:$port" --rate 1 --duration 6s --connections 6
        ends '.answered + .lost == .scheduled'
        jq -e '.connections_ended > 0' "$dir/out" >/dev/null && break
    done
    ends '.connections_ended > .lost and (.errors.connections_broken // 0) <= .lost'
fi
if have python3; then
    start python3 "$here/servers/http_server.py" PORT
    load "http://127.0.0.1:$port" --rate 20 --duration 3s --connections 16
    ends '.connections_ended > 0 and .answered == .scheduled'
    kill "${servers[-1]}" && wait "${servers[-1]}" 2>/dev/null
    told=$(awk 'END { print $2 }' "$dir/log")
    [ "$told" -gt 0 ] || fail 'HTTP: nobody was idle'
fi
[ -z "$missing" ] || { echo "not installed:$missing" && exit 77; }
exit 0
