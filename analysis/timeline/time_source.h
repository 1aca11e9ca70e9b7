// SPDX-License-Identifier: MIT
//
// How a reading of some clock becomes host time, behind a function and its context, so that what
// joins records need not know where the map came from.
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
