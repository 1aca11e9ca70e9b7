#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Bare streams and trace.json as they should not be: cut, empty, zeros, twice, without some of their
# code, with code elsewhere. analyze --json answers with figures and counted decode errors, or
# refuses with a sentence that names the file; it never crashes.
set -u
data=${TAILLIGHT_DATA:-../shared/data}/pt
program=$BUILD/taillight
failed=0 checked=0
[ -e "$data/process-hello.tar.xz" ] && [ -e "$data/percpu-multi-core.tar.xz" ] ||
    { echo "the captures are not under $data; set TAILLIGHT_DATA to where they are"; exit 77; }
command -v jq >/dev/null || { echo "jq is missing"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar --no-same-owner -xJf "$data/process-hello.tar.xz" -C "$work"
tar --no-same-owner -xJf "$data/percpu-multi-core.tar.xz" -C "$work"
stream=$(echo "$work"/hello/*.pt)
json=$(echo "$work"/*/trace.json)
pages=()
for page in "$work"/hello/xpage-*; do
    pages+=(--page "0x${page##*-}=$page")
done

wrong() {
    failed=$((failed + 1))
    echo "$1: exit $status: $(head -c 300 "$work/err")"
}
run() { # ARGUMENTS...
    timeout 60 "$program" analyze --json -q "$@" >"$work/out" 2>"$work/err"
    status=$?
    checked=$((checked + 1))
}
# figures NAME FILTER ARGUMENTS...: done, and the filter holds.
figures() {
    local name=$1 filter=$2
    shift 2
    run "$@"
    [ $status -eq 0 ] && jq -e "$filter" "$work/out" >/dev/null || wrong "$name: not $filter"
}
# refused NAME WORDS ARGUMENTS...: bad input, said in one line with these words.
refused() {
    local name=$1 words=$2
    shift 2
    run "$@"
    [ $status -eq 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
        grep -q -- "$words" "$work/err" || wrong "$name: not refused with \"$words\""
}

whole='[.total.instructions, .total.errors] == [147458, 0]'
figures 'as it is' "$whole" --pt "$stream" "${pages[@]}"

# Pages of other names are the same pages.
renamed=()
for page in "$work"/hello/xpage-*; do
    cp "$page" "$work/code of ${page##*-}"
    renamed+=(--page "0x${page##*-}=$work/code of ${page##*-}")
done
figures 'other names' "$whole" --pt "$stream" "${renamed[@]}"

# Twice the stream: twice the figures, each its own.
cp "$stream" "$work/second.pt"
figures 'two streams' '[.streams[].instructions] == [147458, 147458] and .total.instructions == 294916' \
    --pt "$stream" --pt "$work/second.pt" "${pages[@]}"

# Without code, or with all of it elsewhere: counted errors.
figures 'no code' '.total.errors > 0 and .total.bytes == 7104 and .total.psbs == 2' --pt "$stream"
elsewhere=()
for page in "$work"/hello/xpage-*; do
    elsewhere+=(--page "0x$(printf %x $((0x${page##*-} + 0x10000000)))=$page")
done
figures 'other addresses' '.total.errors > 0 and all(.streams[].errors[]; .what != "")' \
    --pt "$stream" "${elsewhere[@]}"
for missing in 0 1 2; do
    some=("${pages[@]}")
    unset 'some[2 * missing]' 'some[2 * missing + 1]'
    figures "without page $missing" '.total.instructions <= 147458' --pt "$stream" "${some[@]}"
done
: >"$work/empty"
refused 'an empty page' "$work/empty" --pt "$stream" --page "0x1000=$work/empty"
refused 'a page that is not there' "$work/nowhere" --pt "$stream" --page "0x1000=$work/nowhere"

# Cut streams keep what is whole; those without a PSB are refused.
for bytes in 7103 7000 4097 2048 1000 100; do
    head -c $bytes "$stream" >"$work/cut.pt"
    figures "$bytes bytes" ".total.bytes == $bytes and .total.instructions <= 147458" \
        --pt "$work/cut.pt" "${pages[@]}"
done
# What is said of damage where people read it.
says() { # NAME WORDS ARGUMENTS...
    local name=$1 words=$2
    shift 2
    timeout 60 "$program" analyze -q "$@" >"$work/out" 2>"$work/err"
    status=$?
    checked=$((checked + 1))
    [ $status -eq 0 ] && grep -q -- "$words" "$work/out" || wrong "$name: does not say \"$words\""
}
{ head -c 3000 "$stream"; printf '\005'; tail -c +3002 "$stream"; } >"$work/damaged.pt"
says 'damage' 'damaged in 1 place, first at offset .*: unknown packet' --pt "$work/damaged.pt" "${pages[@]}"
says 'skipped' '[1-9][0-9,]* bytes skipped' --pt "$work/damaged.pt" "${pages[@]}"
says 'no code' '--elf' --pt "$stream"
tail -c 3000 "$stream" >"$work/tail.pt"
run --pt "$work/tail.pt" "${pages[@]}"
{ [ $status -eq 0 ] || { [ $status -eq 2 ] && grep -q 'no PSB' "$work/err"; }; } || wrong 'the tail'
refused 'an empty stream' 'empty' --pt "$work/empty" "${pages[@]}"
head -c 65536 /dev/zero >"$work/zeros"
refused 'zeros' 'no PSB' --pt "$work/zeros" "${pages[@]}"
refused 'a folder' 'it is a folder, not a file' --pt "$work" "${pages[@]}"
refused 'one whole and one of zeros' "$work/zeros" --pt "$stream" --pt "$work/zeros" "${pages[@]}"

# As a perf.data none of these is one.
refused 'zeros as perf.data' "$work/zeros" "$work/zeros"
refused 'empty as perf.data' "$work/empty" "$work/empty"
refused 'a bare stream as perf.data' "$stream" "$stream"
refused 'zeros through a pipe' 'standard input' - <"$work/zeros"
refused 'nothing through a pipe' 'standard input' - </dev/null
printf '2ELIFREP' | cat - "$work/zeros" >"$work/swapped"
refused 'big-endian' 'big-endian' "$work/swapped"

# trace.json whose parts are missing.
folder=$(dirname "$json")
figures 'trace.json as it is' '[.streams[].instructions] == [61825, 19521]' "$json"
for bytes in 1 50 200; do
    head -c $bytes "$json" >"$folder/cut.json"
    refused "trace.json of $bytes bytes" "cut.json" "$folder/cut.json"
done
for part in $(jq -r '.cpus[] | .iptTrace, .contextSwitchTrace' "$json"); do
    mv "$folder/$part" "$work/away"
    refused "without $part" "$(basename "$part")" "$json"
    mv "$work/away" "$folder/$part"
done
part=$(jq -r '.cpus[0].iptTrace' "$json")
mv "$folder/$part" "$work/away"
cp "$work/zeros" "$folder/$part"
refused 'trace.json with zeros' "$(basename "$part"): no PSB" "$json"
mv "$work/away" "$folder/$part"
echo "$checked variants tried, $failed wrong"
[ $failed -eq 0 ]
