// SPDX-License-Identifier: MIT
//
// Converts a clock's readings to host time, through a function and its context, so that the join
// does not depend on where the conversion comes from.
#ifndef ANALYSIS_TIMELINE_TIME_SOURCE_H
#define ANALYSIS_TIMELINE_TIME_SOURCE_H

#include <stdint.h>

#include "profiler/clock/clock_log.h"

struct time_source {
    int64_t (*convert)(const void *context, enum host_clock clock, uint64_t value);
    const void *context; // outlives the source
    double error_ns;     // the largest error of a conversion
};

// Host times are within 73 years of the clock's zero: what a damaged record says beyond is brought
// to these ends, so that neither sums nor differences overflow.
#define HOST_TIME_MOST (INT64_C(1) << 61)

static inline int64_t time_source_to_host(const struct time_source *source, enum host_clock clock,
                                          uint64_t value)
{
    const int64_t ns = source->convert(source->context, clock, value);
    return ns > HOST_TIME_MOST ? HOST_TIME_MOST : ns < -HOST_TIME_MOST ? -HOST_TIME_MOST : ns;
}

#endif
