// SPDX-License-Identifier: MIT
//
// A resolved experiment, for programs and for people.
#ifndef EXPERIMENTS_DEFINITION_OUTPUT_H
#define EXPERIMENTS_DEFINITION_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "experiments/plan/experiment.h"

// The resolved experiment (docs/formats.md). The caller owns it; NULL: no memory.
json_t *experiment_to_json(const struct experiment *experiment);

// Prints what a run would do, in words, a line for each step.
void experiment_print_plan(const struct experiment *experiment, FILE *out);

#endif
