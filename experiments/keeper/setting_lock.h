// SPDX-License-Identifier: MIT
//
// One run changes a setting at a time. The lock lies on the setting itself (flock on its file, or
// on its card's folder), so it ends with the keeper that holds it, however that ends, and settings
// of different network namespaces have different ones.
#ifndef EXPERIMENTS_KEEPER_SETTING_LOCK_H
#define EXPERIMENTS_KEEPER_SETTING_LOCK_H

#include <stddef.h>

#include "experiments/keeper/keeper_change.h"

// Takes the lock of the setting that is about to be changed: change->lock, -1 where there is none
// to take. run: ours; a keeper of the same run, by its journal, does not stand in the way. Returns
// 0, or EAGAIN when another run has it: then `holder` says which.
int setting_lock_take(struct keeper_change *change, const char *run, char *holder,
                      size_t holder_bytes);

#endif
