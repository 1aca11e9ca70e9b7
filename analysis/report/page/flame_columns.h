// SPDX-License-Identifier: MIT
//
// Call stacks as a page draws them (page_flame.js): columns, a parent before its children, without
// what would be too narrow to be seen.
#ifndef ANALYSIS_REPORT_PAGE_FLAME_COLUMNS_H
#define ANALYSIS_REPORT_PAGE_FLAME_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

enum { FLAME_TOTALS_MOST = 3 }; // counts a function has: of all samples, of some of them

struct flame_columns {
    unsigned totals;
    uint64_t whole[FLAME_TOTALS_MOST]; // of the root
    struct ARRAY_OF(int32_t) places; // of each node that was added, among those kept; -1: left out
    int32_t kept;
    bool failed; // no memory
    json_t *parents, *names, *total[FLAME_TOTALS_MOST];
};

void flame_columns_begin(struct flame_columns *columns, unsigned totals);

// Adds the next node; the first is the root. parent: the number of a node that was added before.
void flame_columns_add(struct flame_columns *columns, uint32_t parent, const char *name,
                       const uint64_t *totals);

// {"parents": [...], "functions": [...], and each count under its key}. The caller owns it; NULL:
// no memory. Frees the columns.
json_t *flame_columns_json(struct flame_columns *columns, const char *const *keys);

#endif
