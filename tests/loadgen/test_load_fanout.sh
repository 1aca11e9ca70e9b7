#!/usr/bin/env bash
# Logical requests of ten: of a server that answers every tenth key a second late, 1 - 0.9^10 of them are slow, so that their
# median is while that of the requests is not; one of which a request is lost is lost; samples.tlog has the ten of each side by
# side. Threads, agents, what is said, and what is refused.
# Runs beside others: it asserts counts, words, and times that no busy machine makes shorter.
set -u
. "$(dirname "$0")/load_lib.sh"
for program in jq python3; do
    command -v $program >/dev/null || { echo "$program is not installed"; exit 77; }
done
start_fanout() { # DELAY_S HANGUP
    stop_server
    rm -f "$dir/port"
    python3 "$(dirname "$0")/servers/fanout_server.py" "$@" >"$dir/port" 2>"$dir/server" &
    server=$!
    await test -s "$dir/port" || fail 'the server does not listen'
    port=$(cat "$dir/port")
}
printf 'mix: {get: 1, set: 0}\nkeys: {count: 10k}\nvalues: {size: {fixed: 3}}\nfanout: 10\n' >"$dir/ten.yaml"
load() { # STATUS ARGUMENTS...: 0 may be 4, since a busy machine may leave it inconclusive
    timeout 60 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/ten.yaml" --json --quiet --seed 1 --timeout 20s \
        --stamps user "${@:2}" >"$dir/out" 2>"$dir/err"
    local status=$?
    [ $status = "$1" ] || { [ "$1" = 0 ] && [ $status = 4 ]; } || fail "${*:2}: exit $status"
}
holds() { jq -e "$2" "$dir/out" >/dev/null || fail "$1: $(jq -c '[.scheduled, .answered, .lost, .fanout, .latency_us]' "$dir/out")"; }
refused() { # text, options ...
    timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --protocol memcached "${@:2}" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] && grep -qF -- "$1" "$dir/err" || fail "load ${*:2}: not refused: $(cat "$dir/err")"
}
# What the samples say of the logical requests: how many, how many with a slow key, how many that lasted a second, how many
# whole; and that the ten of each are due together, and their connections different.
logical() { # whether slow keys are late
    python3 - "$dir/s/samples.tlog" "$(jq .tsc_hz "$dir/out")" "$1" <<'PYTHON'
import struct, sys
log, hz = open(sys.argv[1], 'rb').read(), float(sys.argv[2])
samples = [struct.unpack_from('<10QI6BHI', log, at) for at in range(128, len(log), 96)]
tens = [samples[i:i + 10] for i in range(0, len(samples), 10)]
whole = [all(one[13] <= 2 for one in ten) for ten in tens]
slow = [any(one[18] % 10 == 0 for one in ten) for ten in tens]
late = [good and max(one[3] for one in ten) - ten[0][0] >= 0.99 * hz for ten, good in zip(tens, whole)]
assert all(len({one[0] for one in ten}) == 1 for ten in tens), 'not due together'
spread = sum(len({one[10] for one in ten if one[10]}) == sum(one[10] > 0 for one in ten) for ten in tens)
assert sys.argv[3] == 'no' or all(l or not s for s, l in zip(slow, late)), 'slow, and not late'
print(len(tens), sum(slow), sum(late), sum(whole), spread)
PYTHON
}

start_fanout 1 0
load 0 --rate 40 --duration 2s --connections 200 --depth 1 --sleep --samples "$dir/s"
holds 'ten each' '.fanout.requests == 10 and .scheduled == 10 * .fanout.scheduled and .answered == .scheduled and .fanout.answered == .fanout.scheduled'
read -r count slow late whole spread < <(logical yes) || fail 'the samples'
[ "$count" = "$(jq .fanout.scheduled "$dir/out")" ] && [ "$whole" = "$count" ] || fail "$count logical requests in the samples"
# By these keys, 1 - 0.9^10 = 65 % of some 80; and who is late is whoever has one of them.
[ $((slow * 100)) -gt $((count * 52)) ] && [ $((slow * 100)) -lt $((count * 78)) ] || fail "$slow of $count have a slow key"
[ "$late" -ge "$slow" ] || fail "$late of $slow were late"
holds 'the median of the slowest' '.latency_us.p50 >= 990000'
[ $((spread * 10)) -ge $((count * 9)) ] || fail "only $spread of $count on a connection for each request"
[ "$late" -gt "$slow" ] || holds 'the median of each' '.fanout.request_latency_us.p50 < .latency_us.p50'
load 0 --rate 40 --duration 1s --connections 100 --depth 1 --sleep --threads 2 --fanout 7
holds 'threads, and the option' '.fanout.requests == 7 and .scheduled == 7 * .fanout.scheduled and .fanout.answered == .fanout.scheduled'

start_fanout 0 0
load 0 --rate 100 --duration 1s --agent symmetric,rate=60,connections=20 --agent symmetric,rate=40,connections=20
holds 'agents' '.fanout.requests == 10 and .scheduled == 10 * .fanout.scheduled and .answered == .scheduled and
    ([.agents.list[].report.fanout.scheduled] | add) == .fanout.scheduled and .agents.total.offered_rate < 300'
load 0 --sweep 50:100:50 --duration 500ms --sleep
holds 'a sweep' '.fanout == 10 and .points[0].scheduled % 10 == 0 and .points[0].offered_rate < 200'
load 0 --rate 100 --duration 500ms --sleep --hgrm "$dir/hgrm"
grep -q '# *latency in us of logical requests' "$dir/hgrm" && grep -q "Total count *= *$(jq .fanout.scheduled "$dir/out")" "$dir/hgrm" ||
    fail "hgrm: $(tail -n 5 "$dir/hgrm")"
timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/ten.yaml" --rate 100 --duration 300ms --sleep --quiet >"$dir/out" 2>"$dir/err"
grep -q '100 logical requests/s of 10 requests each' "$dir/out" && grep -q 'each request by itself' "$dir/out" || fail 'for people'

# A connection that ends takes its request along, and the logical one with it.
start_fanout 0 100
load 0 --rate 60 --duration 1s --connections 40 --depth 1 --sleep --samples "$dir/s"
holds 'lost requests' '.lost > 0 and .scheduled == .answered + .lost + .unsent and .fanout.answered < .fanout.scheduled and .latency_us.max == null'
read -r count _ _ whole _ < <(logical no) || fail 'the samples with losses'
[ "$whole" = "$(jq .fanout.answered "$dir/out")" ] && [ "$count" = "$(jq .fanout.scheduled "$dir/out")" ] || fail "$whole of $count are whole"

refused '--fanout must be 1 to 1000' --rate 1k --fanout 1001
refused 'a fan-out needs a rate, of logical requests' --rate max --fanout 2
refused 'without --agent, a fan-out or a recording' --rate 100k --fanout 10 --duration 10s --memory 16MiB
printf 'GET 1\n' >"$dir/trace"
printf 'fanout: 2\narrivals: "replay:%s"\n' "$dir/trace" >"$dir/both.yaml"
refused 'a recording says when each request is due' --workload "$dir/both.yaml"
echo "fan-out: of $count logical requests with losses $whole are whole; 1 - 0.9^10 held by $slow slow ones"
