# SPDX-License-Identifier: MIT
#
# What run_tests.sh has each bash of a test read first: where that is a test's own script, its steps go to $TEST_STEPS, of which
# the last ones are told if it fails without words.
case $0 in
    tests/*/test_*.sh)
        { exec {BASH_XTRACEFD}>>"$TEST_STEPS"; } 2>/dev/null && {
            PS4='+ $0:$LINENO: '
            set -x
        }
        ;;
esac
