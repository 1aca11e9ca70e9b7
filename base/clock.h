// SPDX-License-Identifier: MIT
//
// The system's clocks in one number. CLOCK_MONOTONIC is for waits and deadlines; what is measured
// is stamped in TSC cycles (base/tsc.h) and converted (profiler/clock/clock_log.h).
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t monotonic_ns(void)
{
    return clock_now_ns(CLOCK_MONOTONIC);
}

static inline int64_t monotonic_ms(void)
{
    return monotonic_ns() / 1000000;
}

#endif
