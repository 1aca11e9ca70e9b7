// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/tsc.h"
#include "loadgen/client/client_datagram.h"
#include "loadgen/client/live_counters.h"
#include "base/clock.h"

enum {
    CALLS_AT_ONCE = 4,         // a few due requests leave in calls of their own, more share these
    CALLS_BEFORE_A_READ = 8,   // then a reply is read even though requests are due
    REQUESTS_AT_ONCE = 64,     // in all calls of one round together
    NEAR_NS = 2000,            // a request this near: spin instead of polling
    QUIET_NS = 30000,          // nothing due for this long: time for TX stamps
    STAMPS_WORTHWHILE = 16,    // so many together, or ...
    STAMPS_OLD_NS = 20000000,  // ... this old
    UNSTAMPED_MAX = 512,       // connections whose stamps wait, before they eat the kernel's memory
    LAST_STAMPS_NS = 50000000, // after the end
    EMPTY_ROUNDS = 201,        // timed before the start, to know what idling costs
};

// --- connections with room -----------------------------------------------------------------------

static void queue_push(struct connection_queue *queue, struct client_connection *connection)
{
    uint32_t place = queue->first + queue->count++;
    queue->items[place < queue->size ? place : place - queue->size] = connection;
}

static struct client_connection *queue_pop(struct connection_queue *queue)
{
    struct client_connection *connection = queue->items[queue->first];
    queue->first = queue->first + 1 == queue->size ? 0 : queue->first + 1;
    queue->count--;
    return connection;
}

// A closed loop has its next requests on a connection when all before them are answered: as many
// together as the depth allows, in one send call and, likely, one receive call of the server. One
// request for each reply would keep them apart for ever once they are. (A datagram's reply may not
// come.)
static bool is_draining(const struct engine_worker *worker, struct client_connection *connection)
{
    uint64_t unsettled = connection->put - connection->answered;
    if (!worker->shared->settings->closed_loop || worker->context.datagrams)
        return false;
    connection->draining = unsettled && (connection->draining || unsettled >= connection->depth);
    return connection->draining;
}

void engine_worker_list_room(struct engine_worker *worker, struct client_connection *connection)
{
    if (connection->listed || is_draining(worker, connection) ||
        !connection_has_room(connection, worker->shared->request_bytes))
        return;
    queue_push(&worker->room, connection);
    connection->listed = true;
}

// The next in turn that has room, or NULL. One that has not comes back when it has.
static struct client_connection *take_room(struct engine_worker *worker)
{
    while (worker->room.count) {
        struct client_connection *connection = queue_pop(&worker->room);
        connection->listed = false;
        if (connection_has_room(connection, worker->shared->request_bytes))
            return connection;
    }
    return NULL;
}

// --- TX stamps -----------------------------------------------------------------------------------

static uint32_t stamps_waiting(const struct client_connection *connection)
{
    return connection->waits ? stamp_waits_count(connection->waits) : 0;
}

static void list_unstamped(struct engine_worker *worker, struct client_connection *connection)
{
    if (connection->unstamped || !stamps_waiting(connection))
        return;
    queue_push(&worker->unstamped, connection);
    connection->unstamped = true;
}

// Looks at the connection that has been waiting longest; takes its stamps when there are enough to
// be worth a call, or at once.
static void take_stamps_in_turn(struct engine_worker *worker, uint64_t now, bool at_once)
{
    if (!worker->unstamped.count)
        return;
    struct client_connection *connection = queue_pop(&worker->unstamped);
    connection->unstamped = false;
    uint32_t waiting = stamps_waiting(connection);
    if (waiting &&
        (at_once || waiting >= STAMPS_WORTHWHILE ||
         now - connection->waits->oldest_tsc > engine_ticks(worker->shared, STAMPS_OLD_NS))) {
        connection_take_stamps(connection, now);
        worker->context.progress = true; // a system call is work, whatever it found
    }
    list_unstamped(worker, connection);
}

// The last stamps may still be on their way.
static void take_last_stamps(struct engine_worker *worker)
{
    uint64_t now = tsc_now(), deadline = now + engine_ticks(worker->shared, LAST_STAMPS_NS);
    for (; worker->unstamped.count && now < deadline; now = tsc_now())
        take_stamps_in_turn(worker, now, true);
}

// --- requests ------------------------------------------------------------------------------------

