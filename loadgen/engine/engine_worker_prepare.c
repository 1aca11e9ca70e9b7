// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_worker_prepare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/tsc.h"
#include "loadgen/client/client_datagram.h"
#include "loadgen/client/client_streams.h"
#include "loadgen/client/client_tls.h"
#include "loadgen/client/tls_settings.h"
#include "loadgen/client/connection_counts.h"
#include "loadgen/engine/engine_worker_places.h"
#include "loadgen/engine/engine_worker_run.h"
#include "loadgen/engine/engine_worker_send.h"

enum {
    CONNECT_MS = 5000,
    RECEIVE_BYTES = 256 << 10,
    POPULATED_AT_ONCE = 16 << 20,           // bytes of samples
    SAMPLES_AT_ONCE = 1 << 16,              // between two looks at a person who interrupts
    OUT_BYTES = 64 << 10,                   // of a connection's output buffer, where requests allow
    OUT_BYTES_ALL = 64 << 20,               // of all of them
    CONNECTS_AT_ONCE = CONNECTIONS_AWAITED, // by all threads: half of what small backlogs hold ...
    CONNECT_PAUSE_NS = 3000000,             // ... and time for the server to accept them
    LANES_LOOK_NS = 5000000,      // how often waiting requests are looked after (lanes_look)
    LANES_REVIVE_NS = 1000000000, // before a node that was given up is tried again
    LANES_PAUSE_NS = 20000000,    // before a request is tried again where nobody could answer it
};

static int was_interrupted(struct error *err)
{
    return error_set(err, ERROR_FAILED, "interrupted before the load began");
}

// Gigabytes take seconds. False: somebody interrupts.
static bool populate(struct engine_worker *worker)
{
    char *memory = (char *)worker->samples;
    for (size_t at = 0; at < worker->sample_bytes; at += POPULATED_AT_ONCE) {
        const size_t left = worker->sample_bytes - at;
        const size_t bytes = left < POPULATED_AT_ONCE ? left : POPULATED_AT_ONCE;
        if (atomic_load(&worker->shared->stop))
            return false;
        if (madvise(memory + at, bytes, MADV_POPULATE_WRITE) < 0) // before Linux 5.14
            memset(memory + at, 0, bytes);
    }
    return true;
}

// Memory for so many samples, and for those of the sets that follow misses.
static int take_samples(struct engine_worker *worker, size_t count, struct error *err)
{
    // How many samples a closed loop that keeps all of them will need is not known in advance.
    bool closed = worker->shared->settings->closed_loop && !worker->totals;
    size_t fills = worker->shared->settings->workload->read_through ? ENGINE_FILLS : 0;
    worker->sample_bytes = (count + fills + 1) * sizeof *worker->samples;
    void *memory = mmap(NULL, worker->sample_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (closed ? MAP_NORESERVE : 0), -1, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED,
                               "cannot take %zu MiB for the samples of %s requests (a lower rate "
                               "or a shorter run needs less)",
                               worker->sample_bytes >> 20, TEXT_COUNT(count));
    worker->context.samples = worker->samples = memory;
    worker->fills_begin = count;
    worker->context.fills = worker->samples + worker->fills_begin;
    worker->context.scrap = worker->context.fills + fills;
    // No page is touched for the first time during the load.
    if (!closed && !populate(worker))
        return was_interrupted(err);
    for (size_t i = 0; i < fills; i++)
        engine_worker_end_fill(worker, &worker->context.fills[i]);
    return 0;
}

// What is in it comes later.
static int make_ring(struct engine_worker *worker, struct error *err)
{
    const size_t size = worker->shared->ring_size;
    if (take_samples(worker, size, err) < 0)
        return -ERROR_FAILED;
    worker->ring->samples = worker->samples;
    worker->ring->mask = worker->mask = size - 1;
    worker->sample_count = SIZE_MAX;
    return 0;
}

static int make_places(struct engine_worker *worker, uint32_t connections, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    const size_t places = engine_places_needed(connections, shared->depth);
    if (sample_totals_new(engine_closed_bytes(shared), NULL, &worker->totals, err) < 0 ||
        take_samples(worker, places, err) < 0)
        return -ERROR_FAILED;
    worker->mask = places - 1;
    worker->sample_count = SIZE_MAX;
    worker->order = worker->index;
    return 0;
}

