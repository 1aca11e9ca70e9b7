// SPDX-License-Identifier: MIT
//
// What slow requests share: found where something is shared, and next to never where nothing is,
// also when the slow ones come in bursts.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/diagnosis/shared_traits.h"

enum { REQUESTS = 20000, KEYS = 1000, CONNECTIONS = 32 };

static uint64_t random_state;
static struct trait_request requests[REQUESTS];
static struct shared_trait_array found;

static double uniform(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

// One of twenty is a set, whose reply is short; one of fifty replies is large.
static void draw(uint64_t seed)
{
    random_state = seed * 2654435761u + 88172645463325252u;
    for (size_t i = 0; i < REQUESTS; i++) {
        struct trait_request *one = &requests[i];
        bool set = uniform() < 0.05, large = !set && uniform() < 0.02;
        *one = (struct trait_request){
            .values = {[TRAIT_OPERATION] = set,
                       [TRAIT_KEY] = (uint64_t)(KEYS * uniform() * uniform()),
                       [TRAIT_CONNECTION] = (uint64_t)(CONNECTIONS * uniform()),
                       [TRAIT_SENDER] = (uint64_t)(2 * uniform()),
                       [TRAIT_REQUEST] = 30 + (uint64_t)(10 * uniform()) + (set ? 200 : 0),
                       [TRAIT_REPLY] = set     ? 8
                                       : large ? 400000 + (uint64_t)(1e5 * uniform())
                                               : 200},
            .latency_ns = 50000 * -log(uniform())};
    }
}

static size_t find(void)
{
    array_free(&found);
    assert_int_equal(shared_traits_find(&found, requests, REQUESTS), 0);
    return found.count;
}

static void slow_at_random(double share)
{
    for (size_t i = 0; i < REQUESTS; i++)
        requests[i].slow = uniform() < share;
}

static void large_replies(void **state)
{
    (void)state;
    char words[100];
    draw(1);
    slow_at_random(0.003);
    for (size_t i = 0; i < REQUESTS; i++)
        if (requests[i].values[TRAIT_REPLY] >= 400000) {
            requests[i].slow = uniform() < 0.5;
            requests[i].latency_ns += 2.6e6;
        }
    assert_int_equal(find(), 1);
    const struct shared_trait *one = &found.items[0];
    assert_int_equal(one->kind, TRAIT_REPLY);
    assert_string_equal(shared_trait_words(one, NULL, words, sizeof words),
                        "replies of 400 kB or more");
    assert_true(one->slow_share > 0.65 && one->share < 0.025);
    assert_true(one->odds_low > 20 && one->odds_low < one->odds_ratio);
    assert_true(one->median_ns > 2.6e6 && one->other_median_ns < 1e5);
    assert_true(one->rank_correlation > 0.02);
}

static void an_operation_a_connection_a_key(void **state)
{
    (void)state;
    static const struct {
        enum trait_kind kind;
        uint64_t value;
    } culprits[] = {{TRAIT_OPERATION, 1}, {TRAIT_CONNECTION, 7}, {TRAIT_KEY, 0}};
    for (size_t c = 0; c < 3; c++) {
        draw(2 + c);
        slow_at_random(0.005);
        for (size_t i = 0; i < REQUESTS; i++)
            requests[i].slow |=
                requests[i].values[culprits[c].kind] == culprits[c].value && uniform() < 0.4;
        assert_true(find() >= 1);
        bool named = false;
        for (size_t i = 0; i < found.count; i++)
            named |= found.items[i].kind == culprits[c].kind &&
                     found.items[i].value == culprits[c].value;
        assert_true(named);
    }
}

// Sets have large requests here, and nothing else has: that is one thing, and what was asked for
// tells more of it than how many bytes that took.
static void what_is_one_fact_is_told_once(void **state)
{
    (void)state;
    draw(7);
    slow_at_random(0.002);
    for (size_t i = 0; i < REQUESTS; i++)
        requests[i].slow |= requests[i].values[TRAIT_OPERATION] == 1 && uniform() < 0.4;
    assert_int_equal(find(), 1);
    assert_int_equal(found.items[0].kind, TRAIT_OPERATION);
    assert_int_equal(found.items[0].value, 1);
    // Where others are as large, it is not.
    for (size_t i = 0; i < REQUESTS; i += 50)
        requests[i].values[TRAIT_REQUEST] = 240;
    assert_int_equal(find(), 2);
}

// A stall of one connection in one moment makes all of the slow ones its own: that is no trait.
static void one_bad_moment_is_no_trait(void **state)
{
    (void)state;
    draw(5);
    for (size_t i = 5000; i < 5100; i++) {
        requests[i].slow = true;
        requests[i].values[TRAIT_CONNECTION] = 3;
    }
    assert_int_equal(find(), 0);
}

static void seldom_anything_where_nothing_is_shared(void **state)
{
    (void)state;
    enum { RUNS = 400 };
    unsigned named = 0, named_in_bursts = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        draw(100 + seed);
        slow_at_random(0.01);
        named += find() > 0;
        for (size_t i = 0; i < REQUESTS; i++)
            requests[i].slow = false;
        for (size_t burst = 0; burst < 20; burst++) {
            size_t from = (size_t)((REQUESTS - 20) * uniform());
            for (size_t i = from; i < from + 10; i++)
                requests[i].slow = true;
        }
        named_in_bursts += find() > 0;
    }
    printf("of %d runs without a trait: %u named one, with bursts %u\n", RUNS, named,
           named_in_bursts);
    assert_true(named <= RUNS / 100);
    assert_true(named_in_bursts <= RUNS / 100);
}

static void too_few_to_say(void **state)
{
    (void)state;
    draw(6);
    assert_int_equal(find(), 0); // none is slow
    for (size_t i = 0; i < 9; i++)
        requests[2000 * i].slow = true;
    assert_int_equal(find(), 0);
    for (size_t i = 0; i < REQUESTS; i++)
        requests[i].slow = true;
    assert_int_equal(find(), 0);
    assert_int_equal(shared_traits_find(&found, requests, 0), 0);
}

static int release(void **state)
{
    (void)state;
    array_free(&found);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_replies),
        cmocka_unit_test(an_operation_a_connection_a_key),
        cmocka_unit_test(what_is_one_fact_is_told_once),
        cmocka_unit_test(one_bad_moment_is_no_trait),
        cmocka_unit_test(seldom_anything_where_nothing_is_shared),
        cmocka_unit_test(too_few_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
