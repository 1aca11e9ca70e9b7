#!/usr/bin/env bash
# --sleep leaves the core to others, in an open loop and in a closed one, and every request is answered all the same.
set -u
taillight="$(cd "$BUILD" && pwd)/taillight"
work=$(mktemp -d /tmp/taillight-sleep-XXXXXX)
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }

. "$(dirname "$0")/../ports.sh"
claim_port
"$BUILD/labserver" --port $port --protocol lab >"$work/ready" 2>"$work/server.err" &
server=$!
await grep -q ready "$work/ready"
TIMEFORMAT='%U %S'
{ time "$taillight" load --server "127.0.0.1:$port" --protocol lab --rate 500 --duration 2s --seed 1 \
    --sleep --stamps user --json --quiet >"$work/out" 2>"$work/err"; } 2>"$work/time"
jq -e '.scheduled > 800 and .answered == .scheduled and .spin_fraction > 0.2' "$work/out" >/dev/null ||
    fail "$(jq -c '[.scheduled, .answered, .spin_fraction]' "$work/out"): $(cat "$work/err")"
awk '{ exit $1 + $2 > 1 }' "$work/time" || fail "2 s of sleeping took $(cat "$work/time") s of a core"
# A closed loop, one reply of which takes 5 ms: it waits asleep, as does a user who thinks.
kill $server
wait $server 2>/dev/null # it has the port until then
rm -f "$work/ready"      # and said that
"$BUILD/labserver" --port $port --protocol lab --service fixed:5ms >"$work/ready" 2>"$work/server.err" &
server=$!
await grep -q ready "$work/ready" || fail "no server: $(cat "$work/server.err")"
for think in '' '--think fixed:20ms'; do
    # shellcheck disable=SC2086
    { time "$taillight" load --server "127.0.0.1:$port" --protocol lab --rate max --connections 1 --duration 2s --seed 1 \
        --sleep --stamps user --json --quiet $think >"$work/out" 2>"$work/err"; } 2>"$work/closed"
    jq -e '.answered > 20 and .answered == .scheduled and .spin_fraction > 0.2' "$work/out" >/dev/null ||
        fail "closed loop $think: $(jq -c '[.scheduled, .answered, .spin_fraction]' "$work/out"): $(cat "$work/err")"
    awk '{ exit $1 + $2 > 1 }' "$work/closed" || fail "a closed loop $think that sleeps took $(cat "$work/closed") s of a core"
done
echo "sleep: $(cat "$work/time") s of a core, and $(cat "$work/closed") of a closed loop"
