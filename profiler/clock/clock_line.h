// SPDX-License-Identifier: MIT
//
// The line of one clock over the TSC, knot by knot, and where its rate changed.
#ifndef PROFILER_CLOCK_CLOCK_LINE_H
#define PROFILER_CLOCK_CLOCK_LINE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

// 2^62: later than any time that a clock shows in this century.
static const double clock_largest = 4611686018e9;

struct knot {
    uint64_t tsc;
    int64_t ns;
    double half_ns;  // half the sandwich and the clock's own resolution
    double error_ns; // bound from here to the next knot of the era
    bool bend;       // a knot computed from where the rate changed, not a reading
};

struct era {
    size_t first, last; // knots
    uint64_t begin_tsc; // where it begins and ends if a step lies half-way between its knots
    uint64_t end_tsc;
    int64_t begin_ns; // the clock's value at the earliest and the latest it can have lasted
    int64_t end_ns;
    double change; // the largest change of rate seen in it, in excess of noise: ns per cycle
};

struct knot_array ARRAY_OF(struct knot);
struct era_array ARRAY_OF(struct era);

struct line {
    struct knot_array knots;
    struct era_array eras; // at least one when there are knots
};

static inline int64_t clock_saturate(double value)
{
    if (!(value < clock_largest))
        return (int64_t)clock_largest;
    return value <= -clock_largest ? -(int64_t)clock_largest : (int64_t)floor(value);
}

static inline int64_t add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

static inline double cycles_between(uint64_t from, uint64_t to)
{
    return (double)(int64_t)(to - from);
}

static inline double ns_between(int64_t from, int64_t to)
{
    int64_t passed;
    if (__builtin_sub_overflow(to, from, &passed))
        return (double)to - (double)from;
    return (double)passed;
}

// ns per cycle between two knots of one era.
static inline double rate_between(const struct knot *from, const struct knot *to)
{
    return ns_between(from->ns, to->ns) / cycles_between(from->tsc, to->tsc);
}

// Inserts a knot where the clock's rate changed (a bend). It is where the lines before and after
// meet, which is far more exact than the line between the knots around it. The line's eras must
// have been found already.
int line_add_bends(struct line *line, struct error *err);

#endif
