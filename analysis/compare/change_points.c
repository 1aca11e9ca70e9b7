// SPDX-License-Identifier: MIT
#include "analysis/compare/change_points.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantile.h"

struct split {
    double energy;
    size_t first; // begin of the part after it; 0: no split
};

struct search {
    const double *values;
    size_t count;
    double *permuted;
    double *first_sum; // sum of distances among the first t values of a segment
    double *after_sum; // of distances among those from t up to the current end
    size_t *bounds;    // of the segments, from 0 to count
    double *p;         // of the split at each bound
    size_t segments;
    gsl_rng *random;
};

static double pair_count(size_t count)
{
    return (double)count * ((double)count - 1) / 2;
}

static double energy_distance(double before, double after, double across, size_t n, size_t m)
{
    double distance =
        2 * across / ((double)n * (double)m) - before / pair_count(n) - after / pair_count(m);
    return (double)n * (double)m / (double)(n + m) * distance;
}

// The best split of values[0..count) in two, where the second part may end before the segment does
// (the paper's kappa), so that a level which returns is found as well.
static struct split best_split(const struct search *s, const double *values, size_t count)
{
    struct split best = {.energy = -INFINITY};
    double total = 0; // of all distances so far
    for (size_t t = 0; t <= count; t++)
        s->after_sum[t] = 0;
    for (size_t end = 1; end <= count; end++) {
        double to_newest = 0; // distances of values from t on to the newest one
        for (size_t t = end - 1; t-- > 0;) {
            to_newest += fabs(values[t] - values[end - 1]);
            s->after_sum[t] += to_newest;
        }
        total += to_newest;
        s->first_sum[end] = total;
        for (size_t t = CHANGE_POINT_LEAST; t + CHANGE_POINT_LEAST <= end; t++) {
            double across = total - s->first_sum[t] - s->after_sum[t];
            double found = energy_distance(s->first_sum[t], s->after_sum[t], across, t, end - t);
            if (found > best.energy)
                best = (struct split){.energy = found, .first = t};
        }
    }
    return best;
}

static struct split best_of_segments(const struct search *s, const double *values)
{
    struct split best = {.energy = -INFINITY};
    for (size_t i = 0; i < s->segments; i++) {
        size_t begin = s->bounds[i];
        struct split one = best_split(s, values + begin, s->bounds[i + 1] - begin);
        if (one.first && one.energy > best.energy)
            best = (struct split){.energy = one.energy, .first = begin + one.first};
    }
    return best;
}

// How often a random permutation gives as good a split.
static double split_significance(const struct search *s, double reached)
{
    int as_good = 0;
    for (int i = 0; i < CHANGE_POINT_PERMUTATIONS; i++) {
        memcpy(s->permuted, s->values, s->count * sizeof *s->values);
        for (size_t k = 0; k < s->segments; k++)
            gsl_ran_shuffle(s->random, s->permuted + s->bounds[k], s->bounds[k + 1] - s->bounds[k],
                            sizeof *s->permuted);
        as_good += best_of_segments(s, s->permuted).energy >= reached;
    }
    return (as_good + 1.0) / (CHANGE_POINT_PERMUTATIONS + 1.0);
}

static void add_bound(struct search *s, const struct split *split, double p)
{
    size_t at = s->segments++;
    for (; s->bounds[at] > split->first; at--) {
        s->bounds[at + 1] = s->bounds[at];
        s->p[at + 1] = s->p[at];
    }
    s->bounds[at + 1] = split->first;
    s->p[at + 1] = p;
}

static double segment_median(struct search *s, size_t begin, size_t end)
{
    memcpy(s->permuted, s->values + begin, (end - begin) * sizeof *s->values);
    quantile_sort(s->permuted, end - begin);
    return quantile_sorted(s->permuted, end - begin, 0.5);
}

static int search_splits(struct search *s, struct change_point_array *out)
{
    s->bounds[0] = 0;
    s->bounds[1] = s->count;
    s->segments = 1;
    for (;;) {
        struct split split = best_of_segments(s, s->values);
        if (!split.first || !(split.energy > 0))
            break;
        double p = split_significance(s, split.energy);
        if (p > CHANGE_POINT_SIGNIFICANCE)
            break;
        add_bound(s, &split, p);
    }
    for (size_t i = 1; i < s->segments; i++) {
        struct change_point point = {.first = s->bounds[i],
                                     .before = segment_median(s, s->bounds[i - 1], s->bounds[i]),
                                     .after = segment_median(s, s->bounds[i], s->bounds[i + 1]),
                                     .p = s->p[i]};
        if (array_push(out, point) < 0)
            return -1;
    }
    return 0;
}

int change_points_find(const double *values, size_t count, struct change_point_array *out)
{
    struct search s = {.values = values,
                       .count = count,
                       .permuted = malloc((count + 2) * sizeof *s.permuted),
                       .first_sum = calloc(count + 2, sizeof *s.first_sum),
                       .after_sum = calloc(count + 2, sizeof *s.after_sum),
                       .bounds = calloc(count + 2, sizeof *s.bounds),
                       .p = calloc(count + 2, sizeof *s.p),
                       .random = gsl_rng_alloc(gsl_rng_mt19937)};
    *out = (struct change_point_array){0};
    int result = -1;
    if (s.permuted && s.first_sum && s.after_sum && s.bounds && s.p && s.random) {
        gsl_rng_set(s.random, CHANGE_POINT_SEED);
        result = search_splits(&s, out);
    }
    if (s.random)
        gsl_rng_free(s.random);
    free(s.permuted);
    free(s.first_sum);
    free(s.after_sum);
    free(s.bounds);
    free(s.p);
    return result;
}
