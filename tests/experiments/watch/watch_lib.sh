# SPDX-License-Identifier: MIT
#
# What the tests of `taillight watch` share, with all of run_lib.sh: a memcached that nobody prepared ($server, $port), a workload
# that only reads, a watch of it and a load on it. Sourced; expects $BUILD.
. "$(dirname "${BASH_SOURCE[0]}")/../run_lib.sh"
need_capture
need_program jq jq
claim_port
memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 1 2>/dev/null &
server=$!
await bash -c "</dev/tcp/127.0.0.1/$port" || fail "the server does not listen"
printf 'keys: {count: 100}\nmix: {get: 1, set: 0}\n' >"$work/workload.yaml"

# Watches the server until end_watch: its lines are in $work/lines. All is recorded, whatever else this machine does that
# takes its share of a watch's budget. begin_watch OPTIONS...
begin_watch() {
    rm -f "$work/lines"
    "$taillight" watch --pid "$server" --json --budget 0 "$@" >"$work/lines" 2>"$work/watch.err" &
    watch=$!
    await test -s "$work/lines" || fail "the watch does not begin"
}
end_watch() {
    kill -INT "$watch"
    wait "$watch" || fail "the watch ended with $?"
}
# One request in flight on each connection, from a client that leaves the core. watched_load RATE DURATION CONNECTIONS
watched_load() {
    "$taillight" load --server "127.0.0.1:$port" --workload "$work/workload.yaml" --rate "$1" --duration "$2" --connections "$3" \
        --depth 1 --sleep --json --quiet >"$work/load.json" 2>"$work/load.err"
    [[ $? == [04] ]] || fail "the load ended with an error"
}
