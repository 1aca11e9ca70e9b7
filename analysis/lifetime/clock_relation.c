// SPDX-License-Identifier: MIT
#include "analysis/lifetime/clock_relation.h"
#include "base/array.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define KNOT_NS       500e6 // between two knots, at most
#define WINDOW_NS     1e9   // on either side of a knot, where its line must fit
#define MIN_WINDOW_NS (WINDOW_NS / 16)
#define ROUNDING_NS   1.0 // of the arithmetic

// A bound on the offset: it held when the client's clock showed t.
struct point {
    double t; // ns since the relation's origin
    double v; // ns beyond the relation's base
};

struct points {
    struct point *items;
    size_t count;
};

struct knot {
    uint64_t number;
    double t, offset, bound; // bound: +infinity where unknown
    bool gap;                // the offset is not known from here to the next knot
};

// Knots 0 to `last` are `spacing` apart, and only those are kept that have a point within reach: of
// the others, which may be any number where requests are far apart or stamps damaged, nothing is
// known. The first one has one.
struct clock_relation {
    int64_t origin_ns, base_ns;
    struct ARRAY_OF(struct knot) knots;
    uint64_t last;
    double spacing;
};

// What the search for a knot's lines works on. Lines are value + rate * t, t counted from the knot.
struct window {
    struct points above, below; // the lower hull of the upper bounds, the upper hull of the lower
    double slack;               // how far a line may lie beyond a bound
};

// Damaged stamps may make it wrap around; then no line fits.
static double difference(int64_t a, int64_t b)
{
    return (double)(int64_t)((uint64_t)a - (uint64_t)b);
}

static double between_knots_error(const struct clock_relation *relation)
{
    double seconds = relation->spacing / 1e9; // a chord's distance from a curve that bends
    return CLOCK_RELATION_WANDER * seconds * seconds / 8 * 1e9;
}

// --- envelopes -----------------------------------------------------------------------------------

static int compare_points(const void *left, const void *right)
{
    const struct point *a = left, *b = right;
    return order_of(a->t, b->t);
}

static size_t first_from(const struct points *points, double t)
{
    return array_bound(0, points->count, at, points->items[at].t < t);
}

// The side of the hull of the points in [from, to] that is turned to the other envelope: what a
// line must keep away from. sign: 1 for the lower side, -1 for the upper.
static void take_hull(const struct points *points, double knot, double from, double to, double sign,
                      struct points *hull)
{
    hull->count = 0;
    for (size_t i = first_from(points, from); i < points->count && points->items[i].t <= to; i++) {
        struct point next = {points->items[i].t - knot, points->items[i].v};
        while (hull->count >= 2) {
            struct point a = hull->items[hull->count - 2], b = hull->items[hull->count - 1];
            if (sign * ((b.t - a.t) * (next.v - a.v) - (b.v - a.v) * (next.t - a.t)) > 0)
                break;
            hull->count--;
        }
        hull->items[hull->count++] = next;
    }
}

// The highest and the lowest value that a line of that rate may have at the knot.
static double ceiling(const struct window *window, double rate)
{
    double least = INFINITY;
    for (size_t i = 0; i < window->above.count; i++)
        least = fmin(least, window->above.items[i].v - rate * window->above.items[i].t);
    return least + window->slack;
}

static double minus_floor(const struct window *window, double rate)
{
    double least = INFINITY;
    for (size_t i = 0; i < window->below.count; i++)
        least = fmin(least, rate * window->below.items[i].t - window->below.items[i].v);
    return least + window->slack;
}

static double room(const struct window *window, double rate)
{
    return ceiling(window, rate) + minus_floor(window, rate);
}

// --- lines between the envelopes -----------------------------------------------------------------

typedef double concave(const struct window *window, double rate);

// Where a concave function is largest.
static double peak_of(const struct window *window, concave *function, double from, double to)
{
    for (int i = 0; i < 100; i++) {
        double third = (to - from) / 3;
        if (function(window, from + third) < function(window, to - third))
            from += third;
        else
            to -= third;
    }
    return from + (to - from) / 2;
}

// The last rate towards `limit` at which a line still fits, or a little beyond.
static double last_fitting(const struct window *window, double fitting, double limit)
{
    if (room(window, limit) >= 0)
        return limit;
    for (int i = 0; i < 60; i++) {
        double middle = fitting + (limit - fitting) / 2;
        if (room(window, middle) >= 0)
            fitting = middle;
        else
            limit = middle;
    }
    return limit;
}

