// SPDX-License-Identifier: MIT
//
// One load run from its plan to its result: drawn, loaded, summed up and judged; for a given time,
// or in rounds until the method is satisfied. What stands above one run (a sweep, a search) calls
// load_run_once for each of its own.
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

// Refuses so many requests in one run that their samples would not fit into memory, before the
// kernel's out-of-memory killer does. `lower`: the options that make it less.
int load_check_memory(const struct load_plan *plan, double rate, uint64_t duration_ns,
                      const char *lower, struct error *err);

// The whole of the command: a run as the plan has it, its files and its report.
int load_run(struct load_plan *plan, struct error *err);

#endif
