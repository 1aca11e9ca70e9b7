#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with a server's NIC that for a fifth of the time tells of what it received after 60 ms only, with
# every function of the core traced besides: what is first is the NIC's delay (NSight's Figures 4 and 5), no function.
# Time limit: 1800 s
command -v sqlite3 >/dev/null || { echo "there is no sqlite3"; exit 77; }
PAIR='coalesce_end=1'
SERVER='kind: memcached' RATE=20 DURATION=12s SLICE=p75-100
AT_SERVER='(for ((i = 0; i < 400; i++)); do
    sleep 0.8
    echo 60000 >/sys/module/phcpair/parameters/coalesce_us
    sleep 0.2
    echo 0 >/sys/module/phcpair/parameters/coalesce_us
done) >/dev/null 2>&1 &'
AFTER='cp /sys/module/phcpair/parameters/delays /out/delays'
. tests/lab/headline_lib.sh
is_found gap 'interrupt delivery'
score=$(tr , '\n' <"$work/out/delays" | paste -d, - - | awk -F, '{ printf "%s,%d\n", $1, $1 + $2 }' |
    score 'interrupt delivery' nic_ns handoff_ns) || { echo "$score"; exit 1; }
echo "$score"
jq -e '.[0] | .mostly >= 20 and .mostly_named_ms >= 0.85 * .mostly_ms and .mostly_named_ms <= 1.15 * .mostly_ms and .first >= 0.95 * .mostly' \
    <<<"$score" >/dev/null || fail "of the messages that waited: $(cat "$work/verdict")"
expect '.trace.slow_traced_ns >= 0.95 * .trace.slow_ns'
