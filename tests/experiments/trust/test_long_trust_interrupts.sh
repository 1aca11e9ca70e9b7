#!/usr/bin/env bash
# SIGTERM and Ctrl-C end whatever goes on: a load, a capture, and a run in each of its phases, at its
# begin and within. Each time is printed; half of them take less than a second, and none takes ten, on
# a machine as busy as it may be. Of a run nothing is left but its folder, in which nothing that is
# not whole has the name of something that is.
# Time limit: 300 s
. tests/experiments/run_lib.sh
need_capture
claim_port
slowest=0 slowest_of='' times=()

# Shells have what they start in the background ignore SIGINT: env --default-signal undoes that.
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# Sends the signal to $pid and waits for its end: ends_at_once NAME SIGNAL
ends_at_once() {
    local began took
    began=$(now_ms)
    kill "-$2" "$pid" 2>/dev/null || { # it was quicker than that
        echo "$1: over before the signal"
        wait "$pid"
        ended_with=$?
        return
    }
    for ((i = 0; i < 2000; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.005
    done
    took=$(($(now_ms) - began))
    [ $i -lt 2000 ] || fail "$1: SIG$2 has not ended it after 10 s: $(ps -o pid=,stat=,wchan:20= -p "$pid" --ppid "$pid")"
    wait "$pid" 2>/dev/null
    ended_with=$?
    echo "$1, SIG$2: $took ms, exit $ended_with"
    times+=("$took")
    [ $took -le $slowest ] || slowest=$took slowest_of="$1, SIG$2"
}

# --- a run ---------------------------------------------------------------------------------------
setting=/proc/sys/vm/page-cluster
before=$(cat $setting)
tuned=2
[ "$before" != 2 ] || tuned=3
mkdir -p "$work/tmp/build" # what a run has for /tmp
build=$(cd "$BUILD" && pwd)
cat >"$work/tmp/run.yaml" <<EOF2
name: test
hosts:
  client: {kind: netns, cores: [1]}
  server: {kind: netns, cores: [0]}
servers: {cache: {kind: memcached, threads: 1, port: $port, shim: true}}
tuning: {server: [{sysctl: {vm.page-cluster: $tuned}}]}
workload:
  keys: {count: 100k}
  values: {size: {fixed: 200}}
load: {rate: 20k, duration: 2s, connections: 16, depth: 64, timeout: 1s}
EOF2
run=run-${work##*/} # by which its processes are known
# shellcheck disable=SC2016 # of the inner shell
in_own_tmp() {
    exec env --default-signal unshare -m bash -c 'mount --bind "$1" "$0/build" && mount --rbind "$0" /tmp &&
        shift && exec "$@"' "$work/tmp" "$build" "$@"
}

# The run has ended, with that exit code. check_end NAME STATUS
check_end() {
    local folder="$work/tmp/$run" left
    check_nothing_left "/tmp/$run" "$port" "$spaces"
    # Its keepers may still be at it, when that took the run too long.
    is_put_back() { [ "$(cat $setting)" = "$before" ]; }
    await is_put_back || fail "$1: vm.page-cluster is left at $(cat $setting)"
    is_swept() { [ -z "$(find "$folder" -name '*.partial')" ]; }
    await is_swept || fail "$1: leaves $(find "$folder" -name '*.partial')"
    is_empty() { left=$(find "$work/tmp" -mindepth 1 -maxdepth 1 ! -name build ! -name run.yaml ! -name "$run") && [ -z "$left" ]; }
    await is_empty || fail "$1: leaves $left"
    if [ "$2" -eq 0 ] || [ "$2" -eq 4 ]; then # it had all done
        [ -s "$folder/summary.json" ] || fail "$1: exit $2 without a summary"
    elif [ "$2" -eq 1 ]; then
        grep -q '^taillight: interrupted' "$work/run.err" || fail "$1: exit 1 and does not say why"
        check_not_whole "$folder"
    else # once all is undone, a signal has its usual effect
        [ "$2" -eq 130 ] || [ "$2" -eq 143 ] || fail "$1: exit $2"
    fi
    [ ! -e "$folder/summary.json" ] || sqlite3 :memory: "select json(readfile('$folder/summary.json'))" >/dev/null ||
        fail "$1: summary.json is not whole"
    [ ! -e "$folder/report.html" ] || tail -c 20 "$folder/report.html" | grep -q '</html>' ||
        fail "$1: report.html is not whole"
    [ ! -e "$folder/run.db" ] || [ "$(sqlite3 "$folder/run.db" 'pragma quick_check')" = ok ] ||
        fail "$1: run.db is not whole"
}

run_until() { # PATTERN SIGNAL SECONDS
    rm -rf "${work:?}/tmp/$run" "$work/run.err"
    (in_own_tmp /tmp/build/taillight run /tmp/run.yaml --out "/tmp/$run") >"$work/out" 2>"$work/run.err" &
    pid=$!
    for ((i = 0; i < 3000; i++)); do
        ! grep -qs "$1" "$work/run.err" || break
        kill -0 $pid 2>/dev/null || fail "$1 never came"
        sleep 0.01
    done
    sleep "$3"
    spaces=$(namespaces_of "$work/tmp/$run")
    ends_at_once "run: $(grep -o "$1" "$work/run.err" | head -n 1), $3 s in it" "$2"
    check_end "$1, SIG$2 $3 s in it" "$ended_with"
}
signal=INT
for seconds in 0 0.2; do
    for phase in 'making 2 hosts' 'looking at what' tuning 'starting the server' 'loading and verifying' \
        'arming the capture' 'loading 2.00 s' 'writing what was' analyzing joining diagnosing 'writing the report'; do
        run_until "$phase" $signal $seconds
        [ $signal = INT ] && signal=TERM || signal=INT
    done
    [ $signal = INT ] && signal=TERM || signal=INT
done

# --- a load --------------------------------------------------------------------------------------
memcached -u nobody -l 127.0.0.1 -U 0 -t 1 -p "$port" &
server=$!
await ports_listening "$port" || fail "memcached does not listen"
load_until() { # NAME SIGNAL SECONDS OPTIONS...
    local name=$1 signal=$2 seconds=$3
    shift 3
    env --default-signal "$taillight" load --server "127.0.0.1:$port" --samples "$work/samples" --json --quiet "$@" \
        >"$work/out" 2>"$work/load.err" &
    pid=$!
    sleep "$seconds"
    [ -z "${stalls:-}" ] || kill -STOP $server
    [ -z "${stalls:-}" ] || sleep 0.5
    ends_at_once "load: $name" "$signal"
    kill -CONT $server
    rm -rf "$work/samples"
}
load_until 'its schedule is drawn' INT 0.2 --rate 1M --duration 20s
load_until 'it goes on' TERM 1 --rate 20k --duration 60s
load_until 'it goes on' INT 1 --rate 20k --duration 60s --connections 1000
stalls=1
load_until 'nothing answers any more' INT 1 --rate 20k --duration 60s --timeout 60s
load_until 'the last replies are waited for' TERM 1 --rate 1k --duration 1200ms --timeout 60s
kill -STOP $server
load_until 'nobody accepts' INT 0.5 --rate 1k --duration 60s --timeout 60s

# --- a capture -----------------------------------------------------------------------------------
mkfifo "$work/input" && exec 9<>"$work/input" # which never ends
for backend in events samples; do
    env --default-signal "$taillight" capture --out "$work/capture" --port "$port" --cores 0-1 --backend $backend \
        --quiet <&9 >"$work/ready" 2>"$work/capture.err" &
    pid=$!
    sleep 0.1
    ends_at_once "capture of $backend: it is armed" TERM
    rm -rf "$work/capture" "$work/ready"
    env --default-signal "$taillight" capture --out "$work/capture" --port "$port" --cores 0-1 --backend $backend \
        --quiet <&9 >"$work/ready" 2>"$work/capture.err" &
    pid=$!
    await grep -q ready "$work/ready" || fail "the capture does not begin: $(cat "$work/capture.err")"
    "$taillight" load --server "127.0.0.1:$port" --rate 20k --duration 3s --quiet >"$work/out" 2>&1
    ends_at_once "capture of $backend: 60,000 requests are to be written" INT
    rm -rf "$work/capture" "$work/ready"
done
kill $server
wait $server
median=$(printf '%s\n' "${times[@]}" | sort -n | sed -n "$(((${#times[@]} + 1) / 2))p")
echo "${#times[@]} signals; half of the ends took at most $median ms, the slowest $slowest ms ($slowest_of)"
[ "${#times[@]}" -ge 12 ] || fail "only ${#times[@]} ends were measured"
[ "$median" -le 1000 ] || fail "half of the ends took more than $median ms"
