// SPDX-License-Identifier: MIT
//
// The latency distribution of all requests in about 2,000 points: dense enough everywhere for a
// line on a screen, and down to the last request in the tail. Every point is a latency that was
// measured; only points in between are left out.
#include "analysis/report/page/page_json.h"

#include <math.h>
#include <stdlib.h>

#include "loadgen/method/method_interval.h"

enum { EVEN_POINTS = 600, TAIL_POINTS = 1400, INTERVAL_POINTS = 80 };

// The ranks (1-based, ascending, without repetition) to keep of `count` sorted values: some
// evenly spaced, more evenly spaced in the logarithm of how many values lie above.
static size_t choose_ranks(size_t count, size_t even, size_t tail, size_t *ranks)
{
    size_t chosen = 0, i = 0, j = 0, last = 0;
    while (i < even || j < tail) {
        double step = (double)i / (double)(even - 1) * (double)(count - 1);
        double above = pow((double)count, 1 - (double)j / (double)(tail - 1));
        size_t by_count = i < even ? 1 + (size_t)llround(step) : SIZE_MAX;
        size_t by_tail = j < tail ? count - (size_t)llround(above) + 1 : SIZE_MAX;
        size_t next = by_count < by_tail ? by_count : by_tail;
        i += next == by_count;
        j += next == by_tail;
        if (next != last)
            ranks[chosen++] = next;
        last = next;
    }
    return chosen;
}

// Every scheduled request's latency, in their order; unanswered ones are +infinity and stay in.
static double *latencies_in_order(const struct run_analysis *run, bool corrected, size_t *count)
{
    double *values = malloc((run->lifetimes.all.count + 1) * sizeof *values);
    *count = 0;
    for (size_t i = 0; values && i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        double ns = corrected ? life->latency_ns : life->uncorrected_latency_ns;
        if (!isnan(ns)) // unsent requests have none: that is what uncorrected latency gets wrong
            values[(*count)++] = ns;
    }
    return values;
}

// `values` in the order of their requests: neighbours may depend on one another.
static json_t *intervals(struct page_builder *builder, const double *values, size_t count)
{
    json_t *all = json_object(), *rank = json_array(), *low = json_array(), *high = json_array();
    size_t ranks[2 * INTERVAL_POINTS];
    double quantiles[2 * INTERVAL_POINTS], found[2 * INTERVAL_POINTS];
    struct quantile_interval known[2 * INTERVAL_POINTS];
    struct error err;
    size_t points = choose_ranks(count, INTERVAL_POINTS / 4, INTERVAL_POINTS, ranks);
    for (size_t i = 0; i < points; i++)
        quantiles[i] = (double)ranks[i] / (double)count;
    if (percentile_intervals_take(values, count, quantiles, points, 0.95, found, known, &err) < 0)
        builder->failed = true;
    for (size_t i = 0; i < points && !builder->failed; i++) {
        if (!known[i].known)
            continue;
        page_append(builder, rank, page_count(ranks[i]));
        page_append(builder, low, page_ns(known[i].low));
        page_append(builder, high, page_ns(known[i].high));
    }
    page_put(builder, all, "rank", rank);
    page_put(builder, all, "low", low);
    page_put(builder, all, "high", high);
    return all;
}

static json_t *no_intervals(struct page_builder *builder)
{
    json_t *none = json_object();
    page_put(builder, none, "rank", json_array());
    page_put(builder, none, "low", json_array());
    page_put(builder, none, "high", json_array());
    return none;
}

json_t *page_curve_build(struct page_builder *builder, bool corrected)
{
    size_t count, ranks[EVEN_POINTS + TAIL_POINTS];
    const struct run_lifetimes *lives = &builder->run->lifetimes;
    double *sorted = latencies_in_order(builder->run, corrected, &count);
    json_t *curve = json_object(), *rank = json_array(), *ns = json_array(), *sure = NULL;
    if (!sorted)
        builder->failed = true;
    if (sorted && count && lives->latency.interval_ns[0].known) // else no percentile has one
        sure = intervals(builder, sorted, count);
    if (sorted)
        quantile_sort(sorted, count);
    size_t infinite = 0;
    while (sorted && infinite < count && isinf(sorted[count - 1 - infinite]))
        infinite++;
    size_t points = sorted && count ? choose_ranks(count, EVEN_POINTS, TAIL_POINTS, ranks) : 0;
    for (size_t i = 0; i < points && ranks[i] <= count - infinite; i++) {
        page_append(builder, rank, page_count(ranks[i]));
        page_append(builder, ns, page_ns(sorted[ranks[i] - 1]));
    }
    page_put(builder, curve, "count", page_count(count));
    page_put(builder, curve, "infinite", page_count(infinite));
    page_put(builder, curve, "rank", rank);
    page_put(builder, curve, "ns", ns);
    if (points)
        page_put(builder, curve, "intervals", sure ? sure : no_intervals(builder));
    free(sorted);
    return curve;
}
