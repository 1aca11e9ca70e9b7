// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/tsc.h"
#include "loadgen/client/client_datagram.h"
#include "loadgen/client/connection_counts.h"

enum {
    // up to this many due requests get a send call each; more share these calls
    CALLS_AT_ONCE = 4,
    CALLS_BEFORE_A_READ = 8, // after this many calls a reply is read even if requests are due
    WINDOW_NS = 20000000,    // so long a thread idled less than 1 / BUSY_SHARE of the time, ...
    BUSY_SHARE = 20,
    BUSY_WINDOWS = 3,         // ... so often in a row: it has none to spare
    EVENTS_AT_ONCE = 64,      // of one round
    REQUESTS_AT_ONCE = 64,    // in all calls of one round together
    NEAR_NS = 2000,           // a request due this soon: spin instead of polling
    QUIET_NS = 30000,         // nothing due for this long: there is time to read TX stamps
    STAMPS_WORTHWHILE = 16,   // read this many at once, or ...
    STAMPS_OLD_NS = 20000000, // ... when they are this old
    // connections with waiting stamps; bounded, as they use the kernel's memory
    UNSTAMPED_MAX = 512,
    LAST_STAMPS_NS = 50000000, // after the end
    LOOK_NS = 1000000,         // so often one connection in LOOKED_AT is looked at without an event
    LOOKED_AT = 1000,
    STAMP_PATIENCE_NS = 1000000000, // after the send call: then a sample goes without its TX stamp
    RELEASED_AT_ONCE = 256,         // samples, in a round: more than it sends
    EMPTY_ROUNDS = 201, // rounds timed before the start, to know the cost of an idle one ...
    EMPTY_ROUNDS_NS = 10000000, // ... for no longer than this
};

// --- connections with room -----------------------------------------------------------------------

// In a closed loop a connection gets its next requests when all before them are answered: as many
// as the depth allows, in one send call and, likely, one receive call of the server. Sending one
// request per reply would keep them apart for ever once they are apart. (Over UDP a reply may never
// come.)
static bool is_draining(const struct engine_worker *worker, struct client_connection *connection)
{
    uint64_t unsettled = connection->put - connection->answered;
    if (!worker->shared->settings->closed_loop || worker->context.datagrams)
        return false;
    connection->draining = unsettled && (connection->draining || unsettled >= connection->depth);
    return connection->draining;
}

// Whether its user has something to think about, or does.
static bool is_thinking(struct engine_worker *worker, struct client_connection *connection)
{
    if (!worker->shared->settings->think)
        return false;
    if (!connection->thinks && connection->put && connection->put == connection->answered)
        think_queue_begin(&worker->thinking, connection, tsc_now(), 1);
    return connection->thinks;
}

void engine_worker_list_room(struct engine_worker *worker, struct client_connection *connection)
{
    if (connection->listed || is_draining(worker, connection) ||
        !connection_has_room(connection, worker->shared->request_bytes) ||
        is_thinking(worker, connection))
        return;
    connection_queue_push(connection->room, connection);
    connection->listed = true;
}

// Those that have thought enough. One without room, which ended meanwhile, is queued when it has.
static void end_thinking(struct engine_worker *worker, uint64_t now)
{
    struct client_connection *connection;
    while ((connection = think_queue_pop(&worker->thinking, now))) {
        if (connection->listed || !connection_has_room(connection, worker->shared->request_bytes))
            continue;
        connection_queue_push(connection->room, connection);
        connection->listed = true;
    }
}

// The next connection in turn that has room, or NULL. One without room is queued again when it has.
static struct client_connection *take_room(struct engine_worker *worker,
                                           struct connection_queue *room)
{
    while (room->count) {
        struct client_connection *connection = connection_queue_pop(room);
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
    connection_queue_push(&worker->unstamped, connection);
    connection->unstamped = true;
}

// Looks at the connection whose stamps have waited longest; reads them when there are enough to be
// worth a call, or when they are urgent.
static void take_stamps_in_turn(struct engine_worker *worker, uint64_t now, bool at_once)
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
    list_unstamped(worker, connection);
}

