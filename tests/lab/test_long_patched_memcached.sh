#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with a memcached in which one function was made slower for some keys: that function is the
# first cause of the messages that were slow by that (others wait behind them), and what it adds agrees with the server's own clock.
# Time limit: 900 s
if [ "${1:-}" != inside ]; then
    made=$(tests/lab/make_memcached.sh "${BUILD:=build}") || { tail -n 1 <<<"$made"; exit 77; }
fi
SERVER='kind: memcached'
RATE=10
AT_SERVER='cp /guest/memcached /usr/bin/memcached'
BRINGING=(-f "$BUILD/lab/memcached")
. tests/lab/headline_lib.sh
is_found function do_item_get
took=$(od -An -t d8 -w16 "$work/out/faults" | awk '{ print $1 "," $2 }') || fail "the server wrote no truth"
score=$(score do_item_get application_ns reply_ns <<<"$took") || exit 1
echo "$score"
jq -e '.[0] | .mostly >= 1 and .first >= 0.95 * .mostly' <<<"$score" >/dev/null || fail "of the messages that were slow by themselves"
# By the server's own clock the work took this long untraced, while the dataset was stored and verified (twice ten keys), and
# that long at most under the load, with what interrupted it: its own time lies in between, since a trace slows what it records.
took=$(awk -F, '{ print $2 - $1 }' <<<"$took")
[ "$(wc -l <<<"$took")" -gt 20 ] || fail "no slow request in the load: $took"
least=$(head -n 20 <<<"$took" | sort -n | sed -n 5p) most=$(tail -n +21 <<<"$took" | sort -n | tail -n 1)
attributed=$(sqlite3 "$work/run/run.db" "select cast(ns as integer) from attributions join causes using (diagnosis, cause)
    where diagnosis = 0 and class = 'function' and name like '%do_item_get%'")
echo "do_item_get took $((least)) ns untraced, $((most)) at most under load; attributed: "$attributed
for ns in $attributed; do
    [ "$ns" -ge $((least * 85 / 100)) ] && [ "$ns" -le $((most * 115 / 100)) ] || fail "$ns ns were attributed"
done
