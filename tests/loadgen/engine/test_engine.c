// SPDX-License-Identifier: MIT
//
// The engine against real servers (memcached, labserver): every scheduled request is accounted for.
// Runs beside others: requests are counted, not timed.
#include "tests/loadgen/engine/engine_test.h"
#include "tests/skip.h"

#include <sched.h>
#include <sys/resource.h>

#include "base/process.h"
#include "loadgen/engine/engine_worker.h"
#include "workloads/dataset.h"

static void start_server(struct process *server, const char *const *argv, uint16_t port)
{
    struct error err;
    const struct process_place place = {.log_path = "/dev/null"};
    struct server_address address;
    if (process_start(server, argv, &place, &err) < 0)
        fail_msg("%s", err.text);
    resolve(port, &address);
    for (int tries = 0; tries < 3000; tries++) {
        int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int status = connect(probe, (void *)&address.socket_address, address.socket_address_bytes);
        close(probe);
        if (status == 0)
            return;
        usleep(20000);
    }
    process_stop(server, 100);
    fail_msg("%s did not listen within 60 s", argv[0]);
}

static size_t kept_back(const struct engine_result *result)
{
    size_t count = 0;
    for (size_t i = 0; i < result->sample_count; i++)
        count += (result->samples[i].sender_high & SAMPLE_KEPT_BACK) != 0;
    return count;
}

static void memcached_answers_everything(void **state)
{
    (void)state;
    uint16_t port = free_port();
    char port_text[8];
    struct process server;
    snprintf(port_text, sizeof port_text, "%u", port);
    if (access("/usr/bin/memcached", X_OK) != 0)
        skip_case("there is no memcached");
    // As another user it would lose the signal that ends it with this process, where a check fails.
    const char *const argv[] = {"memcached", "-u", "root", "-l", "127.0.0.1", "-U",
                                "0",         "-t", "1",    "-p", port_text,   NULL};
    start_server(&server, argv, port);
    const struct login login = {.user = ""};
    struct workload workload;
    struct dataset_report report;
    struct engine_result result;
    struct tally tally;
    struct error err;
    workload_defaults(&workload);
    workload.key_count = 500;
    assert_int_equal(dataset_prepare(&workload, "127.0.0.1", port, NULL, NULL, &login, NULL, NULL,
                                     &report, &err),
                     0);
    assert_int_equal(report.verified, 500);
    for (int depth = 0; depth < 2; depth++) {
        run(&workload, port, 5000, 3, depth ? 2 : 0, STAMP_MODE_AUTO, patient_ms, &result, &tally);
        assert_int_equal(result.end, ENGINE_COMPLETE);
        assert_int_equal(kept_back(&result), 0);
        assert_int_equal(tally.by_status[SAMPLE_ANSWERED], result.sample_count);
        assert_int_equal(result.counts.unexpected + result.counts.mismatched, 0);
        assert_int_equal(result.counts.in_flight, 0);
        size_t without_tx = 0, without_rx = 0;
        for (size_t i = 0; i < result.sample_count; i++) {
            const struct sample *sample = &result.samples[i];
            without_tx += !sample->tx_ns;
            without_rx += !sample->rx_ns;
            if (sample->tx_ns && sample->rx_ns)
                assert_true(sample->rx_ns > sample->tx_ns);
            if (depth)
                assert_true(sample->in_flight < 2);
        }
        // On a busy machine the kernel begins with RX stamps late: it turns them on by deferred
        // work.
        if (result.kernel_stamps) {
            assert_int_equal(without_tx, result.stamps_missing);
            assert_int_equal(without_rx, result.counts.rx_missing);
        }
        for (uint32_t c = 0; c < 3; c++) {
            assert_int_equal(result.connections[c].peer_port, port);
            assert_true(result.connections[c].local_port != 0 && result.connections[c].cookie);
        }
        engine_result_free(&result);
    }
    process_stop(&server, 1000);
}

