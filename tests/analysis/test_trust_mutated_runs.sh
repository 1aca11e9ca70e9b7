#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A run's folder whose files are cut, missing, links, FIFOs, of other types, or swapped, and what
# reads it: mutated_runs.py. A few of each kind; with TAILLIGHT_TRUST=1 all of them, and with
# sanitizers where such a build is there.
# Needs the machine to itself: it records a run.
# Time limit: 1200 s
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
what=quick
[ -z "${TAILLIGHT_TRUST:-}" ] || what=all
experiment "$work/run.yaml" netns 300 200ms <<END
servers: {cache: {kind: memcached}}
loads: {batch: {rate: 100, connections: 2, sleep: true}}
capsule: {hops: [to1@client, to0@switch, to2@switch, to1@server]}
END
sed -i '/^  server:/i \  switch: {kind: bridge}' "$work/run.yaml"
sed -i 's/count: 2k/count: 100/; s/connections: 16/connections: 4/' "$work/run.yaml"
"$taillight" run "$work/run.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
case $? in 0 | 4) ;; *) fail "the run to be mutated" ;; esac
mkdir "$work/mutated"
export ASAN_OPTIONS=detect_leaks=0
sanitized=build-address-undefined/taillight
[ $what = all ] && [ -x $sanitized ] && taillight=$PWD/$sanitized
python3 tests/analysis/mutated_runs.py "$work/run" "$work/mutated" "$taillight" $what ||
    fail "a mutated folder is not told well"
