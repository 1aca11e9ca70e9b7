// SPDX-License-Identifier: MIT
#include "base/quantile.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort_double.h>

bool quantile_is_seen(size_t count, double q)
{
    const double rounding = 1e-9; // 1 - 0.9 is not quite 0.1
    return count > 0 && (q >= 1 || (double)count * (1 - q) >= 1 - rounding);
}

double quantile_if_seen(double value, size_t count, double q)
{
    return quantile_is_seen(count, q) || isinf(value) ? value : NAN;
}

size_t quantile_rank(size_t count, double q)
{
    double rank = ceil(q * (double)count);
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return index < count ? index : count - 1;
}

double quantile_sorted(const double *sorted, size_t count, double q)
{
    return count ? sorted[quantile_rank(count, q)] : NAN;
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

bool quantile_interval_ranks(size_t count, double q, double confidence, size_t ranks[2])
{
    if (count < 2 || count > 0x7fffffff || q <= 0 || q >= 1)
        return false;
    double tail = (1 - confidence) / 2;
    // The number of samples at or below the true quantile is Binomial(n, q). With 1-based order
    // statistics, P(X(low) <= quantile) = P(B >= low) and P(quantile < X(high)) = P(B < high).
    long below = binomial_floor(tail, q, count);         // P(B <= below) <= tail
    long above = binomial_floor(1 - tail, q, count) + 1; // P(B > above) <= tail
    if (below < 0 || above + 1 > (long)count)
        return false;
    ranks[0] = (size_t)below;
    ranks[1] = (size_t)above;
    return true;
}

struct quantile_interval quantile_interval_sorted(const double *sorted, size_t count, double q,
                                                  double confidence)
{
    size_t ranks[2];
    if (!quantile_interval_ranks(count, q, confidence, ranks))
        return (struct quantile_interval){false, NAN, NAN};
    return (struct quantile_interval){true, sorted[ranks[0]], sorted[ranks[1]]};
}

// --- sorting -------------------------------------------------------------------------------------

enum {
    DIGIT_BITS = 11,
    DIGITS = 6, // of 64 bits
    DIGIT_VALUES = 1 << DIGIT_BITS,
    RADIX_WORTHWHILE = 2000, // below this many values the tables of digits cost more than they save
};

// Maps doubles to unsigned numbers that sort in the same order: with the sign bit set, the order of
// the other bits is reversed (IEEE 754-2008, 5.10).
static uint64_t key_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static double value_of(uint64_t key)
{
    const uint64_t bits = key >> 63 ? key & ~(1ull << 63) : ~key;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The keys to be sorted and where each came from (NULL: not wanted).
struct column {
    uint64_t *keys;
    uint32_t *places;
};

static void deal_out(const struct column *from, const struct column *to, size_t count,
                     unsigned shift, size_t next[DIGIT_VALUES])
{
    for (size_t i = 0; i < count; i++) {
        size_t place = next[from->keys[i] >> shift & (DIGIT_VALUES - 1)]++;
        to->keys[place] = from->keys[i];
        if (from->places)
            to->places[place] = from->places[i];
    }
}

// Least significant digit first (Knuth, The Art of Computer Programming 3, 5.2.5, algorithm R); a
// digit that all keys have in common is skipped. Returns which of the two columns holds the sorted
// keys: the one that held them before, or `other`.
static const struct column *radix_sort(const struct column *column, const struct column *other,
                                       size_t count, size_t counts[DIGITS][DIGIT_VALUES])
{
    memset(counts, 0, DIGITS * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        for (unsigned digit = 0; digit < DIGITS; digit++)
            counts[digit][column->keys[i] >> (digit * DIGIT_BITS) & (DIGIT_VALUES - 1)]++;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        const unsigned shift = digit * DIGIT_BITS;
        size_t *places = counts[digit], place = 0;
        if (count == 0 || places[column->keys[0] >> shift & (DIGIT_VALUES - 1)] == count)
            continue;
        for (unsigned value = 0; value < DIGIT_VALUES; value++) {
            size_t here = places[value];
            places[value] = place;
            place += here;
        }
        deal_out(column, other, count, shift, places);
        const struct column *sorted = other;
        other = column;
        column = sorted;
    }
    return column;
}

static bool is_ascending(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i - 1] > values[i])
            return false;
    return true;
}

