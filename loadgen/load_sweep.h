// SPDX-License-Identifier: MIT
//
// A sweep: one load run for each of a range of rates, ascending, until nobody can do more.
#ifndef LOADGEN_LOAD_SWEEP_H
#define LOADGEN_LOAD_SWEEP_H

#include "base/error.h"
#include "loadgen/load_plan.h"

// Runs it; prints a table, or the document, and writes what --out asks for. ERROR_INCONCLUSIVE:
// not one of its rates gave a result that can be trusted.
int load_sweep(struct load_plan *plan, struct error *err);

#endif
