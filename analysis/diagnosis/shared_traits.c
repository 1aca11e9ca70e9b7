// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/shared_traits.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/quantile.h"
#include "base/text.h"

// What is named at all.
#define FALSE_ALARMS   0.01 // of runs in which slow requests share nothing
#define LEAST_COVERAGE 0.2  // the share of the slow ones that have it
#define LEAST_ODDS     1.5  // how much likelier, at the lower bound
#define SAME_REQUESTS  0.95 // of those that have either of two traits: the two are one fact
enum {
    LEAST_SLOW = 10,       // slow requests, to look at all
    LEAST_HAVING = 20,     // requests that have a value, to try it
    BLOCKS = 200,          // of time
    ORDER_SAMPLE = 100000, // requests, for the correlation of ranks
    MOST_COMPARED = 64 // traits, which is a bit each: those after the best are told all the same
};
static const double thresholds[] = {0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

static const char *const kind_names[TRAIT_KINDS] = {
    [TRAIT_OPERATION] = "operation",        [TRAIT_KEY] = "key",
    [TRAIT_CONNECTION] = "connection",      [TRAIT_SENDER] = "thread of the load",
    [TRAIT_REQUEST] = "request size",       [TRAIT_REPLY] = "reply size",
    [TRAIT_POPULARITY] = "key's popularity"};

const char *trait_kind_name(enum trait_kind kind)
{
    return kind_names[kind];
}

static bool has_order(enum trait_kind kind)
{
    return kind >= TRAIT_REQUEST;
}

struct value_count {
    uint64_t value, all, slow;
};
struct value_counts ARRAY_OF(struct value_count);

struct search {
    const struct trait_request *requests;
    size_t count, slow;
    uint64_t *column;                // of the kind at hand
    double *work;                    // room for a value of each request
    struct value_counts values;      // of the kind at hand
    struct map places;               // in `values`
    struct shared_trait_array tried; // worth a closer look
    size_t tries;
};

// --- counting ------------------------------------------------------------------------------------

static int count_values(struct search *search)
{
    search->values.count = 0;
    map_free(&search->places);
    for (size_t i = 0; i < search->count; i++) {
        uint64_t value = search->column[i], hash = hash_pair(value, 0);
        uint32_t at = map_find(&search->places, hash, k, search->values.items[k].value == value);
        if (at == MAP_NONE) {
            if (array_push(&search->values, (struct value_count){.value = value}) < 0 ||
                map_add(&search->places, hash, at = (uint32_t)search->values.count - 1) < 0)
                return -1;
        }
        search->values.items[at].all++;
        search->values.items[at].slow += search->requests[i].slow;
    }
    return 0;
}

static int take_column(struct search *search, enum trait_kind kind)
{
    for (size_t i = 0; i < search->count; i++)
        search->column[i] = search->requests[i].values[kind == TRAIT_POPULARITY ? TRAIT_KEY : kind];
    if (kind != TRAIT_POPULARITY)
        return 0;
    if (count_values(search) < 0)
        return -1;
    for (size_t i = 0; i < search->count; i++) {
        uint64_t value = search->column[i];
        uint32_t at = map_find(&search->places, hash_pair(value, 0), k,
                               search->values.items[k].value == value);
        search->column[i] = search->values.items[at].all;
    }
    return 0;
}

static double odds_ratio(double slow_share, double share)
{
    double having = slow_share / (1 - slow_share), usual = share / (1 - share);
    return having / usual;
}

// A value, or all from it on, that so many requests have. Whether the number of tries allows it is
// known only at the end.
static int try_value(struct search *search, enum trait_kind kind, uint64_t value, size_t all,
                     size_t slow)
{
    if (all < LEAST_HAVING || all + LEAST_HAVING > search->count)
        return 0;
    search->tries++;
    struct shared_trait trait = {.kind = kind,
                                 .value = value,
                                 .requests = all,
                                 .slow = slow,
                                 .slow_share = (double)slow / (double)search->slow,
                                 .share = (double)all / (double)search->count,
                                 .rank_correlation = (double)NAN};
    trait.odds_ratio = odds_ratio(trait.slow_share, trait.share);
    if (trait.slow_share < LEAST_COVERAGE || !(trait.odds_ratio > LEAST_ODDS))
        return 0;
    return array_push(&search->tried, trait);
}

static int try_values(struct search *search, enum trait_kind kind)
{
    if (count_values(search) < 0)
        return -1;
    for (size_t i = 0; i < search->values.count; i++) {
        const struct value_count *of = &search->values.items[i];
        if (try_value(search, kind, of->value, of->all, of->slow) < 0)
            return -1;
    }
    return 0;
}

// Splits at some quantiles: the requests above each, from the least value among them on.
static int try_thresholds(struct search *search, enum trait_kind kind)
{
    uint64_t before = 0;
    for (size_t i = 0; i < search->count; i++)
        search->work[i] = (double)search->column[i];
    quantile_sort(search->work, search->count);
    for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++) {
        double at = quantile_sorted(search->work, search->count, thresholds[t]);
        size_t first = array_bound(0, search->count, i, search->work[i] <= at);
        uint64_t least = first < search->count ? (uint64_t)search->work[first] : 0;
        size_t slow = 0;
        if (least == before)
            continue; // none above, or the same as at the quantile before
        before = least;
        for (size_t i = 0; i < search->count; i++)
            slow += search->requests[i].slow && search->column[i] >= least;
        if (try_value(search, kind, least, search->count - first, slow) < 0)
            return -1;
    }
    return 0;
}

