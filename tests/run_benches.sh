#!/usr/bin/env bash
# Runs the benchmarks: tests/bench/bench_NAME.sh, or the program built from bench_NAME.c. Each
# alternates what it compares within one run, prints a table and writes BUILD/bench/NAME.json.
set -u
build=${1:?usage: run_benches.sh BUILD [NAME]}
only=${2:-}
export BUILD="$build"
cd "$(dirname "$0")/.." || exit 1
mkdir -p "$build/bench"
failed=0 ran=0
for source in tests/bench/bench_*; do
    name=$(basename "${source%.*}")
    name=${name#bench_}
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    case "$source" in
        *.sh) command=(bash "$source") ;;
        *.c) command=("$build/tests/bench/bench_$name") ;;
        *) continue ;;
    esac
    echo "== $name"
    ran=$((ran + 1))
    "${command[@]}"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 77 ] || failed=$((failed + 1))
done
[ $ran -gt 0 ] || { echo "no benchmark is called \"$only\"; there are:" tests/bench/bench_* >&2; exit 2; }
[ $failed -eq 0 ]
