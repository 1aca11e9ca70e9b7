// SPDX-License-Identifier: MIT
//
// Repeats the same load, restarting the server in between if asked: percentiles of each repetition
// and of all pooled, and how far apart they are (loadgen/method/between_runs.h).
#ifndef LOADGEN_LOAD_REPEAT_H
#define LOADGEN_LOAD_REPEAT_H

#include "base/error.h"
#include "loadgen/load_plan.h"

// All of `taillight load --repetitions N`: loads, files (in repetition-1, repetition-2, ... below
// --samples) and the report.
int load_repeat(struct load_plan *plan, struct error *err);

#endif
