#!/usr/bin/env bash
# labserver: its options, its protocol over a bare socket, and that its service time is spent.
# Runs beside others: no reply may be quicker than its service, and no other time is asked.
set -u
build=${BUILD:-build}
dir=$(mktemp -d /tmp/test-labserver-XXXXXX)
server=0
cleanup() {
    [ "$server" -ne 0 ] && kill -9 "$server" 2>/dev/null
    [ -z "${spinner:-}" ] || kill "$spinner" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    cat "$dir"/out "$dir"/err 2>/dev/null
    exit 1
}
. tests/ports.sh
claim_port

refused() {
    local expected=$1
    shift
    timeout 5 "$build/labserver" "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] || fail "labserver $*: not refused"
    grep -qF -- "$expected" "$dir/err" || fail "labserver $*: does not say $expected"
}
refused '--port'
refused '--port' --port 0
refused '--port' --port 65536
refused '--service' --port $port --service quick
refused '--service' --port $port --service fixed:10
refused '--protocol' --port $port --protocol gopher
refused 'write lognormal:MEDIAN,SIGMA' --port $port --service lognormal:10us
refused '--drift' --port $port --drift quickly
refused '--drift' --port $port --drift -1
refused '--threads' --port $port --threads 0

start() {
    rm -f "$dir/ready" # what the one before said
    "$build/labserver" --port $port "$@" >"$dir/ready" &
    server=$!
    await grep -q ready "$dir/ready" || fail 'labserver did not become ready'
}
stop() {
    kill "$server"
    wait "$server" 2>/dev/null
    server=0
}

# The protocol, in one piece and in pieces; nonsense is answered and survived.
start --threads 2
timeout 5 "$build/labserver" --port $port >"$dir/out" 2>"$dir/err" && fail 'a taken port was taken again'
grep -q 'cannot listen on port' "$dir/err" || fail 'a taken port: no clear error'
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'set a 5 0 3\r\nxyz\r\nget a b\r\nget b\r\nnonsense\r\nset n 0 0 1 noreply\r\nn\r\nver' >&3
sleep 0.1
printf 'sion\r\nset c 0 0 4\r\nab' >&3
sleep 0.1
printf 'cd\r\nget c n\r\nset a 0 0 2\r\n12345\r\nquit\r\n' >&3
timeout 5 cat <&3 >"$dir/out"
exec 3>&-
printf 'STORED\r\nVALUE a 5 3\r\nxyz\r\nEND\r\nEND\r\nERROR\r\nVERSION 1.0.0 labserver\r\nSTORED\r\n' >"$dir/expected"
printf 'VALUE c 0 4\r\nabcd\r\nVALUE n 0 1\r\nn\r\nEND\r\nCLIENT_ERROR bad data chunk\r\n' >>"$dir/expected"
head -c "$(stat -c %s "$dir/expected")" "$dir/out" | cmp - "$dir/expected" || fail 'the protocol'
stop

# A child that it forks has its clients' sockets, too, and ends when it gets the core: who leaves meanwhile is
# forgotten once.
start --fault 'fork,4ms,5ms' --fault-log "$dir/faults"
taskset -cp "$(taskset -cp $$ | sed 's/.*[ ,-]//')" "$server" >"$dir/out"
taskset -c "$(taskset -cp "$server" | sed 's/.* //')" sh -c 'while :; do :; done' &
spinner=$!
for i in {1..60}; do
    exec 3<>"/dev/tcp/127.0.0.1/$port" || fail "the server ended after $i clients"
    printf 'set a 0 0 1\r\nx\r\nquit\r\n' >&3
    timeout 20 cat <&3 >"$dir/out" || fail "client $i does not see its end"
    exec 3>&-
done
kill $spinner
kill -0 "$server" || fail 'a forking server died of clients that left'
stop
claim_port # its last children may still have the other

# What a fault's log says that a thread waited, or was ready to run, lies in the fault that follows: says_what_it_waits KIND
says_what_it_waits() {
    start --fault "$1,1ms,5ms" --fault-log "$dir/faults"
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    for i in {1..6}; do
        printf 'get b\r\n' >&3
        read -rt 20 -u 3 _ || fail "no reply $i of a server with the fault $1"
        sleep 0.01
    done
    exec 3>&-
    stop
    tr -d '\0' <"$dir/faults" | awk -v kind="$1" 'BEGIN { n = 0 }
        $3 != kind { from[n] = $1; to[n++] = $2; waits += $3 == "waits" }
        $3 == kind {
            faults++
            for (sum = i = 0; i < n; i++) {
                bad += from[i] >= to[i] || from[i] < $1 || to[i] > $2
                sum += to[i] - from[i]
            }
            bad += sum > $2 - $1
            n = 0
        }
        END { exit faults < 3 || waits < faults || (kind == "sync" && n > 0) || bad }' || fail "what a fault waited: $(tr -d '\0' <"$dir/faults")"
}
[ "$(stat -f -c %T "$dir")" = tmpfs ] || says_what_it_waits sync
says_what_it_waits lock

# No reply can be quicker than the service time; an idle server adds little, but that is not asked.
# That holds as well when the server's own work is part of it.
printf 'keys: {count: 100}\n' >"$dir/workload.yaml"
for exact in '' --exact; do
    start --service fixed:20ms $exact
    timeout 20 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --rate 10 \
        --arrivals fixed --duration 1s --json --timeout 5s >"$dir/out" 2>"$dir/err"
    case $? in 0 | 4) ;; *) fail 'the load' ;; esac # 4: the machine was busy
    p50=$(sed -n '/"latency_us"/,/}/s/.*"p50": \([0-9]*\).*/\1/p' "$dir/out")
    [ "$p50" -ge 20000 ] || fail "p50 is $p50 us with a service time of 20000 us $exact"
    stop
done
exit 0