// Reads all that came, on whichever connection.
static void take_all_stamps(struct engine_worker *worker, uint64_t now)
{
    worker->stamps_taken_tsc = now;
    for (uint32_t left = worker->unstamped.count; left; left--) {
        struct client_connection *connection = connection_queue_pop(&worker->unstamped);
        connection->unstamped = false;
        while (connection_take_stamps(connection, now) == STAMP_BATCH)
            ;
        list_unstamped(worker, connection);
    }
    worker->context.progress = true;
}

// The last stamps may still be on their way. Those that came are read whatever the time: a thread
// that lost its core meanwhile finds the deadline passed.
static void take_last_stamps(struct engine_worker *worker)
{
    uint64_t now = tsc_now(), deadline = now + engine_ticks(worker->shared, LAST_STAMPS_NS);
    take_all_stamps(worker, now);
    for (; worker->unstamped.count && now < deadline; now = tsc_now())
        take_stamps_in_turn(worker, now, true);
}

// --- requests ------------------------------------------------------------------------------------

void engine_worker_put_again(struct engine_worker *worker, uint32_t index)
{
    request_reset(&worker->samples[index]);
    request_list_push(&worker->again, worker->samples, index);
}

bool engine_worker_redirect(struct client_connection *connection, uint64_t slot)
{
    const struct connection_context *context = connection->context;
    struct engine_worker *worker = context->owner;
    uint32_t *place = &connection->slots[slot & connection->slot_mask];
    const uint32_t scrap = (uint32_t)(context->scrap - worker->samples);
    if (*place == scrap || !lanes_redirect(worker->lanes, *place, connection->server,
                                           connection->parser.said, tsc_now()))
        return false;
    *place = scrap; // a stamp that is still to come is of no use
    return true;
}

void engine_worker_fill(struct engine_worker *worker, const struct sample *get)
{
    struct fill_counts *fills = &worker->counts.fills;
    if (!worker->free_fill) {
        fills->left_out++;
        return;
    }
    uint32_t index = (uint32_t)worker->free_fill - 1;
    struct sample *fill = &worker->samples[index];
    worker->free_fill = fill->reply_begin;
    if (worker->lanes)
        worker->lanes->redirections[index] = 0;
    fill->intended_tsc = get->reply_tsc;
    fill->operation = WORKLOAD_SET;
    fill->key = get->key;
    engine_worker_put_again(worker, index);
    fills->begun++;
}

void engine_worker_end_fill(struct engine_worker *worker, struct sample *fill)
{
    fill->reply_begin = worker->free_fill;
    worker->free_fill = (uint64_t)(fill - worker->samples) + 1;
}

static size_t take_again(struct engine_worker *worker)
{
    return request_list_take(&worker->again, worker->samples);
}

static struct sample *sample_at(const struct engine_worker *worker, size_t number)
{
    return &worker->samples[number & worker->mask];
}

// Looks whether more of its requests are there.
static void look_for_more(struct engine_worker *worker)
{
    if (!worker->ring || worker->next < worker->ready || worker->sample_count != SIZE_MAX)
        return;
    // In this order: what is ready when none will follow is all.
    bool whole = atomic_load_explicit(&worker->ring->drawn.whole, memory_order_acquire);
    worker->ready = atomic_load_explicit(&worker->ring->drawn.ready, memory_order_acquire);
    if (whole)
        worker->sample_count = worker->ready;
}

static bool has_more(const struct engine_worker *worker)
{
    return worker->again.count || worker->next < worker->sample_count ||
           (worker->lanes && worker->lanes->waiting);
}

// Where the request whose sample has that index stands in the schedule; a set that follows a miss
// stands nowhere, and only has to differ.
static uint64_t place_of(const struct engine_worker *worker, size_t index)
{
    const size_t newest = worker->next - 1;
    const size_t number =
        index < worker->fills_begin ? newest - ((newest - index) & worker->mask) : index;
    return worker->index + number * worker->shared->thread_count;
}

