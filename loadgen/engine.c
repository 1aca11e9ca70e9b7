// SPDX-License-Identifier: MIT
#include "loadgen/engine.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/tsc.h"
#include "base/tsc_rate.h"

enum {
    CONNECT_MS = 5000,
    SETTLE_NS = 20000000, // between the last connect and the first request
    CALIBRATE_NS = 30000000,
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
    SPIN_NS_MAX = 5000,        // an empty round that takes longer was interrupted: not idle
};

struct engine {
    const struct engine_settings *settings;
    struct engine_result *result;
    struct event_base *base;
    struct event *signal_event;
    int signal_fd;
    struct client_connection *connections;
    struct client_connection **dirty; // to flush, in the order of their first request
    uint32_t dirty_count;
    uint32_t turn;       // whose turn the next request is
    uint32_t stamp_turn; // whose error queue is looked at next
    struct connection_context context;
    size_t request_bytes; // the longest request
    size_t next;          // first request of the schedule not yet put
    uint64_t full_tsc;    // when no connection last had room
    uint64_t spin_tsc;
    double ticks_per_ns;
    bool stop;
    char key[WORKLOAD_KEY_BYTES_MAX];
    char *value;
};

static uint64_t ticks(const struct engine *engine, uint64_t ns)
{
    return (uint64_t)((double)ns * engine->ticks_per_ns);
}

// --- events --------------------------------------------------------------------------------------

static void on_ready(evutil_socket_t socket_fd, short what, void *argument)
{
    (void)socket_fd, (void)what;
    struct client_connection *connection = argument;
    connection->context->progress = true;
    // Readiness is edge-triggered and libevent tells an error queue's stamp (EPOLLERR), new data
    // and new room apart only in part, so each edge looks at what may have changed. Level
    // triggering would come back for ever while a stamp waits on the error queue.
    connection_receive(connection);
    if (connection->blocked)
        connection_flush(connection);
}

static void on_signal(evutil_socket_t signal_fd, short what, void *argument)
{
    (void)what;
    struct signalfd_siginfo info;
    struct engine *engine = argument;
    if (read(signal_fd, &info, sizeof info) == sizeof info)
        engine->stop = true;
}

// --- preparation ---------------------------------------------------------------------------------

static int make_samples(struct engine *engine, const struct schedule *schedule, struct error *err)
{
    struct engine_result *result = engine->result;
    result->sample_count = schedule->count;
    result->sample_bytes = (schedule->count + 1) * sizeof *result->samples;
    // Populated: the run meets no page for the first time.
    void *memory = mmap(NULL, result->sample_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED,
                               "cannot take %zu MiB for the samples of %zu requests (a lower rate "
                               "or a shorter run needs less)",
                               result->sample_bytes >> 20, schedule->count);
    result->samples = memory;
    for (size_t i = 0; i < schedule->count; i++) {
        const struct scheduled_request *request = &schedule->items[i];
        result->samples[i] = (struct sample){.intended_tsc = ticks(engine, request->offset_ns),
                                             .operation = request->operation,
                                             .key = request->key,
                                             .status = SAMPLE_UNSENT};
    }
    return 0;
}

