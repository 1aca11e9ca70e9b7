#!/usr/bin/env bash
# A load that SIGKILL ends leaves the samples that it had by then, whole and in order, with its connections; of an open
# loop, on several threads, and of a closed one. The next load into that folder begins anew.
# Runs beside others: it asserts counts, no times.
set -u
. "$(dirname "$0")/load_lib.sh"
start_server

load=("$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --quiet --connections 4)
left() { find "$dir/s" -name 'samples.tlog.*.partial'; }
# So many samples at least are in the file without a name.
has_written() {
    local bytes
    bytes=$(stat -c %s "$(left)" 2>/dev/null) && [ "$bytes" -ge $((128 + 96 * $1)) ]
}
# What is left: the log's magic, whole records but for the last one, and each intended no earlier than the one before.
check_order() {
    [ "$(head -c 7 "$(left)")" = TAILLOG ] || fail "$1: what is left is no log"
    tail -c +129 "$(left)" | od -v -A n -w96 -t u8 |
        awk -v name="$1" 'NF == 12 { if ($1 < before || !$2 || !$4) bad++; before = $1; count++ }
            END { if (bad || count < 1000) { print name ": " bad + 0 " of " count + 0 " samples are wrong"; exit 1 } }' ||
        fail "$1: the samples that are left"
}
# killed NAME ARGUMENTS...
killed() {
    local name=$1
    rm -rf "$dir/s"
    "${load[@]}" "${@:2}" --duration 120s --samples "$dir/s" >"$dir/out" 2>"$dir/err" &
    local pid=$!
    await has_written 1000 || fail "$name: nothing is written while it goes on"
    kill -9 $pid
    wait $pid 2>/dev/null
    [ ! -e "$dir/s/samples.tlog" ] || fail "$name: it looks whole"
    [ "$(records "$dir/s/connections.tlog")" = 4 ] || fail "$name: its connections"
    check_order "$name"
}
killed open --rate 5k
[ "$(nproc)" -lt 2 ] || killed threads --rate 5k --threads 2
killed closed --rate max

# Whole again, and nothing of the killed one.
timeout 60 "${load[@]}" --rate 2k --duration 1s --samples "$dir/s" --json >"$dir/out" 2>"$dir/err"
[[ $? == [04] ]] || fail 'a load into the folder of a killed one'
[ -z "$(left)" ] || fail 'what the killed load left is still there'
scheduled=$(sed -n 's/^ *"scheduled": \([0-9]*\),$/\1/p' "$dir/out")
[ "$(records "$dir/s/samples.tlog")" = "$scheduled" ] &&
    [ "$(stat -c %s "$dir/s/samples.tlog")" = $((128 + 96 * scheduled)) ] || fail "not all of $scheduled are in the file"
exit 0
