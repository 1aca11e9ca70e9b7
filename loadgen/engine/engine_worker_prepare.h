// SPDX-License-Identifier: MIT
//
// A thread of the engine before and after its load: its memory and its connections.
#ifndef LOADGEN_ENGINE_ENGINE_WORKER_PREPARE_H
#define LOADGEN_ENGINE_ENGINE_WORKER_PREPARE_H

#include "loadgen/engine/engine_worker.h"

// Allocates all memory and connects.
int engine_worker_prepare(struct engine_worker *worker, struct error *err);

// Closes its connections and frees everything but the samples and the connections' log.
void engine_worker_close(struct engine_worker *worker);

#endif