static void start_labserver(struct process *server, uint16_t port, const char *threads)
{
    char port_text[8], path[300];
    const char *build = getenv("BUILD");
    snprintf(port_text, sizeof port_text, "%u", port);
    snprintf(path, sizeof path, "%s/labserver", build ? build : "build");
    const char *const argv[] = {path, "--port", port_text, "--threads", threads, NULL};
    start_server(server, argv, port);
}

// Of every send call the stamp came, was left out, or is counted as missing.
static void stamps_of_some_send_calls(void **state)
{
    (void)state;
    uint16_t port = free_port();
    struct process server;
    struct workload workload;
    struct engine_result result;
    struct tally tally;
    size_t stamped = 0, left_out = 0;
    start_labserver(&server, port, "1");
    gets_only(&workload);
    stamps_every = 4;
    run(&workload, port, 5000, 16, 0, STAMP_MODE_SOFTWARE, patient_ms, &result, &tally);
    stamps_every = 0;
    process_stop(&server, 1000);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_int_equal(result.stamps_every, 4);
    for (size_t i = 0; i < result.sample_count; i++) {
        const struct sample *sample = &result.samples[i];
        stamped += sample->tx_ns != 0;
        left_out += sample->tx_source == STAMP_LEFT_OUT;
        assert_true(!sample->tx_ns || sample->tx_source == STAMP_SOFTWARE);
        assert_true(!sample->tx_ns || !sample->rx_ns || sample->rx_ns > sample->tx_ns);
    }
    assert_int_equal(stamped + left_out + result.stamps_missing, result.sample_count);
    // A busy machine has fewer calls than requests, so the bounds are wide.
    assert_in_range(stamped, result.sample_count / 16, result.sample_count / 2);
    assert_true(left_out > result.sample_count / 2);
    engine_result_free(&result);
}

// What a load thread writes shares no cache line with what others read or write.
static void threads_share_no_cache_line(void **state)
{
    (void)state;
    const size_t lines[] = {
        offsetof(struct engine_shared, settings) / CACHE_LINE,
        offsetof(struct engine_shared, stop) / CACHE_LINE,
        offsetof(struct engine_shared, last_id) / CACHE_LINE,
        offsetof(struct engine_shared, slow) / CACHE_LINE,
    };
    assert_true(lines[0] <= lines[1] && lines[1] < lines[2] && lines[2] < lines[3]);
    assert_int_equal(offsetof(struct engine_shared, last_id) % CACHE_LINE, 0);
    assert_int_equal(offsetof(struct engine_shared, slow) % CACHE_LINE, 0);
    assert_int_equal(_Alignof(struct engine_shared), CACHE_LINE);
    assert_int_equal(sizeof(struct engine_shared) % CACHE_LINE, 0);
    assert_int_equal(sizeof(struct engine_worker) % CACHE_LINE, 0);
    assert_int_equal(sizeof(struct live_counters) % CACHE_LINE, 0);
    assert_int_equal(offsetof(struct sample_ring, drawn) % CACHE_LINE, 0);
    assert_int_equal(offsetof(struct sample_ring, sent) % CACHE_LINE, 0);
    assert_int_equal(sizeof(struct sample_ring) % CACHE_LINE, 0);
}

// Far more of them than there are cores: each request once, in the schedule's order.
static void many_threads_share_one_schedule(void **state)
{
    (void)state;
    enum { MANY = 64 };
    uint16_t port = free_port();
    struct process server;
    struct workload workload;
    struct engine_result result;
    struct tally tally;
    start_labserver(&server, port, "1");
    gets_only(&workload);
    share_cores = true;
    run_threads(MANY, &workload, port, 5000, 2 * MANY, 0, STAMP_MODE_AUTO, patient_ms, &result,
                &tally);
    share_cores = false;
    process_stop(&server, 1000);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_int_equal(result.thread_count, MANY);
    assert_int_equal(tally.by_status[SAMPLE_ANSWERED] + tally.by_status[SAMPLE_MISS],
                     result.sample_count);
    assert_int_equal(result.counts.unexpected + result.counts.in_flight, 0);
    for (size_t i = 0; i < result.sample_count; i++) {
        assert_int_equal(sample_sender(&result.samples[i]), i % MANY);
        assert_int_equal((result.samples[i].connection - 1) % MANY, i % MANY);
    }
    engine_result_free(&result);
}

