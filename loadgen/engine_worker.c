// SPDX-License-Identifier: MIT
#include "loadgen/engine_worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/tsc.h"
#include "loadgen/live_view.h"
#include "loadgen/client_datagram.h"

enum {
    CONNECT_MS = 5000,
    RECEIVE_BYTES = 256 << 10,
    OUT_BYTES = 64 << 10,      // of a connection's output buffer, where requests allow
    OUT_BYTES_ALL = 64 << 20,  // of all of them
    REQUESTS_AT_ONCE = 64,     // put before the sockets are looked at again
    NEAR_NS = 2000,            // a request this near: spin instead of polling
    QUIET_NS = 30000,          // nothing due for this long: time for TX stamps
    STAMPS_WORTHWHILE = 16,    // so many together, or ...
    STAMPS_OLD_NS = 20000000,  // ... this old
    STAMPS_URGENT = 64,        // before the error queue eats the receive buffer
    LAST_STAMPS_NS = 50000000, // after the end
    EMPTY_ROUNDS = 201,        // timed before the start, to know what idling costs
};

static uint64_t ticks(const struct engine_worker *worker, uint64_t ns)
{
    return engine_ticks(worker->shared, ns);
}

// --- connections with room -----------------------------------------------------------------------

static void list_room(struct engine_worker *worker, struct client_connection *connection)
{
    struct connection_queue *room = &worker->room;
    if (connection->listed || !connection_has_room(connection, worker->shared->request_bytes))
        return;
    uint32_t place = room->first + room->count;
    room->items[place < room->size ? place : place - room->size] = connection;
    room->count++;
    connection->listed = true;
}

// The next in turn that has room, or NULL. One that has not comes back when it has (list_room).
static struct client_connection *take_room(struct engine_worker *worker)
{
    struct connection_queue *room = &worker->room;
    while (room->count) {
        struct client_connection *connection = room->items[room->first];
        room->first = room->first + 1 == room->size ? 0 : room->first + 1;
        room->count--;
        connection->listed = false;
        if (connection_has_room(connection, worker->shared->request_bytes))
            return connection;
    }
    return NULL;
}

static void on_ready(evutil_socket_t socket_fd, short what, void *argument)
{
    (void)socket_fd, (void)what;
    struct client_connection *connection = argument;
    struct engine_worker *worker = connection->context->owner;
    connection_ready(connection);
    list_room(worker, connection);
}

// --- preparation ---------------------------------------------------------------------------------

static int make_samples(struct engine_worker *worker, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    const struct schedule *schedule = shared->schedule;
    bool closed = shared->settings->closed_loop;
    size_t all = closed ? shared->settings->requests_max : schedule->count;
    size_t first = worker->index, step = shared->thread_count;
    worker->sample_count = all > first ? (all - first + step - 1) / step : 0;
    worker->sample_bytes = (worker->sample_count + 1) * sizeof *worker->samples;
    // Populated: the run meets no page for the first time. How many samples a closed loop will take
    // nobody knows.
    void *memory =
        mmap(NULL, worker->sample_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (closed ? MAP_NORESERVE : MAP_POPULATE), -1, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED,
                               "cannot take %zu MiB for the samples of %zu requests (a lower rate "
                               "or a shorter run needs less)",
                               worker->sample_bytes >> 20, worker->sample_count);
    worker->context.samples = worker->samples = memory;
    worker->order = first;
    for (size_t i = 0; i < worker->sample_count && !closed; i++) {
        const struct scheduled_request *request = &schedule->items[first + i * step];
        worker->samples[i] = (struct sample){.intended_tsc = ticks(worker, request->offset_ns),
                                             .operation = request->operation,
                                             .key = request->key,
                                             .status = SAMPLE_UNSENT};
    }
    return 0;
}

static int make_event_base(struct engine_worker *worker, struct error *err)
{
    struct event_config *config = event_config_new();
    if (config) {
        event_config_require_features(config, EV_FEATURE_ET);
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME);
        worker->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (!worker->base)
        return error_set_errno(err, ERROR_FAILED,
                               "libevent offers no edge-triggered readiness here");
    return 0;
}

