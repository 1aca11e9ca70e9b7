// SPDX-License-Identifier: MIT
//
// The tuning of an experiment file: steps by host, resolved to settings.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_TUNING_H
#define EXPERIMENTS_SPEC_EXPERIMENT_TUNING_H

#include "experiments/spec/experiment_values.h"

// Resolves all of it, in the order of the file; the hosts come before. What is wrong is an error at
// its place.
int resolve_tuning(struct resolver *r);

#endif
