#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Faults of tests/faults/faults.table at a server that a watch watches, which was started before it:
# nineteen of twenty have a saved window whose first cause they are. Two connections carry many
# requests each, so that several wait on one of them whenever the server stands still. What has no
# window, or a window of another cause, is told.
# Time limit: 900 s
unshare -n true 2>/dev/null || { echo "network namespaces cannot be made here: it takes root"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n -- bash "$0" inside
. tests/faults/faults_lib.sh
need_faults
need_program python3 python3
ip link set lo up
seconds=9
printf 'keys: {count: 1k}\nvalues: {size: {fixed: 200}}\n' >"$work/workload.yaml"

end_all() {
    [ $# -eq 0 ] || kill "$@" 2>/dev/null
    [ $# -eq 0 ] || wait "$@" 2>/dev/null
    rmdir /sys/fs/cgroup/{cpu/,}taillight-quota 2>/dev/null
}
has_ended_quietly() { # since there were so many lines
    [ "$(wc -l <"$work/lines")" -gt "$1" ] && jq -es '.[-1].requests == 0' "$work/lines" >/dev/null
}

# watch_try CLASS FAULT ANSWERS
watch_try() {
    local by server watch load status fault='' arguments=(--port 11211 --service fixed:10us)
    by=$(column "$1" 2)
    rm -rf "${work:?}/saved" "$work/fault.log" "$work/lines"
    [ "$by" = inject ] || arguments+=(--fault "${2// /,}" --fault-log "$work/fault.log")
    chrt -r 10 taskset -c 0 "$build/labserver" "${arguments[@]}" >"$work/server.out" 2>"$work/server.err" &
    server=$!
    await bash -c "</dev/tcp/127.0.0.1/11211" 2>/dev/null || { end_all $server; fail "labserver does not listen"; }
    "$taillight" watch --pid $server --interval 1s --json --budget 0 --trigger '>2ms' --save "$work/saved" \
        --saves 1000 >"$work/lines" 2>"$work/watch.err" &
    watch=$!
    await test -s "$work/lines" || { end_all $server $watch; fail "the watch does not begin"; }
    if [ "$by" = inject ]; then
        chrt -r 20 taskset -c 0 "$build/tests/faults/inject" $2 "$work/fault.log" 2>"$work/inject.err" &
        fault=$!
    fi
    chrt -r 10 taskset -c 1 "$taillight" load --server 127.0.0.1:11211 --workload "$work/workload.yaml" \
        --rate 8k --duration ${seconds}s --connections 2 --depth 64 --sleep --announce --json --quiet \
        >"$work/load.json" 2>"$work/load.err" &
    load=$!
    wait $load
    status=$?
    end_all $fault
    await has_ended_quietly "$(wc -l <"$work/lines")" || echo "    the watch is a minute late"
    kill -INT $watch
    wait $watch || { end_all $server; fail "$1: the watch ended with an error"; }
    end_all $server
    [[ $status == [04] ]] || fail "$1: the load ended with $status"
    grep 'could be\|could not be' "$work/watch.err" | sed 's/^taillight:/   /'
    python3 tests/faults/watch_faults.py "$1" "$work/fault.log" "$work/saved" "$work/load.json" $seconds "$3" "$taillight"
}

# A class of the table, its fault, and what names it here beside the table's answers: of a slow request
# itself, which is in the window as those are that it holds up, or of these; of a thread that is not known yet as the
# server's own.
red=0
while IFS='|' read -r class fault beside; do
    [ -z "${CLASS:-}" ] || [ "$class" = "$CLASS" ] || continue
    (judged_tries watch_try "$class" "$fault" "$(column "$class" 5)${beside:+;$beside}") </dev/null
    case $? in
        0) ;;
        77) echo "$class: not judged" ;;
        *) echo "$class: too few windows name it"; red=1 ;;
    esac
done <<'FAULTS'
stop and continue|stop 5ms 300ms
hog on A|hog 5ms 300ms
CPU quota|quota 5ms 300ms
lock held while sleeping|lock 5ms 300ms|lock wait (futex): held by labserver:lock-holder, sleeping (timer) (A)
batch head-of-line blocking|slow 5ms 300ms|application time (A)
page-fault storm|pages 5ms 300ms|head-of-line blocking (A), most of it page faults
delayed softirq|softirq 5ms 300ms
fsync|sync 5ms 300ms
FAULTS
exit $red
