// SPDX-License-Identifier: MIT
//
// Has a core to itself now and then, and writes down when, by its own clock:
//
//     hog CORE TIMES LENGTH-MS EVERY-MS FILE
//
// In FILE a line says when it had the core, "BEGIN END", in ns of CLOCK_MONOTONIC_RAW.
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
    cpu_set_t core;
    const struct sched_param first = {.sched_priority = 50};
    if (argc != 6) {
        fprintf(stderr, "usage: hog CORE TIMES LENGTH-MS EVERY-MS FILE\n");
        return 2;
    }
    const int times = atoi(argv[2]), length_ms = atoi(argv[3]), every_ms = atoi(argv[4]);
    FILE *had = fopen(argv[5], "w");
    CPU_ZERO(&core);
    CPU_SET((unsigned)atoi(argv[1]), &core);
    if (!had || sched_setaffinity(0, sizeof core, &core) != 0 ||
        sched_setscheduler(0, SCHED_FIFO, &first) != 0) {
        fprintf(stderr, "hog: %s\n", strerror(errno));
        return 1;
    }
    for (int i = 0; i < times; i++) {
        const int rest_ms = every_ms - length_ms;
        const struct timespec rest = {rest_ms / 1000, rest_ms % 1000 * 1000000L};
        nanosleep(&rest, NULL);
        const long long begin_ns = now_ns();
        long long end_ns = begin_ns;
        while (end_ns < begin_ns + length_ms * 1000000LL) {
            // An emulator whose cores take turns in one thread gives the others theirs.
            __builtin_ia32_pause();
            end_ns = now_ns();
        }
        fprintf(had, "%lld %lld\n", begin_ns, end_ns);
        fflush(had);
    }
    return fclose(had) != 0;
}
