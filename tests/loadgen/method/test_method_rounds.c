// SPDX-License-Identifier: MIT
//
// Rounds of load that somebody else loads (agents): what is thrown away, what is pooled, and when
// it ends, with made-up rounds and judgements.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "loadgen/method/method_rounds.h"

enum { ROUND_REQUESTS = 100, ROUND_CONNECTIONS = 2, ROUNDS_MOST = 10 };

// What was asked of the source, and what it is to find.
struct made_source {
    unsigned taken;
    uint64_t seeds[ROUNDS_MOST];
    unsigned unstable; // the first rounds are
    unsigned enough;   // rounds in the pool that satisfy the method; 0: none do
    unsigned broken;   // the number of a round that cannot begin; 0: none
};

static int take(void *context, uint64_t duration_ns, uint64_t seed, bool first,
                struct engine_result *round, struct error *err)
{
    struct made_source *source = context;
    assert_int_equal(first, source->taken == 0);
    assert_true(duration_ns > 0 && source->taken < ROUNDS_MOST);
    source->seeds[source->taken++] = seed;
    if (source->taken == source->broken)
        return error_set(err, ERROR_FAILED, "nobody is there");
    const size_t bytes = (ROUND_REQUESTS + 1) * sizeof *round->samples;
    uint64_t start = source->taken * 20000000000u;
    *round = (struct engine_result){.sample_count = ROUND_REQUESTS,
                                    .sample_bytes = bytes,
                                    .connection_count = ROUND_CONNECTIONS,
                                    .tsc_hz = 1e9,
                                    .start_tsc = start,
                                    .end_tsc = start + duration_ns};
    round->samples = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    round->connections = calloc(ROUND_CONNECTIONS, sizeof *round->connections);
    for (uint32_t i = 0; i < ROUND_CONNECTIONS; i++)
        round->connections[i].id = i + 1;
    for (size_t i = 0; i < ROUND_REQUESTS; i++)
        round->samples[i] =
            (struct sample){.intended_tsc = start + i, .connection = 1 + i % ROUND_CONNECTIONS};
    return 0;
}

static int judge(void *context, struct rounds *rounds, struct error *err)
{
    (void)err;
    const struct made_source *source = context;
    bool stable = source->taken > source->unstable;
    rounds->summary = (struct load_summary){.ok = true};
    rounds->method = (struct method){.needed_s = 300};
    for (unsigned check = 0; check < METHOD_CHECKS; check++)
        rounds->method.findings[check] = METHOD_PASSED;
    if (!stable)
        rounds->method.findings[METHOD_CLIENT] = METHOD_FAILED;
    if (rounds->measured != source->enough)
        rounds->method.findings[METHOD_INTERVAL] = METHOD_FAILED;
    return 0;
}

static void run_rounds(struct made_source *source, struct rounds *rounds)
{
    struct error err;
    const struct rounds_settings settings = {
        .source = {take, judge, source}, .method = {.rate = 100000, .budget_s = 35}, .seed = 77};
    assert_int_equal(rounds_run(&settings, rounds, &err), 0);
    assert_int_equal(source->seeds[0], 77); // as a plain run's
    for (unsigned i = 0; i < source->taken; i++)
        for (unsigned j = 0; j < i; j++)
            assert_true(source->seeds[i] != source->seeds[j]);
}

// Each round's samples and connections lie behind those before, with ids of their own.
static void check_pool(const struct rounds *rounds)
{
    assert_int_equal(rounds->pool.sample_count, rounds->measured * ROUND_REQUESTS);
    assert_int_equal(rounds->connection_count, rounds->measured * ROUND_CONNECTIONS);
    for (uint32_t i = 0; i < rounds->connection_count; i++)
        assert_int_equal(rounds->connections[i].id, i + 1);
    for (size_t i = 0; i < rounds->pool.sample_count; i++) {
        const struct sample *sample = &rounds->pool.samples[i];
        assert_int_equal((sample->connection - 1) / ROUND_CONNECTIONS, i / ROUND_REQUESTS);
        assert_true(i == 0 || sample->intended_tsc > rounds->pool.samples[i - 1].intended_tsc);
    }
}

static void rounds_end_when_the_method_is_satisfied(void **state)
{
    (void)state;
    struct made_source source = {.enough = 3};
    struct rounds rounds;
    run_rounds(&source, &rounds);
    assert_string_equal(rounds.stop, "interval");
    assert_true(rounds.measured == 3 && rounds.stabilising == 0 && source.taken == 3);
    check_pool(&rounds);
    rounds_free(&rounds);
}

static void what_was_not_as_asked_for_is_thrown_away(void **state)
{
    (void)state;
    struct made_source source = {.unstable = 2, .enough = 2};
    struct rounds rounds;
    run_rounds(&source, &rounds);
    assert_string_equal(rounds.stop, "interval");
    assert_true(rounds.measured == 2 && rounds.stabilising == 2 && source.taken == 4);
    check_pool(&rounds);
    rounds_free(&rounds);
    source = (struct made_source){.unstable = ROUNDS_MOST};
    run_rounds(&source, &rounds); // and it never is
    assert_string_equal(rounds.stop, "load");
    assert_int_equal(source.taken, 3);
    rounds_free(&rounds);
}

static void a_budget_and_a_failure_end_it_too(void **state)
{
    (void)state;
    struct made_source source = {.enough = 0};
    struct rounds rounds;
    run_rounds(&source, &rounds); // of 1, 10, 10, 10 and 4 s
    assert_string_equal(rounds.stop, "budget");
    assert_int_equal(rounds.duration_ns, 35000000000u);
    assert_int_equal(rounds.measured, 5);
    check_pool(&rounds);
    rounds_free(&rounds);
    source = (struct made_source){.broken = 2};
    run_rounds(&source, &rounds);
    assert_string_equal(rounds.stop, "load");
    assert_int_equal(rounds.measured, 1);
    assert_string_equal(rounds.summary.reasons[0],
                        "the next round could not begin: nobody is there");
    rounds_free(&rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_end_when_the_method_is_satisfied),
        cmocka_unit_test(what_was_not_as_asked_for_is_thrown_away),
        cmocka_unit_test(a_budget_and_a_failure_end_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
