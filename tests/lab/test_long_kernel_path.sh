#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) where the kernel's packet filter compares each eighth request with rules that do not match, 45,000
# times: the kernel's function that does so is the first cause of each message whose packet it was, and takes as much as it
# took of its own by the emulator's log (tests/lab/function_time.c).
# Time limit: 1800 s
command -v sqlite3 >/dev/null || { echo "there is no sqlite3"; exit 77; }
command -v nft >/dev/null || { echo "there is no nft (nftables)"; exit 77; }
SERVER='kind: memcached' RATE=10 DURATION=32s SLICE=p87-100
AT_SERVER='modprobe nft_numgen && {
    printf "%s\n" "table ip filter {" "chain compare {"
    for rule in $(seq 300); do echo "ip saddr 192.0.2.1 tcp sport $rule drop"; done
    printf "%s\n" "}" "chain again {"
    for time in $(seq 150); do echo "jump compare"; done
    printf "%s\n" "}" "chain input {" "type filter hook input priority 0" \
        "tcp flags & psh == psh numgen inc mod 8 0 jump again" "}" "}"
} | nft -f -'
AFTER="sort /proc/kallsyms | awk '\$3 == \"nft_do_chain\" { begin = \$1; next } begin && \$1 != begin { print begin, \$1; exit }' >/out/function"
BRINGING=(-p nft)
. tests/lab/headline_lib.sh
is_found function nft_do_chain
read -r begin end <"$work/out/function" || fail "the guest's kernel has no nft_do_chain"
"$BUILD/tests/lab/function_time" "$work/out/lab/cpu0.truth" "$work/run/server/clock.tlog" "$begin" "$end" >"$work/calls" || fail "the truth log"
# Short calls are of what matched no rule: of seven requests in eight, and of all that carries no data.
awk -F, '$3 > 1e6' "$work/calls" >"$work/slow"
# Their own packets' comparisons: those behind them wait.
score=$(score nft_do_chain nic_ns handoff_ns own <"$work/slow") || { echo "$score"; exit 1; }
awk -F, '{ all += $2 - $1; own += $3 } END { printf "%d calls of %.0f ms, %.0f ms of their own\n", NR, all / 1e6, own / 1e6 }' "$work/slow"
echo "$score"
jq -e '.[0] | .mostly >= 20 and .first >= 0.95 * .mostly' <<<"$score" >/dev/null || fail "of the messages that it made slow: $(cat "$work/verdict")"
jq -e '.[0] | .mostly_named_ms >= 0.85 * .mostly_ms and .mostly_named_ms <= 1.15 * .mostly_ms' <<<"$score" >/dev/null ||
    fail "what was attributed is not what it took"
