// SPDX-License-Identifier: MIT
//
// What the tests of the engine share: a short run against a port, checked for what must hold of any
// run whatever the server does.
#ifndef TESTS_LOADGEN_ENGINE_ENGINE_TEST_H
#define TESTS_LOADGEN_ENGINE_ENGINE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "loadgen/engine/engine.h"

static inline int listen_anywhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (void *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (void *)&address, &bytes), 0);
    *port = ntohs(address.sin_port);
    return listener;
}

static inline uint16_t free_port(void)
{
    uint16_t port;
    close(listen_anywhere(&port));
    return port;
}

static inline void resolve(uint16_t port, struct server_address *address)
{
    char text[40];
    struct error err;
    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_int_equal(server_address_parse(text, address, &err), 0);
    assert_int_equal(server_address_resolve(address, &err), 0);
}

// For replies that do come: the machine may be busy.
static const uint64_t patient_ms = 20000;

// How long requests are due. Longer where the client shall give up before: it ends with that.
static uint64_t load_ns = 400000000;

// Called when all connections stand, before anything is sent on them; NULL: nothing waits.
static void (*await_server)(void);

// As engine_settings.agree has it.
static inline uint64_t begin_after_server(void *unused, uint64_t needs_ns)
{
    (void)unused;
    await_server();
    return (uint64_t)monotonic_ns() + needs_ns;
}

struct tally {
    size_t by_status[6];
};

static inline void gets_only(struct workload *workload)
{
    workload_defaults(workload);
    workload->key_count = 100;
    workload->mix[WORKLOAD_GET] = 1;
    workload->mix[WORKLOAD_SET] = 0;
}

// On each connection requests and replies follow one another without gap.
static inline void check_offsets(const struct engine_result *result)
{
    for (uint32_t c = 0; c < result->connection_count; c++) {
        uint64_t request = 0, reply = 0;
        for (size_t i = 0; i < result->sample_count; i++) {
            const struct sample *sample = &result->samples[i];
            if (sample->connection != result->connections[c].id)
                continue;
            assert_int_equal(sample->request_begin, request);
            assert_true(sample->request_end > request);
            request = sample->request_end;
            if (!sample_is_answered(sample))
                continue;
            assert_int_equal(sample->reply_begin, reply);
            assert_true(sample->reply_end > reply);
            reply = sample->reply_end;
        }
    }
}

// Loads in bounded memory, in rings of RING samples: far fewer than the load has.
static bool in_bounded_memory;
enum { RING = 1024 };

// engine_settings.stamps_every, share_cores and sleeps of the runs.
static uint32_t stamps_every;
static bool share_cores, asleep;

// Puts all samples of the file in place of those that were kept.
static inline void take_spooled(const char *path, struct engine_result *result)
{
    const struct sample_totals *totals = result->totals;
    struct log_reader log;
    struct error err;
    if (log_reader_open(&log, path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), &err) <
        0)
        fail_msg("%s", err.text);
    assert_int_equal(log.count, totals->counts.scheduled);
    assert_int_equal(log.count, totals->spool_count);
    munmap(result->samples, result->sample_bytes);
    assert_int_equal(engine_result_take_samples(result, log.count, &err), 0);
    memcpy(result->samples, log.records, log.count * sizeof *result->samples);
    result->sample_count = log.count;
    log_reader_close(&log);
    struct sample_counts counts = {0};
    for (size_t i = 0; i < result->sample_count; i++)
        sample_counts_note(&counts, &result->samples[i]);
    assert_memory_equal(&counts, &totals->counts, sizeof counts);
}

// As engine_run, with a schedule that is drawn meanwhile.
static inline int run_bounded(struct engine_settings settings, const struct distribution *arrivals,
                              double rate, uint64_t seed, struct engine_result *result,
                              struct error *err)
{
    char spool[] = "/tmp/taillight-spool-XXXXXX";
    const size_t threads = settings.threads ? settings.threads : 1;
    close(mkstemp(spool));
    settings.spool = spool;
    settings.memory_bytes = 6 * RING * sizeof(struct sample) * threads;
    assert_int_equal(schedule_drawer_open(settings.workload, arrivals, rate, settings.duration_ns,
                                          seed, &settings.drawer, err),
                     0);
    int status = engine_run(&settings, NULL, result, err);
    schedule_drawer_close(settings.drawer);
    if (status == 0)
        take_spooled(spool, result);
    unlink(spool);
    return status;
}