// Two threads send the one schedule: every request of it once, in its order, each thread on its own
// connections, and all of it adds up.
static void threads_share_one_schedule(void **state)
{
    (void)state;
    uint16_t port = free_port();
    struct process server;
    struct workload workload;
    struct engine_result result;
    struct tally tally;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2)
        skip_case("two threads need a core each");
    start_labserver(&server, port, "1");
    gets_only(&workload);
    workload.mix[WORKLOAD_SET] = 1;
    run_threads(2, &workload, port, 20000, 5, 0, STAMP_MODE_AUTO, patient_ms, &result, &tally);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_int_equal(result.thread_count, 2);
    assert_int_equal(CPU_COUNT(&result.cores), 2);
    size_t answered = 0;
    for (size_t i = 0; i < result.sample_count; i++) {
        answered += sample_is_answered(&result.samples[i]) != 0;
        assert_int_equal((result.samples[i].connection - 1) % 2, i % 2);
        assert_int_equal(sample_sender(&result.samples[i]), i % 2);
    }
    assert_int_equal(answered, result.sample_count);
    uint64_t replies = 0;
    for (unsigned kind = 0; kind < REPLY_KINDS; kind++)
        replies += result.counts.replies[kind];
    assert_int_equal(replies, result.sample_count);
    assert_true(result.cpu_ns > 0 && result.spin_tsc > 0);
    engine_result_free(&result);
    process_stop(&server, 1000);
}

// A closed loop keeps every connection full, never fuller, for as long as it was asked to; what it
// asks is the order drawn for it, again and again; samples are in the order they were put.
static void a_closed_loop_asks_as_much_as_is_answered(void **state)
{
    (void)state;
    enum { ORDER = 1000, CONNECTIONS = 4, DEPTH = 3, FEW = 500 };
    uint16_t port = free_port();
    struct process server;
    struct workload workload;
    struct schedule order;
    struct engine_result result;
    struct server_address address;
    struct error err = {0};
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    gets_only(&workload);
    workload.mix[WORKLOAD_SET] = 1;
    start_labserver(&server, port, "1");
    resolve(port, &address);
    assert_int_equal(schedule_draw_order(&workload, ORDER, 5, &order, &err), 0);
    assert_int_equal(order.count, ORDER);
    for (uint32_t threads = 1; threads <= 2 && threads <= (uint32_t)CPU_COUNT(&allowed);
         threads++) {
        for (int few = 0; few < 2; few++) {
            const struct engine_settings settings = {.server = &address,
                                                     .workload = &workload,
                                                     .threads = threads,
                                                     .connections = CONNECTIONS,
                                                     .depth = DEPTH,
                                                     .stamps = STAMP_MODE_AUTO,
                                                     .closed_loop = true,
                                                     .requests_max = few ? FEW : 10000000,
                                                     .duration_ns = few ? 60000000000u : 300000000,
                                                     .timeout_ns = patient_ms * 1000000};
            if (run_with_journal(settings, &order, &result, &err) < 0)
                fail_msg("%s", err.text);
            assert_int_equal(result.end, ENGINE_COMPLETE);
            assert_true(result.closed_loop);
            assert_int_equal(result.requests_spent, few);
            assert_true(few ? result.sample_count == FEW : result.sample_count > 0);
            assert_true(result.counts.in_flight_max <= CONNECTIONS * DEPTH);
            for (size_t i = 0; i < result.sample_count; i++) {
                const struct sample *sample = &result.samples[i];
                assert_true(sample_is_answered(sample) && sample->in_flight < DEPTH);
                assert_true(sample->intended_tsc <= sample->send_tsc);
                assert_true(!i || sample->intended_tsc >= result.samples[i - 1].intended_tsc);
                if (threads == 1)
                    assert_int_equal(sample->key, order.items[i % ORDER].key);
            }
            check_offsets(&result);
            engine_result_free(&result);
        }
    }
    schedule_free(&order);
    process_stop(&server, 1000);
}

