#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A run's folder, damaged at random in many ways, and read: damaged_runs.py. With sanitizers as well
# where such a build is there. test_long_trust_damaged_runs.sh [SEED [SECONDS]]
# Needs the machine to itself: it records a run.
# Time limit: 240 s
. tests/experiments/run_lib.sh
need_capture
need_program python3 python3
experiment "$work/run.yaml" netns 1k 1s <<END
servers: {cache: {kind: memcached}}
END
"$taillight" run "$work/run.yaml" --out "$work/run" --quiet >"$work/out" 2>"$work/run.err"
case $? in 0 | 4) ;; *) fail "the run to be damaged" ;; esac
mkdir "$work/damaged"
programs=("$taillight")
sanitized=build-address-undefined/taillight
[ -x $sanitized ] && programs+=("$PWD/$sanitized")
export ASAN_OPTIONS=detect_leaks=0
python3 tests/analysis/damaged_runs.py "$work/run" "$work/damaged" "${2:-60}" "${1:-$(date +%s)}" "${programs[@]}" ||
    fail "a damaged folder is not told well"