// The next request of a closed loop, whose intended time is when its connection was free for it;
// but samples are in the order of theirs, so not before that of one which another connection got.
static size_t take_next_of_order(struct engine_worker *worker, uint64_t wanted)
{
    const struct engine_shared *shared = worker->shared;
    const struct scheduled_request *request = &shared->schedule->items[worker->order];
    struct sample *sample = &worker->samples[worker->next];
    sample->intended_tsc = wanted;
    if (worker->next && sample[-1].intended_tsc > wanted)
        sample->intended_tsc = sample[-1].intended_tsc;
    sample->operation = request->operation;
    sample->key = request->key;
    sample->status = SAMPLE_UNSENT;
    worker->order += shared->thread_count;
    while (worker->order >= shared->schedule->count)
        worker->order -= shared->schedule->count;
    return worker->next++;
}

// NULL: that request is none, or the usual one.
static const struct recorded_transaction *transaction_of(const struct engine_worker *worker,
                                                         const struct sample *sample)
{
    const struct workload *workload = worker->shared->settings->workload;
    if (!workload->transactions || !workload->protocol->operations[sample->operation].parts)
        return NULL;
    return transactions_find(workload->transactions,
                             place_of(worker, (size_t)(sample - worker->samples)));
}

uint16_t engine_worker_parts_of(const struct engine_worker *worker, const struct sample *sample)
{
    const struct recorded_transaction *transaction = transaction_of(worker, sample);
    // MULTI's OK, and a QUEUED for each command.
    return (uint16_t)(transaction ? transaction->count + 1
                                  : worker->context.protocol->operations[sample->operation].parts);
}

