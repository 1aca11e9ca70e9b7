#!/usr/bin/env bash
# Runs every test under BUILD and tests/*/test_*.sh, one after the other: the machine's cores are
# part of what the end-to-end tests measure. Exit 77 of a test is a skip, with its reason as the
# last line it printed. TAILLIGHT_NO_SKIP=1 turns skips into failures; TAILLIGHT_LONG=1 adds the
# long tests (test_long_*); TEST=pattern picks by name. A test has five minutes, or what its script's
# line "# Time limit: N s" says, or TEST_TIMEOUT seconds.
set -u
build=${1:?usage: run_tests.sh BUILD}
export BUILD="$build"
passed=0 failed=0 skipped=0
run() {
    local name=$1 log started seconds status limit=
    shift
    log=$(mktemp)
    case "$name" in *.sh) limit=$(sed -n 's/^# Time limit: \([0-9]*\) s$/\1/p' "$name") ;; esac
    started=$(date +%s%N)
    timeout "${TEST_TIMEOUT:-${limit:-300}}" "$@" >"$log" 2>&1 </dev/null
    status=$?
    seconds=$(((($(date +%s%N) - started) / 10000000)))
    seconds=$(printf '%d.%02d' $((seconds / 100)) $((seconds % 100)))
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        printf '  ok    %-48s %7ss\n' "$name" "$seconds"
    elif [ $status -eq 77 ] && [ -z "${TAILLIGHT_NO_SKIP:-}" ]; then
        skipped=$((skipped + 1))
        printf '  skip  %-48s %s\n' "$name" "$(tail -n 1 "$log")"
    else
        failed=$((failed + 1))
        printf '  FAIL  %-48s %7ss (exit %d)\n' "$name" "$seconds" "$status"
        grep -m 1 '^FAIL' "$log" | sed 's/^/        /' # often above what follows it
        sed 's/^/        /' "$log" | tail -n 40
    fi
    rm -f "$log"
}
wanted() {
    case "$1" in
        *${TEST:-}*) ;;
        *) return 1 ;;
    esac
    case "$1" in
        */test_long_*) [ -n "${TAILLIGHT_LONG:-}" ] ;;
    esac
}
cd "$(dirname "$0")/.." || exit 1
for test in $(find "$build/tests" -name 'test_*' -type f -perm -u+x ! -name '*.d' 2>/dev/null | sort); do
    name=${test#"$build"/}
    wanted "$name" && run "$name" "$test"
done
for test in $(find tests -name 'test_*.sh' | sort); do
    wanted "$test" && run "$test" bash "$test"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
