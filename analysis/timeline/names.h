// SPDX-License-Identifier: MIT
//
// A table of distinct names, each known by a small number: thousands of spans share one comm.
#ifndef ANALYSIS_TIMELINE_NAMES_H
#define ANALYSIS_TIMELINE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "base/map.h"

struct name_table {
    struct name_array *names; // where the names go; the table owns only its index
    struct map numbers;
};

// Names already in *names keep their numbers. -1 when memory runs out.
int name_table_init(struct name_table *table, struct name_array *names);
void name_table_fini(struct name_table *table);

// The number of a name of at most `bytes` bytes (it ends earlier at a NUL), added when it is new.
// Bytes that are not printable ASCII become '?', so that names are safe to print. -1: no memory,
// or no number up to SPAN_NAMES is left.
int name_table_intern(struct name_table *table, const char *text, size_t bytes, uint32_t *number);

#endif
