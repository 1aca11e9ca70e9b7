#!/usr/bin/env bash
# A load that is told to end while it hands over what it measured: where nobody reads that, it ends all the same, by
# that signal or by the one before, and at once by a person's second one. A parent, which reads, may say it as often as it
# likes, also by its death: load.json is whole.
# Runs beside others: its load.json is a pipe that is full.
set -u
. "$(dirname "$0")/load_lib.sh"
command -v setpriv >/dev/null || { echo "there is no setpriv; install it: apt-get install util-linux"; exit 77; }
start_server

# told NAME FIRST TIMES [BEFORE...]: it ends by itself (FIRST none) or at that signal, and is told by SIGTERM so
# often while it sums up. $pid, which may have ended then.
told() {
    local name=$1 first=$2 times=$3 duration=120s
    rm -rf "$dir/o"
    mkdir -p "$dir/o/samples"
    mkfifo "$dir/o/load.json"
    exec 8<>"$dir/o/load.json" 9<"$dir/o/load.json"
    yes '' | dd of="$dir/o/load.json" bs=4096 oflag=nonblock 2>/dev/null # lines without anything, which are good JSON
    exec 8<&-
    [ "$first" = none ] && duration=200ms
    "${@:4}" "$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --quiet --connections 2 --rate 1k \
        --duration $duration --out "$dir/o" --samples "$dir/o/samples" >"$dir/out" 2>"$dir/err" &
    pid=$!
    begun() { [ -n "$(find "$dir/o/samples" -name 'samples.tlog.*' -size +1)" ]; }
    if [ "$first" != none ]; then
        await begun || fail "$name: no load"
        kill "-$first" $pid
    fi
    await test -e "$dir/o/samples/samples.tlog" || fail "$name: it does not sum up"
    for ((i = 0; i < times; i++)); do
        kill -TERM $pid 2>/dev/null
        sleep 0.15 # later than what counts as the same wish
    done
}
whole() { # NAME PATTERN
    timeout 20 cat <&9 >"$dir/load.json" || fail "$1: does not end"
    wait $pid
    code=$?
    [[ $code == [04] ]] && jq -e '.answered > 0' "$dir/load.json" >/dev/null || fail "$1: exit code $code: $(head -c 300 "$dir/load.json")"
    grep -q "$2" "$dir/load.json" || fail "$1: load.json says no $2"
}
ended_at_once() { # NAME
    wait $pid
    code=$?
    [ $code -eq 143 ] || fail "$1: exit code $code"
}
told once none 1
ended_at_once once
told before INT 0 # which background commands of a shell ignore otherwise
ended_at_once before
told twice none 2
ended_at_once twice
told told-before INT 1
ended_at_once told-before
told parent TERM 3 setpriv --pdeathsig TERM
whole parent 'interrupted after'
exit 0
