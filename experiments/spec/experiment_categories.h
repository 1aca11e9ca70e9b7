// SPDX-License-Identifier: MIT
//
// The file of categories of causes that an experiment names, `diagnose: {categories: FILE}`, or the
// command line in its place.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_CATEGORIES_H
#define EXPERIMENTS_SPEC_EXPERIMENT_CATEGORIES_H

#include "experiments/spec/experiment.h"

// Puts `asked` (NULL: none) in the place of what the experiment names, and reads that file once, so
// that a bad one is known before anything runs: ERROR_INPUT with its line.
int experiment_categories_choose(struct experiment *experiment, const char *asked,
                                 struct error *err);

#endif