static void put_request(struct engine_worker *worker, struct client_connection *connection,
                        size_t index)
{
    const struct engine_shared *shared = worker->shared;
    const struct sample *sample = &worker->samples[index];
    struct request request;
    workload_request(shared->settings->workload, sample->operation, sample->key,
                     place_of(worker, index), connection->put, worker->key, worker->value,
                     &request);
    if (shared->settings->workload->protocol->operations[sample->operation].many_keys)
        multiget_add_keys(&shared->multiget, sample->key, &request, worker->more_keys);
    const struct recorded_transaction *transaction = transaction_of(worker, sample);
    if (transaction)
        transaction_add_commands(shared->settings->workload, transaction, transaction->place,
                                 worker->commands, worker->commands_room, &request);
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

// How many of the requests that one round sends are due.
static unsigned count_due(const struct engine_worker *worker, uint64_t now)
{
    size_t due = worker->again.count, at = worker->next;
    while (due < REQUESTS_AT_ONCE && at < worker->ready &&
           sample_at(worker, at)->intended_tsc <= now)
        due++, at++;
    return due < REQUESTS_AT_ONCE ? (unsigned)due : REQUESTS_AT_ONCE;
}

// Puts the next request of a lane, behind ASKING where its node wants that.
static void put_of_lane(struct engine_worker *worker, struct lane *lane,
                        struct client_connection *connection)
{
    const struct connection_context *context = &worker->context;
    bool asking;
    size_t index = lane_take(worker->lanes, lane, &asking);
    const struct request ask = {.operation = context->protocol->operation_count,
                                .number = connection->put};
    if (asking)
        connection_put(connection, (uint32_t)(context->scrap - worker->samples), &ask);
    worker->delayed_by_depth +=
        index < worker->fills_begin && worker->samples[index].intended_tsc < lane->full_tsc;
    put_request(worker, connection, index);
}

// As send_due, each request on a connection to its node.
static unsigned send_to_nodes(struct engine_worker *worker, uint64_t now, unsigned calls)
{
    struct lanes *lanes = worker->lanes;
    struct lane *lane;
    for (unsigned due = count_due(worker, now); due; due--) {
        bool fresh = !worker->again.count;
        lanes_deal(lanes, fresh ? worker->next++ & worker->mask : take_again(worker), fresh);
    }
    uint64_t left = lanes->waiting < REQUESTS_AT_ONCE ? lanes->waiting : REQUESTS_AT_ONCE;
    const uint64_t share = (left + calls - 1) / calls;
    while (left && worker->dirty_count < calls && (lane = lanes_next_ready(lanes))) {
        struct client_connection *connection = take_room(worker, &lane->room);
        if (!connection)
            continue;
        for (uint64_t i = 0; i < share && left && lane->requests.count &&
                             connection_has_room(connection, worker->shared->request_bytes);
             i++, left--)
            put_of_lane(worker, lane, connection);
        engine_worker_list_room(worker, connection);
    }
    lanes_note_full(lanes, now);
    calls = worker->dirty_count;
    flush_dirty(worker, now);
    return calls;
}

// With batch_ns: how long the requests that one call is to take wait for it, from the oldest one
// on, which waits for as long as any may.
static void note_batch(struct engine_worker *worker, size_t oldest, unsigned requests)
{
    struct batch_counts *batches = &worker->counts.batches;
    const uint64_t due = sample_at(worker, oldest)->intended_tsc + worker->batch_tsc;
    batches->calls++;
    batches->largest = requests > batches->largest ? requests : batches->largest;
    for (size_t i = oldest; i < oldest + requests; i++) {
        const uint64_t intended = sample_at(worker, i)->intended_tsc;
        const double ticks = intended < due ? (double)(due - intended) : 0;
        timed_count_note(&batches->waited, (uint64_t)(ticks / worker->shared->ticks_per_ns));
    }
}

// Puts what is due and hands it to the kernel in at most that many send calls, one per connection.
// A few requests use one connection each; more than there are calls for, because the rate is too
// high for single calls or because there was no room, share them. Returns the number of calls.
static unsigned send_due(struct engine_worker *worker, uint64_t now, unsigned calls)
{
    if (worker->lanes)
        return send_to_nodes(worker, now, calls);
    unsigned due = count_due(worker, now), share = (due + calls - 1) / calls;
    while (due && worker->dirty_count < calls) {
        struct client_connection *connection = take_room(worker, &worker->room);
        if (!connection) {
            // While no connection is open the delay is not due to the depth.
            worker->full_tsc = worker->context.open ? now : worker->full_tsc;
            break;
        }
        const size_t first = worker->next;
        for (unsigned i = 0;
             i < share && due && connection_has_room(connection, worker->shared->request_bytes);
             i++, due--) {
            size_t index = worker->again.count ? take_again(worker) : worker->next++ & worker->mask;
            worker->delayed_by_depth +=
                index < worker->fills_begin &&
                worker->samples[index].intended_tsc + worker->batch_tsc < worker->full_tsc;
            put_request(worker, connection, index);
        }
        if (worker->batch_tsc && worker->next > first)
            note_batch(worker, first, (unsigned)(worker->next - first));
        engine_worker_list_room(worker, connection);
    }
    calls = worker->dirty_count;
    flush_dirty(worker, now);
    return calls;
}

// Draws requests until one is that lane's. Others wait for their nodes meanwhile, no more than may
// be in flight: then the slowest node holds up the load, as it would hold up a client that waits.
static bool draw_for_lane(struct engine_worker *worker, const struct lane *lane, uint64_t now)
{
    const uint64_t most = (uint64_t)worker->connection_count * worker->shared->depth;
    while (!lane->requests.count && (worker->again.count || worker->next < worker->sample_count) &&
           worker->lanes->waiting < most) {
        bool fresh = !worker->again.count;
        lanes_deal(worker->lanes, fresh ? take_next_of_order(worker, now) : take_again(worker),
                   fresh);
    }
    return lane->requests.count;
}

static void send_more_to_nodes(struct engine_worker *worker, uint64_t now)
{
    for (uint32_t node = 0; node < worker->lanes->count; node++) {
        struct lane *lane = &worker->lanes->items[node];
        struct client_connection *connection = NULL;
        while (lane->room.count && draw_for_lane(worker, lane, now) &&
               (connection = take_room(worker, &lane->room)))
            while (connection_has_room(connection, worker->shared->request_bytes) &&
                   draw_for_lane(worker, lane, now))
                put_of_lane(worker, lane, connection);
    }
    flush_dirty(worker, now);
}

// A closed loop: fills every connection that may be filled.
static void send_more(struct engine_worker *worker, uint64_t now)
{
    if (worker->lanes) {
        send_more_to_nodes(worker, now);
        return;
    }
    struct client_connection *connection;
    end_thinking(worker, now);
    while (has_more(worker) && (connection = take_room(worker, &worker->room))) {
        const uint64_t wanted = connection->wake_tsc ? connection->wake_tsc : now;
        connection->wake_tsc = 0;
        while (has_more(worker) && connection_has_room(connection, worker->shared->request_bytes))
            put_request(worker, connection,
                        worker->again.count ? take_again(worker)
                                            : take_next_of_order(worker, wanted));
    }
    flush_dirty(worker, now);
}

// The time at which the next request is to be put.
static uint64_t next_due(struct engine_worker *worker)
{
    if (worker->again.count || (worker->lanes && lanes_are_ready(worker->lanes)))
        return 0;
    look_for_more(worker);
    return worker->next < worker->ready
               ? sample_at(worker, worker->next)->intended_tsc + worker->batch_tsc
               : UINT64_MAX;
}

// Send calls of one round. The requests of a logical request go to a connection each.
static unsigned calls_at_once(const struct engine_worker *worker)
{
    const unsigned fanout = worker->shared->settings->workload->fanout;
    if (worker->batch_tsc) // what waited together leaves together
        return 1;
    return fanout <= CALLS_AT_ONCE     ? CALLS_AT_ONCE
           : fanout < REQUESTS_AT_ONCE ? fanout
                                       : REQUESTS_AT_ONCE;
}

// Sends before it reads: sends what is due, and what becomes due meanwhile, while there is room;
// but bounds the number of calls, so that a client which falls behind also reads replies.
static void send_while_due(struct engine_worker *worker, uint64_t now, unsigned at_once)
{
    unsigned left = at_once > CALLS_BEFORE_A_READ ? at_once : CALLS_BEFORE_A_READ;
    for (; left && next_due(worker) <= now; now = tsc_now()) {
        unsigned calls = send_due(worker, now, at_once < left ? at_once : left);
        if (!calls)
            return;
        left -= calls;
    }
}

// Sometimes replies wait on many connections; a request that is due waits for at most one of them
// to be read.
static void take_readiness(struct engine_worker *worker, struct client_connection *connection,
                           uint32_t events)
{
    connection_ready(connection, events);
    engine_worker_list_room(worker, connection);
    if (worker->shared->settings->closed_loop || !connection->room->count)
        return;
    send_while_due(worker, tsc_now(),
                   worker->shared->settings->workload->fanout > 1 ? calls_at_once(worker) : 1);
}

void engine_worker_read_again(struct engine_worker *worker, struct client_connection *connection)
{
    if (connection->unread)
        return;
    connection_queue_push(&worker->unread, connection);
    connection->unread = true;
}

// How long a round lasts depends on how much the servers send: a person does not wait for that.
static bool is_stopped(const struct engine_worker *worker)
{
    return atomic_load_explicit(&worker->shared->stop, memory_order_relaxed);
}

// A connection may end meanwhile; only its timer opens it again, which is not looked at here.
static void take_events(struct engine_worker *worker, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count && !is_stopped(worker); i++)
        take_readiness(worker, events[i].data.ptr, events[i].events);
    for (uint32_t left = worker->unread.count; left && !is_stopped(worker); left--) {
        struct client_connection *connection = connection_queue_pop(&worker->unread);
        connection->unread = false;
        if (connection_is_open(connection))
            take_readiness(worker, connection, EPOLLIN);
    }
}

