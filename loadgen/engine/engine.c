// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/nic_stamps.h"
#include "base/one_wish.h"
#include "base/text.h"
#include "base/tsc.h"
#include "base/tsc_rate.h"
#include "loadgen/client/client_datagram.h"
#include "loadgen/client/client_tls.h"
#include "loadgen/client/server_route.h"
#include "loadgen/client/tls_settings.h"
#include "loadgen/engine/engine_merge.h"
#include "loadgen/engine/engine_nodes.h"
#include "loadgen/engine/engine_worker_prepare.h"
#include "loadgen/engine/engine_worker_run.h"
#include "loadgen/engine/sample_drain.h"
#include "loadgen/engine/sample_journal.h"
#include "loadgen/engine/thread_cores.h"
#include "workloads/protocols/memcached_udp.h"
#include "workloads/protocols/protocols.h"

enum {
    SETTLE_NS = 20000000,      // pause between the last connect and the first request
    DRAW_REST_NS = 1000000000, // what of the schedule is drawn after the load, as never sent,
    DRAW_TOLD_NS = 50000000,   // and after one that was told to end
    ENDING_NICE = -20,
    CALIBRATE_NS = 30000000,
    FILES_A_THREAD = 8, // of its event loop
    FILES_BESIDES = 64,
    ASKING_BYTES = 128, // room before a request for what a node of a cluster may want there
};

struct engine {
    struct engine_shared shared;
    struct engine_result *result;
    struct engine_worker **workers; // each in memory of its own
    uint32_t begun;                 // threads that have been started
    struct engine_nodes nodes;
    sigset_t signals; // that end it
    int signal_fd, news;
    int stamping_fd; // with kernel stamps: a socket that asks for them as long as the load lasts
    int64_t told_ns; // when a signal first told it to end; 0: none has
    struct nic_stamps nic;
    struct clock_follower nic_clock;  // runs while shared.hardware_stamps is set
    struct clock_follower host_clock; // runs with settings->keep_clock
    struct sample_drain drain;        // in bounded memory
    struct sample_journal journal;    // else, with settings->spool
};

// --- preparation ---------------------------------------------------------------------------------

// Every connection is an open file. Raises the limit on open files as far as this process may.
static int raise_file_limit(uint32_t connections, uint32_t threads, struct error *err)
{
    const rlim_t needed = (rlim_t)connections + FILES_A_THREAD * (rlim_t)threads + FILES_BESIDES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
        return 0;
    struct rlimit more = {needed, limit.rlim_max < needed ? needed : limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &more) == 0)
        return 0;
    return error_set(err, ERROR_FAILED,
                     "%s connections need %s open files, and the limit is %s: raise it with "
                     "ulimit -n (as root, or the hard limit in limits.conf(5))",
                     TEXT_COUNT(connections), TEXT_COUNT(needed), TEXT_COUNT(limit.rlim_max));
}

static int begin_nic_stamps(struct engine *engine, struct error *err)
{
    const struct engine_settings *settings = engine->shared.settings;
    char interface[IF_NAMESIZE];
    int status = server_route((const struct sockaddr *)&settings->server->socket_address,
                              settings->server->socket_address_bytes, interface, err);
    if (status == 0)
        status = nic_stamps_begin(interface, NIC_SENDS | NIC_RECEIVES, &engine->nic, err);
    int clock = status == 0 ? nic_clock_open(engine->nic.clock_index, err) : status;
    return clock < 0 ? clock
                     : clock_follower_begin(&engine->nic_clock, nic_clock_read, clock,
                                            "the NIC's clock", err);
}

