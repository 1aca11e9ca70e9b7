// SPDX-License-Identifier: MIT
//
// What decoding a recording found, summed up: counts for each stream, where the time went by
// function, and what each CPU did. Spans are folded in as they end, so memory follows the number
// of different functions and not the length of the trace.
#ifndef ANALYSIS_PT_PT_RESULT_H
#define ANALYSIS_PT_PT_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/pt/calls/pt_calls.h"
#include "analysis/pt/pt_segments.h"
#include "analysis/pt/pt_trace.h"
#include "base/array.h"
#include "base/error.h"
#include "base/map.h"

// Totals of one function in one task.
struct pt_function_total {
    uint64_t function;
    uint64_t calls;
    uint64_t total, self; // ticks, or instructions where the stream has no time
    uint32_t task;
    uint8_t kind; // enum pt_span_kind
    bool known;   // function is a key
};
struct pt_function_list ARRAY_OF(struct pt_function_total);

enum { PT_RECENT_FUNCTIONS = 1024 };

struct pt_function_totals {
    struct pt_function_list list;
    struct map positions; // in it
    uint32_t *recent;     // positions in it + 1, looked at before the map; NULL: none yet
    uint32_t asked;       // the map, until then
};

struct pt_task_total {
    uint32_t task;
    uint64_t switched_in, time;
};
struct pt_task_totals ARRAY_OF(struct pt_task_total);

enum { PT_ERRORS_KEPT = 1000 };

struct pt_stream_result {
    struct pt_walk_counts counts;
    struct pt_walk_errors errors; // the first PT_ERRORS_KEPT
    uint64_t error_count;
    uint64_t pieces;
    struct pt_call_counts calls;
    struct pt_function_totals functions;
    struct pt_task_totals tasks;
    uint64_t first, last; // times of the first and last span's ends, ticks
    struct pt_calls *stacks;
    pt_span_sink *also; // also gets every span; may be NULL
    void *also_context;
};

struct pt_result {
    const struct pt_trace *trace;
    struct pt_stream_result *streams; // in the order of trace->streams
    double seconds;                   // how long decoding took
};

// Decodes the trace. `also` (may be NULL) gets every span of stream i with contexts[i]; several
// threads call it, but only one at a time for each stream. The caller calls pt_result_free, also
// after a failure.
int pt_result_decode(const struct pt_trace *trace, const struct pt_decode_options *options,
                     pt_span_sink *also, void *const *contexts, struct pt_result *out,
                     struct error *err);
void pt_result_free(struct pt_result *result);

// --- sums over all streams -----------------------------------------------------------------------

// Functions over all streams, most time of their own first; `task` is unused. Either all streams of
// a recording have times or none. Without enough memory the list is incomplete. The caller frees it
// with array_free.
struct pt_function_list pt_functions_all(const struct pt_result *result);

// The same by process, whose number is in `task`: a process's functions are adjacent, the process
// with most time first.
struct pt_function_list pt_functions_by_process(const struct pt_result *result);

// How many of the list, from `first` on, are of the same process.
size_t pt_functions_of_process(const struct pt_function_list *list, size_t first);
// The sum of these functions' own time.
uint64_t pt_functions_time(const struct pt_function_list *list, size_t first, size_t count);

// Writes all functions by process as CSV, with a line of headings.
int pt_functions_write_csv(const struct pt_result *result, const char *path, struct error *err);

#endif
