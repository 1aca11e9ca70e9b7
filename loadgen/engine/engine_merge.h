// SPDX-License-Identifier: MIT
//
// Puts the results of the engine's threads together into one.
#ifndef LOADGEN_ENGINE_ENGINE_MERGE_H
#define LOADGEN_ENGINE_ENGINE_MERGE_H

#include "loadgen/engine/engine_worker.h"

// All threads have ended; a single one's samples are moved, not copied. `result` already has what
// was known before the load. ERROR_FAILED: out of memory.
int engine_merge(const struct engine_shared *shared, struct engine_worker *const *workers,
                 struct engine_result *result, struct error *err);

#endif
