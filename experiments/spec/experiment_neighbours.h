// SPDX-License-Identifier: MIT
//
// The neighbours of an experiment file: what runs beside the server, and what is asked of it.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_NEIGHBOURS_H
#define EXPERIMENTS_SPEC_EXPERIMENT_NEIGHBOURS_H

#include "experiments/spec/experiment_values.h"

// Resolves all of them; hosts, servers and load come before. What is wrong is an error at its
// place.
int resolve_neighbours(struct resolver *r);

#endif