void engine_worker_put_again(struct engine_worker *worker, uint32_t index)
{
    struct sample *sample = &worker->samples[index];
    *sample = (struct sample){.intended_tsc = sample->intended_tsc,
                              .operation = sample->operation,
                              .key = sample->key,
                              .status = SAMPLE_UNSENT};
    if (worker->again_count++)
        worker->samples[worker->again_last - 1].reply_begin = index + 1;
    else
        worker->again_first = index + 1;
    worker->again_last = index + 1;
}

static size_t take_again(struct engine_worker *worker)
{
    size_t index = worker->again_first - 1;
    worker->again_first = worker->samples[index].reply_begin;
    worker->samples[index].reply_begin = 0;
    worker->again_count--;
    return index;
}

static bool has_more(const struct engine_worker *worker)
{
    return worker->again_count || worker->next < worker->sample_count;
}

// The next request of a closed loop: intended now.
static size_t take_next_of_order(struct engine_worker *worker, uint64_t now)
{
    const struct engine_shared *shared = worker->shared;
    const struct scheduled_request *request = &shared->schedule->items[worker->order];
    struct sample *sample = &worker->samples[worker->next];
    sample->intended_tsc = now;
    sample->operation = request->operation;
    sample->key = request->key;
    sample->status = SAMPLE_UNSENT;
    worker->order += shared->thread_count;
    while (worker->order >= shared->schedule->count)
        worker->order -= shared->schedule->count;
    return worker->next++;
}

static void put_request(struct engine_worker *worker, struct client_connection *connection,
                        size_t index)
{
    const struct engine_shared *shared = worker->shared;
    const struct sample *sample = &worker->samples[index];
    struct request request;
    workload_request(shared->settings->workload, sample->operation, sample->key,
                     worker->index + index * shared->thread_count, connection->put, worker->key,
                     worker->value, &request);
    connection_put(connection, (uint32_t)index, &request);
    if (!connection->dirty) {
        connection->dirty = true;
        worker->dirty[worker->dirty_count++] = connection;
    }
}

static void flush_dirty(struct engine_worker *worker, uint64_t now)
{
    for (uint32_t i = 0; i < worker->dirty_count; i++) {
        struct client_connection *connection = worker->dirty[i];
        connection_flush(connection);
        engine_worker_list_room(worker, connection);
        if (connection->waits &&
            stamp_waits_urgent(connection->waits, connection->put, connection->slot_mask + 1))
            connection_take_stamps(connection, now);
        list_unstamped(worker, connection);
        if (worker->unstamped.count > UNSTAMPED_MAX)
            take_stamps_in_turn(worker, now, true);
        worker->context.progress = true;
    }
    worker->dirty_count = 0;
    if (worker->context.live)
        live_set(&worker->context.live->in_flight, worker->counts.in_flight);
}

// How many of the requests that go out in one round are due.
static unsigned count_due(const struct engine_worker *worker, uint64_t now)
{
    size_t due = worker->again_count, at = worker->next;
    while (due < REQUESTS_AT_ONCE && at < worker->sample_count &&
           worker->samples[at].intended_tsc <= now)
        due++, at++;
    return due < REQUESTS_AT_ONCE ? (unsigned)due : REQUESTS_AT_ONCE;
}

// Puts what is due and gives it to the kernel in at most that many send calls, one a connection. A
// few requests go to as many connections; more than there are calls for, because the rate is higher
// than that of single calls or because there was no room, share them. Returns how many calls.
static unsigned send_due(struct engine_worker *worker, uint64_t now, unsigned calls)
{
    unsigned due = count_due(worker, now), share = (due + calls - 1) / calls;
    while (due && worker->dirty_count < calls) {
        struct client_connection *connection = take_room(worker);
        if (!connection) {
            // While none is open it is not the depth that delays.
            worker->full_tsc = worker->context.open ? now : worker->full_tsc;
            break;
        }
        for (unsigned i = 0;
             i < share && due && connection_has_room(connection, worker->shared->request_bytes);
             i++, due--) {
            size_t index = worker->again_count ? take_again(worker) : worker->next++;
            worker->delayed_by_depth += worker->samples[index].intended_tsc < worker->full_tsc;
            put_request(worker, connection, index);
        }
        engine_worker_list_room(worker, connection);
    }
    calls = worker->dirty_count;
    flush_dirty(worker, now);
    return calls;
}

