// SPDX-License-Identifier: MIT
//
// What a thread of the engine does from the load's begin to its end: rounds in which it sends what
// is due, reads what came and, with nothing due, waits; and how much of its time was idle.
#ifndef LOADGEN_ENGINE_ENGINE_WORKER_RUN_H
#define LOADGEN_ENGINE_ENGINE_WORKER_RUN_H

#include "loadgen/engine/engine_worker.h"

// One round of what is ready, of what earlier rounds left unread, and of connections that ended in
// them, which are opened first. Never more: to go on until nothing is ready would last as long as a
// server keeps sending.
void engine_worker_poll(struct engine_worker *worker);

// One round of an open loop at `now`: sends what is due, then reads; with nothing due it looks for
// replies and reads stamps. Returns the time when it ended.
uint64_t engine_worker_turn(struct engine_worker *worker, uint64_t now);

// Queues a connection to be read again in a later round.
void engine_worker_read_again(struct engine_worker *worker, struct client_connection *connection);

// Queues a connection to be opened again when the next round begins.
void engine_worker_open_again(struct engine_worker *worker, struct client_connection *connection);

// Sends its share of the schedule, which begins at start_tsc, and waits for the replies.
void engine_worker_run(struct engine_worker *worker, uint64_t start_tsc);

#endif
