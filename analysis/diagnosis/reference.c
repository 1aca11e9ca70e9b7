// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/reference.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/diagnosis/walk_budget.h"
#include "base/array.h"
#include "base/quantile.h"

// An operation with fewer messages around its median is compared with messages of all operations.
// Of more than the largest number a selection is decomposed that is evenly spaced by latency, so
// that no latency is favoured: the median of 5,000 is as good as that of more, and of messages with
// very long lives fewer have to do (walk_budget.h).
#define MOST_PIECES 4e6
enum { MIN_REFERENCES = 20, LEAST_WALKED = REFERENCE_SAMPLE / 5 };
#define BAND_LOW  0.4
#define BAND_HIGH 0.6
#define FAST_END  0.05

struct ranked { // of a million messages: kept small
    double latency_ns;
    uint32_t lifetime;
    uint32_t operation;
};

static int compare_latency(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return order_of(a->latency_ns, b->latency_ns) ?: order_of(a->lifetime, b->lifetime);
}

static int compare_operation(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return order_of(a->operation, b->operation) ?: compare_latency(left, right);
}

static int compare_double(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return order_of(a, b);
}

// One message's value of one key: a component's or a function's time, or its calls.
struct keyed {
    uint32_t key;
    double value;
};
struct keyed_array ARRAY_OF(struct keyed);

static int compare_keyed(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    return order_of(a->key, b->key) ?: order_of(a->value, b->value);
}

// Of `count` values, of which all but `seen` are 0, the one of that rank (from 1); `values` holds
// those, ascending.
static double ranked_with_zeros(const struct keyed *values, size_t seen, size_t count, size_t rank)
{
    return rank <= count - seen ? 0 : values[rank - (count - seen) - 1].value;
}

static double median_with_zeros(const struct keyed *values, size_t seen, size_t count)
{
    return ranked_with_zeros(values, seen, count, (count + 1) / 2);
}

typedef void each_key(void *context, const struct keyed *values, size_t seen, size_t count);

// Calls `each` for every key with its values, ascending; messages without a value count as 0.
static void for_each_key(struct keyed_array *values, size_t count, each_key *each, void *context)
{
    array_sort(values, compare_keyed);
    for (size_t first = 0; first < values->count;) {
        size_t after = first;
        while (after < values->count && values->items[after].key == values->items[first].key)
            after++;
        each(context, values->items + first, after - first, count);
        first = after;
    }
}

static void take_median(void *context, const struct keyed *values, size_t seen, size_t count)
{
    struct normal *normal = context;
    normal[values->key].ns = median_with_zeros(values, seen, count);
}

static void take_mean(void *context, const struct keyed *values, size_t seen, size_t count)
{
    struct normal *normal = context;
    double sum = 0;
    for (size_t i = 0; i < seen; i++)
        sum += values[i].value;
    normal[values->key].mean_ns = sum / (double)count;
    normal[values->key].met = (double)seen / (double)count;
}

static void take_fast(void *context, const struct keyed *values, size_t seen, size_t count)
{
    struct normal *normal = context;
    size_t rank = (size_t)ceil(FAST_END * (double)count);
    normal[values->key].fast_ns = ranked_with_zeros(values, seen, count, rank);
}

static void take_calls(void *context, const struct keyed *values, size_t seen, size_t count)
{
    double *calls = context;
    calls[values->key] = median_with_zeros(values, seen, count);
}

struct scatter {
    struct normal *normal;
    double *distances; // room for all messages
};

static void take_scatter(void *context, const struct keyed *values, size_t seen, size_t count)
{
    struct scatter *scatter = context;
    struct normal *normal = &scatter->normal[values->key];
    for (size_t i = 0; i < count; i++)
        scatter->distances[i] = fabs((i < seen ? values[i].value : 0) - normal->ns);
    qsort(scatter->distances, count, sizeof *scatter->distances, compare_double);
    normal->scatter_ns = 1.4826 * scatter->distances[(count - 1) / 2];
}

// How long a selection of messages spent in each component and function.
struct spent {
    struct keyed_array components, paths, calls;
    size_t messages, traced; // with functions
};

