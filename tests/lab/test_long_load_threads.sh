#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A load of 64 threads, on a machine with so many cores, emulated: each request is answered once, by
# the server's count, too; what they send together is a Poisson process; and no thread takes a cache
# line from another while they send, which the emulator sees of every access.
# Time limit: 900 s
# Runs beside others: its machine is emulated, and its timings mean nothing.
. tests/guest/guest_lib.sh
threads=64 requests=20000
export LINES=$work/lines
LAB=$(tests/lab/make_lab.sh "$BUILD") || { tail -n 1 <<<"$LAB"; exit 77; }
export LAB

# Cores 0 to 63 are the threads', 64 is the rest of the load's, 65 everybody else's. Addresses of programs are as linked.
cat >"$work/inside.sh" <<INSIDE
echo 0 >/proc/sys/kernel/randomize_va_space
taskset -pc 65 \$\$ >/dev/null
memcached -u root -l 127.0.0.1 -p 11211 -U 0 -t 1 &
tries=100
until (: </dev/tcp/127.0.0.1/11211) 2>/dev/null; do
    tries=\$((tries - 1)); [ \$tries -gt 0 ] || exit 1
    sleep 0.1
done
load='./taillight load --server 127.0.0.1:11211 --workload workload.yaml'
\$load --prepare --quiet 2>/out/load.err || exit 1
counted() { printf 'stats\r\nquit\r\n' | nc 127.0.0.1 11211 | sed -n 's/\r//; s/^STAT //p'; }
counted >/out/before
# They sleep when nothing is due: the cores take turns, and who spins keeps the turn.
taskset -c 0-64 \$load --rate 1k --duration $((requests / 1000))s --connections $((2 * threads)) --threads $threads \\
    --sleep --timeout 120s --stamps user --seed 7 --json --quiet --samples /out/logs >/out/load.json 2>/out/load.err
echo \$? >/out/verdict
counted >/out/after
INSIDE
printf 'mix: {get: 90, set: 10}\nkeys: {count: 1000}\nvalues: {size: {fixed: 200}}\n' >"$work/workload.yaml"
guest_run -q tests/lab/lines_qemu.sh -c $((threads + 2)) -t 800 -f "$work/inside.sh" -f "$work/workload.yaml" '. ./inside.sh'
grep -qE '^[04]$' "$work/out/verdict" || fail "the load ended with $(cat "$work/out/verdict" "$work/out/load.err")"
expect load.json ".threads == $threads and .scheduled > 0.95 * $requests"
expect load.json '.answered == .scheduled and .misses == 0 and .errors == {}
    and ([.unsent, .timed_out, .lost, .connections_ended, .reconnects] | add) == 0'
grown() { # NAME: by how much the server's count did
    echo $(($(sed -n "s/^$1 //p" "$work/out/after") - $(sed -n "s/^$1 //p" "$work/out/before")))
}
answered=$(jq .answered "$work/out/load.json")
[ $(($(grown cmd_get) + $(grown cmd_set))) = "$answered" ] ||
    fail "$answered answered, and the server saw $(grown cmd_get) gets and $(grown cmd_set) sets"
python3 - "$work/out/logs/samples.tlog" $threads <<'PY' || fail 'the schedule'
import math, struct, sys
log, threads = open(sys.argv[1], "rb").read()[128:], int(sys.argv[2])
due, senders = [], {}
for at in range(0, len(log), 96):
    due.append(struct.unpack_from("<Q", log, at)[0])
    high, flags = log[at + 85], log[at + 87]
    sender = high % 128 * 128 + flags // 2
    senders[sender] = senders.get(sender, 0) + 1
assert len(senders) == threads, f"{len(senders)} threads sent"
assert max(senders.values()) - min(senders.values()) <= 1, "some sent more than others"
due.sort()
gaps = sorted(later - earlier for earlier, later in zip(due, due[1:]))
count, mean = len(gaps), (due[-1] - due[0]) / len(gaps)
distance = max(max(abs(1 - math.exp(-gap / mean) - i / count), abs(1 - math.exp(-gap / mean) - (i + 1) / count))
               for i, gap in enumerate(gaps))
assert distance < 1.63 / math.sqrt(count), f"the gaps are {distance} from exponential"  # 1 %
windows = [0] * 500  # as many in one stretch of time as in another, and no more alike than chance makes them
for time in due:
    windows[min(int((time - due[0]) * 500 / (due[-1] - due[0])), 499)] += 1
spread = sum((n - len(due) / 500) ** 2 for n in windows) / len(due)
assert 0.84 < spread < 1.17, f"the counts' variance is {spread} of their mean"  # 1 % of chi-square
PY

# A line that two threads have in common moves to each as often as it sends, or nearly. (The journal of samples, on core 64,
# looks at a line of each thread at intervals.)
[ "$(head -n 1 "$work/lines")" = "$((threads + 2)) CPUs" ] || fail "the lines were not watched: $(head -n 1 "$work/lines")"
often=$((requests / threads / 4))
awk -v threads=$threads -v often=$often 'NR > 1 {
    takers = 0
    for (i = 5; i <= NF; i++) { split($i, taker, ":"); takers += taker[1] < threads && taker[2] >= often }
    if (takers > 1) print
}' "$work/lines" >"$work/hot"
[ ! -s "$work/hot" ] || {
    while read -r moves memory by from takers; do
        echo "the line of $memory moved $moves times, to CPU:TIMES ${takers:0:200}"
        for at in "$by" "$from"; do addr2line -spf -e "$BUILD/taillight" "$(printf '%#x' $((at - 0x555555554000)))"; done
    done < <(head -n 10 "$work/hot")
    fail "$(wc -l <"$work/hot") cache lines are taken at each request"
}
echo "$threads threads: $answered requests answered; of $(($(wc -l <"$work/lines") - 1)) cache lines that moved ten times or more none at each request"
