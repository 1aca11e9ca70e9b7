// SPDX-License-Identifier: MIT
//
// What the engine's threads leave, put together into the result of one run.
#ifndef LOADGEN_ENGINE_ENGINE_MERGE_H
#define LOADGEN_ENGINE_ENGINE_MERGE_H

#include "loadgen/engine/engine_worker.h"

// Of all threads, which have ended; a single one's samples are taken from it, not copied. `result`
// has what was known before the run. ERROR_FAILED: out of memory.
int engine_merge(const struct engine_shared *shared, struct engine_worker *const *workers,
                 struct engine_result *result, struct error *err);

#endif