// What the load would have left, if it had been killed, is the beginning of what it measured.
static inline void check_journal(const struct engine_result *result)
{
    FILE *file = fopen(result->journal->out.partial, "re");
    struct sample one;
    assert_non_null(file);
    assert_int_equal(fseek(file, sizeof(struct log_header), SEEK_SET), 0);
    size_t count = 0;
    for (; fread(&one, sizeof one, 1, file) == 1; count++) {
        assert_true(count < result->sample_count);
        one.tx_ns = result->samples[count].tx_ns; // it may have come later
        one.tx_source = result->samples[count].tx_source;
        assert_memory_equal(&one, &result->samples[count], sizeof one);
    }
    fclose(file);
    assert_int_equal(count, result->journal->header.records);
    if (result->end != ENGINE_INTERRUPTED)
        assert_int_equal(count, result->sample_count);
}

// As engine_run, with a file that is not kept.
static inline int run_with_journal(struct engine_settings settings, const struct schedule *schedule,
                                   struct engine_result *result, struct error *err)
{
    char spool[] = "/tmp/taillight-spool-XXXXXX";
    close(mkstemp(spool));
    settings.spool = spool;
    int status = engine_run(&settings, schedule, result, err);
    if (status == 0)
        check_journal(result);
    unlink(spool);
    return status;
}

// Once more, in bounded memory.
static inline int run_in_bounded_memory(const struct CMUnitTest *tests, size_t count)
{
    in_bounded_memory = true;
    return _cmocka_run_group_tests("in bounded memory", tests, count, NULL, NULL);
}

// Runs and checks what must hold of any run.
static inline void run_threads(uint32_t threads, const struct workload *workload, uint16_t port,
                               double rate, uint32_t connections, uint32_t depth,
                               enum stamp_mode stamps, uint64_t timeout_ms,
                               struct engine_result *result, struct tally *tally)
{
    struct error err = {0};
    struct schedule schedule;
    struct server_address address;
    const struct distribution arrivals = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1};
    const uint64_t duration_ns = load_ns, seed = 9;
    resolve(port, &address);
    assert_int_equal(schedule_draw(workload, &arrivals, rate, duration_ns, seed, &schedule, &err),
                     0);
    const struct engine_settings settings = {.server = &address,
                                             .workload = workload,
                                             .threads = threads,
                                             .connections = connections,
                                             .depth = depth,
                                             .stamps = stamps,
                                             .stamps_every = stamps_every,
                                             .share_cores = share_cores,
                                             .sleeps = asleep,
                                             .duration_ns = duration_ns,
                                             .timeout_ns = timeout_ms * 1000000,
                                             .reconnect_ns = 300000000,
                                             .agree = await_server ? begin_after_server : NULL};
    if ((in_bounded_memory ? run_bounded(settings, &arrivals, rate, seed, result, &err)
                           : run_with_journal(settings, &schedule, result, &err)) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(result->sample_count, schedule.count);
    memset(tally, 0, sizeof *tally);
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i];
        assert_true(sample->status < 6);
        tally->by_status[sample->status]++;
        assert_int_equal(sample->key, schedule.items[i].key);
        assert_true(i == 0 || sample->intended_tsc >= result->samples[i - 1].intended_tsc);
        if (sample->sent_tsc)
            assert_true(sample->intended_tsc <= sample->send_tsc &&
                        sample->send_tsc < sample->sent_tsc);
        if (sample_is_answered(sample))
            assert_true(sample->reply_tsc > sample->send_tsc && sample->reply_end > 0);
    }
    schedule_free(&schedule);
    uint64_t lost = 0;
    for (unsigned reason = 0; reason < LOSS_REASONS; reason++)
        lost += result->counts.lost[reason];
    assert_int_equal(lost, tally->by_status[SAMPLE_LOST]);
    assert_int_equal(result->connection_count, connections + result->counts.reconnects);
    assert_int_equal(result->connections_at_once, connections);
    for (uint32_t i = 0; i < result->connection_count; i++) // ids are 1, 2, ... in the order opened
        assert_int_equal(result->connections[i].id, i + 1);
    check_offsets(result);
}

static inline void run(const struct workload *workload, uint16_t port, double rate,
                       uint32_t connections, uint32_t depth, enum stamp_mode stamps,
                       uint64_t timeout_ms, struct engine_result *result, struct tally *tally)
{
    run_threads(1, workload, port, rate, connections, depth, stamps, timeout_ms, result, tally);
}

#endif
