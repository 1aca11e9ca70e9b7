// SPDX-License-Identifier: MIT
//
// One thread of the engine: its own connections, share of the schedule, samples, counters, and
// epoll and timers. While the load lasts the only thing that threads share and write is the flag
// that ends it, so no thread waits for another, or for a cache line that another one writes.
//
// Thread w of T sends requests w, w + T, w + 2T, ... of the one schedule on connections w, w + T,
// ...: together they send exactly that schedule, for any arrivals and any T. (For Poisson arrivals
// each thread could also draw its own, and their superposition would be right; but dealt in turn, a
// thread's requests are further apart and wait less for one another.)
#ifndef LOADGEN_ENGINE_ENGINE_WORKER_H
#define LOADGEN_ENGINE_ENGINE_WORKER_H

#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "loadgen/client/client_connection.h"
#include "loadgen/client/slow_replies.h"
#include "loadgen/engine/connection_queue.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/engine/engine_settings.h"
#include "loadgen/engine/lanes.h"
#include "loadgen/engine/request_list.h"
#include "loadgen/engine/sample_ring.h"
#include "loadgen/engine/sample_totals.h"
#include "loadgen/engine/schedule.h"
#include "loadgen/engine/think_queue.h"
#include "workloads/multiget.h"
#include "workloads/transactions.h"

enum { CACHE_LINE = 64 };

// What all threads read. Written before they begin, but for what has a cache line of its own at the
// end: that is written seldom, or by a person.
struct engine_shared {
    const struct engine_settings *settings;
    const struct schedule *schedule; // NULL: in bounded memory, it is drawn meanwhile
    size_t ring_size;                // of each thread, then; a power of two
    bool closed_bounded;             // a closed loop in bounded memory
    uint32_t thread_count;
    uint32_t depth;
    bool kernel_stamps;
    uint32_t stamps_every; // as in connection_context, at the begin
    bool hardware_stamps;  // the NIC's stamps are on, in addition to the kernel's
    bool hardware_tx;      // also of what is sent
    double ticks_per_ns;
    struct multiget multiget;
    struct transaction_most transaction_most; // that were recorded
    size_t request_bytes;                     // bytes of the longest request, as it leaves
    size_t encoded_bytes;                     // the same before it is encrypted
    struct ssl_ctx_st *tls;                   // NULL: no TLS
    struct bio_method_st *tls_method;
    size_t value_bytes;     // bytes of the longest value
    size_t carried_bytes;   // bytes of the longest value in a request; 0: only replies have any
    struct node_map *nodes; // NULL: there is one server
    atomic_bool stop;       // a person ended the load, or another thread could not begin
    // When a thread had so little time left that from then on fewer send calls are stamped; 0:
    // never.
    _Atomic uint64_t thinned_tsc;
    _Atomic uint32_t last_id __attribute__((aligned(CACHE_LINE))); // over all connections
    struct slow_replies slow __attribute__((aligned(CACHE_LINE)));
};

// Only its own thread writes it while the load lasts.
struct engine_worker {
    struct engine_shared *shared;
    uint32_t index;
    struct event_base *base; // of its timers
    struct client_connection *connections;
    uint32_t connection_count;
    struct client_connection **dirty; // connections to flush, in the order of their first request
    uint32_t dirty_count;
    struct connection_queue room;      // connections that may take a request, in turn
    struct think_queue thinking;       // closed loop: connections whose users think
    struct connection_queue unstamped; // connections with sends that wait for their TX stamps
    struct connection_queue unread;    // connections to be read again without an event
    struct connection_queue reopening; // connections to be opened again without a pause
    struct connection_context context;
    uint64_t window_tsc, window_spin_tsc; // since when it is seen how much it idles; spin_tsc then
    uint32_t busy_windows;                // so often in a row it hardly did
    uint64_t stamps_taken_tsc;            // when the stamps of all connections were last read
    uint64_t look_tsc;                    // when the next connection is looked at without an event
    uint32_t looked;                      // the last one
    uint64_t empty_poll_tsc, empty_pause_tsc; // duration of an idle round
    uint64_t readinesses;                     // of connections, so far
    size_t next;                              // first of its requests not yet put
    size_t ready;             // first of them that is not there yet, as far as known
    uint64_t mask;            // request n is samples[n & mask]; all bits are set: all are kept
    struct sample_ring *ring; // of a schedule in bounded memory; else NULL
    // Closed loop in bounded memory: what takes its samples; else NULL.
    struct sample_totals *totals;
    uint64_t last_intended_tsc; // closed loop
    struct sample_sent *sent;   // where it says which samples are final; NULL: nobody asks
    uint64_t final;             // the first that is not, as it last said
    struct request_list again;  // to be put again because their connection ended
    struct lanes *lanes;        // of a load on several nodes; NULL: all connections are alike
    // The sets that follow misses: their samples are the ENGINE_FILLS behind those of the requests.
    // Free ones are linked as a request_list is. What is put besides has the one behind these.
    size_t fills_begin;
    uint64_t free_fill;
    size_t order;       // closed loop: index in the schedule of the next request
    uint64_t full_tsc;  // when there was last no connection with room
    uint64_t batch_tsc; // settings->batch_ns
    char *key, *more_keys, *value, *commands_room;
    struct request *commands; // of a recorded transaction, in that room

    // What the result takes over.
    struct sample *samples; // of its requests, in their order
    size_t sample_count;    // SIZE_MAX: it is not known yet
    size_t sample_bytes;    // of the mapping
    struct connection_counts counts;
    enum engine_end end;
    bool requests_spent;
    uint64_t asleep_tsc; // of a thread that sleeps; also part of cpu_ns and spin_tsc
    // Since asleep_tsc was last added to: how long it waited, and the time and its CPU time then.
    uint64_t waited_tsc, noted_tsc, noted_cpu_ns;
    uint64_t deadline_tsc; // of the last reply; 0: the load has not begun
    uint64_t end_tsc, late_tsc, cpu_ns, spin_tsc, delayed_by_depth;
    struct standstill standstill;

    // Between the thread and the one that started it (engine.c).
    pthread_t thread;
    int core; // the core to be pinned to; -1: any
    int news; // eventfd: written once when it is ready, and once when it has ended
    sem_t go; // posted when start_tsc is set; start_tsc 0: it must not begin
    uint64_t start_tsc;
    int status; // result of engine_worker_prepare, with `err`
    struct error err;
} __attribute__((aligned(CACHE_LINE)));

// The most sets after misses that a thread has under way.
enum { ENGINE_FILLS = 16384 };

static inline uint64_t engine_ticks(const struct engine_shared *shared, uint64_t ns)
{
    return (uint64_t)((double)ns * shared->ticks_per_ns);
}

// What each thread of a closed loop in bounded memory has for the samples that it keeps: a third of
// its share, as they are judged in the rest.
static inline size_t engine_closed_bytes(const struct engine_shared *shared)
{
    return shared->settings->memory_bytes / 3 / shared->thread_count;
}

// Its request of that number, in its own order.
static inline struct sample *engine_worker_sample(const struct engine_worker *worker, size_t number)
{
    return &worker->samples[number & worker->mask];
}

#endif