// Turns on the NIC's stamps in addition to the kernel's, if the NIC has them for every packet.
static int choose_hardware_stamps(struct engine *engine, struct error *err)
{
    const struct engine_settings *settings = engine->shared.settings;
    struct engine_result *result = engine->result;
    if (settings->stamps == STAMP_MODE_SOFTWARE)
        return 0;
    if (!engine->shared.schedule) {
        // They are converted after the load, when the two clocks are known.
        error_set(&result->hardware_why, ERROR_INPUT,
                  "the NIC's stamps are for loads whose samples all fit into memory");
        if (settings->stamps == STAMP_MODE_AUTO)
            return 0;
        return error_set(err, ERROR_INPUT, "%s; use --stamps sw, or more --memory",
                         result->hardware_why.text);
    }
    int status = begin_nic_stamps(engine, &result->hardware_why);
    engine->shared.hardware_stamps = result->hardware_stamps = status == 0;
    engine->shared.hardware_tx = status == 0 && engine->nic.tx;
    if (status == 0 && !(engine->nic.tx && engine->nic.rx))
        error_set(&result->hardware_why, ERROR_INPUT, "%s stamps only what is %s",
                  engine->nic.interface, engine->nic.tx ? "sent" : "received");
    if (status < 0 && settings->stamps == STAMP_MODE_HARDWARE)
        return error_set(err, result->hardware_why.kind, "%s; use --stamps sw",
                         result->hardware_why.text);
    return 0;
}

// Turns on kernel stamps if they are available. Tries a socket of its own, so that "auto" is
// decided before the first connection is made. It stays: with the first socket that asks for stamps
// the kernel patches its own code, and with the last one again (net_enable_timestamp in
// net/core/dev.c), which holds up all cores; where servers end their connections each would be the
// last.
static int choose_stamps(struct engine *engine, struct error *err)
{
    const struct engine_settings *settings = engine->shared.settings;
    if (settings->stamps == STAMP_MODE_USER)
        return 0;
    if (settings->server->transport == SERVER_UNIX) {
        error_set(&engine->result->stamps_why, ERROR_INPUT,
                  "the kernel does not stamp UNIX sockets; use --stamps user");
        if (settings->stamps == STAMP_MODE_AUTO)
            return 0;
        *err = engine->result->stamps_why;
        return -ERROR_INPUT;
    }
    int type = settings->server->transport == SERVER_UDP ? SOCK_DGRAM : SOCK_STREAM;
    int probe = socket(settings->server->socket_address.ss_family, type | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open a socket");
    int status = client_stamps_supported(probe, &engine->result->stamps_why);
    engine->stamping_fd = probe;
    engine->result->kernel_stamps = engine->shared.kernel_stamps = status == 0;
    if (status < 0 && settings->stamps != STAMP_MODE_AUTO) {
        *err = engine->result->stamps_why;
        return status;
    }
    return status < 0 ? 0 : choose_hardware_stamps(engine, err);
}

// Which send calls the kernel stamps. Of all of them those of which the NIC's are wanted; a
// datagram that is not stamped would not be counted by the stamps' ids (timestamping.rst).
static int choose_stamped_sends(struct engine *engine, struct error *err)
{
    const struct engine_settings *settings = engine->shared.settings;
    const bool udp = settings->server->transport == SERVER_UDP;
    if (settings->stamps_every > 1 && udp)
        return error_set(err, ERROR_INPUT,
                         "%s: over UDP each datagram is stamped, or none: --stamps sw, or user",
                         settings->server->text);
    if (engine->shared.kernel_stamps && !engine->shared.hardware_stamps && !udp)
        engine->shared.stamps_every =
            settings->stamps_every ? settings->stamps_every : settings->stamps_may_thin;
    engine->result->stamps_every =
        engine->shared.stamps_every > 1 ? engine->shared.stamps_every : 0;
    return 0;
}

// One core per thread, of those that this process may use. A single thread may use any of them,
// since there are no other threads to avoid.
static int choose_cores(struct engine *engine, struct error *err)
{
    cpu_set_t allowed;
    unsigned wanted = engine->shared.thread_count, found = 0;
    if (wanted == 1)
        return 0;
    if (wanted > engine->shared.settings->connections)
        return error_set(err, ERROR_INPUT, "%u threads need as many connections, not %u", wanted,
                         engine->shared.settings->connections);
    if (engine->shared.settings->share_cores)
        return 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot find out which cores there are");
    thread_cores_choose(&allowed, wanted, thread_cores_topology, &engine->result->cores);
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((unsigned)core, &engine->result->cores))
            engine->workers[found++]->core = core;
    if (found < wanted)
        return error_set(err, ERROR_INPUT,
                         "%u threads need a core each, and there are %u (those of the affinity "
                         "mask; see taskset(1))",
                         wanted, found);
    return 0;
}

