#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) where all that the server's NIC receives takes a spinlock that another core holds for 60 of each
# 300 ms (tests/guest/heldlock): that the kernel spins for it is the first cause, of the run and of each message that it made slow, and
# takes as long as the module says that they waited.
# Time limit: 1800 s
command -v sqlite3 >/dev/null || { echo "there is no sqlite3"; exit 77; }
module=$(tests/guest/build_module.sh "$BUILD" heldlock) || { tail -n 1 <<<"$module"; exit 77; }
SERVER='kind: memcached' RATE=10 DURATION=20s SLICE=p75-100
# Once the trace goes on: before, all that the machine does would wait for it.
AT_SERVER='insmod heldlock.ko && (
    until find /home/files -path "*/perf.data/data" -size +256k | grep -q .; do sleep 0.1; done
    echo 300 >/sys/module/heldlock/parameters/every_ms
    echo 60 >/sys/module/heldlock/parameters/hold_ms
) >/dev/null 2>&1 &'
AFTER='cp /sys/module/heldlock/parameters/waits /out/waits'
BRINGING=(-f "$module")
. tests/lab/headline_lib.sh
is_found function 'spinning for a lock in hook'
# Their own packets' waits or those ahead's.
score=$(tr , '\n' <"$work/out/waits" | paste -d, - - | awk -F, '{ printf "%s,%d\n", $1, $1 + $2 }' |
    score 'spinning for a lock in hook' nic_ns server_tx_ns) || { echo "$score"; exit 1; }
jq -e '.[0] | .mostly >= 20 and .mostly_named_ms >= 0.85 * .mostly_ms and .mostly_named_ms <= 1.15 * .mostly_ms and .first >= 0.95 * .mostly' \
    <<<"$score" >/dev/null || fail "of the messages that waited: $score; $(cat "$work/verdict")"
echo "$score"
