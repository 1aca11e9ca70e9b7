// SPDX-License-Identifier: MIT
//
// load.agents of an experiment file: processes that load together, each from a host.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_AGENTS_H
#define EXPERIMENTS_SPEC_EXPERIMENT_AGENTS_H

#include "experiments/spec/experiment_values.h"

// Resolves the agents below the mapping `load`, and the load's rate where they bring it. Comes
// after the hosts and the rest of the load.
int resolve_agents(struct resolver *r, int load);

#endif
