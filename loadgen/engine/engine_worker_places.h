// SPDX-License-Identifier: MIT
//
// The samples of a closed loop in bounded memory: a ring of a few times as many places as requests
// may be in flight, small enough to stay in a core's cache. When the loop comes round to a place,
// its thread takes what is there into its totals (sample_totals.h), and puts the next request in
// it; a place whose request is still open is passed over, so none holds up the others, however long
// it takes. No other thread is waited for, or looks on.
#ifndef LOADGEN_ENGINE_ENGINE_WORKER_PLACES_H
#define LOADGEN_ENGINE_ENGINE_WORKER_PLACES_H

#include "loadgen/engine/engine_worker.h"

// So many places a worker's connections need: a power of two.
size_t engine_places_needed(uint64_t connections, uint32_t depth);

// The number of its next request, whose place is free, or becomes so; SIZE_MAX: none is now.
size_t engine_worker_next_place(struct engine_worker *worker, uint64_t now);

// The load is over: takes what is in the places.
void engine_worker_take_places(struct engine_worker *worker);

#endif