static int make_workers(struct engine *engine, struct error *err)
{
    uint32_t count = engine->shared.thread_count;
    const size_t bytes = sizeof(struct engine_worker);
    engine->workers = calloc(count, sizeof(void *));
    for (uint32_t i = 0; engine->workers && i < count; i++) {
        struct engine_worker *worker = engine->workers[i] = aligned_alloc(CACHE_LINE, bytes);
        if (!worker)
            break;
        memset(worker, 0, bytes);
        worker->shared = &engine->shared;
        worker->index = i;
        worker->core = -1;
        worker->news = engine->news;
        worker->ring = engine->drain.rings ? &engine->drain.rings[i] : NULL;
        worker->sent = worker->ring            ? &worker->ring->sent
                       : engine->journal.parts ? &engine->journal.parts[i].sent
                                               : NULL;
        sem_init(&worker->go, 0, 0);
    }
    if (!engine->workers || !engine->workers[count - 1])
        return error_set(err, ERROR_FAILED, "out of memory for %u threads", count);
    return choose_cores(engine, err);
}

// Not every protocol can use UDP, and there a request must fit into one datagram.
static int check_udp(struct engine *engine, struct error *err)
{
    struct engine_shared *shared = &engine->shared;
    const struct protocol *protocol = shared->settings->workload->protocol;
    char able[200];
    if (!protocol->over_udp)
        return error_set(err, ERROR_INPUT,
                         "%s: protocol %s does not go over UDP; of the protocols, %s can",
                         shared->settings->server->text, protocol->name,
                         protocol_names_over_udp(able, sizeof able));
    if (shared->request_bytes + UDP_FRAME_BYTES > UDP_DATAGRAM_BYTES_MAX)
        return error_set(err, ERROR_INPUT,
                         "%s: requests of up to %zu bytes do not fit into a datagram of %d; take "
                         "smaller values",
                         shared->settings->server->text, shared->request_bytes,
                         UDP_DATAGRAM_BYTES_MAX);
    shared->request_bytes += DATAGRAM_OVERHEAD;
    return 0;
}

static int check_values(const struct engine_shared *shared, struct error *err)
{
    const struct protocol *protocol = shared->settings->workload->protocol;
    if (!protocol->value_bytes_max || shared->value_bytes <= protocol->value_bytes_max)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "protocol %s has values of at most %zu bytes, and the workload has one of %zu",
                     protocol->name, protocol->value_bytes_max, shared->value_bytes);
}

// Over UDP the sample of a request that is settled is still looked at: a set's could not be used
// again.
static int check_read_through(const struct engine_shared *shared, struct error *err)
{
    const struct engine_settings *settings = shared->settings;
    if (!settings->workload->read_through || settings->server->transport != SERVER_UDP)
        return 0;
    return error_set(err, ERROR_INPUT, "%s: a workload with read_through needs TCP",
                     settings->server->text);
}

enum { RING_LEAST = 1024 }; // samples of a thread

// kept_bytes: that one sample_totals would have for what it keeps.
static int check_bound(const struct engine_shared *shared, size_t kept_bytes, struct error *err)
{
    if (kept_bytes >= 2 * TOTALS_STRETCH * sizeof(struct sample))
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%zu MiB of memory do not suffice for the requests of %u threads: "
                     "more --memory",
                     shared->settings->memory_bytes >> 20, shared->thread_count);
}

// Of the memory that a load may take, its rings get a quarter, and a third what is kept of its
// samples, which are judged in the rest.
static int bound_memory(struct engine *engine, struct error *err)
{
    struct engine_shared *shared = &engine->shared;
    const struct engine_settings *settings = shared->settings;
    const size_t bytes = settings->memory_bytes;
    const size_t each = bytes / 4 / shared->thread_count / sizeof(struct sample);
    for (shared->ring_size = 1; shared->ring_size <= each / 2;)
        shared->ring_size *= 2;
    if (check_bound(shared, shared->ring_size < RING_LEAST ? 0 : bytes / 3, err) < 0)
        return -ERROR_INPUT;
    int status = sample_totals_new(bytes / 3, settings->spool, &engine->result->totals, err);
    return status < 0 ? status
                      : sample_drain_open(&engine->drain, shared->thread_count, settings->drawer,
                                          engine->result->totals, err);
}

