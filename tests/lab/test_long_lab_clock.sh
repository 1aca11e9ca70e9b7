#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What the trace says of when something ran agrees with what the program that ran it read of the TSC before and behind, also while other
# programs on two CPUs read it without end: then QEMU moves it forward by milliseconds. Where the guest's time is its instructions it
# agrees to the tick.
# Time limit: 600 s
. tests/guest/guest_lib.sh
cat >"$work/marks.c" <<'END'
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>
static unsigned long long times[2 * 2000];
__attribute__((noinline)) void marked(void) { __asm__ volatile("" ::: "memory"); }
int main(void)
{
    for (int i = 0; i < 2000; i++) {
        unsigned other;
        times[2 * i] = __rdtscp(&other);
        marked();
        times[2 * i + 1] = __rdtscp(&other);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (int i = 0; i < 2000; i++)
        printf("%llu %llu\n", times[2 * i], times[2 * i + 1]);
}
END
cat >"$work/reads.c" <<'END'
#include <x86intrin.h>
int main(void) { for (;;) __rdtsc(); }
END
for program in marks reads; do
    ${CC:-gcc} -O1 -static -no-pie -o "$work/$program" "$work/$program.c" || { echo "no static program can be made here"; exit 77; }
done
agree() { # MOST OPTIONS BESIDE: the command in the guest before the trace; in ticks
    tests/lab/lab.sh $2 -c 3 -t 240 -o "$work/out" -f "$work/marks" -f "$work/reads" "$3
        perf record -q -C 0 -o /tmp/perf.data -e intel_pt//u taskset -c 0 ./marks >/out/times" >"$work/said" 2>&1
    status=$?
    [ $status -ne 77 ] || { tail -n 1 "$work/said"; exit 77; }
    [ $status -eq 0 ] || fail "exit $status: $(cat "$work/said")"
    python3 - "$work/out/times" "$work/out/lab/cpu0.truth" "$(nm "$work/marks" | awk '$3 == "marked" { print $1 }')" "$1" <<'END' || fail "trace and TSC do not agree"
import struct, sys
times = [tuple(map(int, line.split())) for line in open(sys.argv[1])]
truth, marked, at, seen = open(sys.argv[2], 'rb').read(), int(sys.argv[3], 16), 64, []
while at + 32 <= len(truth):
    tsc, a, b, kind, size = struct.unpack_from('<QQQII', truth, at)
    at += 32 + (size + 7 & ~7)
    if kind == 2 and b == marked: # TRUTH_CALL
        seen.append(tsc)
apart = sorted(max(before - tsc, tsc - behind, 0) for tsc, (before, behind) in zip(seen, times))
print(f'{len(seen)} calls of {len(times)}, {apart[-1]} ticks outside at most')
sys.exit(len(seen) != 2000 or apart[-1] > int(sys.argv[4]))
END
    rm -rf "$work/out"
}
# shellcheck disable=SC2016 # for the guest
agree 2400 '' 'for core in 1 2; do taskset -c $core ./reads & done;'
agree 0 -i ''
