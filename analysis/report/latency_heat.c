// SPDX-License-Identifier: MIT
#include "analysis/report/latency_heat.h"

#include <math.h>

static double latency_of(const struct lifetime *life)
{
    return life->latency_ns > 1 ? life->latency_ns : 1;
}

// The bounds of the rows. False where nothing was answered.
static bool find_bounds(const struct lifetime_array *lives, struct latency_heat *heat)
{
    heat->low_ns = INFINITY;
    heat->high_ns = 0;
    for (size_t i = 0; i < lives->count; i++) {
        double ns = latency_of(&lives->items[i]);
        if (!isfinite(ns))
            continue;
        heat->low_ns = fmin(heat->low_ns, ns);
        heat->high_ns = fmax(heat->high_ns, ns);
    }
    heat->high_ns = fmax(heat->high_ns, 2 * heat->low_ns);
    return isfinite(heat->low_ns);
}

static size_t row_of(const struct latency_heat *heat, double ns)
{
    if (!isfinite(ns))
        return HEAT_ROWS;
    double at = log(ns / heat->low_ns) / log(heat->high_ns / heat->low_ns) * HEAT_ROWS;
    return at >= HEAT_ROWS ? HEAT_ROWS - 1 : (size_t)at;
}

static void count_all(const struct run_lifetimes *lives, struct latency_heat *heat)
{
    double span = (double)(lives->end_ns - lives->begin_ns);
    for (size_t i = 0; i < lives->all.count; i++) {
        const struct lifetime *life = &lives->all.items[i];
        double since = (double)(life->stamp_ns[STAMP_INTENDED] - lives->begin_ns);
        size_t column = span > 0 && since > 0 ? (size_t)(since / span * HEAT_COLUMNS) : 0;
        column = column < HEAT_COLUMNS ? column : HEAT_COLUMNS - 1;
        heat->cells[column][row_of(heat, latency_of(life))]++;
        size_t before = heat->slowest[column];
        if (!before || life->latency_ns > lives->all.items[before - 1].latency_ns)
            heat->slowest[column] = i + 1;
    }
}

bool latency_heat_fill(const struct run_lifetimes *lives, struct latency_heat *out)
{
    if (!find_bounds(&lives->all, out))
        return false;
    count_all(lives, out);
    return true;
}
