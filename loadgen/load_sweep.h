// SPDX-License-Identifier: MIT
//
// A sweep: one load for each of a range of ascending rates, until the client or the server is
// saturated.
#ifndef LOADGEN_LOAD_SWEEP_H
#define LOADGEN_LOAD_SWEEP_H

#include "base/error.h"
#include "loadgen/load_plan.h"

// Does the sweep; prints a table or the document, and writes what --out asks for.
// ERROR_INCONCLUSIVE: none of its rates gave a trustworthy result.
int load_sweep(struct load_plan *plan, struct error *err);

#endif
