#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with a server's NIC that for a fifth of the time tells of what it received after 60 ms only, with
# every function of the core traced besides: what is first is the NIC's delay (NSight's Figures 4 and 5), no function.
# Time limit: 900 s
PAIR='coalesce_end=1'
SERVER='kind: memcached'
AT_SERVER='(for ((i = 0; i < 400; i++)); do
    sleep 0.8
    echo 60000 >/sys/module/phcpair/parameters/coalesce_us
    sleep 0.2
    echo 0 >/sys/module/phcpair/parameters/coalesce_us
done) >/dev/null 2>&1 &'
. tests/lab/headline_lib.sh
is_first gap 'interrupt delivery'
[ "$status" = 4 ] || jq -e '.role == "R" and .median_us <= 1.15 * 60000' <<<"$found" >/dev/null || fail "it was the NIC, by up to 60 ms"
expect '.trace.slow_traced_ns >= 0.95 * .trace.slow_ns'
