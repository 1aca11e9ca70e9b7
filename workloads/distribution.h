// SPDX-License-Identifier: MIT
//
// Probability distributions: of sizes, gaps and service times (struct distribution), and of which
// key is asked for (struct popularity). Values without state: a sampler brings its own generator,
// so the same seed draws the same numbers. Built on GSL.
#ifndef WORKLOADS_DISTRIBUTION_H
#define WORKLOADS_DISTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"

enum distribution_kind {
    DISTRIBUTION_FIXED,       // always `first`
    DISTRIBUTION_UNIFORM,     // between `first` and `second`
    DISTRIBUTION_EXPONENTIAL, // mean `first`
    DISTRIBUTION_NORMAL,      // mean `first`, standard deviation `second`
    DISTRIBUTION_LOGNORMAL,   // median `first`; the logarithm's standard deviation `second`
    DISTRIBUTION_PARETO,      // least `first`, shape (tail index) `second`
    DISTRIBUTION_GPD,         // generalised Pareto: location `first`, scale `second`, shape `third`
    DISTRIBUTION_GEV,         // generalised extreme value: the same three
    DISTRIBUTION_BIMODAL,     // `second` with probability `third`, else `first`
    DISTRIBUTION_EMPIRICAL,   // the values of `table`
    DISTRIBUTION_KINDS,
};

// Values that were seen, ascending, each with the fraction of all that is at or below it.
struct distribution_table {
    double *values, *fractions;
    size_t count;
    char *path; // of the file they come from
};

// Values below 0 are replaced by 0. The unit is the caller's; shapes and probabilities have none.
// Shapes have the sign of Atikoglu 2012 and Coles 2001: a positive one is a heavy tail.
struct distribution {
    enum distribution_kind kind;
    double first, second, third;
    // for DISTRIBUTION_EMPIRICAL, freed by distribution_free; else NULL
    struct distribution_table *table;
};

// "fixed", "uniform", "exponential", ...
const char *distribution_name(enum distribution_kind kind);

// One random value. *random: the state of random_fraction (base/hash.h).
double distribution_sample(const struct distribution *distribution, uint64_t *random);

// The value below which a fraction p (0 <= p < 1) of the values lie.
double distribution_quantile(const struct distribution *distribution, double p);

// May be +infinity: Pareto's with a shape of at most 1, GPD's and GEV's with one of at least 1.
double distribution_mean(const struct distribution *distribution);

// Whether no value is beyond what its numbers, or its table, say.
bool distribution_is_bounded(const struct distribution *distribution);

// Reads a table from a file with one value a line, or "value,weight"; empty lines and lines that
// begin with # are passed over. The caller frees it with distribution_free. ERROR_INPUT names the
// line.
int distribution_load(const char *path, struct distribution *distribution, struct error *err);

// Frees the table, if there is one.
void distribution_free(struct distribution *distribution);

enum popularity_kind {
    POPULARITY_UNIFORM, // every key as often as any other
    POPULARITY_ZIPF,    // P(rank k) proportional to 1 / k^exponent
};

struct popularity {
    enum popularity_kind kind;
    double exponent; // of Zipf: 0 < exponent < 2
};

// Draws ranks of `count` items, exactly and in O(1) memory and time, whatever the count.
// Zipf: rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to generate variates
// from monotone discrete distributions", ACM TOMACS 6(3), 1996).
struct rank_sampler {
    struct popularity popularity;
    uint64_t count;
    double integral_low, integral_high; // of the hat function over the whole range
    double accept_below;                // distance within which the hat needs no second look
};

void rank_sampler_init(struct rank_sampler *sampler, const struct popularity *popularity,
                       uint64_t count);

uint64_t rank_sample_zipf(const struct rank_sampler *sampler, uint64_t *random);

// A rank in [0, count); 0 is the most popular. *random: as distribution_sample's. A closed loop has
// a million drawn before it begins.
static inline uint64_t rank_sample(const struct rank_sampler *sampler, uint64_t *random)
{
    if (sampler->popularity.kind != POPULARITY_UNIFORM)
        return rank_sample_zipf(sampler, random);
    // Signed, since only such numbers are converted by one instruction.
    const double count = (double)(int64_t)sampler->count;
    const uint64_t rank = (uint64_t)(int64_t)(random_fraction(random) * count);
    return rank < sampler->count ? rank : sampler->count - 1;
}

// The exact probability of a rank. Sums over all ranks: for tests and small counts.
double popularity_probability(const struct popularity *popularity, uint64_t count, uint64_t rank);

#endif
