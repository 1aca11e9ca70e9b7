// SPDX-License-Identifier: MIT
//
// The page's data of latency over time: the cells of latency_heat.h, column after column, each from
// its lowest row to those that were never answered.
#include "analysis/report/latency_heat.h"
#include "analysis/report/page_json.h"

#include <stdlib.h>

json_t *page_heat_build(struct page_builder *builder)
{
    const struct run_lifetimes *lives = &builder->run->lifetimes;
    struct latency_heat *heat = calloc(1, sizeof *heat);
    json_t *object = json_null(), *cells = json_array(), *slowest = json_array();
    builder->failed |= !heat;
    if (heat && latency_heat_fill(lives, heat)) {
        for (size_t column = 0; column < HEAT_COLUMNS; column++) {
            size_t one = heat->slowest[column];
            for (size_t row = 0; row <= HEAT_ROWS; row++)
                page_append(builder, cells, page_count(heat->cells[column][row]));
            page_append(builder, slowest,
                        one ? page_count(lives->all.items[one - 1].request) : json_null());
        }
        object = json_pack("{s:i, s:i, s:o, s:o}", "columns", HEAT_COLUMNS, "rows", HEAT_ROWS,
                           "low_ns", page_ns(heat->low_ns), "high_ns", page_ns(heat->high_ns));
        page_put(builder, object, "cells", json_incref(cells));
        page_put(builder, object, "slowest", json_incref(slowest));
    }
    json_decref(cells);
    json_decref(slowest);
    free(heat);
    return object;
}
