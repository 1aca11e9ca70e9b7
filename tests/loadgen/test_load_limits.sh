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

# say COMMAND: to Redis, over a connection that is there before any load: on a busy machine a program's start takes longer
# than a load lasts. The answer is in $said.
say() {
    printf '%s\r\n' "$1" >&"$own"
    IFS= read -r -t 60 -u "$own" said || fail "Redis does not answer $1"
    said=${said%$'\r'}
    [[ $said != \$* ]] || IFS= read -r -N $((${said#\$} + 2)) -t 60 -u "$own" said || fail "Redis does not answer $1"
}
count_gets() {
    say 'info commandstats'
    [[ $said =~ cmdstat_get:calls=([0-9]+) ]] && gets=${BASH_REMATCH[1]} || gets=0
}
say_at() { # FROM COUNT COMMAND ...: each as soon as Redis has taken COUNT requests after the first FROM
    local from=$1 end=$((SECONDS + 60))
    for (( ; $# > 1; )); do
        while count_gets && [ $((gets - from)) -lt "$2" ]; do
            [ $SECONDS -lt $end ] || return 1
            pause 0.01
        done
        say "$3"
        shift 2
    done
    echo $((gets - from)) >"$dir/last"
}
# during OPTIONS LAST COUNT COMMAND ...: a load, and these meanwhile. Where the last of them came after LAST requests, too
# little of the load was left for what follows from it: once more.
during() {
    local options last=$2
    read -ra options <<<"$1"
    shift 2
    for _ in 1 2 3 4 5; do
        say 'config set maxclients 64'
        count_gets
        say_at "$gets" "$@" &
        later=$!
        load "$at" "${options[@]}"
        wait "$later" || fail "Redis never took so many requests: $*"
        [ "$(<"$dir/last")" -gt "$last" ] || return 0
    done
    fail "five times too late for the load: $*"
}

if have redis-server; then
    start redis-server --port PORT --bind 127.0.0.1 --save '' --dir "$dir" --maxclients 12
    at=redis://127.0.0.1:$port
    # One that had sent a request by then may lose it, and has no answer in the refusal.
    load "$at" --rate 100 --duration 500ms --connections 24
    ends '.connections_ended > 0 and .errors.client_error == null and .errors.server_error == null'
    says 'it said "-ERR max number of clients reached"'
    exec {own}<>"/dev/tcp/127.0.0.1/$port"
    # In the middle of a load: those that are thrown out find no room any more.
    throw_out='client kill type normal skipme yes'
    during '--rate 500 --duration 2s --connections 8 --reconnect 300ms' 500 100 'config set maxclients 5' 100 "$throw_out"
    ends '.connections_ended > 8 and .connections_given_up > 0 and .answered > 0'
    during '--rate 500 --duration 2s --connections 8' 800 100 "$throw_out" 250 "$throw_out" 400 "$throw_out"
    ends '.connections_ended >= 8 and .reconnects == .connections_ended and .unsent == 0'
    during '--rate 500 --duration 1s --connections 8' 400 100 'client pause 400 all'
    ends '.answered == .scheduled and .connections_ended == 0 and .latency_us.max > 100000'
    # A request may meet the end on its way. Otherwise nothing is broken, whether or not the connection had had one.
    say 'config set timeout 1'
    load "$at" --rate 4 --duration 4s --connections 8
    ends '.answered + .lost == .scheduled and .connections_ended > .lost and (.errors.connections_broken // 0) <= .lost'
fi
if have memcached; then
    user=()
    [ "$(id -u)" -eq 0 ] && user=(-u root)
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -c 20
    for protocol in memcached memcached-meta memcached-binary; do
        load "127.0.0.1:$port" --protocol "$protocol" --rate 1000 --duration 500ms --connections 40
        ends '.connections_ended > 0 and .errors.malformed == null and .lost_by.malformed == null and .errors.server_error == null'
        says 'the server refused it; it said "ERROR Too many open connections"'
    done
    start memcached "${user[@]}" -l 127.0.0.1 -p PORT -U 0 -t 1 -o idle_timeout=1
    # It looks for idle connections every few seconds, on a busy machine more seldom.
    for _ in 1 2 3 4; do
        load "127.0.0.1:$port" --rate 1 --duration 6s --connections 6 --seed 1
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