void quantile_sort(double *values, size_t count)
{
    struct column column = {0};
    size_t(*counts)[DIGIT_VALUES] = NULL;
    if (is_ascending(values, count))
        return;
    if (count >= RADIX_WORTHWHILE) {
        column.keys = malloc(2 * count * sizeof *column.keys);
        counts = malloc(DIGITS * sizeof *counts);
    }
    if (column.keys && counts) {
        const struct column other = {column.keys + count, NULL};
        for (size_t i = 0; i < count; i++)
            column.keys[i] = key_of(values[i]);
        const uint64_t *sorted = radix_sort(&column, &other, count, counts)->keys;
        for (size_t i = 0; i < count; i++)
            values[i] = value_of(sorted[i]);
    } else {
        gsl_sort(values, 1, count); // in place
    }
    free(column.keys);
    free(counts);
}

bool quantile_order(const double *values, size_t count, uint32_t *order)
{
    struct column column = {malloc((2 * count + 1) * sizeof *column.keys),
                            malloc((2 * count + 1) * sizeof *column.places)};
    size_t(*counts)[DIGIT_VALUES] = malloc(DIGITS * sizeof *counts);
    bool done = column.keys && column.places && counts;
    if (done) {
        const struct column other = {column.keys + count, column.places + count};
        for (size_t i = 0; i < count; i++) {
            column.keys[i] = key_of(values[i]);
            column.places[i] = (uint32_t)i;
        }
        const uint32_t *sorted = radix_sort(&column, &other, count, counts)->places;
        memcpy(order, sorted, count * sizeof *order);
    }
    free(column.keys);
    free(column.places);
    free(counts);
    return done;
}

// --- selecting -----------------------------------------------------------------------------------

enum {
    BUCKETS_MOST = 2048,
    BUCKETS_LEAST = 64,
    IN_A_BUCKET = 8,         // values, on average, as long as these are not too many buckets
    PROBES = 256,            // values sampled to decide the buckets' bounds
    SELECT_WORTHWHILE = 512, // fewer values are sorted
};

// Buckets of equal width in the bits of the values, thus of nearly equal ratio in the values,
// between the smallest and the largest sample; the first and the last bucket also take everything
// beyond. No bound is negative: then bits are ordered as their values are.
struct buckets {
    double low, high;
    size_t count;
    unsigned shift;
};

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static struct buckets lay_buckets(const double *values, size_t count)
{
    struct buckets buckets = {.low = INFINITY, .count = BUCKETS_LEAST};
    for (size_t i = 0; i < PROBES; i++) {
        const double value = values[i * (count / PROBES)];
        buckets.low = value < buckets.low ? value : buckets.low;
        buckets.high = value > buckets.high ? value : buckets.high;
    }
    if (!(buckets.low > 0))
        buckets.low = 0;
    while (buckets.count < BUCKETS_MOST && buckets.count < count / IN_A_BUCKET)
        buckets.count *= 2;
    const uint64_t width = bits_of(fmax(buckets.high, buckets.low)) - bits_of(buckets.low);
    while (width >> buckets.shift >= buckets.count)
        buckets.shift++;
    return buckets;
}

static inline size_t bucket_of(const struct buckets *buckets, double value)
{
    value = value < buckets->high ? value : buckets->high;
    value = value > buckets->low ? value : buckets->low; // also what is no number, and -0
    return (bits_of(value) - bits_of(buckets->low)) >> buckets->shift;
}

// The bucket that holds a rank; ends[i] is the number of values in the first i + 1 buckets.
static size_t bucket_at(const size_t *ends, size_t rank)
{
    size_t bucket = 0;
    while (ends[bucket] <= rank)
        bucket++;
    return bucket;
}

