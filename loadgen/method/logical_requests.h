// SPDX-License-Identifier: MIT
//
// Logical requests: with a fan-out (workloads/workload.h) so many requests of a load are due at the
// same instant, and whoever asked waits for the slowest of them (Dean and Barroso, The Tail at
// Scale, CACM 2013). What one lives through is a sample again, so that percentiles and the method
// see logical requests where a plain load has requests: due and sent with its first request, done
// with its slowest reply, whose own stamps, connection and key it has. It is answered when all of
// its requests are, and else what became of the worst of them.
#ifndef LOADGEN_METHOD_LOGICAL_REQUESTS_H
#define LOADGEN_METHOD_LOGICAL_REQUESTS_H

#include "base/error.h"
#include "loadgen/engine/engine_result.h"

// The same result with a sample for each logical request, which shares all else with it, also the
// samples where each request is one by itself. Freed with logical_requests_free, before the result.
// ERROR_FAILED: out of memory.
int logical_requests_make(const struct engine_result *result, struct engine_result *logical,
                          struct error *err);
void logical_requests_free(const struct engine_result *result, struct engine_result *logical);

// How many requests one has, 1 or more.
static inline uint32_t fanout_of(const struct engine_result *result)
{
    return result->fanout ? result->fanout : 1;
}

#endif