static int engine_prepare(struct engine *engine, struct error *err)
{
    struct engine_shared *shared = &engine->shared;
    const struct engine_settings *settings = shared->settings;
    const struct workload *workload = settings->workload;
    struct engine_result *result = engine->result;
    uint32_t share = ENGINE_IN_FLIGHT_CAP / settings->connections;
    result->depth_is_cap = settings->depth == 0;
    result->depth = shared->depth = settings->depth ? settings->depth : share ? share : 1;
    result->connections_at_once = settings->connections;
    atomic_init(&shared->last_id, settings->connections);
    result->closed_loop = settings->closed_loop;
    result->fanout = workload->fanout;
    result->thread_count = shared->thread_count;
    shared->value_bytes = workload_value_bytes_max(workload);
    shared->carried_bytes = workload_carried_bytes_max(workload);
    multiget_init(&shared->multiget, workload);
    shared->request_bytes =
        workload->protocol->request_bytes_max(multiget_key_bytes_max(&shared->multiget),
                                              shared->carried_bytes) +
        http_words_bytes(&workload->http) + (workload->custom ? custom_bytes(workload->custom) : 0);
    shared->transaction_most = transactions_most(workload);
    if (shared->request_bytes < shared->transaction_most.request_bytes)
        shared->request_bytes = shared->transaction_most.request_bytes;
    if (check_values(shared, err) < 0 || check_read_through(shared, err) < 0 ||
        multiget_check(workload, settings->cluster, settings->server->transport == SERVER_UDP,
                       err) < 0)
        return -ERROR_INPUT;
    shared->encoded_bytes = shared->request_bytes;
    if (settings->server->transport == SERVER_UDP && check_udp(engine, err) < 0)
        return -ERROR_INPUT;
    if (tls_context_make(settings->tls, settings->server, workload->protocol->alpn, &shared->tls,
                         err) < 0)
        return -(int)err->kind;
    if (shared->tls) {
        shared->request_bytes = client_tls_bytes_max(shared->encoded_bytes);
        shared->tls_method = client_tls_method();
        if (!shared->tls_method)
            return error_set(err, ERROR_FAILED, "out of memory for TLS");
    }
    if (engine_nodes_open(settings, shared->thread_count, &engine->nodes, err) < 0)
        return -(int)err->kind;
    shared->nodes = engine->nodes.map;
    shared->request_bytes += shared->nodes ? ASKING_BYTES : 0;
    engine->signal_fd = signalfd(-1, &engine->signals, SFD_NONBLOCK | SFD_CLOEXEC);
    engine->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (settings->slow_ns)
        shared->slow.news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (engine->signal_fd < 0 || engine->news < 0 || (settings->slow_ns && shared->slow.news < 0))
        return error_set_errno(err, ERROR_FAILED, "cannot watch for signals");
    result->tsc_hz = tsc_measure_hz(CALIBRATE_NS);
    shared->ticks_per_ns = result->tsc_hz / 1e9;
    shared->slow.over_tsc = engine_ticks(shared, settings->slow_ns);
    int status = raise_file_limit(settings->connections, shared->thread_count, err);
    if (status == 0)
        status = choose_stamps(engine, err);
    // The NIC's stamps are converted after the load.
    shared->closed_bounded = settings->closed_loop && settings->memory_bytes && !settings->spool &&
                             !shared->hardware_stamps;
    if (status == 0 && shared->closed_bounded)
        status = check_bound(shared, engine_closed_bytes(shared), err);
    if (status == 0 && settings->drawer)
        status = bound_memory(engine, err);
    else if (status == 0 && settings->spool)
        status = sample_journal_open(&engine->journal, settings->spool, shared->thread_count,
                                     !settings->closed_loop, err);
    if (status == 0)
        status = make_workers(engine, err);
    return status < 0 ? status : choose_stamped_sends(engine, err);
}

// --- threads -------------------------------------------------------------------------------------

