#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) where all that the server's NIC receives takes a spinlock that another core holds for 40 of each
# 500 ms (tests/guest/heldlock): that the kernel spins for it is the first cause, of the run and of each message that it made slow, and
# takes as long as the module says that they waited.
# Time limit: 900 s
command -v sqlite3 >/dev/null || { echo "there is no sqlite3"; exit 77; }
module=$(tests/guest/build_module.sh "$BUILD" heldlock) || { tail -n 1 <<<"$module"; exit 77; }
SERVER='kind: memcached' RATE=10
# Once the trace goes on: before, all that the machine does would wait for it.
AT_SERVER='insmod heldlock.ko && (
    until find /home/files -path "*/perf.data/data" -size +256k | grep -q .; do sleep 0.1; done
    echo 40 >/sys/module/heldlock/parameters/hold_ms
) >/dev/null 2>&1 &'
AFTER='cp /sys/module/heldlock/parameters/waits /out/waits'
BRINGING=(-f "$module")
. tests/lab/headline_lib.sh
is_found function 'spinning for a lock in hook'
# What the slow messages have of such waits, their own packets' or of those ahead; it is the first cause of those of which it is half of
# what made them slow, which are few where the host takes the emulated cores away.
tr , '\n' <"$work/out/waits" | paste -d, - - >"$work/waits"
score=$(sqlite3 -json :memory: "ATTACH '$work/run/run.db' AS run" 'CREATE TABLE waits(since INTEGER, ns INTEGER)' \
    ".import --csv $work/waits waits" "
WITH wait AS (SELECT since - value AS since, since - value + ns AS until FROM waits, run.meta WHERE key = 'begin_host_ns'),
    waited AS (
        SELECT request, deviation_ns, sum(min(until, server_tx_ns) - max(since, nic_ns)) AS ns
        FROM run.diagnosed JOIN run.requests ON id = request JOIN wait ON since < server_tx_ns AND until > nic_ns
        WHERE diagnosis = 0 GROUP BY request),
    named AS (
        SELECT request, name = 'spinning for a lock in hook' AS lock, sum(ns) AS ns
        FROM run.attributions JOIN run.causes USING (diagnosis, cause)
        WHERE diagnosis = 0 GROUP BY request, iif(name = 'spinning for a lock in hook', -1, cause)),
    each AS (
        SELECT waited.*,
            (SELECT lock FROM named WHERE named.request = waited.request ORDER BY ns DESC LIMIT 1) AS first,
            (SELECT sum(ns) FROM named WHERE named.request = waited.request AND lock) AS named_ns
        FROM waited)
SELECT count(*) AS messages, total(ns) / 1e6 AS waited_ms, total(named_ns) / 1e6 AS named_ms,
    total(ns >= deviation_ns / 2) AS mostly, total(ns >= deviation_ns / 2 AND first) AS first
FROM each") || fail "no score: $score"
jq -e '.[0] | .messages >= 3 and .named_ms >= 0.85 * .waited_ms and .named_ms <= 1.15 * .waited_ms and .first >= 0.95 * .mostly' \
    <<<"$score" >/dev/null || fail "of the messages that waited: $score; $(cat "$work/verdict")"
echo "$score"