static void spent_free(struct spent *spent)
{
    array_free(&spent->components);
    array_free(&spent->paths);
    array_free(&spent->calls);
}

// How many of the messages are taken apart: all, or a multiple of REFERENCE_SAMPLE, so that those
// of reference_sample() are among them, or a part of it, which are among those.
static size_t selection_of(const struct decomposer *decomposer, const struct ranked *ranked,
                           size_t count)
{
    const size_t asked = decomposer->in->reference_most ?: REFERENCE_MOST;
    size_t most = count < asked ? count : asked;
    double ns = 0;
    for (size_t i = 0; i < most; i++)
        ns += ranked[i * count / most].latency_ns;
    size_t walked = walk_budget(decomposer->in, MOST_PIECES, ns, most, LEAST_WALKED);
    if (walked == most)
        return most;
    return walked < REFERENCE_SAMPLE ? LEAST_WALKED : walked - walked % REFERENCE_SAMPLE;
}

// Decomposes an evenly spaced selection of messages.
static int spent_collect(struct spent *out, struct decomposer *decomposer,
                         const struct ranked *ranked, size_t count)
{
    struct component_share_array shares = {0};
    struct path_share_array paths = {0};
    *out = (struct spent){.messages = selection_of(decomposer, ranked, count)};
    int result = 0;
    for (size_t i = 0; i < out->messages && result == 0; i++) {
        shares.count = paths.count = 0;
        result = decompose(decomposer, ranked[i * count / out->messages].lifetime, &shares, &paths);
        out->traced += decomposer->traced;
        for (size_t k = 0; k < shares.count && result == 0; k++)
            result = array_push(&out->components, (struct keyed){.key = shares.items[k].component,
                                                                 .value = shares.items[k].ns});
        for (size_t k = 0; k < paths.count && result == 0; k++) {
            const struct path_share *path = &paths.items[k];
            result = array_push(&out->paths, (struct keyed){path->path, path->ns});
            if (result == 0)
                result = array_push(&out->calls, (struct keyed){path->path, path->calls});
        }
    }
    array_free(&shares);
    array_free(&paths);
    return result;
}

static void *allocate_zeroed(size_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

// Takes the medians from the messages of the band, the scatter from messages of any latency.
static int reference_fill(struct reference *reference, const struct decomposer *decomposer,
                          struct spent *band, struct spent *any)
{
    reference->component_count = decomposer->table->components.count;
    reference->path_count = decomposer->paths.nodes.count;
    reference->components =
        allocate_zeroed(reference->component_count, sizeof *reference->components);
    reference->paths = allocate_zeroed(reference->path_count, sizeof *reference->paths);
    reference->path_calls = allocate_zeroed(reference->path_count, sizeof *reference->path_calls);
    struct scatter scatter = {.distances =
                                  allocate_zeroed(any->messages, sizeof *scatter.distances)};
    int result = -1;
    if (reference->components && reference->paths && reference->path_calls && scatter.distances) {
        for_each_key(&band->components, band->messages, take_median, reference->components);
        for_each_key(&band->components, band->messages, take_mean, reference->components);
        for_each_key(&any->components, any->messages, take_fast, reference->components);
        for_each_key(&band->paths, band->traced, take_median, reference->paths);
        for_each_key(&band->calls, band->traced, take_calls, reference->path_calls);
        scatter.normal = reference->components;
        for_each_key(&any->components, any->messages, take_scatter, &scatter);
        scatter.normal = reference->paths;
        for_each_key(&any->paths, any->traced, take_scatter, &scatter);
        result = 0;
    }
    free(scatter.distances);
    return result;
}

static void reference_free(struct reference *reference)
{
    free(reference->components);
    free(reference->paths);
    free(reference->path_calls);
}

// Makes a reference from messages that are ordered by latency.
static int build_one(struct reference *reference, struct decomposer *decomposer,
                     const struct ranked *ranked, size_t count)
{
    size_t low = (size_t)floor(BAND_LOW * (double)count);
    size_t high = (size_t)ceil(BAND_HIGH * (double)count);
    size_t band = high - low;
    *reference = (struct reference){.operation = ranked[low].operation,
                                    .count = band,
                                    .latency_ns = ranked[low + (band - 1) / 2].latency_ns};
    struct spent around = {0}, any = {0};
    int result = spent_collect(&around, decomposer, ranked + low, band);
    if (result == 0)
        result = spent_collect(&any, decomposer, ranked, count);
    if (result == 0)
        result = reference_fill(reference, decomposer, &around, &any);
    reference->taken = around.messages;
    spent_free(&around);
    spent_free(&any);
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
                reference_free(&reference);
                return -1;
            }
        }
        first = after;
    }
    return 0;
}

