// SPDX-License-Identifier: MIT
//
// A log-linear histogram (Gil Tene's HdrHistogram, three significant digits): 2,048 slots of one
// unit each, then 1,024 slots for every doubling. A value is known to within 1/1024 of itself
// (0.1 %), small ones (below 2,048 units) exactly; quantiles are slots' upper ends, thus never too
// low and at most 0.1 % too high. Recording allocates nothing and takes no lock: one thread records
// into a histogram while any number read it, each count as fresh or slightly older.
// Units are the caller's. A value that never came (a request without a reply) is +infinity: it is
// counted, and ranks above every finite value.
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum {
    HISTOGRAM_HALF = 1024, // slots for each doubling
    HISTOGRAM_DOUBLINGS = 32,
    HISTOGRAM_SLOTS = HISTOGRAM_HALF * (HISTOGRAM_DOUBLINGS + 1),
};

// Greater values are recorded as this one: 2^42 - 1, 73 minutes of nanoseconds.
#define HISTOGRAM_VALUE_MAX (((uint64_t)2 * HISTOGRAM_HALF << (HISTOGRAM_DOUBLINGS - 1)) - 1)

// 264 KiB; zeroed is empty.
struct histogram {
    uint64_t infinite; // how many values are +infinity
    uint64_t slots[HISTOGRAM_SLOTS];
};

static inline size_t histogram_slot(uint64_t value)
{
    if (value > HISTOGRAM_VALUE_MAX)
        value = HISTOGRAM_VALUE_MAX;
    // How often the value must be halved to fall among the first 2,048.
    unsigned doublings = 63 - 10 - (unsigned)__builtin_clzll(value | (2 * HISTOGRAM_HALF - 1));
    return (size_t)doublings * HISTOGRAM_HALF + (size_t)(value >> doublings);
}

static inline void histogram_add(uint64_t *count, uint64_t more)
{
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

static inline void histogram_record(struct histogram *histogram, uint64_t value)
{
    histogram_add(&histogram->slots[histogram_slot(value)], 1);
}

static inline void histogram_record_infinite(struct histogram *histogram)
{
    histogram_add(&histogram->infinite, 1);
}

// The smallest and the largest value that share a slot.
uint64_t histogram_lowest(size_t slot);
uint64_t histogram_highest(size_t slot);

// Adds another histogram's counts, even while another thread records into it.
void histogram_merge(struct histogram *into, const struct histogram *from);

// How many values there are, infinite ones included.
uint64_t histogram_count(const struct histogram *histogram);

// The q-quantile, 0 <= q <= 1, as base/quantile.h defines it: the upper end of the slot it lies in.
// NaN when empty; +infinity when it lies among the infinite.
double histogram_quantile(const struct histogram *histogram, double q);

// Writes the percentile table that HdrHistogram's tools and plotters read (.hgrm): five rows for
// every halving of the distance to 100 %. unit: how many of the histogram's units are one of the
// table's (1000: nanoseconds as microseconds). note: what the values are; a comment on top. Rows
// end where the infinite values begin: a comment counts those, and Total count holds them.
// ERROR_FAILED: cannot write.
int histogram_write_percentiles(const struct histogram *histogram, double unit, const char *note,
                                FILE *out, struct error *err);

#endif
