// SPDX-License-Identifier: MIT
//
// The results of an engine's threads become one.
#ifndef LOADGEN_ENGINE_ENGINE_MERGE_H
#define LOADGEN_ENGINE_ENGINE_MERGE_H

#include "base/error.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/engine/engine_worker.h"

// All threads have ended; a single one's samples are moved, not copied. `result` already has what
// was known before the load. ERROR_FAILED: out of memory.
int engine_merge(const struct engine_shared *shared, struct engine_worker *const *workers,
                 struct engine_result *result, struct error *err);

#endif