// Messages are compared with those of the same application and operation.
static uint32_t kind_of(const struct lifetime *life)
{
    return (uint32_t)life->application << 16 | life->operation;
}

static struct ranked *rank_by_latency(const struct lifetime *lifetimes, enum lifetime_part part,
                                      const uint64_t *candidates, size_t count)
{
    struct ranked *ranked = malloc((count ? count : 1) * sizeof *ranked);
    for (size_t i = 0; ranked && i < count; i++) {
        const struct lifetime *life = &lifetimes[candidates[i]];
        ranked[i] = (struct ranked){.lifetime = (uint32_t)candidates[i],
                                    .latency_ns = lifetime_part_ns(life, part),
                                    .operation = kind_of(life)};
    }
    return ranked;
}

static bool is_one_operation(const struct ranked *ranked, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ranked[i].operation != ranked[0].operation)
            return false;
    return true;
}

int reference_set_build(struct reference_set *set, struct decomposer *decomposer,
                        const uint64_t *candidates, size_t count)
{
    *set = (struct reference_set){0};
    struct ranked *ranked =
        rank_by_latency(decomposer->in->lifetimes, decomposer->in->part, candidates, count);
    if (!ranked)
        return -1;
    int result = 0;
    if (count) {
        qsort(ranked, count, sizeof *ranked, compare_latency);
        result = build_one(&set->pooled, decomposer, ranked, count);
    }
    if (result == 0 && !is_one_operation(ranked, count)) { // else the pooled one is its own
        qsort(ranked, count, sizeof *ranked, compare_operation);
        result = build_operations(set, decomposer, ranked, count);
    }
    free(ranked);
    return result;
}

// --- a few of them -----------------------------------------------------------------------------

// Some of the messages that spent_collect() would decompose.
static void visit_evenly(const struct ranked *ranked, size_t count, reference_visitor *each,
                         void *context)
{
    size_t taken = count < REFERENCE_SAMPLE ? count : REFERENCE_SAMPLE;
    for (size_t i = 0; i < taken; i++)
        each(ranked[i * count / taken].lifetime, context);
}

static void visit_one(const struct ranked *ranked, size_t count, reference_visitor *each,
                      void *context)
{
    size_t low = (size_t)floor(BAND_LOW * (double)count);
    size_t high = (size_t)ceil(BAND_HIGH * (double)count);
    visit_evenly(ranked + low, high - low, each, context);
    visit_evenly(ranked, count, each, context);
}

int reference_sample(const struct lifetime *lifetimes, const uint64_t *candidates, size_t count,
                     reference_visitor *each, void *context)
{
    struct ranked *ranked = rank_by_latency(lifetimes, PART_WHOLE, candidates, count);
    if (!ranked)
        return -1;
    if (count) {
        qsort(ranked, count, sizeof *ranked, compare_latency);
        visit_one(ranked, count, each, context);
        qsort(ranked, count, sizeof *ranked, compare_operation);
    }
    for (size_t first = 0, after; first < count; first = after) {
        for (after = first; after < count && ranked[after].operation == ranked[first].operation;)
            after++;
        visit_one(ranked + first, after - first, each, context);
    }
    free(ranked);
    return 0;
}

void reference_set_free(struct reference_set *set)
{
    reference_free(&set->pooled);
    for (size_t i = 0; i < set->operations.count; i++)
        reference_free(&set->operations.items[i]);
    array_free(&set->operations);
}

const struct reference *reference_of(const struct reference_set *set, const struct lifetime *life)
{
    uint32_t operation = kind_of(life);
    for (size_t i = 0; i < set->operations.count; i++)
        if (set->operations.items[i].operation == operation)
            return &set->operations.items[i];
    return &set->pooled;
}
