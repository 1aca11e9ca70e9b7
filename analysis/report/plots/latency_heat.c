// SPDX-License-Identifier: MIT
#include "analysis/report/plots/latency_heat.h"

#include <math.h>

static double at_least_one(double ns)
{
    return ns > 1 ? ns : 1;
}

static void widen_bounds(struct latency_heat *heat, double ns)
{
    if (!isfinite(ns))
        return;
    heat->low_ns = heat->high_ns > 0 ? fmin(heat->low_ns, ns) : ns;
    heat->high_ns = fmax(heat->high_ns, ns);
}

// False where there was nothing.
static bool close_bounds(struct latency_heat *heat)
{
    bool any = heat->high_ns > 0;
    heat->high_ns = fmax(heat->high_ns, 2 * heat->low_ns);
    return any;
}

static size_t row_of(const struct latency_heat *heat, double ns)
{
    if (!isfinite(ns))
        return HEAT_ROWS;
    double at = log(ns / heat->low_ns) / log(heat->high_ns / heat->low_ns) * HEAT_ROWS;
    return at >= HEAT_ROWS ? HEAT_ROWS - 1 : (size_t)at;
}

// Counts a message in the column of its intended time.
static void count_one(const struct run_lifetimes *lives, size_t life, double ns,
                      struct latency_heat *heat)
{
    double span = (double)(lives->end_ns - lives->begin_ns);
    double since = (double)(lives->all.items[life].stamp_ns[STAMP_INTENDED] - lives->begin_ns);
    size_t column = span > 0 && since > 0 ? (size_t)(since / span * HEAT_COLUMNS) : 0;
    column = column < HEAT_COLUMNS ? column : HEAT_COLUMNS - 1;
    heat->cells[column][row_of(heat, ns)]++;
    if (heat->slowest[column] && ns <= heat->slowest_ns[column])
        return;
    heat->slowest[column] = life + 1;
    heat->slowest_ns[column] = ns;
}

bool latency_heat_fill(const struct run_lifetimes *lives, struct latency_heat *out)
{
    const struct lifetime_array *all = &lives->all;
    for (size_t i = 0; i < all->count; i++)
        widen_bounds(out, at_least_one(all->items[i].latency_ns));
    if (!close_bounds(out))
        return false;
    for (size_t i = 0; i < all->count; i++)
        count_one(lives, i, at_least_one(all->items[i].latency_ns), out);
    return true;
}

static bool is_on_link(const struct run_lifetimes *lives, const struct hop_row *link,
                       const struct hop_stay *stay)
{
    return stay->from == link->from && stay->to == link->to &&
           (stay->part == STAY_IN_QUEUE) == link->in_queue && stay->request < lives->all.count &&
           hop_stay_way(stay, &lives->all.items[stay->request]) == link->way;
}

static double length_of(const struct hop_stay *stay)
{
    return at_least_one((double)(stay->end_ns - stay->begin_ns));
}

bool hop_heat_fill(const struct run_lifetimes *lives, const struct hop_row *link,
                   struct latency_heat *out)
{
    const struct hop_stay_array *stays = &lives->hops.stays.all;
    for (size_t i = 0; i < stays->count; i++)
        if (is_on_link(lives, link, &stays->items[i]))
            widen_bounds(out, length_of(&stays->items[i]));
    if (!close_bounds(out))
        return false;
    for (size_t i = 0; i < stays->count; i++)
        if (is_on_link(lives, link, &stays->items[i]))
            count_one(lives, stays->items[i].request, length_of(&stays->items[i]), out);
    return true;
}
