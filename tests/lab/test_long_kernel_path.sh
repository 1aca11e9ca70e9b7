#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) where the kernel's packet filter compares each fourth request with rules that do not match, 45,000
# times: the kernel's function that does so is the first cause.
# Time limit: 1800 s
command -v nft >/dev/null || { echo "there is no nft (nftables)"; exit 77; }
SERVER='kind: memcached' RATE=10 DURATION=16s SLICE=p75-100
AT_SERVER='modprobe nft_numgen && {
    printf "%s\n" "table ip filter {" "chain compare {"
    for rule in $(seq 300); do echo "ip saddr 192.0.2.1 tcp sport $rule drop"; done
    printf "%s\n" "}" "chain again {"
    for time in $(seq 150); do echo "jump compare"; done
    printf "%s\n" "}" "chain input {" "type filter hook input priority 0" \
        "tcp flags & psh == psh numgen inc mod 4 0 jump again" "}" "}"
} | nft -f -'
BRINGING=(-p nft)
. tests/lab/headline_lib.sh
is_first function nft_