// Many requests a call: their stamps must not fill the receive buffer, which stops the replies.
static void a_deep_closed_loop_has_its_stamps(void **state)
{
    (void)state;
    enum { ORDER = 1000, DEPTH = 16, REQUESTS = 20000 };
    uint16_t port = free_port();
    struct process server;
    struct workload workload;
    struct schedule order;
    struct engine_result result;
    struct server_address address;
    struct error err = {0};
    gets_only(&workload);
    start_labserver(&server, port, "1");
    resolve(port, &address);
    assert_int_equal(schedule_draw_order(&workload, ORDER, 5, &order, &err), 0);
    const struct engine_settings settings = {.server = &address,
                                             .workload = &workload,
                                             .connections = 2,
                                             .depth = DEPTH,
                                             .stamps = STAMP_MODE_AUTO,
                                             .closed_loop = true,
                                             .requests_max = REQUESTS,
                                             .duration_ns = patient_ms * 1000000,
                                             .timeout_ns = patient_ms * 1000000};
    if (run_with_journal(settings, &order, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_int_equal(result.sample_count, REQUESTS);
    if (result.kernel_stamps)
        assert_true(result.stamps_missing < REQUESTS / 100);
    engine_result_free(&result);
    schedule_free(&order);
    process_stop(&server, 1000);
}

static void note_begin(void *context, uint64_t begin_ns)
{
    (void)begin_ns;
    *(bool *)context = true;
}

static void fail_to_begin(uint32_t threads, uint32_t connections, uint16_t port, struct error *err)
{
    struct workload workload;
    struct schedule schedule;
    struct engine_result result;
    struct server_address address;
    bool begun = false;
    gets_only(&workload);
    resolve(port, &address);
    assert_int_equal(schedule_draw(&workload,
                                   &(struct distribution){.kind = DISTRIBUTION_FIXED, .first = 1},
                                   100, 100000000, 1, &schedule, err),
                     0);
    const struct engine_settings settings = {.server = &address,
                                             .workload = &workload,
                                             .threads = threads,
                                             .connections = connections,
                                             .announce = note_begin,
                                             .announce_context = &begun,
                                             .duration_ns = 100000000};
    assert_true(engine_run(&settings, &schedule, &result, err) < 0);
    assert_false(begun);
    assert_null(result.samples);
    schedule_free(&schedule);
}

static void what_cannot_begin_says_why(void **state)
{
    (void)state;
    uint16_t port = free_port();
    struct rlimit limit, few;
    struct error err = {0};
    fail_to_begin(CPU_SETSIZE + 1, CPU_SETSIZE + 1, port, &err);
    assert_non_null(strstr(err.text, "a core each"));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = (struct rlimit){.rlim_cur = 40, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    fail_to_begin(1, 50, port, &err); // the limit is raised as far as it may be
    assert_non_null(strstr(err.text, "Connection refused"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 1 << 22 && geteuid() != 0) {
        fail_to_begin(1, (uint32_t)limit.rlim_max, port, &err);
        assert_non_null(strstr(err.text, "ulimit -n"));
    }
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2)
        skip_case("two threads need a core each");
    fail_to_begin(2, 4, port, &err); // several threads that fail are one error
    assert_non_null(strstr(err.text, "Connection refused"));
}

static void big_requests_leave_in_pieces(void **state)
{
    (void)state;
    uint16_t port = free_port();
    struct process server;
    start_labserver(&server, port, "1");
    struct workload workload;
    struct engine_result result;
    struct tally tally;
    workload_defaults(&workload);
    workload.key_count = 10;
    workload.mix[WORKLOAD_GET] = 0;
    workload.value_size_bytes =
        (struct distribution){.kind = DISTRIBUTION_UNIFORM, .first = 900000, .second = 1000000};
    run(&workload, port, 100, 2, 0, STAMP_MODE_AUTO, patient_ms, &result, &tally);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_int_equal(tally.by_status[SAMPLE_ANSWERED], result.sample_count);
    engine_result_free(&result);
    process_stop(&server, 1000);
}

// A server that stands still for a while takes less than was due meanwhile: what the kernel had no
// room for says so. On a busy machine the load may not have come to that by then.
static void what_a_server_does_not_take_is_kept_back(void **state)
{
    (void)state;
    size_t kept = 0;
    for (int still_s = 1; kept == 0 && still_s <= 8; still_s *= 2) {
        uint16_t port = free_port();
        struct process server, waker;
        struct error err;
        struct workload workload;
        struct engine_result result;
        struct tally tally;
        char command[64];
        start_labserver(&server, port, "1");
        workload_defaults(&workload);
        workload.key_count = 10;
        workload.mix[WORKLOAD_GET] = 0;
        workload.value_size_bytes =
            (struct distribution){.kind = DISTRIBUTION_FIXED, .first = 1000000};
        snprintf(command, sizeof command, "kill -STOP %d; sleep %d; kill -CONT %d", server.pid,
                 still_s, server.pid);
        const char *const argv[] = {"sh", "-c", command, NULL};
        assert_int_equal(process_start(&waker, argv, NULL, &err), 0);
        run(&workload, port, 200, 2, 0, STAMP_MODE_AUTO, patient_ms, &result, &tally);
        assert_int_equal(result.end, ENGINE_COMPLETE);
        kept = kept_back(&result);
        engine_result_free(&result);
        process_stop(&waker, 1000);
        process_stop(&server, 1000);
    }
    assert_true(kept > 0);
}

static void an_absent_server_is_an_error(void **state)
{
    (void)state;
    struct workload workload;
    struct schedule schedule;
    struct engine_result result;
    struct server_address address;
    struct error err = {0};
    gets_only(&workload);
    resolve(free_port(), &address);
    assert_int_equal(schedule_draw(&workload,
                                   &(struct distribution){.kind = DISTRIBUTION_FIXED, .first = 1},
                                   100, 100000000, 1, &schedule, &err),
                     0);
    const struct engine_settings settings = {
        .server = &address, .workload = &workload, .connections = 4, .duration_ns = 100000000};
    assert_int_equal(engine_run(&settings, &schedule, &result, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "Connection refused"));
    assert_null(result.samples);
    schedule_free(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memcached_answers_everything),
        cmocka_unit_test(stamps_of_some_send_calls),
        cmocka_unit_test(threads_share_no_cache_line),
        cmocka_unit_test(threads_share_one_schedule),
        cmocka_unit_test(many_threads_share_one_schedule),
        cmocka_unit_test(a_closed_loop_asks_as_much_as_is_answered),
        cmocka_unit_test(a_deep_closed_loop_has_its_stamps),
        cmocka_unit_test(what_cannot_begin_says_why),
        cmocka_unit_test(big_requests_leave_in_pieces),
        cmocka_unit_test(what_a_server_does_not_take_is_kept_back),
        cmocka_unit_test(an_absent_server_is_an_error),
    };
    const struct CMUnitTest bounded[] = {
        cmocka_unit_test(memcached_answers_everything),
        cmocka_unit_test(threads_share_one_schedule),
        cmocka_unit_test(big_requests_leave_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) +
           run_in_bounded_memory(bounded, sizeof bounded / sizeof *bounded);
}