static int connect_all(struct engine_worker *worker, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    const struct engine_settings *settings = shared->settings;
    size_t out_bytes = OUT_BYTES_ALL / settings->connections;
    out_bytes = out_bytes > OUT_BYTES ? OUT_BYTES : out_bytes;
    out_bytes = out_bytes < shared->request_bytes ? shared->request_bytes : out_bytes;
    for (uint32_t i = 0; i < worker->connection_count; i++) {
        // Thread w has connections w + 1, w + 1 + T, ...
        uint32_t id = worker->index + i * shared->thread_count + 1;
        int status = connection_open(&worker->connections[i], id, &worker->context, shared->depth,
                                     out_bytes, err);
        if (status < 0)
            return status;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t deadline_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + CONNECT_MS;
    for (uint32_t i = 0; i < worker->connection_count; i++) {
        struct client_connection *connection = &worker->connections[i];
        int status = connection_establish(connection, deadline_ms, err);
        if (status < 0)
            return status;
        list_room(worker, connection);
    }
    return 0;
}

int engine_worker_prepare(struct engine_worker *worker, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    const struct engine_settings *settings = shared->settings;
    uint32_t all = settings->connections, step = shared->thread_count;
    uint32_t count = (all - worker->index + step - 1) / step;
    worker->connections = calloc(count, sizeof *worker->connections);
    worker->dirty = calloc(count, sizeof(void *));
    worker->room = (struct connection_queue){.items = calloc(count, sizeof(void *)), .size = count};
    worker->key = calloc(1, WORKLOAD_KEY_BYTES_MAX);
    worker->value = calloc(1, shared->value_bytes + 1);
    worker->context =
        (struct connection_context){.protocol = settings->workload->protocol,
                                    .server = settings->server,
                                    .counts = &worker->counts,
                                    .owner = worker,
                                    .on_ready = on_ready,
                                    .last_id = &worker->shared->last_id,
                                    .reader = malloc(sizeof(struct stamp_reader)),
                                    .receive_buffer = malloc(RECEIVE_BYTES),
                                    .receive_bytes = RECEIVE_BYTES,
                                    .timeout_tsc = ticks(worker, settings->timeout_ns),
                                    .ticks_per_us = shared->ticks_per_ns * 1e3,
                                    .busy_poll_us = settings->busy_poll_us,
                                    .reconnect_ms = (int64_t)(settings->reconnect_ns / 1000000),
                                    .live = settings->live ? &settings->live[worker->index] : NULL,
                                    .kernel_stamps = shared->kernel_stamps,
                                    .hardware_stamps = shared->hardware_stamps};
    if (worker->context.live)
        live_set(&worker->context.live->tsc_khz, (uint64_t)(shared->ticks_per_ns * 1e6));
    if (!worker->connections || !worker->dirty || !worker->room.items || !worker->key ||
        !worker->value || !worker->context.reader || !worker->context.receive_buffer ||
        array_reserve(&worker->context.log, count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for %u connections", count);
    if (settings->server->transport == SERVER_UDP) {
        worker->context.datagrams =
            datagram_reader_new(worker->context.receive_buffer, RECEIVE_BYTES, shared->value_bytes);
        if (!worker->context.datagrams)
            return error_set(err, ERROR_FAILED, "out of memory for replies over UDP");
    }
    for (uint32_t i = 0; i < count; i++)
        worker->connections[i].socket_fd = -1;
    worker->connection_count = count;
    memset(worker->context.receive_buffer, 0, RECEIVE_BYTES);
    stamp_reader_init(worker->context.reader);
    int status = make_samples(worker, err);
    if (status == 0)
        status = make_event_base(worker, err);
    worker->context.base = worker->base;
    return status < 0 ? status : connect_all(worker, err);
}

// --- the run -------------------------------------------------------------------------------------

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
        list_room(worker, connection);
        if (stamp_waits_count(&connection->waits) >= STAMPS_URGENT)
            connection_take_stamps(connection, now);
        worker->context.progress = true;
    }
    worker->dirty_count = 0;
    if (worker->context.live)
        live_set(&worker->context.live->in_flight, worker->counts.in_flight);
}

// Puts what is due and gives it to the kernel, one send call a connection.
static void send_due(struct engine_worker *worker, uint64_t now)
{
    for (unsigned i = 0; i < REQUESTS_AT_ONCE && worker->next < worker->sample_count; i++) {
        uint64_t intended = worker->samples[worker->next].intended_tsc;
        if (intended > now)
            break;
        struct client_connection *connection = take_room(worker);
        if (!connection) {
            // While none is open it is not the depth that delays.
            worker->full_tsc = worker->context.open ? now : worker->full_tsc;
            break;
        }
        if (intended < worker->full_tsc)
            worker->delayed_by_depth++;
        put_request(worker, connection, worker->next++);
        list_room(worker, connection);
    }
    flush_dirty(worker, now);
}

// A closed loop: fills every connection that has room.
static void send_more(struct engine_worker *worker, uint64_t now)
{
    const struct engine_shared *shared = worker->shared;
    struct client_connection *connection = NULL;
    while (worker->next < worker->sample_count && (connection = take_room(worker))) {
        while (worker->next < worker->sample_count &&
               connection_has_room(connection, shared->request_bytes)) {
            const struct scheduled_request *request = &shared->schedule->items[worker->order];
            struct sample *sample = &worker->samples[worker->next];
            sample->intended_tsc = now;
            sample->operation = request->operation;
            sample->key = request->key;
            sample->status = SAMPLE_UNSENT;
            worker->order += shared->thread_count;
            while (worker->order >= shared->schedule->count)
                worker->order -= shared->schedule->count;
            put_request(worker, connection, worker->next++);
        }
    }
    flush_dirty(worker, now);
}

// One look at one connection's error queue, when enough stamps wait there to be worth a call.
static void take_stamps_in_turn(struct engine_worker *worker, uint64_t now)
{
    struct client_connection *connection = &worker->connections[worker->stamp_turn];
    worker->stamp_turn = (worker->stamp_turn + 1) % worker->connection_count;
    uint32_t waiting = stamp_waits_count(&connection->waits);
    if (waiting >= STAMPS_WORTHWHILE ||
        (waiting && now - connection->waits.oldest_tsc > ticks(worker, STAMPS_OLD_NS))) {
        connection_take_stamps(connection, now);
        worker->context.progress = true; // a system call is work, whatever it found
    }
}

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
    return (*x > *y) - (*x < *y);
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

// True when the run is over, and why.
static bool is_over(struct engine_worker *worker, uint64_t now, uint64_t deadline)
{
    const struct connection_counts *counts = &worker->counts;
    if (atomic_load_explicit(&worker->shared->stop, memory_order_relaxed))
        worker->end = ENGINE_INTERRUPTED;
    else if (counts->given_up == worker->connection_count)
        worker->end = ENGINE_BROKEN;
    else if (worker->next == worker->sample_count && counts->in_flight == 0)
        worker->end = ENGINE_COMPLETE;
    else if (now > deadline)
        worker->end = ENGINE_TIMED_OUT;
    else
        return false;
    return true;
}

static void run_loop(struct engine_worker *worker, uint64_t start_tsc)
{
    const struct engine_settings *settings = worker->shared->settings;
    uint64_t near = ticks(worker, NEAR_NS), quiet = ticks(worker, QUIET_NS);
    uint64_t deadline =
        start_tsc + ticks(worker, settings->duration_ns) + ticks(worker, settings->timeout_ns);
    uint64_t now = tsc_now();
    while (!is_over(worker, now, deadline)) {
        uint64_t due = worker->next < worker->sample_count
                           ? worker->samples[worker->next].intended_tsc
                           : UINT64_MAX;
        uint64_t empty = worker->empty_poll_tsc;
        worker->context.progress = false;
        if (due <= now) {
            send_due(worker, now);
            event_base_loop(worker->base, EVLOOP_NONBLOCK);
        } else if (due - now <= near) {
            _mm_pause();
            empty = worker->empty_pause_tsc;
        } else {
            event_base_loop(worker->base, EVLOOP_NONBLOCK);
            if (!worker->context.progress && due - now > quiet && worker->context.kernel_stamps)
                take_stamps_in_turn(worker, now);
        }
        uint64_t after = tsc_now();
        if (!worker->context.progress)
            note_idle(worker, after - now, empty);
        now = after;
    }
}

static void run_closed_loop(struct engine_worker *worker, uint64_t start_tsc)
{
    const struct engine_settings *settings = worker->shared->settings;
    uint64_t end = start_tsc + ticks(worker, settings->duration_ns);
    uint64_t deadline = end + ticks(worker, settings->timeout_ns), now;
    while ((now = tsc_now()) < start_tsc)
        _mm_pause();
    while (!is_over(worker, now, deadline)) {
        worker->context.progress = false;
        if (now < end) {
            send_more(worker, now);
            worker->requests_spent = worker->next == worker->sample_count;
        } else if (worker->next < worker->sample_count) {
            worker->sample_count = worker->next; // that was all
        }
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

// The last stamps may still be on their way.
static void take_last_stamps(struct engine_worker *worker)
{
    uint64_t deadline = tsc_now() + ticks(worker, LAST_STAMPS_NS);
    for (bool missing = worker->context.kernel_stamps; missing;) {
        missing = false;
        uint64_t now = tsc_now();
        for (uint32_t i = 0; i < worker->connection_count; i++) {
            struct client_connection *connection = &worker->connections[i];
            if (!connection_is_open(connection) || !stamp_waits_count(&connection->waits))
                continue;
            connection_take_stamps(connection, now);
            missing |= stamp_waits_count(&connection->waits) > 0;
        }
        missing &= now < deadline;
    }
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void engine_worker_run(struct engine_worker *worker, uint64_t start_tsc)
{
    const uint64_t awake = ticks(worker, 2000000);
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
    uint64_t cpu_ns = thread_cpu_ns();
    if (closed)
        run_closed_loop(worker, start_tsc);
    else
        run_loop(worker, start_tsc);
    worker->cpu_ns = thread_cpu_ns() - cpu_ns;
    worker->end_tsc = tsc_now();
    take_last_stamps(worker);
    worker->stamps_unknown = worker->counts.stamps_unknown;
    for (uint32_t i = 0; i < worker->connection_count; i++)
        worker->stamps_unknown += worker->connections[i].waits.unknown;
}

void engine_worker_close(struct engine_worker *worker)
{
    for (uint32_t i = 0; i < worker->connection_count; i++)
        connection_close(&worker->connections[i]);
    if (worker->base)
        event_base_free(worker->base);
    free(worker->connections);
    free(worker->dirty);
    free(worker->room.items);
    free(worker->key);
    free(worker->value);
    free(worker->context.reader);
    datagram_reader_free(worker->context.datagrams);
    free(worker->context.receive_buffer);
}
