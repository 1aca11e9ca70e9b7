#!/usr/bin/env bash
# Real captures decode with the figures that are known of them (the README beside them).
set -eu
data=${TAILLIGHT_DATA:-../shared/data}/pt
program=$BUILD/taillight
failed=0 checked=0
[ -d "$data" ] || { echo "no captures under $data; set TAILLIGHT_DATA to where they are"; exit 77; }
command -v jq >/dev/null || { echo "jq is missing; it is in the Debian package of that name"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect NAME FILTER WANTED ARGUMENTS...: what the filter makes of the JSON must be WANTED.
expect() {
    local name=$1 filter=$2 wanted=$3 got
    shift 3
    got=$("$program" analyze --json -q "$@" | jq -c "$filter")
    checked=$((checked + 1))
    [ "$got" = "$wanted" ] && return
    echo "$name: $filter is $got, not $wanted"
    failed=$((failed + 1))
}
unpack() {
    mkdir -p "$work/$1"
    tar --no-same-owner -xJf "$data/$1.tar.xz" -C "$work/$1"
}
pages() {
    for page in "$1"/xpage-*; do
        printf -- '--page\n0x%s=%s\n' "${page##*-}" "$page"
    done
}
# both_ways NAME FOLLOWED ARGUMENTS...: the fast way and libipt's block decoder say the same, but for
# where blocks are cut and how long it took; the fast way was taken for FOLLOWED of the trace.
both_ways() {
    local name=$1 followed=$2 same='del(.seconds) | del(.. | .blocks?, .followed_bytes?)' fast slow
    shift 2
    fast=$("$program" analyze --json -q "$@" | jq "$same")
    slow=$("$program" analyze --json -q --careful "$@" | jq "$same")
    checked=$((checked + 1))
    [ "$fast" = "$slow" ] || { echo "$name: followed, it is another"; failed=$((failed + 1)); }
    expect "$name, followed" ".total | .followed_bytes $followed" true "$@"
}
sums='.total | [.bytes, .packets, .psbs, .instructions, .calls, .returns, .errors]'

if [ -e "$data/process-hello.tar.xz" ]; then
    unpack process-hello
    mapfile -t arguments < <(pages "$work/process-hello/hello")
    for threads in 1 2 5; do
        expect process-hello "$sums" '[7104,5856,2,147458,710,706,0]' --threads $threads \
            --pt "$work"/process-hello/hello/*.pt "${arguments[@]}"
    done
    both_ways process-hello '> 7000' --pt "$work"/process-hello/hello/*.pt "${arguments[@]}"
    expect "process-hello, calls without returns" '.streams[0] | .unmatched_returns' 0 \
        --pt "$work"/process-hello/hello/*.pt "${arguments[@]}"
fi
if [ -e "$data/process-last.tar.xz" ]; then
    unpack process-last
    mapfile -t arguments < <(pages "$work/process-last/last")
    for threads in 1 2 5; do
        expect process-last "$sums" '[171568,113397,10,1873231,28642,28638,0]' --threads $threads \
            --pt "$work"/process-last/last/*.pt "${arguments[@]}"
    done
    both_ways process-last '> 171000' --pt "$work"/process-last/last/*.pt "${arguments[@]}"
fi
if [ -e "$data/perf-data-hase.tar.xz" ]; then
    unpack perf-data-hase
    for run in "$work"/perf-data-hase/*/; do
        case "$run" in
            */control_flow-*) wanted='[760,956,0]' function='"__init_libc"' ;;
            */loopy-*) wanted='[648,57,0]' function='"_start"' ;;
            *) continue ;;
        esac
        filter='.total | [.bytes, .instructions, .errors]'
        elf=$(find "$run/binaries" -type f | head -n 1)
        expect "$run perf.data" "$filter" "$wanted" "$run"/perf.data.1 --symfs "$run/binaries"
        expect "$run bare" "$filter" "$wanted" --pt "$run"/aux/*.pt --elf "$elf"
        both_ways "$run" '> 600' "$run"/perf.data.1 --symfs "$run/binaries"
        expect "$run names" "[.functions[].name] | index($function) != null" true \
            "$run"/perf.data.1 --symfs "$run/binaries" --top 100
        expect "$run names under a page" "[.functions[].name] | index($function) != null" true \
            --pt "$run"/aux/*.pt --elf "$elf" --page "0x400000=$elf" --top 100
        expect "$run task" '.streams[0].tasks | length' 1 "$run"/perf.data.1 --symfs "$run/binaries"
        # Code without symbols is named by the map that a compiler left, beside the recording.
        thread=$("$program" analyze --json -q "$run"/perf.data.1 --symfs "$run/binaries" |
            jq '.streams[0].tasks[0].thread')
        echo "400000 100000 jitted" >"$run/perf-$thread.map"
        expect "$run JIT map" '[.functions[].name] | index("jitted") != null' true \
            "$run"/perf.data.1 --page "0x400000=$elf"
    done
fi
if [ -e "$data/percpu-multi-core.tar.xz" ]; then
    unpack percpu-multi-core
    trace=$work/percpu-multi-core/intelpt-multi-core-trace/trace.json
    expect percpu '[.streams[] | [.cpu, .bytes, .packets, .psbs, .instructions, .error_count]]' \
        '[[45,2897,2125,2,61825,1],[51,5738,2992,3,19521,3]]' "$trace"
    expect "percpu errors" '[.streams[1].errors[].what]' \
        '["no memory mapped at this address","no memory mapped at this address","expected tracing enabled event"]' \
        "$trace"
    both_ways percpu '== 6866' "$trace"
    expect "percpu names" '[.functions[].name] | sort | map(select(test("foo|bar")))' \
        '["bar()","foo()"]' "$trace"
fi
if [ -e "$data/perf-data-4.14-system.tar.xz" ]; then
    unpack perf-data-4.14-system
    file=$(find "$work/perf-data-4.14-system" -name 'perf.data.intel_pt-4.14')
    expect 4.14-system '[.streams[] | [.cpu, .bytes, .packets, .psbs]]' \
        '[[0,12240,9980,1],[3,137728,95129,9]]' "$file"
    both_ways 4.14-system '>= 0' "$file"
    expect "4.14-system timing" '[.streams[].packet_kinds | has("TSC") and has("MTC") and has("TMA")]' \
        '[true,true]' "$file"
fi
[ $checked -gt 0 ] || { echo "none of the captures is under $data"; exit 77; }
echo "$checked figures looked at, $failed wrong"
[ $failed -eq 0 ]
