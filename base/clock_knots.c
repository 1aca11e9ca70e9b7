// SPDX-License-Identifier: MIT
#include "base/clock_knots.h"

static int64_t side(const struct clock_knot *knot, bool to)
{
    return to ? knot->to : knot->from;
}

int64_t clock_knots_map(const struct clock_knot_array *all, bool back, int64_t at)
{
    const struct clock_knot *knots = all->items;
    size_t count = all->count;
    if (count == 0)
        return 0;
    size_t last = array_bound(count > 1, count - 1, one, side(&knots[one], back) <= at);
    size_t first = last > 0 ? last - 1 : 0;
    int64_t since = at - side(&knots[first], back);
    int64_t span = side(&knots[last], back) - side(&knots[first], back);
    if (span <= 0) // a single knot, or the clock was set back
        return side(&knots[first], !back) + since;
    double rate = (double)(side(&knots[last], !back) - side(&knots[first], !back)) / (double)span;
    return side(&knots[first], !back) + (int64_t)((double)since * rate);
}

uint64_t clock_knots_error(const struct clock_knot_array *knots)
{
    uint64_t worst = 0;
    for (size_t i = 0; i < knots->count; i++)
        if (knots->items[i].error > worst)
            worst = knots->items[i].error;
    return worst;
}
