// SPDX-License-Identifier: MIT
//
// Puts functions, which one backend saw, into the contexts (tasks, interrupts, softirqs) of a core
// that another saw. Both nest by themselves; where one's edge cuts the other, as their clocks and
// their points of view differ a little, the function is cut in two there: contexts stay whole.
#ifndef ANALYSIS_TIMELINE_FUNCTION_SPANS_H
#define ANALYSIS_TIMELINE_FUNCTION_SPANS_H

#include "analysis/timeline/span.h"
#include "base/error.h"

// Adds functions, ordered as a timeline's spans are and of kind SPAN_FUNCTION (their depths mean
// nothing), to a core that has none yet, and links the timeline. Those without any length are left
// out: they took no time that could be told. Linear but for the cuts. Only lack of memory fails;
// the core is then as before.
int core_timeline_add_functions(struct core_timeline *core, const struct span_array *functions,
                                struct error *err);

#endif