// Between which values a line that fits may pass the knot; false when none fits.
static bool knot_range(const struct window *window, double *low, double *high)
{
    if (window->above.count == 0 || window->below.count == 0)
        return false;
    double best = peak_of(window, room, -CLOCK_RELATION_RATE, CLOCK_RELATION_RATE);
    if (room(window, best) < 0)
        return false;
    double from = last_fitting(window, best, -CLOCK_RELATION_RATE);
    double to = last_fitting(window, best, CLOCK_RELATION_RATE);
    *high = ceiling(window, peak_of(window, ceiling, from, to));
    *low = -minus_floor(window, peak_of(window, minus_floor, from, to));
    return *high >= *low;
}

// A window in which no line fits holds a step or a stamp that is wrong; a narrower one may not.
static void place_knot(struct knot *knot, const struct points *above, const struct points *below,
                       double stamp_error_ns, struct window *window)
{
    knot->offset = 0;
    knot->bound = INFINITY;
    for (double reach = WINDOW_NS; reach >= MIN_WINDOW_NS; reach /= 2) {
        double low, high, seconds = reach / 1e9;
        take_hull(above, knot->t, knot->t - reach, knot->t + reach, 1, &window->above);
        take_hull(below, knot->t, knot->t - reach, knot->t + reach, -1, &window->below);
        // How far the offset may bend away from its tangent at the knot.
        window->slack = stamp_error_ns + CLOCK_RELATION_WANDER * seconds * seconds / 2 * 1e9;
        if (!knot_range(window, &low, &high))
            continue;
        knot->offset = low + (high - low) / 2;
        knot->bound = (high - low) / 2 + ROUNDING_NS;
        return;
    }
}

// --- the relation --------------------------------------------------------------------------------

// The last knot that is kept up to that one.
static struct knot *knot_before(const struct clock_relation *relation, uint64_t number)
{
    const size_t after =
        array_bound(0, relation->knots.count, at, relation->knots.items[at].number <= number);
    return &relation->knots.items[after - 1];
}

// Of one that is not kept the best guess at its offset is the last known one.
static struct knot knot_of(const struct clock_relation *relation, uint64_t number)
{
    const struct knot *before = knot_before(relation, number);
    return before->number == number ? *before
                                    : (struct knot){.offset = before->offset, .bound = INFINITY};
}

// The knot before that moment, but not the last one.
static uint64_t stretch_of(const struct clock_relation *relation, double t)
{
    return (uint64_t)fmin(fmax(t / relation->spacing, 0), (double)relation->last - 1);
}

static struct clock_offset interpolate(const struct clock_relation *relation, double t)
{
    const double last = (double)relation->last, inside = fmin(fmax(t / relation->spacing, 0), last);
    const uint64_t stretch = stretch_of(relation, t);
    const struct knot left = knot_of(relation, stretch), right = knot_of(relation, stretch + 1);
    double part = inside - (double)stretch;
    double outside = fabs(t - fmin(fmax(t, 0), last * relation->spacing));
    double offset = left.offset + part * (right.offset - left.offset);
    double bound = left.gap || !isfinite(left.bound) || !isfinite(right.bound)
                       ? (double)INFINITY
                       : left.bound + part * (right.bound - left.bound) +
                             between_knots_error(relation) + CLOCK_RELATION_RATE * outside;
    int64_t ns = (int64_t)((uint64_t)relation->base_ns + (uint64_t)llround(offset));
    return (struct clock_offset){ns, bound};
}

// Marks the intervals between knots whose own points contradict their line: a clock stepped there.
static void find_gaps(struct clock_relation *relation, const struct points *points, double sign,
                      double stamp_error_ns)
{
    for (size_t i = 0; i < points->count; i++) {
        const struct point *point = &points->items[i];
        struct clock_offset at = interpolate(relation, point->t);
        double beyond = sign * (difference(at.ns, relation->base_ns) - point->v);
        if (beyond <= at.bound_ns + stamp_error_ns)
            continue;
        knot_before(relation, stretch_of(relation, point->t))->gap = true;
    }
}

// A knot whose offset is unknown takes its neighbour's, which is the best guess there is.
static void fill_unknown(struct clock_relation *relation)
{
    struct knot *knots = relation->knots.items;
    for (size_t i = 1; i < relation->knots.count; i++)
        if (!isfinite(knots[i].bound))
            knots[i].offset = knots[i - 1].offset;
    for (size_t i = relation->knots.count - 1; i > 0; i--)
        if (!isfinite(knots[i - 1].bound) && isfinite(knots[i].bound))
            knots[i - 1].offset = knots[i].offset;
}