// --- judging -------------------------------------------------------------------------------------

static bool has_trait(const struct search *search, const struct shared_trait *trait, size_t at)
{
    return has_order(trait->kind) ? search->column[at] >= trait->value
                                  : search->column[at] == trait->value;
}

static double chance_of(size_t some, size_t count, double share)
{
    return some ? gsl_cdf_binomial_Q((unsigned)some - 1, share, (unsigned)count) : 1;
}

// The same for one slow request of each stretch of time, the first: one bad moment counts once,
// however many requests it hit.
static double chance_over_time(const struct search *search, const struct shared_trait *trait)
{
    size_t stretches = 0, having = 0;
    for (size_t b = 0; b < BLOCKS; b++) {
        size_t at = b * search->count / BLOCKS, to = (b + 1) * search->count / BLOCKS;
        while (at < to && !search->requests[at].slow)
            at++;
        stretches += at < to;
        having += at < to && has_trait(search, trait, at);
    }
    return chance_of(having, stretches, trait->share);
}

// The least share of a population that makes `some` of `count` draws no less likely than `chance`
// (Clopper and Pearson), to 1e-6.
static double share_at_least(size_t some, size_t count, double chance)
{
    double low = 0, high = 1;
    while (high - low > 1e-6) {
        double middle = (low + high) / 2;
        if (chance_of(some, count, middle) < chance)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool stands_out(const struct search *search, struct shared_trait *trait)
{
    double chance = FALSE_ALARMS / (double)search->tries;
    trait->odds_low = odds_ratio(share_at_least(trait->slow, search->slow, chance), trait->share);
    return chance_of(trait->slow, search->slow, trait->share) < chance &&
           trait->odds_low >= LEAST_ODDS && chance_over_time(search, trait) < chance;
}

struct ranked {
    double value, latency;
    double value_rank, latency_rank;
};

static int by_value(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return order_of(a->value, b->value);
}

static int by_latency(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return order_of(a->latency, b->latency);
}

// Equal ones share the mean of their ranks.
#define RANK(items, count, member, rank)                                                           \
    for (size_t first_ = 0, after_; first_ < (count); first_ = after_) {                           \
        for (after_ = first_;                                                                      \
             after_ < (count) && (items)[after_].member == (items)[first_].member;)                \
            after_++;                                                                              \
        for (size_t i_ = first_; i_ < after_; i_++)                                                \
            (items)[i_].rank = (double)(first_ + after_ - 1) / 2;                                  \
    }

static int rank_correlation(const struct search *search, double *out)
{
    size_t count = search->count < ORDER_SAMPLE ? search->count : ORDER_SAMPLE;
    struct ranked *items = malloc(count * sizeof *items);
    double mean = (double)(count - 1) / 2, both = 0, values = 0, latencies = 0;
    if (!items)
        return -1;
    for (size_t i = 0; i < count; i++) {
        size_t at = i * search->count / count;
        items[i] = (struct ranked){.value = (double)search->column[at],
                                   .latency = search->requests[at].latency_ns};
    }
    qsort(items, count, sizeof *items, by_value);
    RANK(items, count, value, value_rank)
    qsort(items, count, sizeof *items, by_latency);
    RANK(items, count, latency, latency_rank)
    for (size_t i = 0; i < count; i++) {
        double a = items[i].value_rank - mean, b = items[i].latency_rank - mean;
        both += a * b;
        values += a * a;
        latencies += b * b;
    }
    *out = values > 0 && latencies > 0 ? both / sqrt(values * latencies) : 0;
    free(items);
    return 0;
}

static double median_of(struct search *search, const struct shared_trait *trait, bool having)
{
    size_t count = 0;
    for (size_t i = 0; i < search->count; i++)
        if (has_trait(search, trait, i) == having)
            search->work[count++] = search->requests[i].latency_ns;
    quantile_sort(search->work, count);
    return quantile_sorted(search->work, count, 0.5);
}

// Of a kind with an order several thresholds may stand out: the one that tells the slow ones from
// the others best.
static bool is_better(const struct shared_trait *a, const struct shared_trait *b)
{
    return a->slow_share - a->share > b->slow_share - b->share;
}

static int keep_standing_out(struct search *search, struct shared_trait_array *out)
{
    for (int kind = 0; kind < TRAIT_KINDS; kind++) {
        size_t first = out->count;
        bool taken = false;
        for (size_t i = 0; i < search->tried.count; i++) {
            struct shared_trait trait = search->tried.items[i];
            if ((int)trait.kind != kind)
                continue;
            if (!taken && take_column(search, trait.kind) < 0)
                return -1;
            taken = true;
            if (!stands_out(search, &trait))
                continue;
            bool replaces = has_order(trait.kind) && out->count > first;
            if (replaces && is_better(&trait, &out->items[first]))
                out->items[first] = trait;
            else if (!replaces && array_push(out, trait) < 0)
                return -1;
        }
        for (size_t i = first; i < out->count; i++) {
            struct shared_trait *trait = &out->items[i];
            trait->median_ns = median_of(search, trait, true);
            trait->other_median_ns = median_of(search, trait, false);
            if (has_order(trait->kind) && rank_correlation(search, &trait->rank_correlation) < 0)
                return -1;
        }
    }
    return 0;
}

static int best_first(const void *left, const void *right)
{
    const struct shared_trait *a = left, *b = right;
    return order_of(b->slow_share - b->share, a->slow_share - a->share)
               ?: order_of(a->kind, b->kind);
}

// Of each request a bit for each trait that it has, into `column`.
static int mark_traits(struct search *search, const struct shared_trait_array *traits)
{
    uint64_t *marks = calloc(search->count, sizeof *marks);
    int result = marks ? 0 : -1;
    for (size_t t = 0; t < traits->count && t < MOST_COMPARED && result == 0; t++) {
        result = take_column(search, traits->items[t].kind);
        for (size_t i = 0; i < search->count && result == 0; i++)
            marks[i] |= (uint64_t)has_trait(search, &traits->items[t], i) << t;
    }
    if (result == 0)
        memcpy(search->column, marks, search->count * sizeof *marks);
    free(marks);
    return result;
}

// Whether the two are of the same requests, but for a few.
static bool is_one_fact(const struct search *search, size_t a, size_t b)
{
    size_t both = 0, either = 0;
    for (size_t i = 0; i < search->count; i++) {
        both += search->column[i] >> a & search->column[i] >> b & 1;
        either += (search->column[i] >> a | search->column[i] >> b) & 1;
    }
    return (double)both >= SAME_REQUESTS * (double)either;
}

// Of traits that say the same of the same requests, as an operation and the size of its replies do,
// leaves the one that tells most: what was asked for, before sizes that follow from it.
static int leave_facts(struct search *search, struct shared_trait_array *traits)
{
    size_t at[MOST_COMPARED], kept = 0; // which bit each that is left had
    if (mark_traits(search, traits) < 0)
        return -1;
    for (size_t t = 0; t < traits->count; t++) {
        struct shared_trait one = traits->items[t];
        size_t same = 0;
        while (same < kept && (t >= MOST_COMPARED || !is_one_fact(search, at[same], t)))
            same++;
        if (same < kept && traits->items[same].kind <= one.kind)
            continue;
        if (same < MOST_COMPARED)
            at[same] = t;
        traits->items[same] = one;
        kept += same == kept;
    }
    traits->count = kept;
    return 0;
}

int shared_traits_find(struct shared_trait_array *out, const struct trait_request *requests,
                       size_t count)
{
    struct search search = {.requests = requests, .count = count};
    int result = 0;
    for (size_t i = 0; i < count; i++)
        search.slow += requests[i].slow;
    if (search.slow < LEAST_SLOW || search.slow == count)
        return 0;
    search.column = malloc(count * sizeof *search.column);
    search.work = malloc(count * sizeof *search.work);
    if (!search.column || !search.work)
        result = -1;
    for (int kind = 0; kind < TRAIT_KINDS && result == 0; kind++) {
        result = take_column(&search, (enum trait_kind)kind);
        if (result == 0)
            result = has_order((enum trait_kind)kind)
                         ? try_thresholds(&search, (enum trait_kind)kind)
                         : try_values(&search, (enum trait_kind)kind);
    }
    if (result == 0)
        result = keep_standing_out(&search, out);
    array_sort(out, best_first);
    if (result == 0)
        result = leave_facts(&search, out);
    free(search.column);
    free(search.work);
    array_free(&search.values);
    array_free(&search.tried);
    map_free(&search.places);
    return result;
}

// --- in words ------------------------------------------------------------------------------------

static char *bytes_in_words(uint64_t bytes, char out[32])
{
    if (bytes < 10000)
        snprintf(out, 32, "%llu bytes", (unsigned long long)bytes);
    else if (bytes < 10000000)
        snprintf(out, 32, "%llu kB", (unsigned long long)bytes / 1000);
    else
        snprintf(out, 32, "%llu MB", (unsigned long long)bytes / 1000000);
    return out;
}

char *shared_trait_words(const struct shared_trait *trait, const char *operation, char *out,
                         size_t out_bytes)
{
    char bytes[32];
    unsigned long long value = trait->value;
    switch (trait->kind) {
    case TRAIT_OPERATION:
        if (operation)
            snprintf(out, out_bytes, "the operation %s", operation);
        else
            snprintf(out, out_bytes, "operation %llu", value);
        break;
    case TRAIT_KEY:
    case TRAIT_CONNECTION:
    case TRAIT_SENDER:
        snprintf(out, out_bytes, "%s %llu", kind_names[trait->kind], value);
        break;
    case TRAIT_REQUEST:
    case TRAIT_REPLY:
        snprintf(out, out_bytes, "%s of %s or more",
                 trait->kind == TRAIT_REPLY ? "replies" : "requests", bytes_in_words(value, bytes));
        break;
    case TRAIT_POPULARITY:
        snprintf(out, out_bytes, "keys asked for %s times or more", TEXT_COUNT(value));
        break;
    case TRAIT_KINDS:
        out[0] = '\0';
    }
    return out;
}
