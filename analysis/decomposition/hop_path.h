// SPDX-License-Identifier: MIT
//
// What a packet between two hops waited for: the core that is to take it in, where something else
// has it.
#ifndef ANALYSIS_DECOMPOSITION_HOP_PATH_H
#define ANALYSIS_DECOMPOSITION_HOP_PATH_H

#include <stdint.h>

#include "analysis/decomposition/decomposer.h"

// Assigns the part [begin_ns, end_ns) of a stay: to what had the core, the rest to the link itself.
void hop_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                    const struct hop_stay *stay, int64_t begin_ns, int64_t end_ns);

#endif
