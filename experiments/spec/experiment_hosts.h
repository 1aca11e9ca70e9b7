// SPDX-License-Identifier: MIT
//
// The hosts of an experiment file: where things run, here or behind ssh.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_HOSTS_H
#define EXPERIMENTS_SPEC_EXPERIMENT_HOSTS_H

#include "experiments/spec/experiment_values.h"

// Resolves the mapping `hosts`.
int resolve_hosts(struct resolver *r);

// Whether a network joins those that must meet. Comes last: it looks at servers and load.
int check_hosts_meet(const struct resolver *r);

#endif