static void worker_signal(const struct engine_worker *worker)
{
    const uint64_t one = 1;
    ssize_t written = write(worker->news, &one, sizeof one);
    (void)written; // the counter cannot overflow
}

static void *worker_main(void *argument)
{
    struct engine_worker *worker = argument;
    cpu_set_t core;
    char name[16];
    snprintf(name, sizeof name, "load-%u", worker->index % 100000);
    pthread_setname_np(pthread_self(), name); // the thread's name in ps and perf
    CPU_ZERO(&core);
    if (worker->core >= 0) {
        CPU_SET((unsigned)worker->core, &core);
        if (pthread_setaffinity_np(pthread_self(), sizeof core, &core) != 0)
            worker->status = error_set(&worker->err, ERROR_FAILED,
                                       "cannot run a load thread on core %d", worker->core);
    }
    if (worker->status == 0)
        worker->status = engine_worker_prepare(worker, &worker->err);
    worker_signal(worker);
    sem_wait(&worker->go);
    if (worker->start_tsc)
        engine_worker_run(worker, worker->start_tsc);
    engine_worker_close(worker);
    worker_signal(worker);
    return NULL;
}

// Waits until every running thread has signalled once more, and handles signals meanwhile.
static void await_threads(struct engine *engine)
{
    for (uint64_t signalled = 0; signalled < engine->begun;) {
        struct pollfd ready[3] = {{.fd = engine->news, .events = POLLIN},
                                  {.fd = engine->signal_fd, .events = POLLIN},
                                  {.fd = engine->shared.slow.news, .events = POLLIN}};
        struct signalfd_siginfo info;
        uint64_t more, slow;
        poll(ready, 3, -1);
        if ((slow = slow_replies_look(&engine->shared.slow)))
            engine->shared.settings->on_slow(engine->shared.settings->announce_context, slow);
        if (read(engine->signal_fd, &info, sizeof info) == sizeof info) {
            engine->told_ns = engine->told_ns ? engine->told_ns : monotonic_ns();
            one_wish_note((int)info.ssi_signo);
            atomic_store(&engine->shared.stop, true);
            // What is left is a fraction of a second, and somebody waits. (Without the right to,
            // it has its turns like others.)
            setpriority(PRIO_PROCESS, 0, ENDING_NICE);
        }
        if (read(engine->news, &more, sizeof more) == sizeof more)
            signalled += more;
    }
}

static void release_threads(struct engine *engine, uint64_t start_tsc)
{
    for (uint32_t i = 0; i < engine->begun; i++) {
        engine->workers[i]->start_tsc = start_tsc;
        sem_post(&engine->workers[i]->go);
    }
}

// Starts the threads and waits until all are connected. If one cannot connect, none goes on.
static int begin_threads(struct engine *engine, struct error *err)
{
    int status = 0;
    for (uint32_t i = 0; i < engine->shared.thread_count && status == 0; i++) {
        int failure =
            pthread_create(&engine->workers[i]->thread, NULL, worker_main, engine->workers[i]);
        errno = failure;
        if (failure)
            status = error_set_errno(err, ERROR_FAILED, "cannot begin load thread %u", i);
        else
            engine->begun++;
    }
    await_threads(engine);
    for (uint32_t i = 0; i < engine->begun && status == 0; i++) {
        status = engine->workers[i]->status;
        if (status < 0)
            *err = engine->workers[i]->err;
    }
    const struct engine_settings *settings = engine->shared.settings;
    if (status < 0 && settings->sentinel) // whose server the person did not name
        error_prefix(err, "the master \"%s\" that %s names", settings->sentinel,
                     settings->server->text);
    return status;
}

static void join_threads(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->begun; i++)
        pthread_join(engine->workers[i]->thread, NULL);
    engine->begun = 0;
}

// Calls settings->announce with the instant at which the schedule begins, in CLOCK_MONOTONIC.
static void begin_announce(const struct engine *engine, uint64_t start_tsc)
{
    const struct engine_settings *settings = engine->shared.settings;
    if (!settings->announce)
        return;
    int64_t now_ns = monotonic_ns();
    double ahead_ns = (double)(int64_t)(start_tsc - tsc_now()) / engine->shared.ticks_per_ns;
    settings->announce(settings->announce_context, (uint64_t)(now_ns + (int64_t)ahead_ns));
}

