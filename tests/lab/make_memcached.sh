#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A memcached with its symbols in which one function, do_item_get, does more work for keys that end in 3 or 8, and writes to
# /home/faults from when to when, in ns (CLOCK_MONOTONIC_RAW, a run's clock; CLOCK_MONOTONIC was apart by 0.34 s in a guest), and by
# the TSC, 8 bytes each: make_memcached.sh BUILD makes it of Debian's source under BUILD/lab and prints its path. Exit 77 and the
# reason when that cannot be had.
set -eu
build=${1:?usage: make_memcached.sh BUILD}
skip() {
    echo "$*"
    exit 77
}
for tool in apt-get xz make "${CC:-gcc}"; do
    command -v "$tool" >/dev/null || skip "memcached is made of Debian's source, and there is no $tool"
done
. "$(dirname "$0")/debian_lib.sh"
[ -e /usr/include/event.h ] || skip "memcached is made with libevent-dev, which is not installed"
mkdir -p "$build/lab"
script=$(realpath "$0")
cd "$build/lab"
exec 9>.memcached-lock
flock 9
if [ memcached -ot "$script" ]; then
    new=$(mktemp -d "$PWD/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    debian_lists "$new" deb-src "$mirror" bookworm
    (cd "$new" && debian_apt "$new" source --download-only memcached) >"$new/log" 2>&1 ||
        skip "there is no source of memcached from $mirror: $(tail -n 1 "$new/log")"
    tar -C "$new" --strip-components=1 -xf "$new"/memcached_*.orig.tar.*
    cat >"$new/slow.h" <<'SLOW'
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
// The same work each time. A trace holds a bit for each turn of the loop; where nothing branches it does not say when what came
// before had ended. What it took is the truth.
static inline __attribute__((always_inline)) void be_slow(void)
{
    static int log = -1;
    struct timespec begin, end;
    if (log < 0)
        log = open("/home/faults", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    clock_gettime(CLOCK_MONOTONIC_RAW, &begin);
    const int64_t from = (int64_t)__rdtsc();
    unsigned long work = (unsigned long)begin.tv_nsec;
    for (int turn = 0; turn < 40000; turn++)
        __asm__ volatile(".rept 512\n\timul $3, %0, %0\n\t.endr" : "+r"(work));
    const int64_t to = (int64_t)__rdtsc();
    clock_gettime(CLOCK_MONOTONIC_RAW, &end);
    const int64_t took[] = {begin.tv_sec * 1000000000 + begin.tv_nsec, end.tv_sec * 1000000000 + end.tv_nsec, from, to};
    (void)!write(log, took, sizeof took);
}
SLOW
    sed -i '1i #include "slow.h"
/^item \*do_item_get(/a \    if (key[nkey - 1] % 5 == 1) be_slow();' "$new/items.c"
    grep -q 'be_slow()' "$new/items.c" || skip "do_item_get is not where it was in memcached's items.c"
    (cd "$new" && ./configure -q CFLAGS='-O2 -g' && make -s memcached) >"$new/log" 2>&1 ||
        skip "memcached cannot be built here: $(tail -n 1 "$new/log")"
    mv "$new/memcached" memcached
fi
echo "$PWD/memcached"
