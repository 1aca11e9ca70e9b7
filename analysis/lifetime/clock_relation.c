// SPDX-License-Identifier: MIT
#include "analysis/lifetime/clock_relation.h"
#include "base/array.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define KNOT_NS       500e6 // between two knots, at most
#define WINDOW_NS     1e9   // on either side of a knot, where its line must fit
#define MIN_WINDOW_NS (WINDOW_NS / 16)
#define ROUNDING_NS   1.0       // of the arithmetic
#define MOST_KNOTS    (1 << 20) // six days of them, then they are further apart

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
    double t, offset, bound; // bound: +infinity where unknown
    bool gap;                // the offset is not known from here to the next knot
};

struct clock_relation {
    int64_t origin_ns, base_ns;
    struct knot *knots;
    size_t count;
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

static struct clock_offset interpolate(const struct clock_relation *relation, double t)
{
    double last = (double)(relation->count - 1);
    double inside = fmin(fmax(t / relation->spacing, 0), last);
    double whole = fmin(floor(inside), fmax(last - 1, 0)), part = inside - whole;
    const struct knot *left = &relation->knots[(size_t)whole];
    const struct knot *right = relation->count > 1 ? left + 1 : left;
    double outside = fabs(t - fmin(fmax(t, 0), last * relation->spacing));
    double offset = left->offset + part * (right->offset - left->offset);
    double bound = left->gap || !isfinite(left->bound) || !isfinite(right->bound)
                       ? (double)INFINITY
                       : left->bound + part * (right->bound - left->bound) +
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
        size_t stretch = (size_t)(fmax(point->t, 0) / relation->spacing);
        relation->knots[stretch < relation->count - 1 ? stretch : relation->count - 2].gap = true;
    }
}

// A knot whose offset is unknown takes its neighbour's, which is the best guess there is.
static void fill_unknown(struct clock_relation *relation)
{
    for (size_t i = 1; i < relation->count; i++)
        if (!isfinite(relation->knots[i].bound))
            relation->knots[i].offset = relation->knots[i - 1].offset;
    for (size_t i = relation->count - 1; i > 0; i--)
        if (!isfinite(relation->knots[i - 1].bound) && isfinite(relation->knots[i].bound))
            relation->knots[i - 1].offset = relation->knots[i].offset;
}

static void place_knots(struct clock_relation *relation, const struct points *above,
                        const struct points *below, double stamp_error_ns, struct window *window)
{
    for (size_t i = 0; i < relation->count; i++) {
        relation->knots[i] = (struct knot){.t = (double)i * relation->spacing};
        place_knot(&relation->knots[i], above, below, stamp_error_ns, window);
    }
    fill_unknown(relation);
    find_gaps(relation, above, 1, stamp_error_ns);
    find_gaps(relation, below, -1, stamp_error_ns);
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
    double span = fmax((double)(last - first), 1),
           stretches = fmin(ceil(span / KNOT_NS), MOST_KNOTS);
    struct clock_relation *relation = calloc(1, sizeof *relation);
    struct point *points = malloc(4 * count * sizeof *points);
    struct knot *knots = calloc((size_t)stretches + 1, sizeof *knots);
    if (!relation || !points || !knots) {
        free(relation);
        free(points);
        free(knots);
        return error_set(err, ERROR_FAILED, "no memory to relate the clocks of two hosts");
    }
    *relation = (struct clock_relation){.origin_ns = first,
                                        .base_ns = exchanges->came_ns - exchanges->left_ns,
                                        .knots = knots,
                                        .count = (size_t)stretches + 1,
                                        .spacing = span / stretches};
    points_of(relation, exchanges, count, points, points + count);
    struct points above = {points, count}, below = {points + count, count};
    struct window window = {.above = {points + 2 * count, 0}, .below = {points + 3 * count, 0}};
    place_knots(relation, &above, &below, stamp_error_ns, &window);
    free(points);
    *out = relation;
    return 0;
}

void clock_relation_free(struct clock_relation *relation)
{
    if (relation)
        free(relation->knots);
    free(relation);
}

struct clock_offset clock_relation_at(const struct clock_relation *relation, int64_t client_ns)
{
    return interpolate(relation, (double)(client_ns - relation->origin_ns));
}

double clock_relation_rate(const struct clock_relation *relation)
{
    const struct knot *first = NULL, *last = NULL;
    for (size_t i = 0; i < relation->count; i++) {
        if (!isfinite(relation->knots[i].bound))
            continue;
        first = first ? first : &relation->knots[i];
        last = &relation->knots[i];
    }
    return last > first ? (last->offset - first->offset) / (last->t - first->t) : 0;
}

size_t clock_relation_gaps(const struct clock_relation *relation)
{
    size_t gaps = 0;
    for (size_t i = 0; i + 1 < relation->count; i++)
        gaps += relation->knots[i].gap || !isfinite(relation->knots[i].bound) ||
                !isfinite(relation->knots[i + 1].bound);
    return gaps;
}
