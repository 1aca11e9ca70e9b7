// SPDX-License-Identifier: MIT
//
// The processor's trace of a run (server/perf.data, which capture.json's intel_pt.perf_data names):
// functions for the lifetimes that are asked for, put into the server's timeline. Decodes only what
// those messages need: the slices' own, slowest first, and an even selection of the ordinary ones
// they are compared with (design §10).
#ifndef ANALYSIS_RUN_TRACE_H
#define ANALYSIS_RUN_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/run/trace_stamps.h"
#include "analysis/timeline/time_source.h"
#include "base/error.h"
#include "profiler/clock/clock_map.h"

struct run_trace {
    bool present;          // a trace was there and could be read
    char problem[400];     // why a trace that should be there could not be read; else ""
    uint64_t streams;      // of cores
    uint64_t bytes;        // of trace
    uint64_t decoded;      // of these
    uint64_t messages;     // whose windows were asked for
    uint64_t functions;    // spans in the timeline
    uint64_t errors;       // decode errors; functions are unknown from there to the next PSB
    uint64_t overflows;    // the processor lost packets there
    uint64_t truncated;    // times that the recording was cut because its buffer was full
    uint64_t gaps;         // pieces of the recording that the kernel says have gaps
    uint64_t perf_errors;  // of the trace, that perf had noted in the recording
    uint64_t perf_lost;    // records of switches, maps and such that perf lost
    uint64_t malformed;    // records of the recording that cannot be read
    double traced_ns;      // time with known functions, over all cores
    double granularity_ns; // nine of ten boundaries of functions are known at least this well
    double slow_ns;        // time of the slices' own messages, on each core that they were on
    double slow_traced_ns; // of that, time with known functions
    bool asked;            // for, by its name
    // Without an events log (run_trace_events.h): receive calls whose delivery to the socket the
    // trace shows, and those where it does not.
    uint64_t handoffs, handoffs_unknown;
    struct trace_stamps stamps; // with one: the two compared
};

// Why functions are not known, though a trace was taken: "" where they are, at least in part.
// Complete after run_trace_add.
enum { RUN_TRACE_WORDS = 600 };
const char *run_trace_lack(const struct run_trace *trace, char words[RUN_TRACE_WORDS]);

// How far the trace's times are from the events', where that is more than a hand-off takes; 0: they
// agree. Functions may then stand in the context before or behind their own for as long.
double run_trace_apart_ns(const struct run_trace *trace);

// Whether M(n) and M(h) come from the trace, for want of an events log.
static inline bool run_trace_gives_stamps(const struct run_trace *trace)
{
    return trace->handoffs || trace->handoffs_unknown;
}

// Whether anything of a trace was lost, or cannot be decoded.
static inline bool run_trace_lost_any(const struct run_trace *trace)
{
    return trace->errors || trace->overflows || trace->truncated || trace->gaps ||
           trace->perf_errors || trace->perf_lost || trace->malformed;
}

// Loads the recording that capture.json (or NULL) names: 1, and the caller frees it with
// pt_trace_free; 0 where there is none, it cannot be read, or it is of another run than the clock
// log: then out->problem says why. Only lack of memory fails. windows_only: of struct pt_trace.
struct pt_trace;
int run_trace_open(const char *run_dir, const json_t *capture, const struct clock_map *clock,
                   bool windows_only, struct pt_trace *trace, struct run_trace *out,
                   struct error *err);

struct run_trace_input {
    const char *run_dir;
    const json_t *capture; // capture.json, or NULL
    const struct clock_map *clock_map;
    struct time_source clock;                // by the map
    const struct diagnosis_input *diagnosis; // lifetimes and threads
    const struct diagnosis_slice *slices;
    size_t slice_count;
};

// Adds the functions to the server's timeline. *out was zeroed, but for the hand-offs. A trace that
// cannot be read is not an error: the diagnosis goes on without, and out->problem says why. Only
// lack of memory fails.
int run_trace_add(const struct run_trace_input *input, struct host_timeline *server,
                  struct run_trace *out, struct error *err);

#endif
