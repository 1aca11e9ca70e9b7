// SPDX-License-Identifier: MIT
//
// A run's folder that root filled becomes the user's for whom it was made.
#ifndef EXPERIMENTS_COMMON_HAND_OVER_H
#define EXPERIMENTS_COMMON_HAND_OVER_H

#include "base/error.h"
#include "base/rights.h"
#include "experiments/common/run_folder.h"

// Gives all that is root's in the folder to its owner. Links stay as they are, and so do files that
// have another name elsewhere: who could put one there would get what it names.
int run_folder_hand_over(const struct run_folder *folder, const struct person *owner,
                         struct error *err);

#endif
