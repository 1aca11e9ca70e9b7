// SPDX-License-Identifier: MIT
//
// A closed loop in bounded memory: all of many times more requests than it has places for are
// counted, in one thread and in two; one that is never answered holds up none but its own
// connection; and where memory holds all of them the result is as without a bound.
#include "tests/loadgen/engine/engine_test.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "loadgen/engine/engine_worker_places.h"

enum { CONNECTIONS = 4, DEPTH = 3, MANY = 5000 };

// Answers each request at once; of the first connection only so many, and then none.
struct server {
    int listener;
    uint64_t first_answered; // UINT64_MAX: all
    uint64_t answered;
    atomic_bool stop;
    pthread_t thread;
};

static uint64_t answer(int client, uint64_t most)
{
    static const char reply[] = "END\r\n";
    char asked[16 << 10], said[sizeof asked];
    const ssize_t got = recv(client, asked, sizeof asked, MSG_DONTWAIT);
    uint64_t requests = 0;
    size_t bytes = 0;
    for (ssize_t i = 0; i < got; i++) {
        if (asked[i] != '\n' || requests == most)
            continue;
        memcpy(said + bytes, reply, sizeof reply - 1);
        bytes += sizeof reply - 1;
        requests++;
    }
    return bytes && send(client, said, bytes, MSG_NOSIGNAL) == (ssize_t)bytes ? requests : 0;
}

static void *serve(void *argument)
{
    struct server *server = argument;
    struct pollfd clients[CONNECTIONS];
    for (unsigned i = 0; i < CONNECTIONS; i++)
        clients[i] = (struct pollfd){accept(server->listener, NULL, NULL), POLLIN, 0};
    while (!atomic_load(&server->stop)) {
        poll(clients, CONNECTIONS, 10);
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            const uint64_t done =
                clients[i].revents ? answer(clients[i].fd, i ? UINT64_MAX : server->first_answered)
                                   : 0;
            server->answered += done;
            if (!i && server->first_answered != UINT64_MAX)
                server->first_answered -= done;
        }
    }
    for (unsigned i = 0; i < CONNECTIONS; i++)
        close(clients[i].fd);
    return NULL;
}

static void load(struct server *server, uint32_t threads, size_t memory, uint64_t duration_ns,
                 uint64_t timeout_ms, struct engine_result *result)
{
    struct workload workload;
    struct schedule order;
    struct server_address address;
    struct error err = {0};
    uint16_t port;
    gets_only(&workload);
    server->listener = listen_anywhere(&port);
    resolve(port, &address);
    assert_int_equal(schedule_draw_order(&workload, 1000, 5, &order, &err), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
    const struct engine_settings settings = {.server = &address,
                                             .workload = &workload,
                                             .threads = threads,
                                             .share_cores = true,
                                             .sleeps = true,
                                             .connections = CONNECTIONS,
                                             .depth = DEPTH,
                                             .stamps = STAMP_MODE_AUTO,
                                             .closed_loop = true,
                                             .memory_bytes = memory,
                                             .duration_ns = duration_ns,
                                             .timeout_ns = timeout_ms * 1000000};
    if (engine_run(&settings, &order, result, &err) < 0)
        fail_msg("%s", err.text);
    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    close(server->listener);
    schedule_free(&order);
}

static void check_kept(const struct engine_result *result)
{
    for (size_t i = 1; i < result->sample_count; i++)
        assert_true(result->samples[i].intended_tsc >= result->samples[i - 1].intended_tsc);
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i];
        assert_true(!sample_is_answered(sample) || (sample->intended_tsc <= sample->send_tsc &&
                                                    sample->send_tsc < sample->reply_tsc &&
                                                    sample->reply_end - sample->reply_begin == 5));
    }
}

static void all_are_counted(void **state)
{
    (void)state;
    const size_t least = 6 * TOTALS_STRETCH * sizeof(struct sample); // that the totals can do with
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct server server = {.first_answered = UINT64_MAX};
        struct engine_result result;
        load(&server, threads, threads * least, 3 * load_ns, patient_ms, &result);
        const struct sample_totals *totals = result.totals;
        assert_non_null(totals);
        assert_int_equal(result.end, ENGINE_COMPLETE);
        assert_true(totals->counts.scheduled > MANY);
        assert_int_equal(totals->counts.scheduled, server.answered);
        assert_int_equal(totals->counts.answered, server.answered);
        assert_int_equal(histogram_count(&totals->latency.histogram), server.answered);
        assert_int_equal(totals->slow_count, TOTALS_SLOWEST);
        for (size_t i = 1; i < TOTALS_SLOWEST; i++)
            assert_true(sample_latency_ticks(&totals->slowest[i - 1]) >=
                        sample_latency_ticks(&totals->slowest[i]));
        // Of each thread's stretches one in `every`; the last of them may have only begun.
        assert_true(totals->every > 1);
        const double expected = (double)server.answered / (double)totals->every;
        assert_true((double)result.sample_count >= expected - threads * TOTALS_STRETCH &&
                    (double)result.sample_count <= expected + threads * TOTALS_STRETCH);
        if (result.kernel_stamps)
            assert_true(result.stamps_missing < totals->counts.answered / 100);
        check_kept(&result);
        engine_result_free(&result);
    }
}

static void one_holds_up_no_other(void **state)
{
    (void)state;
    struct server server = {.first_answered = DEPTH + 1};
    struct engine_result result;
    load(&server, 1, 64 << 20, 3 * load_ns, 200, &result);
    size_t timed_out = 0;
    // Of each place many requests were in turn.
    assert_true(server.answered > 4 * engine_places_needed(CONNECTIONS, DEPTH));
    assert_int_equal(result.end, ENGINE_TIMED_OUT);
    for (size_t i = 0; !result.totals && i < result.sample_count; i++)
        timed_out += result.samples[i].status == SAMPLE_TIMED_OUT;
    if (result.totals) // a fast machine
        timed_out = result.totals->counts.timed_out;
    else
        assert_int_equal(result.sample_count, server.answered + timed_out);
    assert_in_range(timed_out, 1, DEPTH);
    check_kept(&result);
    engine_result_free(&result);
}

static void what_fits_is_whole(void **state)
{
    (void)state;
    struct server server = {.first_answered = UINT64_MAX};
    struct engine_result result;
    load(&server, 2, (size_t)1 << 30, load_ns / 4, patient_ms, &result);
    assert_null(result.totals);
    assert_int_equal(result.sample_count, server.answered);
    check_offsets(&result);
    check_kept(&result);
    engine_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_counted),
        cmocka_unit_test(one_holds_up_no_other),
        cmocka_unit_test(what_fits_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
