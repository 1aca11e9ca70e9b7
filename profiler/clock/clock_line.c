// SPDX-License-Identifier: MIT
//
// Where a clock's rate changed between two knots is found from the rates before and after.
#include "profiler/clock/clock_line.h"

// ns per cycle that the noise of two sandwiches can add to the rate between them.
static double rate_noise(const struct knot *from, const struct knot *to)
{
    return (from->half_ns + to->half_ns) / cycles_between(from->tsc, to->tsc);
}

static double rate_difference(const struct knot *a, const struct knot *b)
{
    return fabs(rate_between(a, a + 1) - rate_between(b, b + 1));
}

static bool same_rate(const struct knot *a, const struct knot *b)
{
    return rate_difference(a, b) <= 2 * (rate_noise(a, a + 1) + rate_noise(b, b + 1));
}

// Finds where the rate changed between knots i and i + 1 of an era. It is only found if the rates
// before and after differ, and each lasted for two segments, so that no other change is near.
// True when *bend is a knot between the two; if the change is so close to one of them that they
// cannot be told apart, that knot becomes the bend.
static bool find_bend(struct knot *k, const struct era *era, size_t i, struct knot *bend)
{
    if (i < era->first + 2 || i + 3 > era->last || same_rate(&k[i - 1], &k[i + 1]) ||
        !same_rate(&k[i - 2], &k[i - 1]) || !same_rate(&k[i + 1], &k[i + 2]))
        return false;
    double before = rate_between(&k[i - 2], &k[i]), after = rate_between(&k[i + 1], &k[i + 3]);
    double length = cycles_between(k[i].tsc, k[i + 1].tsc);
    double at = (ns_between(k[i].ns, k[i + 1].ns) - after * length) / (before - after);
    // How far either line may be off where it is extended: by its noise, or by a change too small
    // to see.
    double left = rate_noise(&k[i - 2], &k[i]) + rate_difference(&k[i - 2], &k[i - 1]);
    double right = rate_noise(&k[i + 1], &k[i + 3]) + rate_difference(&k[i + 1], &k[i + 2]);
    double off_ns = k[i].half_ns + k[i + 1].half_ns + length * (left + right);
    double off = off_ns / fabs(before - after);
    if (at < 1 || at > length - 1) {
        struct knot *nearest = at < 1 ? &k[i] : &k[i + 1];
        if (at >= -off && at <= length + off) {
            nearest->bend = true;
            nearest->half_ns = fmax(nearest->half_ns, off_ns);
        }
        return false;
    }
    *bend = (struct knot){
        .tsc = k[i].tsc + (uint64_t)at,
        .ns = k[i].ns + clock_saturate(at * before),
        .half_ns = fmax(k[i].half_ns + at * left, k[i + 1].half_ns + (length - at) * right),
        .bend = true};
    return bend->ns > k[i].ns && bend->ns < k[i + 1].ns;
}

int line_add_bends(struct line *line, struct error *err)
{
    struct knot_array knots = {0};
    for (size_t e = 0; e < line->eras.count; e++) {
        const struct era before = line->eras.items[e];
        struct era *era = &line->eras.items[e];
        era->first = knots.count;
        for (size_t i = before.first; i <= before.last; i++) {
            struct knot bend;
            bool found = find_bend(line->knots.items, &before, i, &bend);
            era->last = knots.count;
            if (array_push(&knots, line->knots.items[i]) < 0 ||
                (found && array_push(&knots, bend) < 0)) {
                array_free(&knots);
                return error_set(err, ERROR_FAILED, "no memory for a clock map");
            }
        }
    }
    array_free(&line->knots);
    line->knots.items = knots.items;
    line->knots.count = knots.count;
    line->knots.capacity = knots.capacity;
    return 0;
}
