// SPDX-License-Identifier: MIT
//
// Puts functions, which one backend saw, into the contexts (tasks, interrupts, softirqs) of a core
// that another saw. Each of the two nests in itself. As their clocks and what they measure differ a
// little, a function may overlap the edge of a context: then it is cut in two there, and the
// context stays whole.
#ifndef ANALYSIS_TIMELINE_FUNCTION_SPANS_H
#define ANALYSIS_TIMELINE_FUNCTION_SPANS_H

#include "analysis/timeline/span.h"
#include "analysis/timeline/time_source.h"
#include "base/error.h"
#include "profiler/trace/function_log.h"

// Adds functions, ordered as a timeline's spans are and of kind SPAN_FUNCTION (their depths mean
// nothing), to a core that has none yet, and links the timeline. Functions without length are left
// out: their time was too short to measure. Linear but for the cuts. Only lack of memory fails;
// the core is then as before.
int core_timeline_add_functions(struct core_timeline *core, const struct span_array *functions,
                                struct error *err);

// --- from the function log (profiler/trace/function_log.h)

// Function spans of a core. A thread's calls are
// paired while it stays on the core without another thread in between. A call that began before or
// ends after becomes a part of a call (SPAN_ID_CUT) that reaches to the other thread's records.
// When exactly threads changed is known from the contexts of the events backend.

// Names of addresses, ascending.
struct function_name {
    uint64_t address;
    uint32_t name; // index into the host's names
};
struct function_names ARRAY_OF(struct function_name);

struct function_log_spans {
    struct span_array functions;    // ordered as a timeline's
    struct time_range_array traced; // when all calls are known
    uint64_t unpaired;              // exits of calls that were not open: lost records
    uint64_t lost;                  // places where records are missing
    uint64_t damaged;               // impossible records, or records that go back in time
};

// Takes one core's records of the log; any bytes are taken. Addresses without a name bear
// `unnamed`. -1: no memory. The caller frees.
int function_log_spans_build(const struct function_event *events, size_t count, uint16_t core,
                             const struct time_source *clock, const struct function_names *names,
                             uint32_t unnamed, struct function_log_spans *out);
void function_log_spans_free(struct function_log_spans *spans);

#endif
