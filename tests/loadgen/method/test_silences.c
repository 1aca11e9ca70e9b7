// SPDX-License-Identifier: MIT
//
// Times in which no reply came on any connection, from made-up results: which are told, and which
// are no more than requests that are slow by themselves, or a client that stood still.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/method/silences.h"

enum { REQUESTS = 4000, MS = 1000000, BEGIN = 1000 * MS };

// A TSC of 1 GHz: ticks are ns.
struct made_run {
    struct engine_result result;
    struct sample samples[REQUESTS];
};

// Request i is sent after i * gap_ms on one of the connections in turn, and answered after 100 us.
static void make(struct made_run *run, uint64_t gap_ms, uint32_t connections)
{
    memset(run, 0, sizeof *run);
    run->result = (struct engine_result){.samples = run->samples,
                                         .sample_count = REQUESTS,
                                         .tsc_hz = 1e9,
                                         .start_tsc = BEGIN,
                                         .end_tsc = BEGIN + REQUESTS * gap_ms * MS};
    for (uint64_t i = 0; i < REQUESTS; i++) {
        const uint64_t send = BEGIN + i * gap_ms * MS;
        run->samples[i] = (struct sample){.intended_tsc = send,
                                          .send_tsc = send,
                                          .sent_tsc = send,
                                          .reply_tsc = send + 100000,
                                          .connection = (uint32_t)i % connections + 1,
                                          .status = SAMPLE_ANSWERED};
    }
}

// What would have been answered meanwhile is at its end.
static void stop_server(struct made_run *run, uint64_t from_ms, uint64_t to_ms)
{
    const uint64_t from = BEGIN + from_ms * MS, to = BEGIN + to_ms * MS;
    for (uint64_t i = 0; i < REQUESTS; i++)
        if (run->samples[i].reply_tsc > from && run->samples[i].reply_tsc < to)
            run->samples[i].reply_tsc = to + i;
}

static struct silences find(const struct made_run *run)
{
    struct silences found;
    struct error err;
    assert_int_equal(silences_find(&run->result, 100, &found, &err), 0);
    return found;
}

static void near_ms(double seconds, double ms)
{
    assert_in_range((uint64_t)(1e6 * seconds), (uint64_t)(1e3 * ms - 1e3),
                    (uint64_t)(1e3 * ms + 1e3));
}

static void a_stopped_server_is_told(void **state)
{
    static struct made_run run;
    struct silences found;
    char words[320];
    (void)state;
    make(&run, 1, 8);
    assert_int_equal(find(&run).count, 0);
    found = find(&run);
    assert_false(silences_words(&found, words, sizeof words));
    stop_server(&run, 300, 500);
    found = find(&run);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.longest_awaited_on, 8);
    near_ms(found.lasted_s, 200);
    near_ms(found.after_s, 300);
    stop_server(&run, 1000, 1412);
    stop_server(&run, 2000, 2080);
    stop_server(&run, 3000, 3040); // too short to be told
    found = find(&run);
    assert_int_equal(found.count, 3);
    near_ms(found.longest_s, 412);
    near_ms(found.after_s, 1000);
    near_ms(found.lasted_s, 200 + 412 + 80);
    assert_true(silences_words(&found, words, sizeof words));
    assert_non_null(strstr(words, " waited for one (3 such, 692 ms in all): the server"));
}

// Twice as long as it stood still itself, a silence is not its own.
static void a_client_that_stood_still_says_nothing(void **state)
{
    static struct made_run run;
    (void)state;
    make(&run, 1, 8);
    stop_server(&run, 300, 500);
    run.result.standstill = (struct standstill){.lasted_tsc = 101 * MS};
    assert_int_equal(find(&run).count, 0);
    run.result.standstill.lasted_tsc = 99 * MS;
    assert_int_equal(find(&run).count, 1);
}

static void too_few_waited(void **state)
{
    static struct made_run run;
    (void)state;
    make(&run, 1, 3);
    stop_server(&run, 300, 900);
    assert_int_equal(find(&run).count, 0);
    make(&run, 100, 8); // of a low rate three requests
    stop_server(&run, 350, 690);
    assert_int_equal(find(&run).count, 0);
    stop_server(&run, 1350, 1890);
    assert_int_equal(find(&run).count, 1);
}

// What was usual is counted from the first request that waited.
static void the_time_between_requests_is_no_silence(void **state)
{
    static struct made_run run;
    (void)state;
    make(&run, 100, 8);
    stop_server(&run, 1201, 1890);
    near_ms(find(&run).lasted_s, 590);
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % limit;
}

// A tenth of the requests take some 500 ms each, by themselves: where few are under way, all of
// them are such now and then.
static void slow_requests_are_no_silence(void **state)
{
    static struct made_run run;
    uint64_t seed = 1;
    (void)state;
    make(&run, 20, 64);
    for (uint64_t i = 0; i < REQUESTS; i++)
        if (random_below(&seed, 10) == 0)
            run.samples[i].reply_tsc += 500 * MS + random_below(&seed, 10 * MS);
    assert_int_equal(find(&run).count, 0);
    // In a closed loop all connections have one at the same time for much of the time.
    make(&run, 1, 8);
    uint64_t free_tsc[8];
    for (unsigned i = 0; i < 8; i++)
        free_tsc[i] = BEGIN;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        unsigned next = 0;
        for (unsigned at = 1; at < 8; at++)
            next = free_tsc[at] < free_tsc[next] ? at : next;
        struct sample *sample = &run.samples[i];
        sample->intended_tsc = sample->send_tsc = sample->sent_tsc = free_tsc[next];
        sample->connection = next + 1;
        sample->reply_tsc = free_tsc[next] += random_below(&seed, 10) ? 100000 : 500 * MS;
    }
    run.result.end_tsc = BEGIN + 100000 * (uint64_t)MS;
    assert_int_equal(find(&run).count, 0);
}

// Nobody waited to the end; and what is not known is not told.
static void where_nothing_can_be_told(void **state)
{
    static struct made_run run;
    struct sample_totals totals;
    (void)state;
    make(&run, 1, 8);
    for (uint64_t i = 300; i < 500; i++) // as where the server was killed
        run.samples[i].status = SAMPLE_LOST, run.samples[i].reply_tsc = 0;
    assert_int_equal(find(&run).count, 0);
    make(&run, 1, 8);
    stop_server(&run, 300, 500);
    run.result.totals = &totals;
    assert_int_equal(find(&run).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_server_is_told),
        cmocka_unit_test(a_client_that_stood_still_says_nothing),
        cmocka_unit_test(too_few_waited),
        cmocka_unit_test(the_time_between_requests_is_no_silence),
        cmocka_unit_test(slow_requests_are_no_silence),
        cmocka_unit_test(where_nothing_can_be_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
