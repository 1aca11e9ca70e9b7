// SPDX-License-Identifier: MIT
#include "analysis/reference.h"

#include <math.h>
#include <stdlib.h>

#include "base/quantile.h"

// An operation with fewer messages around its median is compared with all of them; of more than the
// largest number an even selection is taken apart: the median of 5,000 is as good as one of more.
enum { MIN_REFERENCES = 20, MAX_TAKEN_APART = 5000 };
#define BAND_LOW  0.4
#define BAND_HIGH 0.6

struct ranked {
    uint64_t lifetime;
    double latency_ns;
    uint32_t operation;
};

static int compare_latency(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->latency_ns < b->latency_ns || a->latency_ns > b->latency_ns)
        return a->latency_ns < b->latency_ns ? -1 : 1;
    return a->lifetime < b->lifetime ? -1 : a->lifetime > b->lifetime;
}

static int compare_operation(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->operation != b->operation)
        return a->operation < b->operation ? -1 : 1;
    return compare_latency(left, right);
}

static int compare_share(const void *left, const void *right)
{
    const struct component_share *a = left, *b = right;
    if (a->component != b->component)
        return a->component < b->component ? -1 : 1;
    return a->ns < b->ns ? -1 : a->ns > b->ns;
}

// The median of `count` values of which only the largest `seen`, ascending, are not 0.
static double median_with_zeros(const struct component_share *shares, size_t seen, size_t count)
{
    size_t rank = (count + 1) / 2; // 1-based
    return rank <= count - seen ? 0 : shares[rank - (count - seen) - 1].ns;
}

static int fill_components(struct reference *reference, struct component_share_array *shares,
                           size_t messages, size_t components)
{
    reference->component_ns = calloc(components ? components : 1, sizeof(double));
    if (!reference->component_ns)
        return -1;
    reference->component_count = components;
    if (shares->count)
        qsort(shares->items, shares->count, sizeof *shares->items, compare_share);
    for (size_t first = 0; first < shares->count;) {
        size_t after = first;
        while (after < shares->count &&
               shares->items[after].component == shares->items[first].component)
            after++;
        reference->component_ns[shares->items[first].component] =
            median_with_zeros(shares->items + first, after - first, messages);
        first = after;
    }
    return 0;
}

// Makes a reference of messages ordered by latency.
static int build_one(struct reference *reference, struct decomposer *decomposer,
                     const struct ranked *ranked, size_t count)
{
    size_t low = (size_t)floor(BAND_LOW * (double)count);
    size_t high = (size_t)ceil(BAND_HIGH * (double)count);
    size_t band = high - low;
    *reference = (struct reference){.operation = ranked[low].operation,
                                    .count = band,
                                    .latency_ns = ranked[low + (band - 1) / 2].latency_ns};
    struct component_share_array shares = {0};
    size_t taken = band < MAX_TAKEN_APART ? band : MAX_TAKEN_APART;
    int result = 0;
    for (size_t i = 0; i < taken && result == 0; i++)
        result = decompose(decomposer, ranked[low + i * band / taken].lifetime, &shares);
    if (result == 0)
        result = fill_components(reference, &shares, taken, decomposer->table->components.count);
    array_free(&shares);
    return result;
}

static int build_operations(struct reference_set *set, struct decomposer *decomposer,
                            const struct ranked *ranked, size_t count)
{
    for (size_t first = 0; first < count;) {
        size_t after = first;
        while (after < count && ranked[after].operation == ranked[first].operation)
            after++;
        if ((double)(after - first) * (BAND_HIGH - BAND_LOW) >= MIN_REFERENCES) {
            struct reference reference = {0};
            if (build_one(&reference, decomposer, ranked + first, after - first) < 0 ||
                array_push(&set->operations, reference) < 0) {
                free(reference.component_ns);
                return -1;
            }
        }
        first = after;
    }
    return 0;
}

int reference_set_build(struct reference_set *set, struct decomposer *decomposer,
                        const uint64_t *candidates, size_t count)
{
    *set = (struct reference_set){0};
    struct ranked *ranked = malloc((count ? count : 1) * sizeof *ranked);
    if (!ranked)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct lifetime *life = &decomposer->in->lifetimes[candidates[i]];
        ranked[i] = (struct ranked){.lifetime = candidates[i],
                                    .latency_ns = life->latency_ns,
                                    .operation = life->operation};
    }
    int result = 0;
    if (count) {
        qsort(ranked, count, sizeof *ranked, compare_latency);
        result = build_one(&set->pooled, decomposer, ranked, count);
    }
    if (count && result == 0) {
        qsort(ranked, count, sizeof *ranked, compare_operation);
        result = build_operations(set, decomposer, ranked, count);
    }
    free(ranked);
    return result;
}

void reference_set_free(struct reference_set *set)
{
    free(set->pooled.component_ns);
    for (size_t i = 0; i < set->operations.count; i++)
        free(set->operations.items[i].component_ns);
    array_free(&set->operations);
}

const struct reference *reference_of(const struct reference_set *set, uint16_t operation)
{
    for (size_t i = 0; i < set->operations.count; i++)
        if (set->operations.items[i].operation == operation)
            return &set->operations.items[i];
    return &set->pooled;
}
