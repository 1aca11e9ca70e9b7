// SPDX-License-Identifier: MIT
#include "analysis/report/page/flame_columns.h"

#include "analysis/report/page/page_json.h"

enum {
    NODES_MOST = 4000,
    LEAST_PER_TEN_THOUSAND = 5 // of the samples; narrower ones could not be seen
};

void flame_columns_begin(struct flame_columns *columns, unsigned totals)
{
    *columns =
        (struct flame_columns){.totals = totals, .parents = json_array(), .names = json_array()};
    for (unsigned i = 0; i < totals; i++)
        columns->total[i] = json_array();
}

static bool is_wide(const struct flame_columns *columns, const uint64_t *totals)
{
    bool wide = false;
    for (unsigned i = 0; i < columns->totals; i++)
        wide |= totals[i] && totals[i] * 10000 >= columns->whole[i] * LEAST_PER_TEN_THOUSAND;
    return wide;
}

void flame_columns_add(struct flame_columns *columns, uint32_t parent, const char *name,
                       const uint64_t *totals)
{
    bool root = columns->places.count == 0;
    if (columns->failed)
        return;
    for (unsigned i = 0; root && i < columns->totals; i++)
        columns->whole[i] = totals[i];
    bool kept = root || (columns->kept < NODES_MOST && columns->places.items[parent] >= 0 &&
                         is_wide(columns, totals));
    columns->failed |= array_push(&columns->places, kept ? columns->kept : -1) < 0;
    if (!kept || columns->failed)
        return;
    columns->kept++;
    json_array_append_new(columns->parents,
                          json_integer(root ? -1 : columns->places.items[parent]));
    json_array_append_new(columns->names, page_text(name));
    for (unsigned i = 0; i < columns->totals; i++)
        json_array_append_new(columns->total[i], page_count(totals[i]));
}

json_t *flame_columns_json(struct flame_columns *columns, const char *const *keys)
{
    json_t *object =
        json_pack("{s:o, s:o}", "parents", columns->parents, "functions", columns->names);
    for (unsigned i = 0; i < columns->totals; i++)
        json_object_set_new(object, keys[i], columns->total[i]);
    if (columns->failed) {
        json_decref(object);
        object = NULL;
    }
    array_free(&columns->places);
    return object;
}
