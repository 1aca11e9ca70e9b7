// SPDX-License-Identifier: MIT
#include "profiler/clock_log.h"

#include <time.h>

#include "base/tsc.h"

static const clockid_t posix_clocks[HOST_CLOCKS] = {
    [HOST_CLOCK_RAW] = CLOCK_MONOTONIC_RAW,
    [HOST_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
    [HOST_CLOCK_REALTIME] = CLOCK_REALTIME,
};

// The fences keep the clock's own reading of the TSC between ours.
static uint64_t tsc_fenced(void)
{
    _mm_lfence();
    uint64_t cycles = tsc_now();
    _mm_lfence();
    return cycles;
}

void clock_take_knot(struct clock_reading readings[HOST_CLOCKS - 1], unsigned tries)
{
    for (uint32_t clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS; clock++) {
        struct clock_reading *best = &readings[clock - 1];
        *best = (struct clock_reading){.clock = clock, .width = UINT32_MAX};
        for (unsigned i = 0; i < (tries ? tries : 1); i++) {
            struct timespec now;
            uint64_t before = tsc_fenced();
            clock_gettime(posix_clocks[clock], &now);
            uint64_t width = tsc_fenced() - before;
            if (width >= best->width && best->tsc)
                continue;
            best->width = width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
            best->tsc = before + width / 2;
            best->ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
        }
    }
}
