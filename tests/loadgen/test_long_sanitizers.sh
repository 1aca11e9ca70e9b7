#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Time limit: 3000 s
#
# All tests of base, workloads and loadgen in a build with AddressSanitizer, LeakSanitizer and
# UndefinedBehaviorSanitizer, and again in one with ThreadSanitizer. A test that fails fails this
# one, and so does a report of any process that they start, also of one whose end nobody looks at.
# TAILLIGHT_SANITIZERS picks: "address,undefined", "thread". What reports an overloaded machine is
# a skip there as anywhere: instrumented code is slow.
set -u
[ "${TAILLIGHT_LONG:-}" ] || { echo 'long: make check-long'; exit 77; }
build=${BUILD:-build}
reports=$(mktemp -d /tmp/sanitizers-test-XXXXXX)
trap 'rm -rf "$reports"' EXIT
chmod 1777 "$reports" # servers may run as nobody
unset MAKEFLAGS MAKELEVEL TAILLIGHT_LONG TAILLIGHT_NO_SKIP
folders='base workloads loadgen'
for sanitizer in ${TAILLIGHT_SANITIZERS:-address,undefined thread}; do
    folder=$build-${sanitizer//,/-}
    targets=$(for f in $folders; do find "tests/$f" -name "test_*.c"; done | sed "s|^|$folder/|; s|\.c$||")
    make -s -j"$(nproc)" SAN="$sanitizer" BUILD="$folder" all $targets >"$reports/build" 2>&1 || {
        echo "FAIL: no build with $sanitizer"
        tail -n 20 "$reports/build"
        exit 1
    }
    rm "$reports/build"
    # Beside AddressSanitizer the undefined behaviour's reports go to stderr, whatever log_path: they
    # end the process instead.
    export ASAN_OPTIONS=log_path=$reports/address LSAN_OPTIONS=log_path=$reports/leak \
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=log_path=$reports/thread
    for f in $folders; do
        echo "$sanitizer: $f"
        TAILLIGHT_ONCE=1 TEST_TIMEOUT=900 TEST=tests/$f/ tests/run_tests.sh "$folder" || failed=1
    done
    for report in "$reports"/*; do
        [ -s "$report" ] && failed=1 && echo "FAIL: $report" && head -n 60 "$report"
    done
done
[ -z "${failed:-}" ]