// A closed loop: fills every connection that may be filled.
static void send_more(struct engine_worker *worker, uint64_t now)
{
    struct client_connection *connection;
    while (has_more(worker) && (connection = take_room(worker)))
        while (has_more(worker) && connection_has_room(connection, worker->shared->request_bytes))
            put_request(worker, connection,
                        worker->again_count ? take_again(worker) : take_next_of_order(worker, now));
    flush_dirty(worker, now);
}

// When the next request is to be put.
static uint64_t next_due(const struct engine_worker *worker)
{
    if (worker->again_count)
        return 0;
    return worker->next < worker->sample_count ? worker->samples[worker->next].intended_tsc
                                               : UINT64_MAX;
}

// Sends before reads: gives the kernel what is due, and what has become due meanwhile, while there
// is room for it; but for so many calls that a client which falls behind reads replies as well.
static void send_while_due(struct engine_worker *worker, uint64_t now, unsigned at_once)
{
    for (unsigned left = CALLS_BEFORE_A_READ; left && next_due(worker) <= now; now = tsc_now()) {
        unsigned calls = send_due(worker, now, at_once < left ? at_once : left);
        if (!calls)
            return;
        left -= calls;
    }
}

// Replies wait on many connections at times; a request that is due waits for one of them to be read
// at most.
void engine_worker_on_ready(evutil_socket_t socket_fd, short what, void *argument)
{
    (void)socket_fd, (void)what;
    struct client_connection *connection = argument;
    struct engine_worker *worker = connection->context->owner;
    connection_ready(connection);
    engine_worker_list_room(worker, connection);
    if (worker->shared->settings->closed_loop || !worker->room.count)
        return;
    send_while_due(worker, tsc_now(), 1);
}

// --- the run -------------------------------------------------------------------------------------

// A round that found nothing to do is idle time, as long as it took no longer than such rounds do:
// else something was done in it after all (an interrupt, the kernel's receiving of a reply), and
// only what an empty round takes was idle.
static void note_idle(struct engine_worker *worker, uint64_t spent, uint64_t empty)
{
    worker->spin_tsc += spent <= 2 * empty ? spent : empty;
}

static int compare_tsc(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return order_of(*x, *y);
}

// What idling costs here: medians, of rounds before the start.
static void measure_empty_rounds(struct engine_worker *worker)
{
    uint64_t polls[EMPTY_ROUNDS], pauses[EMPTY_ROUNDS];
    uint64_t now = tsc_now();
    for (unsigned i = 0; i < 2 * EMPTY_ROUNDS; i++) {
        if (i < EMPTY_ROUNDS)
            event_base_loop(worker->base, EVLOOP_NONBLOCK);
        else
            _mm_pause();
        uint64_t after = tsc_now();
        *(i < EMPTY_ROUNDS ? &polls[i] : &pauses[i - EMPTY_ROUNDS]) = after - now;
        now = after;
    }
    qsort(polls, EMPTY_ROUNDS, sizeof *polls, compare_tsc);
    qsort(pauses, EMPTY_ROUNDS, sizeof *pauses, compare_tsc);
    worker->empty_poll_tsc = polls[EMPTY_ROUNDS / 2];
    worker->empty_pause_tsc = pauses[EMPTY_ROUNDS / 2];
}

