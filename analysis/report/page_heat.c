// SPDX-License-Identifier: MIT
//
// Latency over time, of all requests: how many fell into each cell of a grid whose columns are
// equally long and whose rows are equally high in the logarithm of latency. Above the rows is one
// for requests that were never answered.
#include "analysis/report/page_json.h"

#include <math.h>
#include <stdlib.h>

enum { COLUMNS = 160, ROWS = 36 };

struct heat {
    double low_ns, high_ns; // of what was answered
    uint64_t cells[COLUMNS][ROWS + 1];
    size_t slowest[COLUMNS]; // which request + 1; 0: none
};

static double latency_of(const struct lifetime *life)
{
    return life->latency_ns > 1 ? life->latency_ns : 1;
}

// The bounds of the rows. False where nothing was answered.
static bool find_bounds(const struct lifetime_array *lives, struct heat *heat)
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

static size_t row_of(const struct heat *heat, double ns)
{
    if (!isfinite(ns))
        return ROWS;
    double at = log(ns / heat->low_ns) / log(heat->high_ns / heat->low_ns) * ROWS;
    return at >= ROWS ? ROWS - 1 : (size_t)at;
}

static void count_all(const struct run_lifetimes *lives, struct heat *heat)
{
    double span = (double)(lives->end_ns - lives->begin_ns);
    for (size_t i = 0; i < lives->all.count; i++) {
        const struct lifetime *life = &lives->all.items[i];
        double since = (double)(life->stamp_ns[STAMP_INTENDED] - lives->begin_ns);
        size_t column = span > 0 && since > 0 ? (size_t)(since / span * COLUMNS) : 0;
        column = column < COLUMNS ? column : COLUMNS - 1;
        heat->cells[column][row_of(heat, latency_of(life))]++;
        size_t before = heat->slowest[column];
        if (!before || life->latency_ns > lives->all.items[before - 1].latency_ns)
            heat->slowest[column] = i + 1;
    }
}

json_t *page_heat_build(struct page_builder *builder)
{
    const struct run_lifetimes *lives = &builder->run->lifetimes;
    struct heat *heat = calloc(1, sizeof *heat);
    json_t *object = json_null(), *cells = json_array(), *slowest = json_array();
    builder->failed |= !heat;
    if (heat && find_bounds(&lives->all, heat)) {
        count_all(lives, heat);
        for (size_t column = 0; column < COLUMNS; column++) {
            size_t one = heat->slowest[column];
            for (size_t row = 0; row <= ROWS; row++)
                page_append(builder, cells, page_count(heat->cells[column][row]));
            page_append(builder, slowest,
                        one ? page_count(lives->all.items[one - 1].request) : json_null());
        }
        object = json_pack("{s:i, s:i, s:o, s:o}", "columns", COLUMNS, "rows", ROWS, "low_ns",
                           page_ns(heat->low_ns), "high_ns", page_ns(heat->high_ns));
        page_put(builder, object, "cells", json_incref(cells));
        page_put(builder, object, "slowest", json_incref(slowest));
    }
    json_decref(cells);
    json_decref(slowest);
    free(heat);
    return object;
}
