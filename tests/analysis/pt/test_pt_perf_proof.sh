#!/usr/bin/env bash
# The same recordings through perf's own reader and decoder: packets by kind, PSBs, switches by CPU,
# records, clock and instructions are what `taillight analyze --json` says they are.
set -u
export LC_ALL=C
data=${TAILLIGHT_DATA:-../shared/data}/pt
program=$BUILD/taillight
failed=0 checked=0
for tool in perf jq awk xz; do
    command -v $tool >/dev/null || { echo "$tool is missing"; exit 77; }
done
[ -e "$data/perf-data-hase.tar.xz" ] && [ -e "$data/perf-data-4.14-system.tar.xz" ] ||
    { echo "the captures are not under $data; set TAILLIGHT_DATA to where they are"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/hase" "$work/system"
tar --no-same-owner -xJf "$data/perf-data-hase.tar.xz" -C "$work/hase"
tar --no-same-owner -xJf "$data/perf-data-4.14-system.tar.xz" -C "$work/system"

same() { # WHAT OURS PERFS
    checked=$((checked + 1))
    [ "$2" = "$3" ] && return
    failed=$((failed + 1))
    echo "$1 differ: ours, perf's"
    diff <(tr ' ' '\n' <<<"$2") <(tr ' ' '\n' <<<"$3") | head -20
}

# What perf's dump says of each AUX buffer, in order: one line of "kind=count", by name. Its two
# kinds of MODE are one here; padding it counts into the packet before.
perf_packets() { # DUMP
    awk '/\. \.\.\. Intel Processor Trace data/ { n++; inside = 1; next }
        inside && /^\.  [0-9a-f]+:/ {
            split(substr($0, 63), word, " "); kind = word[1]
            sub(/^MODE\..*/, "MODE", kind)
            if (kind != "PAD") { count[n, kind]++; kinds[kind] = 1 }
            next }
        { inside = 0 }
        END { for (i = 1; i <= n; i++) for (k in kinds) if (count[i, k]) print i, k "=" count[i, k] }' "$1" |
        sort | awk '{ line[$1] = line[$1] " " $2 } END { for (i = 1; i in line; i++) print substr(line[i], 2) }'
}
our_packets() {
    jq -r '.streams[] | .packet_kinds | to_entries | map(select(.key != "PAD")) |
        map("\(.key)=\(.value)") | sort | join(" ")' "$1"
}

compare_dump() { # NAME FILE PERF-ARGUMENTS...
    local name=$1 file=$2 records
    shift 2
    "$program" analyze --json -q "$file" >"$work/json" || { echo "$name: cannot be analyzed"; exit 1; }
    perf script -D "$@" 2>/dev/null >"$work/dump"
    same "$name: packets" "$(our_packets "$work/json")" "$(perf_packets "$work/dump")"
    same "$name: PSBs" "$(jq -r '.streams[].psbs' "$work/json")" \
        "$(perf_packets "$work/dump" | grep -o '\bPSB=[0-9]*' | cut -d= -f2)"
    same "$name: bytes" "$(jq -r '.streams[].bytes' "$work/json")" \
        "$(sed -n 's/.*Intel Processor Trace data: size \([0-9]*\) bytes/\1/p' "$work/dump")"
    same "$name: switches by CPU" \
        "$(jq -r '.recording.switches | to_entries | sort_by(.key)[] | "\(.key)=\(.value)"' "$work/json")" \
        "$(awk '/PERF_RECORD_SWITCH_CPU_WIDE/ { n[$1]++ } END { for (cpu in n) print cpu "=" n[cpu] }' "$work/dump" | sort)"
    same "$name: clock" "$(jq -r '.recording.tsc | "\(.shift) \(.mult)"' "$work/json")" \
        "$(awk '/Time Shift/ { s = $3 } /Time Muliplier|Time Multiplier/ { m = $3 } END { print s, m }' "$work/dump")"
    for records in MMAP MMAP2 COMM EXIT AUX ITRACE_START SAMPLE AUXTRACE; do
        same "$name: $records records" "$(jq -r ".recording.records.$records // 0" "$work/json")" \
            "$(grep -ac "PERF_RECORD_$records\b" "$work/dump")"
    done
}

# The times of the sideband are compared record by record in test_perf_data_captures; here, that the
# trace's own clock leads to the same.
compare_instructions() { # NAME FOLDER
    perf script -i "$2/perf.data.1" --symfs "$2/binaries" --itrace=i1i --ns -F time,ip 2>/dev/null >"$work/script"
    "$program" analyze --json -q "$2/perf.data.1" --symfs "$2/binaries" >"$work/json"
    same "$1: instructions" "$(jq '.total.instructions' "$work/json")" "$(wc -l <"$work/script")"
    same "$1: time of the last instruction" \
        "$(jq -r '.streams[0].end' "$work/json")" \
        "$(tail -n 1 "$work/script" | awk '{ gsub(/[.:]/, "", $1); print $1 }')"
}

system=$(find "$work" -name 'perf.data.intel_pt-4.14')
piped=$(find "$work" -name 'perf.data.piped.intel_pt-4.14')
compare_dump 4.14 "$system" -i "$system"
compare_dump "4.14 through a pipe" "$piped" -i - < <(cat "$piped") # perf seeks where it can
for run in "$work"/hase/*/; do
    name=$(basename "$run")
    compare_instructions "${name%%-*}" "${run%/}"
    compare_dump "${name%%-*}" "${run}perf.data.1" -i "${run}perf.data.1"
done
echo "$checked figures compared with perf's, $failed differ"
[ $failed -eq 0 ] && [ $checked -gt 0 ]
