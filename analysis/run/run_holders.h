// SPDX-License-Identifier: MIT
//
// What a holder did while others waited for it is told in the names of causes: "lock wait (futex):
// held by worker-2, behind yes", "..., sleeping (timer)"; so is what a disk did: "blocked in pread
// from data, disk vda: write". These are one cause in several pieces.
#ifndef ANALYSIS_RUN_HOLDERS_H
#define ANALYSIS_RUN_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/diagnosis/diagnosis.h"

// How much of a cause's name says what was waited for, and whom: all of it, where it says nothing
// of what that one did.
size_t run_holder_length(const char *name);

// Whether two causes are pieces of the wait for one holder, or the same.
bool run_same_holder(const struct cause *one, const struct cause *other);

// The pieces of one wait.
struct held_time {
    size_t first; // the largest piece, among the diagnosis's causes
    double total_ns;
    bool several; // no piece is nearly all of it
};

// The waits and the other causes, largest first, of those for which `wanted` holds: `most` at most.
// Returns how many.
size_t run_held_times(const struct diagnosis *diagnosis, bool (*wanted)(const struct cause *),
                      struct held_time *out, size_t most);

// What a piece says of the holder: "behind yes", "running".
const char *run_held_piece(const struct cause *cause);

#endif
