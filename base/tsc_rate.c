// SPDX-License-Identifier: MIT
#include "base/tsc_rate.h"

#include <time.h>

#include "base/tsc.h"

struct tsc_pair tsc_take_pair(void)
{
    struct tsc_pair best = {0};
    uint64_t narrowest = UINT64_MAX;
    for (unsigned i = 0; i < 16; i++) {
        struct timespec now;
        uint64_t before = tsc_now_ordered();
        clock_gettime(CLOCK_MONOTONIC_RAW, &now);
        uint64_t width = tsc_now_ordered() - before;
        if (width >= narrowest)
            continue;
        narrowest = width;
        best.tsc = before + width / 2;
        best.raw_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    return best;
}

double tsc_rate_between(const struct tsc_pair *first, const struct tsc_pair *second)
{
    return (double)(second->tsc - first->tsc) / (double)(second->raw_ns - first->raw_ns) * 1e9;
}

double tsc_measure_hz(uint64_t over_ns)
{
    struct timespec pause = {(time_t)(over_ns / 1000000000u), (long)(over_ns % 1000000000u)};
    struct tsc_pair first = tsc_take_pair();
    nanosleep(&pause, NULL);
    struct tsc_pair second = tsc_take_pair();
    return tsc_rate_between(&first, &second);
}
