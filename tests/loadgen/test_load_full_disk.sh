#!/usr/bin/env bash
# The disk fills while a load goes on: what it measured is reported on the terminal all the same, with exit 1 and the
# file that could not be written, of which nothing is left; of one load, repetitions and a sweep, as text and as JSON.
# Runs beside others: it asserts no times.
set -u
if [ -z "${OWN_DISK:-}" ]; then
    unshare -m true 2>/dev/null || { echo "a disk of its own takes root"; exit 77; }
    OWN_DISK=$(mktemp -d /tmp/load-disk-XXXXXX) && export OWN_DISK
    trap 'rmdir "$OWN_DISK"' EXIT
    unshare -m bash -c 'mount -t tmpfs -o size=1m none "$OWN_DISK" && exec bash "$0"' "$0"
    exit
fi
. "$(dirname "$0")/load_lib.sh"
start_server
load=("$build/taillight" load --server "127.0.0.1:$port" --workload "$dir/workload.yaml" --quiet --connections 2
    --sleep --stamps user --out "$OWN_DISK/out")

# filled NAME FILE RATE ARGUMENTS...: the disk is full before the load's end.
filled() {
    rm -rf "${OWN_DISK:?}"/*
    "${load[@]}" "${@:3}" >"$dir/out" 2>"$dir/err" &
    local pid=$! status
    await test -d "$OWN_DISK/out" || fail "$1: the load does not begin"
    sleep "${wait:-0.2}" # it has tried whether it can write there
    dd if=/dev/zero of="$OWN_DISK/filler" bs=4k 2>/dev/null
    wait $pid
    status=$?
    [ $status = 1 ] || fail "$1: exit $status"
    grep -q "cannot write $OWN_DISK/out/$2: No space left on device\|$OWN_DISK/out/$2 has only the first" "$dir/err" || fail "$1: not said"
    [ -z "$(find "$OWN_DISK/out" -mindepth 1 ! -name "*tlog*")" ] || fail "$1: left $(ls "$OWN_DISK/out")"
}
answered() { jq -e "$1 > 0" "$dir/out" >/dev/null || fail "no result"; }
filled "one load" load.json --rate 500 --duration 1500ms
grep -q 'requests .* answered' "$dir/out" || fail "one load: no result"
filled "one load, JSON" load.json --rate 500 --duration 1500ms --json
answered .answered
# Of the samples the first are there, and it says of the others that they are not.
wait=1.5 filled "with samples" samples.tlog --rate 2k --duration 3s --samples "$OWN_DISK/out" --json
all=$(jq .scheduled "$dir/out") kept=$(records "$OWN_DISK/out/samples.tlog")
[ "$kept" -gt 100 ] && [ "$kept" -lt "$all" ] || fail "$kept of $all samples"
grep -q "has only the first .* samples: cannot write .*: No space left on device" "$dir/err" || fail "with samples: not said"
filled repetitions load.json --rate 500 --duration 500ms --repetitions 3 --json
answered '.repetitions.list | length'
filled "a sweep" sweep.json --sweep 400:800:400 --duration 700ms --json
answered '.points | length'