static void raise_file_limit(uint32_t connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < connections + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

// Raising it takes CAP_NET_ADMIN (socket(7)); a socket that cannot is as it was, and that is said.
static void busy_poll(struct engine *engine, int socket_fd)
{
    int us = (int)engine->settings->busy_poll_us;
    if (us && setsockopt(socket_fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof us) < 0)
        error_set_errno(&engine->result->busy_poll_why, ERROR_FAILED, "no SO_BUSY_POLL");
}

static int connect_all(struct engine *engine, struct error *err)
{
    const struct engine_settings *settings = engine->settings;
    struct engine_result *result = engine->result;
    size_t out_bytes = OUT_BYTES_ALL / settings->connections;
    out_bytes = out_bytes > OUT_BYTES ? OUT_BYTES : out_bytes;
    out_bytes = out_bytes < engine->request_bytes ? engine->request_bytes : out_bytes;
    raise_file_limit(settings->connections);
    for (uint32_t i = 0; i < settings->connections; i++) {
        int status = connection_open(&engine->connections[i], i + 1, settings->server,
                                     &engine->context, result->depth, out_bytes, err);
        if (status < 0)
            return status;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t deadline_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + CONNECT_MS;
    for (uint32_t i = 0; i < settings->connections; i++) {
        struct client_connection *connection = &engine->connections[i];
        int status = connection_establish(connection, settings->server, deadline_ms, err);
        if (status < 0)
            return status;
        busy_poll(engine, connection->socket_fd);
        connection->event =
            event_new(engine->base, connection->socket_fd, EV_READ | EV_WRITE | EV_PERSIST | EV_ET,
                      on_ready, connection);
        if (!connection->event || event_add(connection->event, NULL) < 0)
            return error_set(err, ERROR_FAILED, "cannot watch connection %u", i);
        result->connections[i] = connection->entry;
    }
    return 0;
}

// Kernel stamps where they can be had. Asks a socket of its own, so that "auto" knows before the
// first connection is made.
static int choose_stamps(struct engine *engine, struct error *err)
{
    const struct engine_settings *settings = engine->settings;
    if (settings->stamps == STAMP_MODE_USER)
        return 0;
    int probe = socket(settings->server->socket_address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open a socket");
    int status = client_stamps_supported(probe, &engine->result->stamps_why);
    close(probe);
    engine->result->kernel_stamps = engine->context.kernel_stamps = status == 0;
    if (status < 0 && settings->stamps == STAMP_MODE_SOFTWARE) {
        *err = engine->result->stamps_why;
        return status;
    }
    return 0;
}

static int make_event_base(struct engine *engine, struct error *err)
{
    struct event_config *config = event_config_new();
    if (config) {
        event_config_require_features(config, EV_FEATURE_ET);
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME);
        engine->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (!engine->base)
        return error_set(err, ERROR_FAILED, "libevent offers no edge-triggered readiness here");
    return 0;
}

static int watch_signals(struct engine *engine, const sigset_t *signals, struct error *err)
{
    engine->signal_fd = signalfd(-1, signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (engine->signal_fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot watch for signals");
    engine->signal_event =
        event_new(engine->base, engine->signal_fd, EV_READ | EV_PERSIST, on_signal, engine);
    if (!engine->signal_event || event_add(engine->signal_event, NULL) < 0)
        return error_set(err, ERROR_FAILED, "cannot watch for signals");
    return 0;
}

static int prepare(struct engine *engine, const struct schedule *schedule, const sigset_t *signals,
                   struct error *err)
{
    const struct engine_settings *settings = engine->settings;
    struct engine_result *result = engine->result;
    const struct workload *workload = settings->workload;
    size_t value_bytes = workload_value_bytes_max(workload);
    uint32_t share = ENGINE_IN_FLIGHT_CAP / settings->connections;
    result->depth_is_cap = settings->depth == 0;
    result->depth = settings->depth ? settings->depth : share ? share : 1;
    engine->request_bytes =
        workload->protocol->request_bytes_max(workload_key_bytes_max(workload), value_bytes);
    engine->connections = calloc(settings->connections, sizeof *engine->connections);
    engine->dirty = calloc(settings->connections, sizeof *engine->dirty);
    result->connections = calloc(settings->connections, sizeof *result->connections);
    engine->value = calloc(1, value_bytes + 1);
    engine->context = (struct connection_context){.protocol = workload->protocol,
                                                  .counts = &result->counts,
                                                  .reader = malloc(sizeof(struct stamp_reader)),
                                                  .receive_buffer = calloc(1, RECEIVE_BYTES),
                                                  .receive_bytes = RECEIVE_BYTES};
    if (!engine->connections || !engine->dirty || !result->connections || !engine->value ||
        !engine->context.reader || !engine->context.receive_buffer)
        return error_set(err, ERROR_FAILED, "out of memory for %u connections",
                         settings->connections);
    for (uint32_t i = 0; i < settings->connections; i++)
        engine->connections[i].socket_fd = -1;
    result->connection_count = settings->connections;
    memset(engine->context.receive_buffer, 0, RECEIVE_BYTES);
    stamp_reader_init(engine->context.reader);
    result->tsc_hz = tsc_measure_hz(CALIBRATE_NS);
    engine->ticks_per_ns = result->tsc_hz / 1e9;
    int status = make_samples(engine, schedule, err);
    engine->context.samples = result->samples;
    if (status == 0)
        status = make_event_base(engine, err);
    if (status == 0)
        status = watch_signals(engine, signals, err);
    if (status == 0)
        status = choose_stamps(engine, err);
    return status < 0 ? status : connect_all(engine, err);
}

// --- the run -------------------------------------------------------------------------------------

// The next connection in turn that has room, or NULL.
static struct client_connection *choose_connection(struct engine *engine)
{
    uint32_t count = engine->settings->connections;
    for (uint32_t i = 0; i < count; i++) {
        struct client_connection *connection = &engine->connections[engine->turn];
        engine->turn = engine->turn + 1 == count ? 0 : engine->turn + 1;
        if (connection_has_room(connection, engine->request_bytes))
            return connection;
    }
    return NULL;
}

static void put_request(struct engine *engine, struct client_connection *connection, size_t index)
{
    const struct workload *workload = engine->settings->workload;
    const struct sample *sample = &engine->result->samples[index];
    struct request request;
    workload_request(workload, sample->operation, sample->key, index, connection->put, engine->key,
                     engine->value, &request);
    connection_put(connection, (uint32_t)index, &request);
    if (!connection->dirty) {
        connection->dirty = true;
        engine->dirty[engine->dirty_count++] = connection;
    }
}

// Puts what is due and gives it to the kernel, one send call a connection.
static void send_due(struct engine *engine, uint64_t now)
{
    struct engine_result *result = engine->result;
    for (unsigned i = 0; i < REQUESTS_AT_ONCE && engine->next < result->sample_count; i++) {
        uint64_t intended = result->samples[engine->next].intended_tsc;
        if (intended > now)
            break;
        struct client_connection *connection = choose_connection(engine);
        if (!connection) {
            engine->full_tsc = now;
            break;
        }
        if (intended < engine->full_tsc)
            result->delayed_by_depth++;
        put_request(engine, connection, engine->next++);
    }
    for (uint32_t i = 0; i < engine->dirty_count; i++) {
        struct client_connection *connection = engine->dirty[i];
        connection_flush(connection);
        if (stamp_waits_count(&connection->waits) >= STAMPS_URGENT)
            connection_take_stamps(connection, now);
        engine->context.progress = true;
    }
    engine->dirty_count = 0;
}

// One look at one connection's error queue, when enough stamps wait there to be worth a call.
static void take_stamps_in_turn(struct engine *engine, uint64_t now)
{
    struct client_connection *connection = &engine->connections[engine->stamp_turn];
    engine->stamp_turn = (engine->stamp_turn + 1) % engine->settings->connections;
    uint32_t waiting = stamp_waits_count(&connection->waits);
    if (waiting >= STAMPS_WORTHWHILE ||
        (waiting && now - connection->waits.oldest_tsc > ticks(engine, STAMPS_OLD_NS)))
        engine->context.progress |= connection_take_stamps(connection, now) > 0;
}

// True when the run is over, and why.
static bool is_over(struct engine *engine, uint64_t now, uint64_t deadline)
{
    struct engine_result *result = engine->result;
    const struct connection_counts *counts = &result->counts;
    if (engine->stop)
        result->end = ENGINE_INTERRUPTED;
    else if (counts->broken == engine->settings->connections)
        result->end = ENGINE_BROKEN;
    else if (engine->next == result->sample_count && counts->in_flight == 0)
        result->end = ENGINE_COMPLETE;
    else if (now > deadline)
        result->end = ENGINE_TIMED_OUT;
    else
        return false;
    return true;
}

static void run_loop(struct engine *engine)
{
    struct engine_result *result = engine->result;
    uint64_t near = ticks(engine, NEAR_NS), quiet = ticks(engine, QUIET_NS);
    uint64_t spin_max = ticks(engine, SPIN_NS_MAX);
    uint64_t deadline = result->start_tsc + ticks(engine, engine->settings->duration_ns) +
                        ticks(engine, engine->settings->timeout_ns);
    uint64_t now = tsc_now();
    while (!is_over(engine, now, deadline)) {
        uint64_t due = engine->next < result->sample_count
                           ? result->samples[engine->next].intended_tsc
                           : UINT64_MAX;
        engine->context.progress = false;
        if (due <= now) {
            send_due(engine, now);
            event_base_loop(engine->base, EVLOOP_NONBLOCK);
        } else if (due - now <= near) {
            _mm_pause();
        } else {
            event_base_loop(engine->base, EVLOOP_NONBLOCK);
            if (!engine->context.progress && due - now > quiet && result->kernel_stamps)
                take_stamps_in_turn(engine, now);
        }
        uint64_t after = tsc_now();
        if (!engine->context.progress && after - now <= spin_max)
            engine->spin_tsc += after - now;
        now = after;
    }
}

// The last stamps may still be on their way.
static void take_last_stamps(struct engine *engine)
{
    uint64_t deadline = tsc_now() + ticks(engine, LAST_STAMPS_NS);
    for (bool missing = engine->result->kernel_stamps; missing;) {
        missing = false;
        uint64_t now = tsc_now();
        for (uint32_t i = 0; i < engine->settings->connections; i++) {
            struct client_connection *connection = &engine->connections[i];
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

// Tells whoever wants to act at instants of the schedule when it begins, in a clock of theirs.
static void announce(const struct engine *engine, uint64_t start_tsc)
{
    const struct engine_settings *settings = engine->settings;
    struct timespec now;
    if (!settings->announce)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ahead_ns = (double)(int64_t)(start_tsc - tsc_now()) / engine->ticks_per_ns;
    settings->announce(settings->announce_context, (uint64_t)((int64_t)now.tv_sec * 1000000000 +
                                                              now.tv_nsec + (int64_t)ahead_ns));
}

// When the schedule begins; 0: not at all.
static uint64_t choose_start(const struct engine *engine)
{
    const struct engine_settings *settings = engine->settings;
    // The schedule's offsets become instants; long schedules take a moment to rewrite.
    uint64_t needs_ns = SETTLE_NS + engine->result->sample_count * 3;
    if (!settings->agree)
        return tsc_now() + ticks(engine, needs_ns);
    uint64_t begin_ns = settings->agree(settings->agree_context, needs_ns);
    if (!begin_ns)
        return 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ahead_ns =
        (int64_t)begin_ns - ((int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec);
    return tsc_now() + (uint64_t)(int64_t)((double)ahead_ns * engine->ticks_per_ns);
}

static int run(struct engine *engine, struct error *err)
{
    struct engine_result *result = engine->result;
    uint64_t start = choose_start(engine);
    if (!start)
        return error_set(err, ERROR_FAILED, "told not to begin");
    for (size_t i = 0; i < result->sample_count; i++)
        result->samples[i].intended_tsc += start;
    announce(engine, start);
    struct tsc_pair first = tsc_take_pair();
    while (tsc_now() < start && !engine->stop) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        event_base_loop(engine->base, EVLOOP_NONBLOCK);
        if (start - tsc_now() < ticks(engine, 2000000))
            break;
    }
    result->start_tsc = start;
    uint64_t ready = tsc_now();
    result->late_tsc = ready > start ? ready - start : 0;
    uint64_t cpu_ns = thread_cpu_ns();
    run_loop(engine);
    result->cpu_ns = thread_cpu_ns() - cpu_ns;
    result->end_tsc = tsc_now();
    result->spin_tsc = engine->spin_tsc;
    struct tsc_pair second = tsc_take_pair();
    result->tsc_hz = tsc_rate_between(&first, &second);
    take_last_stamps(engine);
    // What was not yet due when a person ended the run was never offered.
    while (result->end == ENGINE_INTERRUPTED && result->sample_count &&
           result->samples[result->sample_count - 1].intended_tsc > result->end_tsc)
        result->sample_count--;
    for (uint32_t i = 0; i < engine->settings->connections; i++)
        result->stamps_unknown += engine->connections[i].waits.unknown;
    for (size_t i = 0; result->kernel_stamps && i < result->sample_count; i++)
        result->stamps_missing += result->samples[i].sent_tsc && !result->samples[i].tx_ns;
    return 0;
}

static void engine_close(struct engine *engine)
{
    for (uint32_t i = 0; engine->connections && i < engine->settings->connections; i++)
        connection_close(&engine->connections[i]);
    if (engine->signal_event)
        event_free(engine->signal_event);
    if (engine->signal_fd >= 0)
        close(engine->signal_fd);
    if (engine->base)
        event_base_free(engine->base);
    free(engine->connections);
    free(engine->dirty);
    free(engine->value);
    free(engine->context.reader);
    free(engine->context.receive_buffer);
}

int engine_run(const struct engine_settings *settings, const struct schedule *schedule,
               struct engine_result *result, struct error *err)
{
    struct engine engine = {.settings = settings, .result = result, .signal_fd = -1};
    sigset_t signals, before;
    memset(result, 0, sizeof *result);
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    int status = prepare(&engine, schedule, &signals, err);
    if (status == 0)
        status = run(&engine, err);
    engine_close(&engine);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (status < 0)
        engine_result_free(result);
    return status;
}

void engine_result_free(struct engine_result *result)
{
    if (result->samples)
        munmap(result->samples, result->sample_bytes);
    free(result->connections);
    memset(result, 0, sizeof *result);
}
