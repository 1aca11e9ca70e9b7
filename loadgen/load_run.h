// SPDX-License-Identifier: MIT
//
// One load from its plan to its outcome: drawn, loaded, summarised and judged; for a given time, or
// in rounds until the method is satisfied. Commands of several loads (a sweep, a search) call
// load_run_once for each.
#ifndef LOADGEN_LOAD_RUN_H
#define LOADGEN_LOAD_RUN_H

#include <stdint.h>

#include "base/error.h"
#include "loadgen/load_outcome.h"
#include "loadgen/load_plan.h"

// Loads once for a given time and judges. Fails only when the load could not begin, or out of
// memory. The caller frees the outcome, also after an error.
int load_run_once(const struct load_plan *plan, const struct load_point *point,
                  struct load_outcome *outcome, struct error *err);

// Refuses a load whose samples would not fit into memory, before the kernel's out-of-memory killer
// strikes. `lower`: the options that reduce their number, for the error text.
int load_check_memory(const struct load_plan *plan, double rate, uint64_t duration_ns,
                      const char *lower, struct error *err);

// All of a plain `taillight load`: the load, its files and its report.
int load_run(struct load_plan *plan, struct error *err);

// All of `taillight load --repetitions N`: repeats the same load, restarting the server in between
// if asked: percentiles of each repetition and of all pooled, and how far apart they are
// (loadgen/method/between_runs.h). The repetitions' files are in repetition-1, repetition-2, ...
// below --samples.
int load_repeat(struct load_plan *plan, struct error *err);

// A sweep: one load for each of a range of ascending rates, until the client or the server is
// saturated. Prints a table or the document, and writes what --out asks for. ERROR_INCONCLUSIVE:
// none of its rates gave a trustworthy result.
int load_sweep(struct load_plan *plan, struct error *err);

#endif
