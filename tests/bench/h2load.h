// SPDX-License-Identifier: MIT
//
// What h2load(1) says of a run, as numbers; a run in which requests failed is none to compare with.
#ifndef TESTS_BENCH_H2LOAD_H
#define TESTS_BENCH_H2LOAD_H

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tests/bench/peer_result.h"

static inline int h2load_read(const char *output, struct peer_result *result, struct error *err)
{
    double succeeded;
    const char *rate = strstr(output, "finished in "), *count = strstr(output, "requests: ");
    if (!rate || !count || sscanf(rate, "finished in %*[^,], %lf req/s", &result->rate) != 1 ||
        sscanf(count, "requests: %lf total, %*f started, %*f done, %lf succeeded",
               &result->requests, &succeeded) != 2)
        return error_set(err, ERROR_INPUT, "h2load did not print its result");
    // What fails is soon answered: a rate of such requests is no peer's.
    if (result->requests == 0 || succeeded < result->requests)
        return error_set(err, ERROR_INPUT, "h2load: %.0f of %.0f requests succeeded", succeeded,
                         result->requests);
    return 0;
}

#endif
