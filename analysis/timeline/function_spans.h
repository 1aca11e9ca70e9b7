// SPDX-License-Identifier: MIT
//
// Puts functions, which one backend saw, into the contexts (tasks, interrupts, softirqs) of a core
// that another saw. Each of the two nests in itself. As their clocks and what they measure differ a
// little, a function may overlap the edge of a context: then it is cut in two there, and the
// context stays whole.
#ifndef ANALYSIS_TIMELINE_FUNCTION_SPANS_H
#define ANALYSIS_TIMELINE_FUNCTION_SPANS_H

#include "analysis/timeline/span.h"
#include "base/error.h"

// Adds functions, ordered as a timeline's spans are and of kind SPAN_FUNCTION (their depths mean
// nothing), to a core that has none yet, and links the timeline. Functions without length are left
// out: their time was too short to measure. Linear but for the cuts. Only lack of memory fails;
// the core is then as before.
int core_timeline_add_functions(struct core_timeline *core, const struct span_array *functions,
                                struct error *err);

#endif
