#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A Redis that is still reading what it had stored is waited for before a dataset is stored in it.
set -u
. "$(dirname "$0")/load_lib.sh"
program=$(command -v redis-server) || { echo "SKIP: there is no redis-server"; exit 77; }
begin_redis() { # options ...: in place of the one before
    stop_server
    "$program" --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' --enable-debug-command yes "$@" >"$dir/server" 2>&1 &
    server=$!
    await redis-cli -p "$port" ping || fail 'redis-server did not begin'
}
begin_redis
redis-cli -p "$port" debug populate 3000 >"$dir/out" && redis-cli -p "$port" save >>"$dir/out" || fail 'nothing was saved'
# a millisecond a key
begin_redis --key-load-delay 1000 --loading-process-events-interval-bytes 1024
redis-cli -p "$port" get key:1 | grep -q '^LOADING' || too_late='it had read its data before it was asked'
printf 'keys: {count: 100}\n' >"$dir/workload.yaml"
timeout 100 "$build/taillight" load --server "redis://127.0.0.1:$port" --prepare --workload "$dir/workload.yaml" >"$dir/out" 2>"$dir/err" ||
    fail 'no dataset in a Redis that reads its own first'
grep -q '^100 keys stored and verified' "$dir/out" || fail 'the dataset is not whole'
[ "$(redis-cli -p "$port" dbsize)" -eq 3100 ] || fail 'it has not read its own data'
[ -z "${too_late-}" ] || { echo "SKIP: $too_late"; exit 77; }