// Waits for a reply, for the next request's time, or for 10 ms, so that the run's end is seen. Time
// asleep counts as spent spinning, of the processor's time too: what is left is what requests cost.
static void sleep_until(struct engine_worker *worker, uint64_t now, uint64_t due)
{
    const uint64_t longest_ns = 10000000;
    double ns = (double)(due - now) / worker->shared->ticks_per_ns;
    uint64_t us = (ns < (double)longest_ns ? (uint64_t)ns : longest_ns) / 1000;
    uint64_t cpu_ns = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
    struct timeval wait = {.tv_usec = (suseconds_t)us};
    evtimer_add(worker->alarm, &wait);
    event_base_loop(worker->base, EVLOOP_ONCE);
    evtimer_del(worker->alarm);
    uint64_t passed = tsc_now() - now,
             worked = engine_ticks(worker->shared,
                                   (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    worker->asleep_tsc += passed > worked ? passed - worked : 0;
}

// True when the run is over, and why.
static bool is_over(struct engine_worker *worker, uint64_t now, uint64_t deadline)
{
    const struct connection_counts *counts = &worker->counts;
    if (atomic_load_explicit(&worker->shared->stop, memory_order_relaxed))
        worker->end = ENGINE_INTERRUPTED;
    else if (counts->given_up == worker->connection_count)
        worker->end = ENGINE_BROKEN;
    else if (!has_more(worker) && counts->in_flight == 0)
        worker->end = ENGINE_COMPLETE;
    else if (now > deadline)
        worker->end = ENGINE_TIMED_OUT;
    else
        return false;
    return true;
}

uint64_t engine_worker_turn(struct engine_worker *worker, uint64_t now)
{
    uint64_t due = next_due(worker), empty = worker->empty_poll_tsc;
    worker->context.progress = false;
    if (due <= now) {
        send_while_due(worker, now, CALLS_AT_ONCE);
        event_base_loop(worker->base, EVLOOP_NONBLOCK);
    } else if (due - now <= engine_ticks(worker->shared, NEAR_NS)) {
        _mm_pause();
        empty = worker->empty_pause_tsc;
    } else if (worker->shared->settings->sleeps) {
        sleep_until(worker, now, due);
        worker->context.progress = true; // has noted what was idle of it
    } else {
        event_base_loop(worker->base, EVLOOP_NONBLOCK);
        if (!worker->context.progress && due - now > engine_ticks(worker->shared, QUIET_NS))
            take_stamps_in_turn(worker, now, false);
    }
    uint64_t after = tsc_now();
    if (!worker->context.progress)
        note_idle(worker, after - now, empty);
    return after;
}

static void run_loop(struct engine_worker *worker, uint64_t start_tsc)
{
    const struct engine_settings *settings = worker->shared->settings;
    uint64_t deadline = start_tsc + engine_ticks(worker->shared, settings->duration_ns) +
                        engine_ticks(worker->shared, settings->timeout_ns);
    for (uint64_t now = tsc_now(); !is_over(worker, now, deadline);)
        now = engine_worker_turn(worker, now);
}

static void run_closed_loop(struct engine_worker *worker, uint64_t start_tsc)
{
    const struct engine_settings *settings = worker->shared->settings;
    uint64_t end = start_tsc + engine_ticks(worker->shared, settings->duration_ns);
    uint64_t deadline = end + engine_ticks(worker->shared, settings->timeout_ns), now;
    while ((now = tsc_now()) < start_tsc)
        _mm_pause();
    while (!is_over(worker, now, deadline)) {
        worker->context.progress = false;
        if (now >= end)
            worker->sample_count = worker->next; // that was all
        send_more(worker, now);
        worker->requests_spent |= now < end && worker->next == worker->sample_count;
        event_base_loop(worker->base, EVLOOP_NONBLOCK);
        uint64_t after = tsc_now();
        if (!worker->context.progress)
            note_idle(worker, after - now, worker->empty_poll_tsc);
        now = after;
    }
    worker->sample_count = worker->next;
    // The room that was not needed goes back.
    size_t bytes = (worker->sample_count + 1) * sizeof *worker->samples;
    if (bytes < worker->sample_bytes &&
        mremap(worker->samples, worker->sample_bytes, bytes, 0) == worker->samples)
        worker->sample_bytes = bytes;
}

void engine_worker_run(struct engine_worker *worker, uint64_t start_tsc)
{
    const uint64_t awake = engine_ticks(worker->shared, 2000000);
    bool closed = worker->shared->settings->closed_loop;
    for (size_t i = 0; i < worker->sample_count && !closed; i++)
        worker->samples[i].intended_tsc += start_tsc;
    while (tsc_now() + awake < start_tsc && !atomic_load(&worker->shared->stop)) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        event_base_loop(worker->base, EVLOOP_NONBLOCK);
    }
    measure_empty_rounds(worker);
    uint64_t ready = tsc_now();
    worker->late_tsc = ready > start_tsc ? ready - start_tsc : 0;
    uint64_t cpu_ns = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
    if (closed)
        run_closed_loop(worker, start_tsc);
    else
        run_loop(worker, start_tsc);
    worker->cpu_ns = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    worker->spin_tsc += worker->asleep_tsc;
    worker->cpu_ns += (uint64_t)((double)worker->asleep_tsc / worker->shared->ticks_per_ns);
    worker->end_tsc = tsc_now();
    take_last_stamps(worker);
    worker->stamps_unknown = worker->counts.stamps_unknown;
    for (uint32_t i = 0; i < worker->connection_count && worker->context.kernel_stamps; i++)
        worker->stamps_unknown += worker->connections[i].waits->unknown;
    while (worker->again_count) // never put again
        take_again(worker);
}
