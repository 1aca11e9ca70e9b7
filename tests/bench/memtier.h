// SPDX-License-Identifier: MIT
//
// What memtier_benchmark says of a run, in the row of totals of the table that all of its versions
// print. The seconds in which its rates are counted can be whole ones too many or too few: a rate
// is the caller's to find.
#ifndef TESTS_BENCH_MEMTIER_H
#define TESTS_BENCH_MEMTIER_H

#include <stdio.h>
#include <string.h>

#include "base/error.h"

// Whether its requests were answered, and found something.
static inline int memtier_check(const char *output, struct error *err)
{
    double rate, misses;
    const char *row = strstr(output, "ALL STATS");
    row = row ? strstr(row, "\nTotals ") : NULL;
    if (!row || sscanf(row, " Totals %lf %*f %lf", &rate, &misses) != 2)
        return error_set(err, ERROR_INPUT, "memtier_benchmark did not print its table");
    if (rate == 0) // without a server, too, or where it dies: it ends with 0
        return error_set(err, ERROR_INPUT, "memtier_benchmark: no requests were answered");
    // What finds nothing is soon answered: a rate of such requests is no peer's.
    if (misses > 0.01 * rate)
        return error_set(err, ERROR_INPUT, "memtier_benchmark: %.0f of %.0f requests found nothing",
                         misses, rate);
    return 0;
}

#endif
