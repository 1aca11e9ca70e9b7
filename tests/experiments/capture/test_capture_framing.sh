#!/usr/bin/env bash
# Requests that a client sends before the one ahead is answered, on servers that nobody prepared, and
# that stand still at times and then read scores at once: by their protocol's own framing each is one,
# with its own latency, as many as the client counts; by turns they are fewer, and both say so. One
# that asks Redis to be kept waiting is none of them.
# Nothing of the payload is in any file.
# Runs beside others: it only counts.
. "$(dirname "$0")/../run_lib.sh"
need_capture
need_program jq jq
need_program redis-server redis-server
[ "$(uname -m)" = x86_64 ] || { echo "the bytes of calls are found on x86-64 only"; exit 77; }
printf 'keys: {count: 100}\nmix: {get: 1, set: 1}\nvalues: {size: {fixed: 40}}\n' >"$work/workload.yaml"

serve() { # memcached|redis
    case $1 in
    memcached) exec memcached -u root -l 127.0.0.1 -p "$port" -U 0 -t 2 ;;
    redis) exec redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no ;;
    esac
}

stand_still() {
    local i
    for ((i = 0; i < 5; i++)); do
        sleep 0.15
        kill -STOP $server
        sleep 0.03
        kill -CONT $server
    done
}

# Sets framed, requests and answered.
capture() { # PROTOCOL OPTIONS...
    local capturing
    rm -rf "$work/run"
    coproc armed { exec "$taillight" capture --out "$work/run" --pid $server --calls kernel "${@:2}" \
        --quiet 2>"$work/capture.err"; }
    capturing=$armed_PID
    read -r -t 60 _ <&"${armed[0]}" || fail "the capture is not armed: $(cat "$work/capture.err")"
    stand_still &
    standing=$!
    waiting=
    [ "$1" != redis ] || { redis-cli -h 127.0.0.1 -p "$port" blpop nothing 0.5 >/dev/null & waiting=$!; }
    "$taillight" load --server "127.0.0.1:$port" --protocol "$1" --workload "$work/workload.yaml" \
        --rate 8000 --duration 1s --connections 2 --depth 256 --json --quiet >"$work/load.json" 2>"$work/load.err"
    [[ $? == [04] ]] || fail "the load ended with an error: $(cat "$work/load.err")"
    wait $standing $waiting
    kill -INT $capturing
    wait $capturing || fail "the capture failed: $(cat "$work/capture.err")"
    "$taillight" analyze "$work/run" --quiet --json >"$work/summary.json" 2>"$work/analyze.err"
    [[ $? == [04] ]] || fail "cannot be analyzed: $(cat "$work/analyze.err")"
    framed=$(jq .framed_requests "$work/summary.json")
    requests=$(jq .requests "$work/summary.json")
    answered=$(jq .answered "$work/load.json")
}

for protocol in redis memcached-binary; do
    claim_port
    serve "${protocol%%-*}" >/dev/null 2>&1 &
    server=$!
    await bash -c "</dev/tcp/127.0.0.1/$port" || fail "the server does not listen"
    capture $protocol --framing "${protocol%%-*}"
    # The load asks a little on its own account, too.
    [ "$framed" -ge "$answered" ] && [ "$framed" -le $((answered + 400)) ] ||
        fail "$protocol: $answered answered, $framed told apart by framing: $(jq -c .events.framing "$work/run/capture.json")"
    jq -e '.events.framing | .lost + .given_up + .unseen + .dropped == 0' "$work/run/capture.json" >/dev/null ||
        fail "$protocol: $(jq -c .events.framing "$work/run/capture.json")"
    jq -e '.joined >= 0.99 * .requests' "$work/summary.json" >/dev/null ||
        fail "$protocol: $(jq -c '[.joined, .requests]' "$work/summary.json")"
    grep -q "told apart by ${protocol%%-*} framing" "$work/summary.json" || fail "$protocol: which way it was is not said"
    jq -e ".waiting_requests == $([ $protocol = redis ] && echo 1 || echo 0)" "$work/summary.json" >/dev/null ||
        fail "$protocol: $(jq .waiting_requests "$work/summary.json") that asked to be kept waiting"
    if [ $protocol = redis ]; then
        grep -q 'without 1 that asked to be kept waiting' "$work/summary.json" || fail "that one was kept waiting is not said"
        # The load's requests and values, and what Redis says, are in no file. With their line's end: any three bytes
        # are somewhere in a log of times.
        grep -rlaP '\+PONG\r|\$40\r|GET\r' "$work/run" && fail "there is payload in these files"
        capture $protocol
        [ "$framed" = 0 ] && [ "$requests" -gt 0 ] && [ "$requests" -lt "$answered" ] ||
            fail "by turns: $answered answered, $requests seen, $framed framed"
        grep -q 'told apart by turns' "$work/summary.json" || fail "that it was by turns is not said"
        jq -e '.piecewise_turns > 0' "$work/summary.json" >/dev/null && grep -q 'wrote again before the answer' "$work/summary.json" ||
            fail "that requests may count as one is not said: $(jq .piecewise_turns "$work/summary.json")"
    fi
    kill $server
    wait $server 2>/dev/null
done

refused() { # PATTERN OPTIONS...
    "$taillight" capture --out "$work/none" --port 1 "${@:2}" >"$work/out" 2>"$work/refused.err"
    [ $? -eq 2 ] || fail "exit $? instead of 2: ${*:2}"
    grep -qF -- "$1" "$work/refused.err" || fail "does not say \"$1\": ${*:2}"
}
refused 'none of redis, memcached, http' --framing gopher
refused 'without the shim' --framing redis --shim "$work/shim"
refused 'which --calls none' --framing redis --calls none
exit 0
