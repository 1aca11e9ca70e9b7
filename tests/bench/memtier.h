// SPDX-License-Identifier: MIT
//
// What memtier_benchmark says of a run: the table, whose rates are counted in seconds that can be
// whole ones too many or too few, and the line that tells how far it is, with how many requests
// were answered so far. The seconds are those that were asked for.
#ifndef TESTS_BENCH_MEMTIER_H
#define TESTS_BENCH_MEMTIER_H

#include <stdio.h>
#include <string.h>

#include "base/error.h"

// output, progress: its stdout and its stderr.
static inline int memtier_read(const char *output, const char *progress, double *requests,
                               struct error *err)
{
    double rate, misses;
    const char *row = strstr(output, "ALL STATS"), *told = NULL;
    row = row ? strstr(row, "\nTotals ") : NULL;
    for (const char *at = progress; (at = strstr(at, " threads: ")); at++)
        told = at;
    if (!row || sscanf(row, " Totals %lf %*f %lf", &rate, &misses) != 2 || !told ||
        sscanf(told, " threads: %lf ops", requests) != 1)
        return error_set(err, ERROR_INPUT, "memtier_benchmark did not print its result");
    if (rate == 0 || *requests == 0) // without a server, or where it dies: it ends with 0
        return error_set(err, ERROR_INPUT, "memtier_benchmark: no requests were answered");
    // What finds nothing is soon answered: a rate of such requests is no peer's.
    if (misses > 0.01 * rate)
        return error_set(err, ERROR_INPUT, "memtier_benchmark: %.0f of %.0f requests found nothing",
                         misses, rate);
    return 0;
}

#endif