// When the schedule begins (TSC); 0: it must not begin.
static uint64_t choose_start(const struct engine *engine)
{
    const struct engine_settings *settings = engine->shared.settings;
    // Turns the schedule's offsets into instants; this takes a moment for long schedules.
    const struct schedule *schedule = engine->shared.schedule;
    uint64_t count =
        schedule ? schedule->count : engine->shared.ring_size * engine->shared.thread_count;
    uint64_t needs_ns = SETTLE_NS + count * 3;
    if (!settings->agree)
        return tsc_now() + engine_ticks(&engine->shared, needs_ns);
    uint64_t begin_ns = settings->agree(settings->agree_context, needs_ns);
    if (!begin_ns)
        return 0;
    int64_t ahead_ns = (int64_t)begin_ns - monotonic_ns();
    return tsc_now() + (uint64_t)(int64_t)((double)ahead_ns * engine->shared.ticks_per_ns);
}

// Where a person ended the load, requests not yet due were never offered.
static void merge_drained(struct engine *engine)
{
    struct engine_result *result = engine->result;
    struct sample_totals *totals = result->totals;
    const bool told = result->end == ENGINE_INTERRUPTED;
    sample_drain_end(&engine->drain, told ? result->end_tsc : UINT64_MAX,
                     engine_ticks(&engine->shared, told ? DRAW_TOLD_NS : DRAW_REST_NS));
    sample_totals_finish(totals);
    result->samples = totals->kept;
    result->sample_count = totals->kept_count;
    result->sample_bytes = totals->kept_size * sizeof *totals->kept;
    totals->kept = NULL;
    result->stamps_missing = result->kernel_stamps ? totals->counts.tx_missing : 0;
}

// From here on the stamps of the NIC are in CLOCK_REALTIME, like all others.
static void convert_hardware_stamps(struct engine *engine)
{
    struct engine_result *result = engine->result;
    const struct clock_knot_array *knots = &engine->nic_clock.knots;
    result->hardware_error_ns = clock_knots_error(knots);
    for (size_t i = 0; i < result->sample_count; i++) {
        struct sample *sample = &result->samples[i];
        if (sample->tx_source == STAMP_HARDWARE)
            sample->tx_ns = (uint64_t)clock_knots_map(knots, false, (int64_t)sample->tx_ns);
        if (sample->rx_source == STAMP_HARDWARE)
            sample->rx_ns = (uint64_t)clock_knots_map(knots, false, (int64_t)sample->rx_ns);
    }
}

// Begins what takes the samples away, on other cores than the load threads', where there are any.
static int begin_taking(struct engine *engine, uint64_t start_tsc, struct error *err)
{
    const cpu_set_t *taken = &engine->result->cores;
    cpu_set_t allowed, others;
    bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    if (known) {
        CPU_AND(&others, &allowed, taken);   // those of them that may be used, and ...
        CPU_XOR(&others, &allowed, &others); // ... all but these
    }
    const cpu_set_t *cores = known && CPU_COUNT(&others) ? &others : NULL;
    for (uint32_t i = 0; engine->journal.parts && i < engine->shared.thread_count; i++)
        engine->journal.parts[i].samples = engine->workers[i]->samples;
    return engine->drain.rings     ? sample_drain_begin(&engine->drain, start_tsc, cores, err)
           : engine->journal.parts ? sample_journal_begin(&engine->journal, cores, err)
                                   : 0;
}

static int spool_connections(const struct engine *engine, struct error *err)
{
    struct log_writer file;
    int status = log_writer_open(&file, engine->shared.settings->spool_connections, LOG_CONNECTIONS,
                                 SAMPLE_LOG_VERSION, sizeof(struct connection), err);
    if (status < 0)
        return status;
    for (uint32_t i = 0; i < engine->shared.thread_count && status == 0; i++) {
        const struct connection_log *log = &engine->workers[i]->context.log;
        status = log_writer_append(&file, log->items, log->count, err);
    }
    if (status == 0)
        return log_writer_close(&file, 0, err);
    log_writer_discard(&file);
    return status;
}