static void select_sorted(const double *values, size_t count, const size_t *ranks,
                          size_t rank_count, double *work, double *found)
{
    memmove(work, values, count * sizeof *work);
    quantile_sort(work, count);
    for (size_t i = 0; i < rank_count; i++)
        found[i] = work[ranks[i]];
}

// Fills ends. work: as large. In two tables, which wait less for one another: neighbours are often
// of one bucket.
static void count_buckets(const double *values, size_t count, const struct buckets *buckets,
                          size_t *ends, size_t *work)
{
    size_t i = 0;
    memset(ends, 0, buckets->count * sizeof *ends);
    memset(work, 0, buckets->count * sizeof *work);
    for (; i + 2 <= count; i += 2) {
        ends[bucket_of(buckets, values[i])]++;
        work[bucket_of(buckets, values[i + 1])]++;
    }
    if (i < count)
        ends[bucket_of(buckets, values[i])]++;
    for (size_t bucket = 0; bucket < buckets->count; bucket++)
        ends[bucket] += work[bucket] + (bucket ? ends[bucket - 1] : 0);
}

void quantile_select(const double *values, size_t count, const size_t *ranks, size_t rank_count,
                     double *work, double *found)
{
    size_t ends[BUCKETS_MOST], left_out[BUCKETS_MOST], gathered = 0;
    bool wanted[BUCKETS_MOST];
    if (count < SELECT_WORTHWHILE) {
        select_sorted(values, count, ranks, rank_count, work, found);
        return;
    }
    const struct buckets buckets = lay_buckets(values, count);
    memset(wanted, 0, buckets.count * sizeof *wanted);
    count_buckets(values, count, &buckets, ends, left_out);
    for (size_t i = 0; i < rank_count; i++)
        wanted[bucket_at(ends, ranks[i])] = true;
    for (size_t bucket = 0, before = 0; bucket < buckets.count; bucket++) {
        left_out[bucket] = before;
        if (!wanted[bucket])
            before += ends[bucket] - (bucket ? ends[bucket - 1] : 0);
    }
    for (size_t i = 0; i < count; i++) { // without a branch that depends on the value
        const double value = values[i];
        work[gathered] = value;
        gathered += wanted[bucket_of(&buckets, value)];
    }
    quantile_sort(work, gathered);
    for (size_t i = 0; i < rank_count; i++)
        found[i] = work[ranks[i] - left_out[bucket_at(ends, ranks[i])]];
}

void quantile_pair_of(const double *values, size_t count, const double quantiles[2], double *work,
                      double found[2])
{
    found[0] = found[1] = NAN;
    if (count == 0)
        return;
    const size_t ranks[2] = {quantile_rank(count, quantiles[0]),
                             quantile_rank(count, quantiles[1])};
    quantile_select(values, count, ranks, 2, work, found);
}

size_t count_above(const double *values, size_t count, double limit)
{
    // Two values at a time, as every x86-64 can: the compiler does not, at -O2.
    typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));
    typedef int64_t pair_counts __attribute__((vector_size(16)));
    const pair limits = {limit, limit};
    pair_counts one = {0, 0}, other = {0, 0};
    size_t i = 0;
    for (; i + 4 <= count; i += 4) { // a comparison that holds is -1
        one -= *(const pair *)(values + i) > limits;
        other -= *(const pair *)(values + i + 2) > limits;
    }
    size_t above = (size_t)(one[0] + one[1] + other[0] + other[1]);
    for (; i < count; i++)
        above += values[i] > limit;
    return above;
}

double quantile_of(const double *values, size_t count, double q, double *work)
{
    double found;
    if (count == 0)
        return NAN;
    const size_t rank = quantile_rank(count, q);
    quantile_select(values, count, &rank, 1, work, &found);
    return found;
}

struct quantile_interval quantile_interval_of(const double *values, size_t count, double q,
                                              double confidence, double *work)
{
    size_t ranks[2];
    double found[2];
    if (!quantile_interval_ranks(count, q, confidence, ranks))
        return (struct quantile_interval){false, NAN, NAN};
    quantile_select(values, count, ranks, 2, work, found);
    return (struct quantile_interval){true, found[0], found[1]};
}
