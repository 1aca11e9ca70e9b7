// SPDX-License-Identifier: MIT
//
// Draws which task ran on each CPU over time, for a terminal: a line for each stream, in whose
// columns a letter stands for the task that ran most of the time.
#ifndef ANALYSIS_PT_PT_STRIP_H
#define ANALYSIS_PT_PT_STRIP_H

#include <stdint.h>
#include <stdio.h>

#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_result.h"

enum { PT_STRIP_COLUMNS = 72 };

// One stream's; zeroed, but for the time its columns cover (TSC).
struct pt_strip {
    uint64_t begin, end;
    struct pt_map numbers; // of a task in a column: index of its time plus 1
    struct pt_strip_times ARRAY_OF(uint64_t) times;
    uint64_t lost[PT_STRIP_COLUMNS];
};

// Adds a span of any kind, in any order. -1: no memory.
int pt_strip_take(struct pt_strip *strip, const struct pt_span *span);

// Draws all streams' strips and explains the letters. Prints nothing when no stream has times and
// tasks.
void pt_strip_print(struct pt_strip *strips, const struct pt_result *result, FILE *out);
void pt_strip_free(struct pt_strip *strip);

#endif
