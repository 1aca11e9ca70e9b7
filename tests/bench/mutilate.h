// SPDX-License-Identifier: MIT
//
// What mutilate says of a run, as numbers.
#ifndef TESTS_BENCH_MUTILATE_H
#define TESTS_BENCH_MUTILATE_H

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tests/bench/peer_result.h"

static inline int mutilate_read(const char *output, struct peer_result *result, struct error *err)
{
    double misses;
    const char *total = strstr(output, "Total QPS = "), *missed = strstr(output, "Misses = ");
    if (!total || !missed ||
        sscanf(total, "Total QPS = %lf (%lf /", &result->rate, &result->requests) != 2 ||
        sscanf(missed, "Misses = %lf", &misses) != 1)
        return error_set(err, ERROR_INPUT, "mutilate did not print its result");
    // What finds nothing is soon answered: a rate of such requests is no peer's.
    if (result->requests == 0 || misses > 0.01 * result->requests)
        return error_set(err, ERROR_INPUT, "mutilate: %.0f of %.0f requests found nothing", misses,
                         result->requests);
    return 0;
}

#endif
