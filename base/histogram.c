// SPDX-License-Identifier: MIT
#include "base/histogram.h"

#include <math.h>

uint64_t histogram_lowest(size_t slot)
{
    if (slot < 2 * HISTOGRAM_HALF)
        return slot;
    size_t doublings = slot / HISTOGRAM_HALF - 1;
    return (uint64_t)(slot - doublings * HISTOGRAM_HALF) << doublings;
}

uint64_t histogram_highest(size_t slot)
{
    return histogram_lowest(slot + 1) - 1;
}

static uint64_t count_load(const uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        uint64_t count = count_load(&from->slots[slot]);
        if (count)
            histogram_add(&into->slots[slot], count);
    }
    histogram_add(&into->infinite, count_load(&from->infinite));
}

static uint64_t finite_count(const struct histogram *histogram)
{
    uint64_t count = 0;
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++)
        count += count_load(&histogram->slots[slot]);
    return count;
}

uint64_t histogram_count(const struct histogram *histogram)
{
    return finite_count(histogram) + count_load(&histogram->infinite);
}

double histogram_quantile(const struct histogram *histogram, double q)
{
    uint64_t all = histogram_count(histogram), seen = 0;
    double rank = fmax(ceil(q * (double)all), 1);
    if (all == 0)
        return NAN;
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        seen += count_load(&histogram->slots[slot]);
        if ((double)seen >= rank)
            return (double)histogram_highest(slot);
    }
    return INFINITY;
}

// --- the percentile table ------------------------------------------------------------------------

enum { ROWS_A_HALVING = 5 };

struct moments {
    double mean, deviation, greatest; // only the finite values; each slot counts as its middle
};

static struct moments take_moments(const struct histogram *histogram)
{
    struct moments moments = {0};
    double count = 0, squares = 0;
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        double here = (double)histogram->slots[slot];
        if (here == 0)
            continue;
        double low = (double)histogram_lowest(slot), high = (double)histogram_highest(slot);
        double off = (low + high) / 2 - moments.mean;
        count += here;
        moments.mean += off * here / count;
        squares += here * off * ((low + high) / 2 - moments.mean);
        moments.greatest = high;
    }
    moments.deviation = count > 0 ? sqrt(squares / count) : 0;
    return moments;
}

// The quantile of the n-th row: five rows, evenly spaced, for each halving of the distance to 1.
static double level_of(unsigned row)
{
    unsigned halvings = row / ROWS_A_HALVING;
    return 1 - exp2(-(double)halvings) +
           row % ROWS_A_HALVING / (ROWS_A_HALVING * exp2(halvings + 1));
}

static void write_row(FILE *out, double value, double level, uint64_t seen)
{
    if (level < 1)
        fprintf(out, "%12.3f %2.12f %10llu %14.2f\n", value, level, (unsigned long long)seen,
                1 / (1 - level));
    else
        fprintf(out, "%12.3f %2.12f %10llu\n", value, level, (unsigned long long)seen);
}

static void write_rows(const struct histogram *histogram, double unit, uint64_t all, FILE *out)
{
    uint64_t seen = 0;
    unsigned row = 0;
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS && seen < all; slot++) {
        if (!histogram->slots[slot])
            continue;
        seen += histogram->slots[slot];
        double value = (double)histogram_highest(slot) / unit;
        if (seen == all) { // the largest value: its own row, then the row of 100 %
            write_row(out, value, level_of(row), seen);
            write_row(out, value, 1, seen);
        }
        for (; seen < all && level_of(row) <= (double)seen / (double)all; row++)
            write_row(out, value, level_of(row), seen);
    }
}

int histogram_write_percentiles(const struct histogram *histogram, double unit, const char *note,
                                FILE *out, struct error *err)
{
    uint64_t all = histogram_count(histogram);
    struct moments moments = take_moments(histogram);
    fprintf(out, "# %s\n", note);
    if (histogram->infinite)
        fprintf(out,
                "# %llu of %llu values are infinite: they lie above every row; Mean, "
                "StdDeviation and Max are of the others\n",
                (unsigned long long)histogram->infinite, (unsigned long long)all);
    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    write_rows(histogram, unit, all, out);
    fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", moments.mean / unit,
            moments.deviation / unit);
    fprintf(out, "#[Max     = %12.3f, Total count    = %12llu]\n", moments.greatest / unit,
            (unsigned long long)all);
    fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", HISTOGRAM_DOUBLINGS,
            2 * HISTOGRAM_HALF);
    if (ferror(out))
        return error_set_errno(err, ERROR_FAILED, "cannot write the percentiles");
    return 0;
}
