// SPDX-License-Identifier: MIT
//
// The time of a goroutine's message that waited, piece by piece (goroutine_path.h), into
// components.
#ifndef ANALYSIS_DECOMPOSITION_GOROUTINE_SWEEP_H
#define ANALYSIS_DECOMPOSITION_GOROUTINE_SWEEP_H

#include <stdint.h>

#include "analysis/decomposition/decomposer.h"

// Assigns [begin_ns, end_ns); the thread `replier` will answer.
void goroutine_sweep(struct decomposer *decomposer, const struct lifetime *life, uint32_t replier,
                     int64_t begin_ns, int64_t end_ns);

#endif
