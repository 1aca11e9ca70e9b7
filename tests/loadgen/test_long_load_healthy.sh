#!/usr/bin/env bash
# Twenty runs of the default length at a healthy load give at most one n/a: the method must not cry
# wolf. memcached on core 0, the load on core 1. On a machine that others use, n/a may well be
# right: then it is skipped.
set -u
build=${BUILD:-build}
command -v memcached >/dev/null || { echo 'memcached is not installed'; exit 77; }
[ "$(nproc)" -ge 2 ] || { echo 'the client and the server need a core each'; exit 77; }
dir=$(mktemp -d /tmp/met-healthy-XXXXXX)
server=0
cleanup() {
    [ "$server" -ne 0 ] && kill -9 "$server" && wait "$server" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

# Percent of the time that the first two cores were busy over two seconds.
busy() {
    local before after
    before=$(awk '/^cpu[01] /{idle += $5; for (i = 2; i <= 9; i++) all += $i} END {print idle, all}' /proc/stat)
    sleep 2
    after=$(awk '/^cpu[01] /{idle += $5; for (i = 2; i <= 9; i++) all += $i} END {print idle, all}' /proc/stat)
    echo "$before $after" | awk '{printf "%d", 100 - 100 * ($3 - $1) / ($4 - $2)}'
}
percent=$(busy)
[ "$percent" -le 5 ] || { echo "this machine is in use: $percent % busy before the load"; exit 77; }

. "$(dirname "$0")/../ports.sh"
claim_port
taskset -c 0 memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p $port &
server=$!
sleep 0.5
printf 'keys: {count: 2k}\n' >"$dir/workload.yaml"
load() { taskset -c 1 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --quiet "$@"; }
load --prepare || exit 1

refused=0
for run in $(seq 20); do
    load --rate 10k --json >"$dir/out" 2>"$dir/err"
    case $? in
        0) ;;
        4) refused=$((refused + 1)) && echo "run $run: $(tail -n 1 "$dir/err")" ;;
        *) cat "$dir/err" && exit 1 ;;
    esac
done
echo "$refused of 20 runs were n/a"
percent=$(busy)
[ $refused -le 1 ] || [ "$percent" -le 5 ] || { echo "this machine is in use: $percent % busy after"; exit 77; }
[ $refused -le 1 ]
