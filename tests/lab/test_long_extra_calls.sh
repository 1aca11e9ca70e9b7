#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with a server that calls a short function over and over again for some of its requests: that
# function is the first cause of each message of which that is half of what made it slow, and takes what the program took meanwhile,
# without what interrupted it, which are causes of their own (tests/lab/user_time.c).
# Time limit: 1800 s
command -v sqlite3 >/dev/null || { echo "there is no sqlite3"; exit 77; }
SERVER="kind: labserver, options: [--fault, 'calls,100ms,450ms', --fault-log, /home/faults]" RATE=10 DURATION=20s SLICE=p75-100
. tests/lab/headline_lib.sh
is_found function extra_call
"$BUILD/tests/lab/user_time" "$work/out/lab/cpu0.truth" "$work/run/server/clock.tlog" < <(awk '{ print $1, $2 }' "$work/out/faults") >"$work/ran" ||
    fail "the truth log"
paste -d ' ' "$work/out/faults" "$work/ran" | awk '$5 > 0 { printf "%s,%s,%d\n", $1, $2, $4 }' >"$work/own"
score=$(score extra_call application_ns reply_ns own <"$work/own") || { echo "$score"; exit 1; }
awk -F, '{ all += $2 - $1; own += $3 } END { printf "%d times, %.0f ms, %.0f ms without interrupts\n", NR, all / 1e6, own / 1e6 }' "$work/own"
echo "$score"
jq -e '.[0] | .mostly >= 20 and .first >= 0.95 * .mostly' <<<"$score" >/dev/null || fail "of the messages that were slow by themselves: $(cat "$work/verdict")"
jq -e '.[0] | .mostly_named_ms >= 0.85 * .mostly_ms and .mostly_named_ms <= 1.15 * .mostly_ms' <<<"$score" >/dev/null ||
    fail "what was attributed is not what it took"