static int make_samples(struct engine_worker *worker, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    const struct schedule *schedule = shared->schedule;
    bool closed = shared->settings->closed_loop;
    size_t first = worker->index, step = shared->thread_count;
    size_t all = closed ? shared->settings->requests_max : schedule->count;
    worker->sample_count = all > first ? (all - first + step - 1) / step : 0;
    worker->mask = UINT64_MAX;
    if (take_samples(worker, worker->sample_count, err) < 0)
        return -ERROR_FAILED;
    worker->order = first;
    worker->ready = closed ? 0 : worker->sample_count;
    for (size_t i = 0; i < worker->ready; i++) {
        const struct scheduled_request *request = &schedule->items[first + i * step];
        if (i % SAMPLES_AT_ONCE == 0 && atomic_load(&shared->stop))
            return was_interrupted(err);
        worker->samples[i] =
            (struct sample){.intended_tsc = engine_ticks(worker->shared, request->offset_ns),
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
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME);
        worker->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    worker->context.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!worker->base || worker->context.epoll_fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot wait for sockets");
    // Else the kernel wakes a thread that sleeps up to 50 us late (prctl(2)).
    prctl(PR_SET_TIMERSLACK, 1);
    return 0;
}

static int64_t connect_deadline(void)
{
    return monotonic_ms() + CONNECT_MS;
}

// Of a connection's output buffer.
static size_t choose_out_bytes(const struct engine_shared *shared)
{
    const struct login_words *login = shared->settings->login;
    size_t out_bytes = OUT_BYTES_ALL / shared->settings->connections;
    out_bytes = out_bytes > OUT_BYTES ? OUT_BYTES : out_bytes;
    out_bytes = out_bytes < shared->request_bytes ? shared->request_bytes : out_bytes;
    return login && out_bytes < login->count ? login->count : out_bytes;
}

// Connects a few at a time. A connection that finds the server's backlog full is retried by its
// kernel only a second later, or seems open but is not.
static int connect_all(struct engine_worker *worker, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    const struct timespec pause = {0, CONNECT_PAUSE_NS};
    uint32_t count = worker->connection_count;
    uint32_t at_once = CONNECTS_AT_ONCE / shared->thread_count;
    at_once = at_once ? at_once : 1;
    const size_t out_bytes = choose_out_bytes(shared);
    for (uint32_t first = 0; first < count; first += at_once) {
        uint32_t end = count - first < at_once ? count : first + at_once;
        if (first)
            nanosleep(&pause, NULL);
        for (uint32_t i = first; i < end; i++) {
            // Thread w has connections w + 1, w + 1 + T, ...
            uint32_t id = worker->index + i * shared->thread_count + 1;
            int status = connection_open(&worker->connections[i], id, &worker->context,
                                         shared->depth, out_bytes, err);
            if (status < 0)
                return status;
        }
        for (uint32_t i = first; i < end; i++) {
            int status = connection_establish(&worker->connections[i], connect_deadline(), err);
            if (status < 0)
                return status;
        }
        if (connections_await(&worker->connections[first], end - first, connect_deadline(), err) <
            0)
            return -(int)err->kind;
        for (uint32_t i = first; i < end; i++)
            engine_worker_list_room(worker, &worker->connections[i]);
    }
    return 0;
}

// All connections are alike, or each is in its node's lane.
static int make_lanes(struct engine_worker *worker, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    struct lanes *lanes = NULL;
    for (uint32_t i = 0; i < worker->connection_count && !shared->nodes; i++) {
        worker->connections[i].server = shared->settings->server;
        worker->connections[i].room = &worker->room;
    }
    if (!shared->nodes)
        return 0;
    worker->lanes = lanes = calloc(1, sizeof *lanes);
    if (!lanes)
        return error_set(err, ERROR_FAILED, "out of memory for the nodes");
    *lanes = (struct lanes){
        .map = shared->nodes,
        .context = &worker->context,
        .workload = shared->settings->workload,
        .samples = worker->samples,
        .redirections = calloc(worker->fills_begin + ENGINE_FILLS, 1),
        .look_ticks = engine_ticks(shared, LANES_LOOK_NS),
        .pause_ticks = engine_ticks(shared, LANES_PAUSE_NS),
        .revive_ticks = engine_ticks(shared, LANES_REVIVE_NS),
        .patience_ticks = engine_ticks(shared, shared->settings->timeout_ns),
        .depth = shared->depth,
        .out_bytes = choose_out_bytes(shared),
        .connection_count = &worker->connection_count,
    };
    if (!lanes->redirections)
        return error_set(err, ERROR_FAILED, "out of memory for the nodes");
    worker->context.redirect = engine_worker_redirect;
    return lanes_make(lanes, worker->connections, worker->connection_count, err);
}

static uint64_t common_value_bytes(const struct workload *workload)
{
    bool alike = workload->value_size_bytes.kind == DISTRIBUTION_FIXED &&
                 workload->small_value_count == 0 && !workload->recorded;
    return alike ? workload_value_bytes(workload, 0) : UINT64_MAX;
}

// Whether replies differ in what they are made of.
static bool expects_of_replies(const struct engine_shared *shared)
{
    const struct workload *workload = shared->settings->workload;
    const struct protocol *protocol = workload->protocol;
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if ((protocol->operations[i].parts || protocol->operations[i].bodiless) &&
            (workload->mix[i] > 0 || workload->recording))
            return true;
    return shared->multiget.count > 0;
}

// Room for that many connections and for the longest request. False: no memory; what was taken is
// freed with the worker.
static bool take_memory(struct engine_worker *worker, uint32_t connections)
{
    const struct engine_shared *shared = worker->shared;
    worker->connections = calloc(connections, sizeof *worker->connections);
    worker->dirty = calloc(connections, sizeof(void *));
    worker->key = calloc(1, WORKLOAD_KEY_BYTES_MAX);
    worker->more_keys = calloc(1, multiget_room(&shared->multiget) + 1);
    worker->value = calloc(1, shared->carried_bytes + 1);
    worker->commands = calloc(shared->transaction_most.commands + 1, sizeof *worker->commands);
    worker->commands_room = calloc(1, shared->transaction_most.room_bytes + 1);
    return worker->connections && worker->dirty && worker->key && worker->more_keys &&
           worker->value && worker->commands && worker->commands_room &&
           connection_queue_make(&worker->room, connections) == 0 &&
           connection_queue_make(&worker->unstamped, connections) == 0 &&
           connection_queue_make(&worker->unread, connections) == 0 &&
           connection_queue_make(&worker->reopening, connections) == 0 &&
           think_queue_make(&worker->thinking, connections, shared->settings->think,
                            shared->ticks_per_ns, worker->index) == 0;
}

// Whether its requests name what a server may not know.
static bool names_programs(const struct workload *workload)
{
    const struct protocol *protocol = workload->protocol;
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (protocol->operations[i].named && workload->mix[i] > 0)
            return true;
    return false;
}

// What all connections of the worker share. False: no memory; what was taken is freed with it.
static bool make_context(struct engine_worker *worker, uint32_t connections)
{
    const struct engine_shared *shared = worker->shared;
    const struct engine_settings *settings = shared->settings;
    const struct workload *workload = settings->workload;
    struct connection_context *context = &worker->context;
    *context = (struct connection_context){
        .protocol = workload->protocol,
        .workload = workload,
        .value_bytes = common_value_bytes(workload),
        .login = settings->login,
        .counts = &worker->counts,
        .owner = worker,
        .sender = worker->index,
        .epoll_fd = -1,
        .put_again = engine_worker_put_again,
        .read_again = engine_worker_read_again,
        .open_again = engine_worker_open_again,
        .redirect = names_programs(workload) ? engine_worker_redirect : NULL,
        .expects = expects_of_replies(shared),
        .parts_of = workload->transactions ? engine_worker_parts_of : NULL,
        .multiget = shared->multiget.count ? &shared->multiget : NULL,
        .place_of = workload->multigets ? engine_worker_place_of : NULL,
        .fill = workload->read_through ? engine_worker_fill : NULL,
        .fill_ended = engine_worker_end_fill,
        .stop = &worker->shared->stop,
        .last_id = &worker->shared->last_id,
        .next = &worker->next,
        .reader = malloc(sizeof(struct stamp_reader)),
        .receive_buffer = malloc(RECEIVE_BYTES),
        .receive_bytes = RECEIVE_BYTES,
        .timeout_tsc = engine_ticks(worker->shared, settings->timeout_ns),
        .ticks_per_us = shared->ticks_per_ns * 1e3,
        .busy_poll_us = settings->busy_poll_us,
        .reconnect_ms = (int64_t)(settings->reconnect_ns / 1000000),
        .session = settings->session,
        .live = settings->live ? &settings->live[worker->index] : NULL,
        .slow = shared->slow.over_tsc ? &worker->shared->slow : NULL,
        .tls = shared->tls,
        .tls_method = shared->tls_method,
        .tls_full_handshakes = settings->tls && settings->tls->full_handshakes,
        .record.room = shared->tls ? client_tls_record_room(shared->encoded_bytes) : 0,
        .put = workload->protocol->http2 ? client_streams_put
               : shared->tls             ? client_tls_put
                                         : NULL,
        .carried_bytes = shared->carried_bytes,
        .kernel_stamps = shared->kernel_stamps,
        .stamps_every = shared->stamps_every,
        .stamps_random = worker->index,
        .hardware_stamps = shared->hardware_stamps,
        .hardware_tx = shared->hardware_tx};
    context->record.bytes = shared->tls ? malloc(context->record.room) : NULL;
    context->wire_buffer = shared->tls ? calloc(1, RECEIVE_BYTES) : context->receive_buffer;
    if (!context->reader || !context->receive_buffer || !context->wire_buffer ||
        (shared->tls && !context->record.bytes) || array_reserve(&context->log, connections) < 0)
        return false;
    memset(context->receive_buffer, 0, RECEIVE_BYTES); // no page of it is to be the first reply's
    stamp_reader_init(context->reader);
    if (context->live)
        live_set(&context->live->tsc_khz, (uint64_t)(shared->ticks_per_ns * 1e6));
    return true;
}

static int take_datagrams(struct connection_context *context, size_t value_bytes, struct error *err)
{
    context->datagrams = datagram_reader_new(context->receive_buffer, RECEIVE_BYTES, value_bytes);
    if (!context->datagrams)
        return error_set(err, ERROR_FAILED, "out of memory for replies over UDP");
    context->put = datagram_put;
    return 0;
}

int engine_worker_prepare(struct engine_worker *worker, struct error *err)
{
    const struct engine_shared *shared = worker->shared;
    const struct engine_settings *settings = shared->settings;
    uint32_t all = settings->connections, step = shared->thread_count;
    const uint32_t begun = (all - worker->index + step - 1) / step;
    const uint32_t count =
        begun + (shared->nodes ? lanes_spare_connections(begun, node_map_count(shared->nodes)) : 0);
    if (!take_memory(worker, count) || !make_context(worker, count))
        return error_set(err, ERROR_FAILED, "out of memory for %s connections", TEXT_COUNT(count));
    for (uint32_t i = 0; i < count; i++)
        worker->connections[i].socket_fd = -1;
    worker->connection_count = begun;
    worker->batch_tsc = engine_ticks(shared, settings->batch_ns);
    int status = settings->server->transport == SERVER_UDP
                     ? take_datagrams(&worker->context, shared->value_bytes, err)
                     : 0;
    if (status == 0)
        status = worker->ring             ? make_ring(worker, err)
                 : shared->closed_bounded ? make_places(worker, count, err)
                                          : make_samples(worker, err);
    worker->context.ring_mask = worker->mask;
    if (status == 0)
        status = make_lanes(worker, err);
    if (status == 0)
        status = make_event_base(worker, err);
    worker->context.base = worker->base;
    return status < 0 ? status : connect_all(worker, err);
}

void engine_worker_close(struct engine_worker *worker)
{
    for (uint32_t i = 0; i < worker->connection_count; i++)
        connection_close(&worker->connections[i]);
    if (worker->context.epoll_fd > 0)
        close(worker->context.epoll_fd);
    if (worker->base)
        event_base_free(worker->base);
    if (worker->lanes) {
        lanes_free(worker->lanes);
        free(worker->lanes->redirections);
    }
    free(worker->lanes);
    free(worker->connections);
    free(worker->dirty);
    free(worker->room.items);
    free(worker->unstamped.items);
    free(worker->unread.items);
    free(worker->reopening.items);
    free(worker->thinking.items);
    free(worker->key);
    free(worker->value);
    free(worker->more_keys);
    free(worker->commands);
    free(worker->commands_room);
    free(worker->context.reader);
    datagram_reader_free(worker->context.datagrams);
    if (worker->context.wire_buffer != worker->context.receive_buffer)
        free(worker->context.wire_buffer);
    free(worker->context.receive_buffer);
    free(worker->context.record.bytes);
}
