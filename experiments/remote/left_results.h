// SPDX-License-Identifier: MIT
//
// What runs that died left on a host behind ssh: the logs that their load and their capture had
// written there, which that host's keeper set aside (experiments/keeper/keeper_change.h) because
// nobody was left to fetch them. `taillight doctor HOST` names and fetches them, and a run warns.
#ifndef EXPERIMENTS_REMOTE_LEFT_RESULTS_H
#define EXPERIMENTS_REMOTE_LEFT_RESULTS_H

#include "base/array.h"
#include "experiments/remote/far_host.h"

struct left_result {
    char path[KEEPER_TEXT_BYTES]; // there
};
struct left_results ARRAY_OF(struct left_result);

// Finds them below `base`, where runs of that host have their directories. The caller frees the
// array, also after an error.
int left_results_find(struct keeper *keeper, const char *base, struct left_results *found,
                      struct error *err);

// Fetches one, and has the keeper remove it at its end. Where `into` is the folder of the run that
// left it, its logs come to where they belong there; where it is that of another run, nothing is
// done. Else they come into a new folder in `into`, with their name there. here: which folder that
// is; empty: none.
int left_results_fetch(const struct far_host *far, struct keeper *keeper,
                       const struct left_result *result, const char *into,
                       char here[FAR_PATH_BYTES], struct error *err);

#endif
