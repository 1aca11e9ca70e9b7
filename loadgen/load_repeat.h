// SPDX-License-Identifier: MIT
//
// The same load several times, the server restarted between if so asked: percentiles of each
// repetition, over all of them pooled, and how far apart they are (loadgen/method/between_runs.h).
#ifndef LOADGEN_LOAD_REPEAT_H
#define LOADGEN_LOAD_REPEAT_H

#include "base/error.h"
#include "loadgen/load_plan.h"

// The whole of `taillight load --repetitions N`: runs, files (in repetition-1, repetition-2, ...
// below --samples) and the report.
int load_repeat(struct load_plan *plan, struct error *err);

#endif