void engine_worker_poll(struct engine_worker *worker)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    take_events(worker, events, epoll_wait(worker->context.epoll_fd, events, EVENTS_AT_ONCE, 0));
}

static void run_timers(struct engine_worker *worker)
{
    event_base_loop(worker->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

// A client without time to spare is late and measures itself: then it does without most TX stamps,
// the dearest part of them (docs/performance.md). All threads do, for good, so that the requests
// that have one are a fair sample of those from then on.
static void thin_stamps(struct engine_worker *worker, uint64_t now)
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

// For the live view. What waits for a connection with room is the server's debt.
static void show_debt(struct engine_worker *worker, uint64_t now)
{
    struct live_counters *live = worker->context.live;
    const bool room = worker->room.count && !worker->shared->settings->closed_loop;
    const uint64_t due = room ? next_due(worker) : UINT64_MAX;
    live_set(&live->behind, due && due < now ? now - due : 0);
    live_set(&live->idle, worker->spin_tsc + worker->asleep_tsc);
}

// Each connection is looked at once a second, or more often where they are few.
static void look_in_turn(struct engine_worker *worker, uint64_t now)
{
    if (now < worker->look_tsc)
        return;
    worker->look_tsc = now + engine_ticks(worker->shared, LOOK_NS);
    run_timers(worker);
    if (worker->context.live)
        show_debt(worker, now);
    if (worker->shared->settings->stamps_may_thin)
        thin_stamps(worker, now);
    if (worker->lanes)
        lanes_look(worker->lanes, now);
    for (uint32_t left = worker->connection_count / LOOKED_AT + 1; left; left--) {
        worker->looked = worker->looked + 1 < worker->connection_count ? worker->looked + 1 : 0;
        connection_look(&worker->connections[worker->looked]);
        engine_worker_list_room(worker, &worker->connections[worker->looked]);
    }
}

// --- samples that nothing changes any more -------------------------------------------------------

// A request in flight may be answered, one that is not sent may move; and a TX stamp may come later
// than the reply, for which it has time as long as there is room. It may have come and not be read,
// too, where this thread had no core meanwhile.
static bool is_final(struct engine_worker *worker, const struct sample *sample, uint64_t now)
{
    if (sample->status == SAMPLE_UNSENT || sample->status == SAMPLE_TIMED_OUT)
        return false;
    if (!worker->context.kernel_stamps || !sample_lacks_stamp(sample))
        return true;
    if (worker->next - worker->context.final <= worker->mask / 2 &&
        now <= sample->sent_tsc + engine_ticks(worker->shared, STAMP_PATIENCE_NS))
        return false;
    if (worker->stamps_taken_tsc <= sample->sent_tsc)
        take_all_stamps(worker, now);
    return true;
}

// Gives them away, a few at a time.
static void release_samples(struct engine_worker *worker, uint64_t now)
{
    uint64_t *final = &worker->context.final, begin = *final;
    while (*final < worker->next && *final - begin < RELEASED_AT_ONCE &&
           is_final(worker, sample_at(worker, *final), now))
        ++*final;
    if (*final != begin)
        atomic_store_explicit(&worker->ring->sent.final, *final, memory_order_release);
}

// --- the load ------------------------------------------------------------------------------------

// A round that found nothing to do is idle time, up to the duration of a typical idle round. If it
// took longer, something else happened in it (an interrupt, the kernel receiving a reply), and only
// the typical duration counts as idle.
static void note_idle(struct engine_worker *worker, uint64_t spent, uint64_t empty)
{
    worker->spin_tsc += spent <= 2 * empty ? spent : empty;
}

static int compare_tsc(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return order_of(*x, *y);
}

// The median cost of one of EMPTY_ROUNDS rounds, or of fewer: a server that sends before it is
// asked makes rounds that are not empty, and long.
static uint64_t median_round(struct engine_worker *worker, void (*round)(struct engine_worker *))
{
    uint64_t costs[EMPTY_ROUNDS], begin = tsc_now(), now = begin;
    const uint64_t most = engine_ticks(worker->shared, EMPTY_ROUNDS_NS);
    unsigned count = 0;
    while (count < EMPTY_ROUNDS && now - begin <= most) {
        round(worker);
        uint64_t after = tsc_now();
        costs[count++] = after - now;
        now = after;
    }
    qsort(costs, count, sizeof *costs, compare_tsc);
    return costs[count / 2];
}

static void pause_once(struct engine_worker *worker)
{
    (void)worker;
    _mm_pause();
}

// Measures what an idle round costs: medians, of rounds before the start.
static void measure_empty_rounds(struct engine_worker *worker)
{
    worker->empty_poll_tsc = median_round(worker, engine_worker_poll);
    worker->empty_pause_tsc = median_round(worker, pause_once);
}

static void wait_for_events(struct engine_worker *worker, const struct timespec *wait)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    const int epoll_fd = worker->context.epoll_fd;
    int count = epoll_pwait2(epoll_fd, events, EVENTS_AT_ONCE, wait, NULL);
    if (count < 0 && errno == ENOSYS) // before Linux 5.11 to the millisecond, rather too early
        count = epoll_wait(epoll_fd, events, EVENTS_AT_ONCE, (int)(wait->tv_nsec / 1000000));
    take_events(worker, events, count);
}

// Waits for a reply, for the next request's time, or for 10 ms, so that the end is noticed. Time
// asleep counts as spinning, in the processor's time too: what is left is the cost of requests.
static void sleep_until(struct engine_worker *worker, uint64_t now, uint64_t due)
{
    const long longest_ns = 10000000;
    double ns = (double)(due - now) / worker->shared->ticks_per_ns;
    uint64_t cpu_ns = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
    const struct timespec wait = {.tv_nsec = ns < (double)longest_ns ? (long)ns : longest_ns};
    if (worker->unread.count)
        engine_worker_poll(worker);
    else
        wait_for_events(worker, &wait);
    uint64_t passed = tsc_now() - now,
             worked = engine_ticks(worker->shared,
                                   (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    worker->asleep_tsc += passed > worked ? passed - worked : 0;
}

// True when the load is over, with the reason.
static bool is_over(struct engine_worker *worker, uint64_t now, uint64_t deadline)
{
    const struct connection_counts *counts = &worker->counts;
    if (is_stopped(worker))
        worker->end = ENGINE_INTERRUPTED;
    else if (counts->given_up == worker->connection_count && !worker->lanes)
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
        send_while_due(worker, now, calls_at_once(worker));
        engine_worker_poll(worker);
    } else if (due - now <= engine_ticks(worker->shared, NEAR_NS)) {
        _mm_pause();
        empty = worker->empty_pause_tsc;
    } else if (worker->shared->settings->sleeps) {
        sleep_until(worker, now, due);
        worker->context.progress = true; // records which part of it was idle
    } else {
        engine_worker_poll(worker);
        if (!worker->context.progress && due - now > engine_ticks(worker->shared, QUIET_NS))
            take_stamps_in_turn(worker, now, false);
    }
    look_in_turn(worker, now);
    if (worker->ring)
        release_samples(worker, now);
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
    // As if they had begun at any time: users who think equally long would else come all at once.
    struct client_connection *connection;
    while (settings->think && (connection = take_room(worker, &worker->room)))
        think_queue_begin(&worker->thinking, connection, start_tsc,
                          think_queue_draw(&worker->thinking));
    while (!is_over(worker, now, deadline)) {
        worker->context.progress = false;
        if (now >= end)
            worker->sample_count = worker->next; // no requests are left
        look_in_turn(worker, now);
        send_more(worker, now);
        worker->requests_spent |= now < end && worker->next == worker->sample_count;
        engine_worker_poll(worker);
        uint64_t after = tsc_now();
        if (!worker->context.progress)
            note_idle(worker, after - now, worker->empty_poll_tsc);
        now = after;
    }
    worker->sample_count = worker->next;
}

// Of a closed loop, which did not know how many it would need.
static void return_unused_samples(struct engine_worker *worker)
{
    size_t bytes = (worker->sample_count + 1) * sizeof *worker->samples;
    if (bytes < worker->sample_bytes &&
        mremap(worker->samples, worker->sample_bytes, bytes, 0) == worker->samples)
        worker->sample_bytes = bytes;
}

void engine_worker_run(struct engine_worker *worker, uint64_t start_tsc)
{
    const uint64_t awake = engine_ticks(worker->shared, 2000000);
    bool closed = worker->shared->settings->closed_loop;
    if (worker->ring)
        worker->ready = atomic_load(&worker->ring->drawn.ready);
    for (size_t i = 0; i < worker->ready; i++)
        worker->samples[i].intended_tsc += start_tsc;
    while (tsc_now() + awake < start_tsc && !atomic_load(&worker->shared->stop)) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        engine_worker_poll(worker);
        run_timers(worker);
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
    while (worker->again.count) // these are never put again
        take_again(worker);
    if (worker->lanes)
        lanes_end(worker->lanes, worker->fills_begin);
    if (closed)
        return_unused_samples(worker);
    // What an interrupted load never offered is for sample_drain_end() to say.
    if (worker->ring && worker->end != ENGINE_INTERRUPTED)
        atomic_store_explicit(&worker->ring->sent.ended, true, memory_order_release);
}
