// SPDX-License-Identifier: MIT
//
// What a run leaves to whoever started it: where its data is, and what it has to warn of.
#ifndef EXPERIMENTS_RUN_RUN_OUTCOME_H
#define EXPERIMENTS_RUN_RUN_OUTCOME_H

#include <jansson.h>

#include "experiments/common/run_folder.h"

struct run_outcome {
    struct run_folder folder;
    json_t *warnings; // list of strings: what this machine could not do, and what was unusual
};

#endif
