// SPDX-License-Identifier: MIT
//
// The load of an experiment: its rate and shape, how long it lasts, and between whom.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_LOAD_H
#define EXPERIMENTS_SPEC_EXPERIMENT_LOAD_H

#include "experiments/spec/experiment_values.h"

// Both return 0 or a negative error kind, with the place of what is wrong. The load itself comes
// after the workload, whose arrivals it may change; its ends after the hosts and servers.
int resolve_load(struct resolver *r);
int resolve_load_ends(struct resolver *r);

#endif
