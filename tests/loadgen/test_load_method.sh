#!/usr/bin/env bash
# What `taillight load` says of runs whose faults are known, with servers whose service time is:
# too few connections, an overloaded client or server, a server that slows down, a heavy tail, a budget too
# small; and a healthy server, which passes. Asserts reasons, never times. The machine may be busy:
# then the client is late by itself, and the load says so; such a try is made again, a few times over all. What
# is not seen then is skipped, the rest is not; tests/loadgen/method/ has all of it with known series.
set -u
. "$(dirname "$0")/load_lib.sh"
load() {
    timeout 30 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" \
        --json --quiet "$@" >"$dir/out" 2>"$dir/err"
}
reasons() { sed -n '/^  "reasons": \[/,/^  \]/p' "$dir/out"; }
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$dir/out" | head -n 1; }
finding() { sed -n '/"checks": {/,/}/p' "$dir/out" | sed -n "s/^ *\"$1\": \"\(.*\)\".*/\1/p"; }
busy='client biased|the median wanders|arrivals wrong|did not keep up|had its core for only|out of CPU|not independent|not stationary'

unseen=() # what a machine this busy did not show
spare=6   # tries beyond the first of each, over all: a machine that stays busy costs no minutes
again() { [ $((spare--)) -gt 0 ]; }

# expect REASON CHECK SERVER-ARGUMENTS -- LOAD-ARGUMENTS: exit 4, REASON (a pattern) is one of the
# reasons, and CHECK failed. Every other end is a failure, but for a busy machine's.
expect() {
    local reason=$1 check=$2 server_arguments=() status
    shift 2
    while [ "$1" != -- ]; do server_arguments+=("$1") && shift; done
    shift
    while :; do
        start_server "${server_arguments[@]}"
        load "$@"
        status=$?
        if [ $status -eq 4 ] && reasons | grep -qE -- "$reason"; then
            [ "$(finding "$check")" = failed ] || fail "$reason: the check of $check did not fail"
            return
        fi
        [ $status -eq 0 ] || [ $status -eq 4 ] || fail "$reason: exit $status"
        [ $status -eq 4 ] && reasons | grep -qE "$busy" || fail "$reason: said something else"
        again || break
    done
    unseen+=("$reason; instead: $(reasons | tr -s ' \n' ' ')")
    return 1
}

# Too few connections: requests wait for one another in the client.
expect 'closed-loop' load --service fixed:400us -- --connections 1 --depth 1 --rate 2k --duration 1s

# An overloaded client: three others want its core. The fault is its own, not the server's.
start_server --service fixed:50us
core=$(($(nproc) - 1)) hogs=()
for _ in 1 2 3; do
    taskset -c $core timeout 20 bash -c 'while :; do :; done' &
    hogs+=($!)
done
taskset -c $core timeout 30 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" \
    --json --quiet --rate 1k --duration 2s >"$dir/out" 2>"$dir/err"
status=$?
kill "${hogs[@]}" && wait "${hogs[@]}" 2>/dev/null
# Instrumented code takes so long for a send that most of its lateness is that of sends behind one
# another, which the arrivals show.
own='client biased: (late|out of CPU)|this client had its core for only|arrivals wrong'
[ $status -eq 4 ] && reasons | grep -qE "$own" || fail 'overloaded client: not named'
reasons | grep -q 'the server did not keep up' && fail 'overloaded client: the server is blamed'
[ "$(finding client)" = failed ] || [ "$(finding arrivals)" = failed ] ||
    fail 'overloaded client: neither the check of the client nor that of the arrivals failed'

long_cases() {
    # A server that cannot keep up: nothing is measured, and that is said after three rounds at most.
    if expect 'rate not reached.*did not keep up' load --service fixed:2ms -- --rate 1k --target p99 --ci 100us \
        --max-duration 3s --timeout 200ms; then
        [ "$(value stop)" = load ] || [ "$(value stop)" = budget ] || fail 'overloaded: stop'
    fi

    # A server that slows down, yet keeps up.
    expect 'not stationary: (p50|p99|the median) (was|drifts|wanders)' stationarity --service fixed:100us --drift 4 -- \
        --rate 500 --duration 3s

    # An interval that no budget so small can reach.
    expect '(budget spent|heavy tail): the interval of p99 is' interval --service exponential:200us -- --rate 1500 \
        --target p99 --ci 1us --max-duration 2s

    # A tail so heavy that it never will. Samples that a busy machine makes depend on one another are worth too few
    # for any interval, and that is all there is to say of them.
    busy="$busy|not bounded after"
    if "$build/labserver" --help | grep -q lognormal; then
        expect 'heavy tail: the interval of p99 is' interval --service lognormal:20us,2 -- --rate 800 --target p99 \
            --ci 10us --max-duration 4s
    fi
}
is_long && long_cases

# A healthy server: until the median is known to 50 us; one sample for each scheduled request, and
# the connections of every round. Then a plain run, which ends when it was to, whatever it concludes.
healthy() {
    while :; do
        load "$@"
        status=$?
        [ $status -eq 0 ] && return
        [ $status -eq 4 ] && reasons | grep -qE "$busy|budget spent|heavy tail" ||
            fail "healthy: exit $status"
        again || break
    done
    unseen+=("a healthy run; instead: $(reasons | tr -s ' \n' ' ')")
    return 1
}
if healthy --rate 2k --target p50 --ci 50us --max-duration 4s --samples "$dir/s" --connections 8; then
    [ "$(value stop)" = interval ] && [ "$(value verdict)" = ok ] || fail 'healthy: stop'
    for check in load client arrivals stationarity independence interval; do
        [ "$(finding $check)" = passed ] || fail "healthy: $check"
    done
fi
[ "$(records "$dir/s/samples.tlog")" = "$(value scheduled)" ] || fail 'healthy: samples'
[ "$(records "$dir/s/connections.tlog")" = $((8 * $(value rounds))) ] || fail 'healthy: connections'
load --rate 3k --duration 1s
[ $? -eq 0 ] || reasons | grep -qE "$busy|heavy tail" || fail 'a plain run: exit code'
grep -q '"stop": "duration"' "$dir/out" || fail 'healthy: a plain run'
[ ${#unseen[@]} -eq 0 ] || { echo "not seen on a machine this busy: ${unseen[*]}"; exit 77; }
