// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_worker_stamps.h"

#include "base/tsc.h"

enum {
    WINDOW_NS = 20000000, // so long a thread idled less than 1 / BUSY_SHARE of the time, ...
    BUSY_SHARE = 20,
    BUSY_WINDOWS = 3,         // ... so often in a row: it has none to spare
    STAMPS_WORTHWHILE = 16,   // read this many at once, or ...
    STAMPS_OLD_NS = 20000000, // ... when they are this old
    // connections with waiting stamps; bounded, as they use the kernel's memory
    UNSTAMPED_MAX = 512,
    LAST_STAMPS_NS = 50000000, // after the end
};

static uint32_t stamps_waiting(const struct client_connection *connection)
{
    return connection->waits ? stamp_waits_count(connection->waits) : 0;
}

static void queue_unstamped(struct engine_worker *worker, struct client_connection *connection)
{
    if (connection->unstamped || !stamps_waiting(connection))
        return;
    connection_queue_push(&worker->unstamped, connection);
    connection->unstamped = true;
}

void engine_worker_take_stamps_in_turn(struct engine_worker *worker, uint64_t now, bool at_once)
{
    if (!worker->unstamped.count)
        return;
    struct client_connection *connection = connection_queue_pop(&worker->unstamped);
    connection->unstamped = false;
    uint32_t waiting = stamps_waiting(connection);
    if (waiting &&
        (at_once || waiting >= STAMPS_WORTHWHILE ||
         now - connection->waits->oldest_tsc > engine_ticks(worker->shared, STAMPS_OLD_NS))) {
        connection_take_stamps(connection, now);
        worker->context.progress = true; // a system call is work, even if it found nothing
    }
    queue_unstamped(worker, connection);
}

void engine_worker_take_all_stamps(struct engine_worker *worker, uint64_t now)
{
    worker->stamps_taken_tsc = now;
    for (uint32_t left = worker->unstamped.count; left; left--) {
        struct client_connection *connection = connection_queue_pop(&worker->unstamped);
        connection->unstamped = false;
        while (connection_take_stamps(connection, now) == STAMP_BATCH)
            ;
        queue_unstamped(worker, connection);
    }
    worker->context.progress = true;
}

void engine_worker_await_stamps(struct engine_worker *worker, struct client_connection *connection,
                                uint64_t now)
{
    if (connection->waits &&
        stamp_waits_urgent(connection->waits, connection->put, connection->slot_mask + 1))
        connection_take_stamps(connection, now);
    queue_unstamped(worker, connection);
    if (worker->unstamped.count > UNSTAMPED_MAX)
        engine_worker_take_stamps_in_turn(worker, now, true);
}

void engine_worker_take_last_stamps(struct engine_worker *worker)
{
    uint64_t now = tsc_now(), deadline = now + engine_ticks(worker->shared, LAST_STAMPS_NS);
    engine_worker_take_all_stamps(worker, now);
    for (; worker->unstamped.count && now < deadline; now = tsc_now())
        engine_worker_take_stamps_in_turn(worker, now, true);
}

void engine_worker_thin_stamps(struct engine_worker *worker, uint64_t now)
{
    struct engine_shared *shared = worker->shared;
    uint64_t none = 0;
    if (worker->context.stamps_every != 1)
        return;
    if (!atomic_load_explicit(&shared->thinned_tsc, memory_order_relaxed)) {
        const uint64_t passed = now - worker->window_tsc;
        if (passed < engine_ticks(shared, WINDOW_NS))
            return;
        const uint64_t idled = worker->spin_tsc + worker->asleep_tsc - worker->window_spin_tsc;
        const bool busy = worker->window_tsc && idled * BUSY_SHARE < passed;
        worker->busy_windows = busy ? worker->busy_windows + 1 : 0;
        worker->window_tsc = now;
        worker->window_spin_tsc = worker->spin_tsc + worker->asleep_tsc;
        if (worker->busy_windows < BUSY_WINDOWS)
            return;
        atomic_compare_exchange_strong(&shared->thinned_tsc, &none, now);
    }
    worker->context.stamps_every = ENGINE_STAMPS_THINNED;
}
