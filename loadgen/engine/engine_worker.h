// SPDX-License-Identifier: MIT
//
// One thread of the engine: its own connections, its own share of the schedule, its own samples and
// counters, its own libevent base. While the run lasts threads share nothing that is written but
// the flag that ends it, so that none waits for another or for a cache line of another's.
//
// Thread w of T sends requests w, w + T, w + 2T, ... of the one schedule on connections w, w + T,
// ...: what all of them send together is exactly that schedule, for whatever arrivals and whatever
// T. (Poisson arrivals could also be drawn by each thread for itself, and their superposition be
// right; dealt in turn, a thread's own requests lie further apart and wait less for one another.)
#ifndef LOADGEN_ENGINE_ENGINE_WORKER_H
#define LOADGEN_ENGINE_ENGINE_WORKER_H

#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "loadgen/client/client_connection.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/engine/engine_settings.h"
#include "loadgen/engine/schedule.h"

// What all threads read. Written before they begin, but for `stop`.
struct engine_shared {
    const struct engine_settings *settings;
    const struct schedule *schedule;
    uint32_t thread_count;
    uint32_t depth;
    bool kernel_stamps;
    bool hardware_stamps; // the NIC's, beside the kernel's
    double ticks_per_ns;
    size_t request_bytes;     // the longest request
    size_t value_bytes;       // the longest value
    _Atomic uint32_t last_id; // of any connection
    atomic_bool stop;         // a person ended the run, or another thread could not begin
};

// Connections that await something, first come, first served; each is in it once at most.
struct connection_queue {
    struct client_connection **items;
    uint32_t size; // room for all of the thread's
    uint32_t first, count;
};

struct engine_worker {
    struct engine_shared *shared;
    uint32_t index;
    struct event_base *base;
    struct event *alarm; // of one that sleeps
    struct client_connection *connections;
    uint32_t connection_count;
    struct client_connection **dirty; // to flush, in the order of their first request
    uint32_t dirty_count;
    struct connection_queue room;      // those that may take a request, in turn
    struct connection_queue unstamped; // those with sends that await their TX stamps
    struct connection_context context;
    uint64_t empty_poll_tsc, empty_pause_tsc; // what a round takes that finds nothing to do
    size_t next;                              // first of its requests not yet put
    // Requests to be put once more because their connection ended: a list through the reply_begin
    // of their samples, which has no other meaning before a reply. Indices plus 1; 0: none.
    uint64_t again_first, again_last, again_count;
    size_t order;      // of a closed loop: the place in the schedule of the next request
    uint64_t full_tsc; // when no connection last had room
    char *key, *value;

    // What is left of it for the result.
    struct sample *samples; // of its requests, in their order
    size_t sample_count;
    size_t sample_bytes; // of the mapping
    struct connection_counts counts;
    enum engine_end end;
    bool requests_spent;
    uint64_t asleep_tsc; // of one that sleeps; in cpu_ns and spin_tsc, too
    uint64_t end_tsc, late_tsc, cpu_ns, spin_tsc, delayed_by_depth, stamps_unknown;

    // Between it and the thread that began it (engine.c).
    pthread_t thread;
    int core; // to be pinned to; -1: wherever
    int news; // eventfd: 1 when it is ready, 1 when it has ended
    sem_t go; // posted when start_tsc says when to begin, or with 0 that it shall not
    uint64_t start_tsc;
    int status; // of engine_worker_prepare, with `err`
    struct error err;
};

static inline uint64_t engine_ticks(const struct engine_shared *shared, uint64_t ns)
{
    return (uint64_t)((double)ns * shared->ticks_per_ns);
}

// The answer to an event of a connection.
void engine_worker_on_ready(evutil_socket_t socket_fd, short what, void *connection);

// One turn of an open loop at `now`: sends what is due, then reads; or, with nothing due, looks for
// replies and takes stamps. Returns when it ended.
uint64_t engine_worker_turn(struct engine_worker *worker, uint64_t now);

// Puts a request once more, before any that is not yet put; its sample is as new.
void engine_worker_put_again(struct engine_worker *worker, uint32_t sample);

// Puts the connection among those that may take a request, if it may.
void engine_worker_list_room(struct engine_worker *worker, struct client_connection *connection);

// Takes all memory and connects (engine_worker_prepare.c, and engine_worker_close).
int engine_worker_prepare(struct engine_worker *worker, struct error *err);

// Sends its share of the schedule, which begins at start_tsc, and waits for the replies.
void engine_worker_run(struct engine_worker *worker, uint64_t start_tsc);

// Closes its connections and frees everything but the samples and the connections' log.
void engine_worker_close(struct engine_worker *worker);

#endif
