// SPDX-License-Identifier: MIT
//
// What a thread of the engine sends, and on which of its connections: requests that are due or, in
// a closed loop, those for which there is room; requests that are put again, sets that follow
// misses, and those of several nodes. A connection with room waits its turn in worker->room, or in
// its lane's.
//
// None of these allocates, locks, or fails; times are of the TSC.
#ifndef LOADGEN_ENGINE_ENGINE_WORKER_SEND_H
#define LOADGEN_ENGINE_ENGINE_WORKER_SEND_H

#include "loadgen/engine/engine_worker.h"

// Queues the connection for requests, if it may take one.
void engine_worker_list_room(struct engine_worker *worker, struct client_connection *connection);

// A closed loop with think time, before it begins: as if its users had begun at any time; those who
// think equally long would else come all at once.
void engine_worker_begin_thinking(struct engine_worker *worker, uint64_t start_tsc);

// Puts a request again, before those not yet put; its sample is reset.
void engine_worker_put_again(struct engine_worker *worker, uint32_t sample);

// Never puts again what waits for that: the load is over.
void engine_worker_forget_again(struct engine_worker *worker);

// Puts a set of a get's key, before those not yet put; and takes its sample back.
void engine_worker_fill(struct engine_worker *worker, const struct sample *get);
void engine_worker_end_fill(struct engine_worker *worker, struct sample *fill);

// connection_context.parts_of, where transactions were recorded.
uint16_t engine_worker_parts_of(const struct engine_worker *worker, const struct sample *sample);

// connection_context.place_of, where multigets were recorded.
uint64_t engine_worker_place_of(const struct engine_worker *worker, const struct sample *sample);

// A reply to the request in that slot is an error: true if the request is put again instead.
bool engine_worker_redirect(struct client_connection *connection, uint64_t slot);

// Whether requests are left that were not put.
bool engine_worker_has_more(const struct engine_worker *worker);

// The time at which the next request is to be put: 0: at once; UINT64_MAX: none is known yet.
uint64_t engine_worker_next_due(struct engine_worker *worker);

// An open loop: sends what is due. There is a bound to it, so that a client which falls behind also
// reads replies.
void engine_worker_send_due(struct engine_worker *worker, uint64_t now);

// The same after replies of one connection were read, while others may wait: what is due waits for
// at most one of them to be read. Nothing in a closed loop.
void engine_worker_send_between_reads(struct engine_worker *worker,
                                      const struct client_connection *read);

// After what was ready on a connection was read: where that was the last of its opening, says what
// is left to be said, a closed loop together with the connection's first requests.
void engine_worker_end_opening(struct engine_worker *worker, struct client_connection *connection);

// A closed loop: fills every connection that may be filled.
void engine_worker_fill_connections(struct engine_worker *worker, uint64_t now);

#endif