// --- the whole -----------------------------------------------------------------------------------

static int engine_drive(struct engine *engine, struct error *err)
{
    struct engine_result *result = engine->result;
    uint64_t start = 0;
    int status = begin_threads(engine, err);
    if (status == 0 && engine->shared.settings->spool_connections)
        status = spool_connections(engine, err);
    if (status == 0 && engine->drain.rings)
        sample_drain_fill(&engine->drain, engine->shared.ticks_per_ns);
    if (status == 0) {
        start = choose_start(engine);
        if (!start)
            status = error_set(err, ERROR_FAILED, "the controller asked not to begin");
    }
    if (start)
        begin_announce(engine, start);
    if (start && engine->shared.settings->keep_clock && engine->shared.kernel_stamps)
        status =
            clock_follower_begin(&engine->host_clock, clock_read_host, -1, "CLOCK_REALTIME", err);
    if (status == 0)
        status = begin_taking(engine, start, err);
    if (status < 0)
        start = 0;
    struct tsc_pair first = tsc_take_pair();
    release_threads(engine, start);
    await_threads(engine);
    join_threads(engine);
    // What comes later is another wish, however long what follows takes.
    if (engine->told_ns)
        one_wish_take_rest(&engine->signals, engine->told_ns);
    result->journal = sample_journal_end(&engine->journal);
    if (engine->shared.hardware_stamps)
        clock_follower_stop(&engine->nic_clock);
    clock_follower_stop(&engine->host_clock);
    if (status < 0)
        return status;
    result->clock = engine->host_clock.knots;
    engine->host_clock.knots = (struct clock_knot_array){0};
    struct tsc_pair second = tsc_take_pair();
    result->tsc_hz = tsc_rate_between(&first, &second);
    result->start_tsc = start;
    status = engine_merge(&engine->shared, engine->workers, result, err);
    if (status == 0 && !engine->shared.schedule)
        merge_drained(engine);
    if (status == 0 && result->hardware_stamps)
        convert_hardware_stamps(engine);
    return status;
}

static void engine_close(struct engine *engine)
{
    for (uint32_t i = 0; engine->workers && i < engine->shared.thread_count; i++) {
        struct engine_worker *worker = engine->workers[i];
        if (!worker)
            break;
        if (worker->samples)
            munmap(worker->samples, worker->sample_bytes);
        sample_totals_free(worker->totals);
        array_free(&worker->context.log);
        sem_destroy(&worker->go);
        free(worker);
    }
    free(engine->workers);
    sample_drain_close(&engine->drain);
    sample_journal_close(&engine->journal);
    if (engine->shared.hardware_stamps)
        clock_follower_free(&engine->nic_clock);
    clock_follower_free(&engine->host_clock);
    nic_stamps_end(&engine->nic);
    SSL_CTX_free(engine->shared.tls);
    BIO_meth_free(engine->shared.tls_method);
    if (engine->stamping_fd >= 0)
        close(engine->stamping_fd);
    if (engine->signal_fd >= 0)
        close(engine->signal_fd);
    if (engine->news >= 0)
        close(engine->news);
    if (engine->shared.slow.news >= 0)
        close(engine->shared.slow.news);
}

int engine_run(const struct engine_settings *settings, const struct schedule *schedule,
               struct engine_result *result, struct error *err)
{
    struct engine engine = {.shared = {.settings = settings,
                                       .schedule = schedule,
                                       .slow = {.news = -1},
                                       .thread_count = settings->threads ? settings->threads : 1},
                            .result = result,
                            .host_clock = {.fd = -1, .wake = -1},
                            .signal_fd = -1,
                            .stamping_fd = -1,
                            .news = -1};
    sigset_t before;
    memset(result, 0, sizeof *result);
    sigemptyset(&engine.signals);
    sigaddset(&engine.signals, SIGINT);
    sigaddset(&engine.signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &engine.signals, &before); // the threads inherit it
    int status = engine_prepare(&engine, err);
    if (status == 0)
        status = engine_drive(&engine, err);
    engine_nodes_close(&engine.nodes, result);
    engine_close(&engine);
    one_wish_reopen(&before);
    if (status < 0)
        engine_result_free(result);
    return status;
}
