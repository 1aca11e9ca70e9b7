// SPDX-License-Identifier: MIT
//
// The page's data of latency over time: the cells of latency_heat.h, column after column, each from
// its lowest row to those that were never answered.
#include "analysis/report/plots/latency_heat.h"
#include "analysis/report/page/page_json.h"

#include <stdlib.h>

static json_t *heat_json(struct page_builder *builder, const struct latency_heat *heat)
{
    const struct run_lifetimes *lives = &builder->run->lifetimes;
    json_t *cells = json_array(), *slowest = json_array();
    for (size_t column = 0; column < HEAT_COLUMNS; column++) {
        size_t one = heat->slowest[column];
        for (size_t row = 0; row <= HEAT_ROWS; row++)
            page_append(builder, cells, page_count(heat->cells[column][row]));
        page_append(builder, slowest,
                    one ? page_count(lives->all.items[one - 1].request) : json_null());
    }
    json_t *object = json_pack("{s:i, s:i, s:o, s:o}", "columns", HEAT_COLUMNS, "rows", HEAT_ROWS,
                               "low_ns", page_ns(heat->low_ns), "high_ns", page_ns(heat->high_ns));
    page_put(builder, object, "cells", cells);
    page_put(builder, object, "slowest", slowest);
    return object;
}

json_t *page_heat_build(struct page_builder *builder)
{
    struct latency_heat *heat = calloc(1, sizeof *heat);
    builder->failed |= !heat;
    json_t *object = heat && latency_heat_fill(&builder->run->lifetimes, heat)
                         ? heat_json(builder, heat)
                         : json_null();
    free(heat);
    return object;
}

json_t *page_hop_heats_build(struct page_builder *builder)
{
    const struct run_lifetimes *lives = &builder->run->lifetimes;
    const struct hop_row_array *rows = &lives->hops.rows;
    json_t *array = json_array();
    for (size_t i = 0; i < rows->count; i++) {
        struct latency_heat *heat = rows->items[i].from < HOPS_MAX ? calloc(1, sizeof *heat) : NULL;
        builder->failed |= !heat && rows->items[i].from < HOPS_MAX;
        if (heat && hop_heat_fill(lives, &rows->items[i], heat)) {
            json_t *one = heat_json(builder, heat);
            page_put(builder, one, "row", page_count(i));
            page_append(builder, array, one);
        }
        free(heat);
    }
    return array;
}