// Those around every point, in order.
static int list_knots(struct clock_relation *relation, const struct points *above,
                      const struct points *below)
{
    const double last = (double)relation->last;
    uint64_t next = 0;
    for (size_t a = 0, b = 0; a < above->count || b < below->count;) {
        const bool upper =
            b == below->count || (a < above->count && above->items[a].t <= below->items[b].t);
        const double t = upper ? above->items[a++].t : below->items[b++].t;
        const double from = floor((t - WINDOW_NS) / relation->spacing),
                     to = ceil((t + WINDOW_NS) / relation->spacing);
        const uint64_t first = (uint64_t)fmin(fmax(from, 0), last);
        for (next = next < first ? first : next; next <= (uint64_t)fmin(fmax(to, 0), last); next++)
            if (array_push(&relation->knots, (struct knot){.number = next}) < 0)
                return -1;
    }
    return 0;
}

static int place_knots(struct clock_relation *relation, const struct points *above,
                       const struct points *below, double stamp_error_ns, struct window *window)
{
    if (list_knots(relation, above, below) < 0)
        return -1;
    for (size_t i = 0; i < relation->knots.count; i++) {
        struct knot *knot = &relation->knots.items[i];
        knot->t = (double)knot->number * relation->spacing;
        place_knot(knot, above, below, stamp_error_ns, window);
    }
    fill_unknown(relation);
    find_gaps(relation, above, 1, stamp_error_ns);
    find_gaps(relation, below, -1, stamp_error_ns);
    return 0;
}

static void points_of(const struct clock_relation *relation, const struct exchange *exchanges,
                      size_t count, struct point *above, struct point *below)
{
    for (size_t i = 0; i < count; i++) {
        const struct exchange *e = &exchanges[i];
        above[i] = (struct point){(double)(e->left_ns - relation->origin_ns),
                                  difference(e->came_ns - e->left_ns, relation->base_ns)};
        below[i] = (struct point){(double)(e->back_ns - relation->origin_ns),
                                  difference(e->replied_ns - e->back_ns, relation->base_ns)};
    }
    qsort(above, count, sizeof *above, compare_points);
    qsort(below, count, sizeof *below, compare_points);
}

static void span_of(const struct exchange *exchanges, size_t count, int64_t *first, int64_t *last)
{
    *first = exchanges->left_ns;
    *last = exchanges->back_ns;
    for (size_t i = 0; i < count; i++) {
        *first = exchanges[i].left_ns < *first ? exchanges[i].left_ns : *first;
        *last = exchanges[i].back_ns > *last ? exchanges[i].back_ns : *last;
    }
}

int clock_relation_build(const struct exchange *exchanges, size_t count, double stamp_error_ns,
                         struct clock_relation **out, struct error *err)
{
    *out = NULL;
    if (count == 0)
        return error_set(err, ERROR_INPUT,
                         "no request was stamped by both hosts: nothing relates their clocks");
    int64_t first, last;
    span_of(exchanges, count, &first, &last);
    double span = fmax((double)((uint64_t)last - (uint64_t)first), 1),
           stretches = ceil(span / KNOT_NS);
    struct clock_relation *relation = calloc(1, sizeof *relation);
    struct point *points = malloc(4 * count * sizeof *points);
    int result = relation && points ? 0 : -1;
    if (result == 0) {
        *relation = (struct clock_relation){.origin_ns = first,
                                            .base_ns = exchanges->came_ns - exchanges->left_ns,
                                            .last = (uint64_t)stretches,
                                            .spacing = span / stretches};
        points_of(relation, exchanges, count, points, points + count);
        struct points above = {points, count}, below = {points + count, count};
        struct window window = {.above = {points + 2 * count, 0}, .below = {points + 3 * count, 0}};
        result = place_knots(relation, &above, &below, stamp_error_ns, &window);
    }
    free(points);
    if (result < 0) {
        clock_relation_free(relation);
        return error_set(err, ERROR_FAILED, "no memory to relate the clocks of two hosts");
    }
    *out = relation;
    return 0;
}

void clock_relation_free(struct clock_relation *relation)
{
    if (relation)
        array_free(&relation->knots);
    free(relation);
}

struct clock_offset clock_relation_at(const struct clock_relation *relation, int64_t client_ns)
{
    return interpolate(relation, (double)(client_ns - relation->origin_ns));
}

double clock_relation_rate(const struct clock_relation *relation)
{
    const struct knot *first = NULL, *last = NULL;
    for (size_t i = 0; i < relation->knots.count; i++) {
        const struct knot *knot = &relation->knots.items[i];
        if (!isfinite(knot->bound))
            continue;
        first = first ? first : knot;
        last = knot;
    }
    return last > first ? (last->offset - first->offset) / (last->t - first->t) : 0;
}

size_t clock_relation_gaps(const struct clock_relation *relation)
{
    size_t gaps = relation->last;
    for (size_t i = 0; i + 1 < relation->knots.count; i++) {
        const struct knot *knot = &relation->knots.items[i];
        gaps -= knot[1].number == knot->number + 1 && !knot->gap && isfinite(knot->bound) &&
                isfinite(knot[1].bound);
    }
    return gaps;
}
