#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with a memcached in which one function was made slower for two of ten keys: that function is
# the first cause of the messages that were slow by that (others wait behind them), and what it adds is what it took of its own: the
# function's time by the server's clock, without what interrupted it, which are causes of their own (tests/lab/user_time.c). Only gets:
# where ordinary requests know neither a slow one's function nor those that called it, as of few sets, the topmost is named.
# Time limit: 1800 s
command -v sqlite3 >/dev/null || { echo "there is no sqlite3"; exit 77; }
if [ "${1:-}" != inside ]; then
    made=$(tests/lab/make_memcached.sh "${BUILD:=build}") || { tail -n 1 <<<"$made"; exit 77; }
fi
SERVER='kind: memcached' RATE=8 DURATION=25s SLICE=p80-100 MIX='get: 1'
AT_SERVER='cp /guest/memcached /usr/bin/memcached'
BRINGING=(-f "$BUILD/lab/memcached")
. tests/lab/headline_lib.sh
# By the code that came with the trace: the controller's program of that path, if it has one, is another.
! cmp -s /usr/bin/memcached "$BUILD/lab/memcached" || fail "/usr/bin/memcached is the server's own"
is_found function do_item_get
od -An -t d8 -v -w32 "$work/out/faults" >"$work/took" || fail "the server wrote no truth"
"$BUILD/tests/lab/user_time" "$work/out/lab/cpu0.truth" < <(awk '{ print $3, $4 }' "$work/took") >"$work/ran" || fail "the truth log"
# Those before the trace, while the dataset was verified, are of no message, and untraced.
paste "$work/took" "$work/ran" | awk '$6 > 0 { printf "%s,%s,%d\n", $1, $2, $5 * ($2 - $1) / ($4 - $3) }' >"$work/own"
score=$(score do_item_get application_ns reply_ns own <"$work/own") || { echo "$score"; exit 1; }
awk -F, '{ all += $2 - $1; own += $3 } END { printf "%d calls of %.0f ms, %.0f ms without interrupts\n", NR, all / 1e6, own / 1e6 }' "$work/own"
echo "$score"
jq -e '.[0] | .mostly >= 20 and .first >= 0.95 * .mostly' <<<"$score" >/dev/null || fail "of the messages that were slow by themselves"
jq -e '.[0] | .mostly_named_ms >= 0.85 * .mostly_ms and .mostly_named_ms <= 1.15 * .mostly_ms' <<<"$score" >/dev/null ||
    fail "what was attributed is not what it took"
