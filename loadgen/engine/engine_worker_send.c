// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_worker_send.h"

#include "base/tsc.h"
#include "loadgen/client/connection_counts.h"
#include "loadgen/engine/engine_worker_places.h"
#include "loadgen/engine/engine_worker_stamps.h"

enum {
    // up to this many due requests get a send call each; more share these calls
    CALLS_AT_ONCE = 4,
    CALLS_BEFORE_A_READ = 8, // after this many calls a reply is read even if requests are due
    REQUESTS_AT_ONCE = 64,   // in all calls of one round together
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

// Whether its user has something to think about, or does: after replies, and in front of a session.
static bool is_thinking(struct engine_worker *worker, struct client_connection *connection)
{
    if (!worker->shared->settings->think)
        return false;
    const bool began = connection->put || (worker->context.session && connection->ended_tsc);
    if (!connection->thinks && began && connection->put == connection->answered)
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

// --- the requests --------------------------------------------------------------------------------

void engine_worker_put_again(struct engine_worker *worker, uint32_t index)
{
    request_reset(&worker->samples[index]);
    request_list_push(&worker->again, worker->samples, index);
}

// The server does not know what the request names: it was started again, or told to forget. Each
// connection to it spells that out once; what is sent behind that can name it. Requests that were
// sent before are put again as well. False: it is another error, or does not even know it then.
static bool spell_out(struct engine_worker *worker, struct client_connection *connection,
                      uint64_t slot, uint32_t index)
{
    const struct protocol *protocol = worker->context.protocol;
    const char *said = connection->parser.said;
    said += *said == '-';
    if (!protocol->operations[worker->samples[index].operation].named ||
        strncmp(said, protocol->unnamed, strlen(protocol->unnamed)) != 0 ||
        slot + 1 == connection->spelled)
        return false;
    const bool is_news = slot >= connection->spelled && !connection->spells;
    for (uint32_t i = 0; is_news && i < worker->connection_count; i++) {
        struct client_connection *other = &worker->connections[i];
        other->spells |= strcmp(other->server->text, connection->server->text) == 0;
    }
    worker->counts.spelled_out++;
    engine_worker_put_again(worker, index);
    return true;
}

bool engine_worker_redirect(struct client_connection *connection, uint64_t slot)
{
    const struct connection_context *context = connection->context;
    struct engine_worker *worker = context->owner;
    uint32_t *place = &connection->slots[slot & connection->slot_mask];
    const uint32_t scrap = (uint32_t)(context->scrap - worker->samples);
    if (*place == scrap)
        return false;
    if (!spell_out(worker, connection, slot, *place) &&
        (!worker->lanes || !lanes_redirect(worker->lanes, *place, connection->server,
                                           connection->parser.said, tsc_now())))
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

bool engine_worker_has_more(const struct engine_worker *worker)
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

// Whether a closed loop may put a request now.
static bool may_put(struct engine_worker *worker, uint64_t now)
{
    if (worker->again.count)
        return true;
    return worker->next < worker->sample_count &&
           (!worker->totals || engine_worker_next_place(worker, now) != SIZE_MAX);
}

// The next request of a closed loop, which may be put. Its intended time is when its connection was
// free for it; but samples are in the order of theirs, so not before that of one which another
// connection got.
static size_t take_next_of_order(struct engine_worker *worker, uint64_t wanted)
{
    const struct engine_shared *shared = worker->shared;
    const struct scheduled_request *request = &shared->schedule->items[worker->order];
    struct sample *sample = engine_worker_sample(worker, worker->next);
    if (wanted > worker->last_intended_tsc)
        worker->last_intended_tsc = wanted;
    sample->intended_tsc = worker->last_intended_tsc;
    sample->operation = request->operation;
    sample->key = request->key;
    sample->status = SAMPLE_UNSENT;
    worker->order += shared->thread_count;
    while (worker->order >= shared->schedule->count)
        worker->order -= shared->schedule->count;
    return worker->next++ & worker->mask;
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

uint64_t engine_worker_place_of(const struct engine_worker *worker, const struct sample *sample)
{
    return place_of(worker, (size_t)(sample - worker->samples));
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
        multiget_add_keys(&shared->multiget, sample->key, place_of(worker, index), &request,
                          worker->more_keys);
    const struct recorded_transaction *transaction = transaction_of(worker, sample);
    if (transaction)
        transaction_add_commands(shared->settings->workload, transaction, transaction->place,
                                 worker->commands, worker->commands_room, &request);
    request.spelled_out =
        connection->spells && worker->context.protocol->operations[sample->operation].named;
    if (request.spelled_out) {
        connection->spells = false;
        connection->spelled = connection->put + 1;
    }
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
        engine_worker_await_stamps(worker, connection, now);
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
           engine_worker_sample(worker, at)->intended_tsc <= now)
        due++, at++;
    return due < REQUESTS_AT_ONCE ? (unsigned)due : REQUESTS_AT_ONCE;
}

// A request is about to be put that waited, if it was due when there was last no connection with
// room for it. It counts once, however often it is put.
static void note_wait(struct engine_worker *worker, size_t index, uint64_t full_tsc)
{
    struct sample *sample = &worker->samples[index];
    if (index >= worker->fills_begin || sample->intended_tsc + worker->batch_tsc >= full_tsc ||
        sample->sender_high & SAMPLE_WAITED)
        return;
    sample->sender_high |= SAMPLE_WAITED;
    worker->delayed_by_depth++;
}

// How many of that many requests a connection is given when its turn comes, so that one turn of
// each is enough as long as all have room: over TLS what it has in a second one, behind others',
// is a second record.
static unsigned share_of(uint64_t requests, unsigned calls, uint32_t connections)
{
    const unsigned turns = connections && connections < calls ? connections : calls;
    return (unsigned)((requests + turns - 1) / turns);
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
    note_wait(worker, index, lane->full_tsc);
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
    const uint64_t share = share_of(left, calls, 0);
    while (left && worker->dirty_count < calls && (lane = lanes_next_ready(lanes))) {
        const uint64_t of_node = share_of(lane->requests.count, calls, lane->room.count),
                       most = share > of_node ? share : of_node;
        struct client_connection *connection = take_room(worker, &lane->room);
        if (!connection)
            continue;
        for (uint64_t i = 0; i < most && left && lane->requests.count &&
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
    const uint64_t due = engine_worker_sample(worker, oldest)->intended_tsc + worker->batch_tsc;
    batches->calls++;
    batches->largest = requests > batches->largest ? requests : batches->largest;
    for (size_t i = oldest; i < oldest + requests; i++) {
        const uint64_t intended = engine_worker_sample(worker, i)->intended_tsc;
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
    unsigned due = count_due(worker, now), share = share_of(due, calls, worker->room.count);
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
            note_wait(worker, index, worker->full_tsc);
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
    while (!lane->requests.count && worker->lanes->waiting < most && may_put(worker, now)) {
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

void engine_worker_fill_connections(struct engine_worker *worker, uint64_t now)
{
    if (worker->lanes) {
        send_more_to_nodes(worker, now);
        return;
    }
    struct client_connection *connection;
    end_thinking(worker, now);
    while (may_put(worker, now) && (connection = take_room(worker, &worker->room))) {
        const uint64_t wanted = connection->wake_tsc ? connection->wake_tsc : now;
        connection->wake_tsc = 0;
        while (connection_has_room(connection, worker->shared->request_bytes) &&
               may_put(worker, now))
            put_request(worker, connection,
                        worker->again.count ? take_again(worker)
                                            : take_next_of_order(worker, wanted));
    }
    flush_dirty(worker, now);
}

uint64_t engine_worker_next_due(struct engine_worker *worker)
{
    if (worker->again.count || (worker->lanes && lanes_are_ready(worker->lanes)))
        return 0;
    look_for_more(worker);
    return worker->next < worker->ready
               ? engine_worker_sample(worker, worker->next)->intended_tsc + worker->batch_tsc
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
    for (; left && engine_worker_next_due(worker) <= now; now = tsc_now()) {
        unsigned calls = send_due(worker, now, at_once < left ? at_once : left);
        if (!calls)
            return;
        left -= calls;
    }
}

void engine_worker_send_due(struct engine_worker *worker, uint64_t now)
{
    send_while_due(worker, now, calls_at_once(worker));
}

void engine_worker_send_between_reads(struct engine_worker *worker,
                                      const struct client_connection *read)
{
    const struct engine_settings *settings = worker->shared->settings;
    if (settings->closed_loop || !read->room->count)
        return;
    send_while_due(worker, tsc_now(), settings->workload->fanout > 1 ? calls_at_once(worker) : 1);
}

void engine_worker_end_opening(struct engine_worker *worker, struct client_connection *connection)
{
    if (!connection_is_open(connection) || connection->blocked ||
        (connection->out_begin == connection->out_end && !connection->unsealed))
        return;
    const uint64_t now = tsc_now();
    if (worker->shared->settings->closed_loop && worker->deadline_tsc)
        engine_worker_fill_connections(worker, now);
    connection_flush(connection);
    engine_worker_await_stamps(worker, connection, now);
}

void engine_worker_begin_thinking(struct engine_worker *worker, uint64_t start_tsc)
{
    struct client_connection *connection;
    while ((connection = take_room(worker, &worker->room)))
        think_queue_begin(&worker->thinking, connection, start_tsc,
                          think_queue_draw(&worker->thinking));
}

void engine_worker_forget_again(struct engine_worker *worker)
{
    while (worker->again.count)
        take_again(worker);
}
