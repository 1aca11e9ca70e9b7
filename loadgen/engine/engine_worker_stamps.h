// SPDX-License-Identifier: MIT
//
// When a thread of the engine reads the kernel's TX stamps, and of how many send calls it asks for
// one: reading them is a system call each time, which must not make requests late. Connections
// whose stamps are still to come wait their turn in worker->unstamped.
//
// None of these allocates, locks, or fails; times are of the TSC.
#ifndef LOADGEN_ENGINE_ENGINE_WORKER_STAMPS_H
#define LOADGEN_ENGINE_ENGINE_WORKER_STAMPS_H

#include "loadgen/engine/engine_worker.h"

// After a send call: queues the connection if stamps of it are to come. Reads some at once where so
// many wait that the kernel could run out of memory for them.
void engine_worker_await_stamps(struct engine_worker *worker, struct client_connection *connection,
                                uint64_t now);

// Looks at the connection whose stamps have waited longest; reads them when there are enough to be
// worth a call, or at once.
void engine_worker_take_stamps_in_turn(struct engine_worker *worker, uint64_t now, bool at_once);

// Reads all that came, on whichever connection.
void engine_worker_take_all_stamps(struct engine_worker *worker, uint64_t now);

// The last stamps may still be on their way. Those that came are read whatever the time: a thread
// that lost its core meanwhile finds the deadline passed.
void engine_worker_take_last_stamps(struct engine_worker *worker);

// A client without time to spare is late and measures itself: then it does without most TX stamps,
// the dearest part of them (docs/performance.md). All threads do, for good, so that the requests
// that have one are a fair sample of those from then on.
void engine_worker_thin_stamps(struct engine_worker *worker, uint64_t now);

#endif
