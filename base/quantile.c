// SPDX-License-Identifier: MIT
#include "base/quantile.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort_double.h>

double quantile_sorted(const double *sorted, size_t count, double q)
{
    if (count == 0)
        return NAN;
    double rank = ceil(q * (double)count);
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[index < count ? index : count - 1];
}

// The largest k with P(Binomial(n, q) <= k) <= probability, or -1 when there is none. The search
// is over a monotone function; GSL's incomplete-beta form stays exact for large n.
static long binomial_floor(double probability, double q, size_t n)
{
    long low = -1, high = (long)n;
    while (low + 1 < high) {
        long middle = low + (high - low) / 2;
        if (gsl_cdf_binomial_P((unsigned)middle, q, (unsigned)n) <= probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct quantile_interval quantile_interval_sorted(const double *sorted, size_t count, double q,
                                                  double confidence)
{
    struct quantile_interval interval = {.known = false, .low = NAN, .high = NAN};
    if (count < 2 || count > 0x7fffffff || q <= 0 || q >= 1)
        return interval;
    double tail = (1 - confidence) / 2;
    // The number of samples at or below the true quantile is Binomial(n, q). With 1-based order
    // statistics, P(X(low) <= quantile) = P(B >= low) and P(quantile < X(high)) = P(B < high).
    long below = binomial_floor(tail, q, count);         // P(B <= below) <= tail
    long above = binomial_floor(1 - tail, q, count) + 1; // P(B > above) <= tail
    if (below < 0 || above + 1 > (long)count)
        return interval;
    interval.known = true;
    interval.low = sorted[below];
    interval.high = sorted[above];
    return interval;
}

// --- sorting -------------------------------------------------------------------------------------

enum {
    DIGIT_BITS = 11,
    DIGITS = 6, // of 64 bits
    DIGIT_VALUES = 1 << DIGIT_BITS,
    RADIX_WORTHWHILE = 2000, // values; for fewer the tables of digits cost more than they save
};

// Unsigned numbers in the order of the doubles they stand for: a set sign bit turns the order of
// the others round (IEEE 754-2008, 5.10).
static uint64_t key_of(uint64_t bits)
{
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static uint64_t bits_of(uint64_t key)
{
    return key >> 63 ? key & ~(1ull << 63) : ~key;
}

// Least significant digit first (Knuth, The Art of Computer Programming 3, 5.2.5, algorithm R); a
// digit that all keys have in common is passed over. Returns where the sorted keys are: in `keys`
// or in `other`.
static uint64_t *radix_sort(uint64_t *keys, uint64_t *other, size_t count,
                            size_t counts[DIGITS][DIGIT_VALUES])
{
    memset(counts, 0, DIGITS * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        for (unsigned digit = 0; digit < DIGITS; digit++)
            counts[digit][keys[i] >> (digit * DIGIT_BITS) & (DIGIT_VALUES - 1)]++;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        const unsigned shift = digit * DIGIT_BITS;
        size_t *places = counts[digit], place = 0;
        if (places[keys[0] >> shift & (DIGIT_VALUES - 1)] == count)
            continue;
        for (unsigned value = 0; value < DIGIT_VALUES; value++) {
            size_t here = places[value];
            places[value] = place;
            place += here;
        }
        for (size_t i = 0; i < count; i++)
            other[places[keys[i] >> shift & (DIGIT_VALUES - 1)]++] = keys[i];
        uint64_t *sorted = other;
        other = keys;
        keys = sorted;
    }
    return keys;
}

void quantile_sort(double *values, size_t count)
{
    uint64_t *keys = NULL;
    size_t(*counts)[DIGIT_VALUES] = NULL;
    if (count >= RADIX_WORTHWHILE) {
        keys = malloc(2 * count * sizeof *keys);
        counts = malloc(DIGITS * sizeof *counts);
    }
    if (keys && counts) {
        for (size_t i = 0; i < count; i++) {
            memcpy(&keys[i], &values[i], sizeof *keys);
            keys[i] = key_of(keys[i]);
        }
        const uint64_t *sorted = radix_sort(keys, keys + count, count, counts);
        for (size_t i = 0; i < count; i++) {
            const uint64_t bits = bits_of(sorted[i]);
            memcpy(&values[i], &bits, sizeof bits);
        }
    } else {
        gsl_sort(values, 1, count); // in place
    }
    free(keys);
    free(counts);
}
