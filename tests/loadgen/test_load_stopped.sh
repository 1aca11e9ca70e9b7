#!/usr/bin/env bash
# A load that somebody stops for a while: every request is sent, and late by as long; that it stood
# still is said, and the server is not blamed.
# Runs beside others: the stop's length is the least that is told. On a busy machine the stop may
# miss the load, before its begin or behind its end: such a try is made again, with all times twice as long.
set -u
. "$(dirname "$0")/load_lib.sh"
command -v jq >/dev/null || { echo 'not installed: jq' && exit 77; }
says() { # condition
    jq -e "$1" "$dir/out" >"$dir/said"
}
load_of() { load=$(pgrep -P "$1"); } # the `timeout` that began it
tenths() { pause "$(($1 / 10)).$(($1 % 10))"; } # of a second
stop_in_the_middle() { # times, options of the load; sets $status
    local load loader times=$1
    shift
    timeout 120 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --rate 500 --duration $((2 * times))s \
        --timeout 20s --connections 4 --stamps user --json "$@" >"$dir/out" 2>"$dir/err" &
    loader=$!
    await grep -q 'loading 127' "$dir/err" || fail "load $*: did not begin"
    load_of $loader && tenths $((5 * times)) && kill -STOP "$load" && tenths $((5 * times)) && kill -CONT "$load"
    wait $loader
    status=$?
}
stopped() { # options of the load
    local times=1
    while
        stop_in_the_middle $times "$@"
        ! says '.standstill.lasted_us > 400000 and .standstill.after_s > 0'; do
        [ $((times *= 2)) -le 16 ] || fail "load $*: what is its standstill?"
    done
    says '.reasons | join(" ") | contains("did not keep up") | not' || fail "load $*: blames the server"
    # A closed loop has no schedule to be late for: few of its requests, then, know of it.
    case " $* " in *' max '*) return ;; esac
    [ $status -eq 4 ] || fail "load $*: is believed"
    says '.answered == .scheduled and .latency_us.max > 300000' || fail "load $*: requests are missing, or in time"
    says '.reasons | join(" ") | test("stood still for|had its core for only")' || fail "load $*: it is not said"
}
# Stopped over its end, while the server answers all that it had asked: it reads that, and takes none of it for lost.
stop_over_its_end() { # times, options of the load
    local load loader times=$1
    shift
    timeout 120 "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --rate 500 \
        --duration $((500 * times))ms --timeout $((2 * times))s --connections 4 --stamps user --sleep --json "$@" >"$dir/out" 2>"$dir/err" &
    loader=$!
    await grep -q 'loading 127' "$dir/err" || fail "load $*: did not begin"
    load_of $loader && tenths $((3 * times)) && kill -STOP $server && tenths $((7 * times)) && kill -STOP "$load"
    kill -CONT $server && tenths $((20 * times))
    [ -z "$load" ] || kill -CONT "$load"
    wait $loader
}
stopped_over_its_end() { # options of the load
    local times=1
    while
        stop_over_its_end $times "$@"
        ! says '.unsent == 0 and .timed_out == 0 and .standstill.lasted_us > 1000000'; do
        [ $((times *= 2)) -le 16 ] || fail "load $*: what had been answered is not read"
    done
}
start_server --service fixed:50us
stopped_over_its_end
stopped_over_its_end --threads 2
stopped
stopped --sleep
stopped --sleep --rate max
exit 0
