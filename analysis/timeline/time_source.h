// SPDX-License-Identifier: MIT
//
// Converts a clock's readings to host time, through a function and its context, so that the join
// does not depend on where the conversion comes from.
#ifndef ANALYSIS_TIMELINE_TIME_SOURCE_H
#define ANALYSIS_TIMELINE_TIME_SOURCE_H

#include <stdint.h>

#include "profiler/clock_log.h"

struct time_source {
    int64_t (*convert)(const void *context, enum host_clock clock, uint64_t value);
    const void *context; // outlives the source
    double error_ns;     // the largest error of a conversion
};

static inline int64_t time_source_to_host(const struct time_source *source, enum host_clock clock,
                                          uint64_t value)
{
    return source->convert(source->context, clock, value);
}

#endif
