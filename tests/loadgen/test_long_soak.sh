#!/usr/bin/env bash
# A long run does not grow: after its first minute (of a shorter one: its first fifth) the resident
# memory of `taillight load` stays what it is, since every sample's place is taken at the start.
# TAILLIGHT_SOAK_SECONDS (60), TAILLIGHT_SOAK_RATE (2000); half an hour needs TEST_TIMEOUT=2000.
set -u
build=${BUILD:-build}
seconds=${TAILLIGHT_SOAK_SECONDS:-60} rate=${TAILLIGHT_SOAK_RATE:-2000}
command -v memcached >/dev/null || { echo 'memcached is not installed'; exit 77; }
dir=$(mktemp -d /tmp/soak-XXXXXX)
server=0 load=0
cleanup() {
    for pid in $load $server; do [ "$pid" -ne 0 ] && kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    tail -n 20 "$dir/out" "$dir/err" 2>/dev/null
    exit 1
}
. "$(dirname "$0")/../ports.sh"
claim_port
memcached -u root -l 127.0.0.1 -U 0 -t 1 -p $port &
server=$!
sleep 0.5
printf 'keys: {count: 10k}\n' >"$dir/workload.yaml"
"$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --prepare --quiet || exit 1
"$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --rate "$rate" \
    --duration "${seconds}s" --announce --json --quiet >"$dir/out" 2>"$dir/err" &
load=$!
for _ in $(seq 300); do
    [ -s "$dir/out" ] && break
    sleep 0.1
done
[ -s "$dir/out" ] || fail 'the load did not begin'

resident() { awk '/^VmRSS:/ {print $2}' "/proc/$load/status"; }
settle=$((seconds / 5 < 60 ? seconds / 5 : 60))
sleep "$settle"
first=$(resident) most=$first looks=0
end=$((SECONDS + seconds - settle - 2))
while [ $SECONDS -lt $end ]; do
    now=$(resident)
    [ -n "$now" ] || fail 'the load ended early'
    [ "$now" -gt "$most" ] && most=$now
    looks=$((looks + 1))
    sleep 1
done
wait $load
status=$?
load=0
case $status in 0 | 4) ;; *) fail "the load: exit $status" ;; esac # 4: a busy machine
answered=$(sed -n 's/^  "answered": \([0-9]*\).*/\1/p' "$dir/out")
[ "${answered:-0}" -gt $((rate * seconds * 9 / 10)) ] || fail "only ${answered:-none} of $((rate * seconds)) answered"
echo "$answered requests in $seconds s; resident $first KiB after $settle s, at most $most KiB in $looks looks later"
# What the kernel counts in batches of pages per thread may still move a little.
[ "$most" -le $((first + 1024)) ] || fail "memory grew by $((most - first)) KiB"
