// SPDX-License-Identifier: MIT
//
// A decoded trace as one HTML file to look at: nested spans for each core and each thread, which
// can be zoomed. Both the file and the memory for it are bounded: where a stream has more spans
// than fit, the shortest are left out, which keeps every span that encloses a kept one; the page
// says below which length they are missing, how many, and how much time was their own.
#ifndef ANALYSIS_REPORT_PAGE_PAGE_TRACE_H
#define ANALYSIS_REPORT_PAGE_PAGE_TRACE_H

#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_result.h"

enum { PT_PAGE_SPANS = 150000 }; // of all streams; some 35 bytes of the file each

// One stream's. Zeroed, but for `most`.
struct pt_page_stream {
    size_t most;       // spans kept, at least 2
    uint64_t least;    // spans shorter than this (units of struct pt_span's times) are not kept
    uint64_t left_out; // as many
    uint64_t left_out_self; // how much time was theirs and not of spans inside them
    struct pt_page_spans ARRAY_OF(struct pt_nested_span) spans; // an enclosing one before those
                                                                // inside it
};

// Takes spans, as a pt_nested_sink does.
int pt_page_take(struct pt_page_stream *stream, const struct pt_nested_span *spans, size_t count,
                 struct error *err);

// Writes the page; streams as in the result's trace. The file appears as a whole or not at all.
// Its data: {"unit": "ns", "ticks" or "instructions", "length", "names": [...], "notes": [...],
// "tasks": [[number, process, name], ...], "streams": [{"name" (in names), "errors", "lost" (time),
// "least", "left_out", "left_out_self", "kind" (enum pt_span_kind), "label" (in names), "task" (-1
// unknown), "depth", "cut" (1 at its begin, 2 at its end), "from", "span" (how long)}]}; from kind
// on these are columns with an item for each span.
int pt_page_write(const struct pt_result *result, const struct pt_page_stream *streams,
                  const char *path, struct error *err);
void pt_page_free(struct pt_page_stream *stream);

#endif
