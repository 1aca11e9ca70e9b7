// SPDX-License-Identifier: MIT
//
// Stages: they add up to the latency whatever is missing or out of order, and disorder is told from
// what the clocks cannot resolve.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/lifetime/lifetime.h"

static struct lifetime regular(void)
{
    struct lifetime life = {.present = (1 << STAMP_KINDS) - 1};
    for (int k = 0; k < STAMP_KINDS; k++)
        life.stamp_ns[k] = 1000 + 100 * k;
    return life;
}

static double sum_of(const struct lifetime *life)
{
    double sum = 0;
    for (int k = 0; k < STAGES; k++)
        sum += life->stage_ns[k];
    return sum;
}

static void drop(struct lifetime *life, enum stamp_kind kind)
{
    life->present &= (uint16_t) ~(1u << kind);
}

static void regular_stages(void **state)
{
    (void)state;
    struct lifetime life = regular();
    struct disorder disorder = {0};
    lifetime_compute_stages(&life, 10, &disorder);
    assert_true(life.latency_ns == 900 && life.uncorrected_latency_ns == 800);
    assert_true(life.stage_ns[STAMP_INTENDED] == 0);
    for (int k = STAMP_SEND; k < STAGES; k++)
        assert_true(life.stage_ns[k] == 100);
    assert_int_equal(life.merged, 0);
    assert_int_equal(life.disordered, 0);
    assert_int_equal(disorder.violations + disorder.clamped, 0);
}

static void missing_stamps_merge_into_the_next(void **state)
{
    (void)state;
    struct lifetime life = regular();
    struct disorder disorder = {0};
    drop(&life, STAMP_CLIENT_TX);
    drop(&life, STAMP_SERVER_TX);
    drop(&life, STAMP_CLIENT_RX);
    lifetime_compute_stages(&life, 10, &disorder);
    assert_int_equal(life.merged,
                     1 << STAMP_CLIENT_TX | 1 << STAMP_SERVER_TX | 1 << STAMP_CLIENT_RX);
    assert_true(life.stage_ns[STAMP_CLIENT_TX] == 0 && life.stage_ns[STAMP_NIC] == 200);
    assert_true(life.stage_ns[STAMP_REPLY_READ] == 300);
    assert_true(sum_of(&life) == life.latency_ns);
}

static void disorder_within_the_clock_error_is_none(void **state)
{
    (void)state;
    struct lifetime life = regular();
    struct disorder disorder = {0};
    life.stamp_ns[STAMP_HANDOFF] = life.stamp_ns[STAMP_NIC] - 10;
    lifetime_compute_stages(&life, 10, &disorder);
    assert_int_equal(life.disordered, 0);
    assert_int_equal(disorder.clamped, 1);
    assert_int_equal(disorder.violations, 0);
    assert_true(life.stage_ns[STAMP_HANDOFF] == 0);
    assert_true(sum_of(&life) == life.latency_ns);
    life.stamp_ns[STAMP_HANDOFF]--;
    lifetime_compute_stages(&life, 10, &disorder);
    assert_int_equal(life.disordered, 1 << STAMP_HANDOFF);
    assert_int_equal(disorder.violations, 1);
    assert_true(disorder.worst_ns == 11);
    assert_true(life.stage_ns[STAMP_HANDOFF] == 0);
    assert_true(sum_of(&life) == life.latency_ns);
}

static void unanswered_have_no_stages(void **state)
{
    (void)state;
    struct lifetime life = regular();
    struct disorder disorder = {0};
    drop(&life, STAMP_REPLY_READ);
    lifetime_compute_stages(&life, 10, &disorder);
    assert_true(isinf(life.latency_ns) && isinf(life.uncorrected_latency_ns));
    assert_true(sum_of(&life) == 0);
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_UNANSWERED);
    drop(&life, STAMP_SEND);
    lifetime_compute_stages(&life, 10, &disorder);
    assert_true(isinf(life.latency_ns) && isnan(life.uncorrected_latency_ns));
}

static void random_stamps_always_add_up(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < 20000; i++) {
        struct lifetime life = {0};
        struct disorder disorder = {0};
        for (int k = 0; k < STAMP_KINDS; k++) {
            life.stamp_ns[k] = rand() % 100000 + 1000000LL * (rand() % 3);
            if (rand() % 5)
                life.present |= (uint16_t)(1u << k);
        }
        life.untaken = (uint16_t)(rand() & (1 << STAMP_NIC | 1 << STAMP_HANDOFF) & ~life.present);
        lifetime_compute_stages(&life, 50, &disorder);
        for (int k = 0; k < STAGES; k++)
            assert_true(life.stage_ns[k] >= 0);
        if (isfinite(life.latency_ns)) {
            assert_true(fabs(sum_of(&life) - life.latency_ns) < 1);
            int64_t latency = life.stamp_ns[STAMP_REPLY_READ] - life.stamp_ns[STAMP_INTENDED];
            assert_true(life.latency_ns == (double)(latency > 0 ? latency : 0));
        } else {
            assert_true(sum_of(&life) == 0);
        }
        assert_true(disorder.worst_ns == 0 || disorder.worst_ns > 50);
        assert_int_equal(disorder.violations, __builtin_popcount(life.disordered));
    }
}

static void states_follow_from_stamps(void **state)
{
    (void)state;
    struct lifetime life = regular();
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_WHOLE);
    drop(&life, STAMP_SERVER_TX); // not needed
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_WHOLE);
    drop(&life, STAMP_REPLY);
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_NO_REPLY);
    drop(&life, STAMP_APPLICATION);
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_NO_APPLICATION);
    drop(&life, STAMP_HANDOFF);
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_NO_HANDOFF);
    drop(&life, STAMP_NIC);
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_NO_NIC);
}

static void what_nothing_takes_is_not_missing(void **state)
{
    (void)state;
    struct lifetime life = regular();
    struct disorder disorder = {0};
    drop(&life, STAMP_HANDOFF);
    life.untaken = 1 << STAMP_HANDOFF;
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_WHOLE);
    lifetime_compute_stages(&life, 10, &disorder);
    assert_true(life.stage_ns[STAMP_NIC] == 100 && life.stage_ns[STAMP_APPLICATION] == 200);
    assert_int_equal(life.merged, 1 << STAMP_HANDOFF);
    drop(&life, STAMP_NIC);
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_NO_NIC);
    life.untaken |= 1 << STAMP_NIC;
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_WHOLE);
    lifetime_compute_stages(&life, 10, &disorder);
    assert_true(life.stage_ns[STAMP_NIC] == 300 && life.stage_ns[STAMP_APPLICATION] == 0);
    assert_int_equal(life.merged, 1 << STAMP_HANDOFF | 1 << STAMP_APPLICATION);
    assert_true(sum_of(&life) == life.latency_ns);
    assert_true(isnan(lifetime_part_ns(&life, PART_RECEIVE)));
    assert_true(lifetime_part_ns(&life, PART_SERVICE) == 100);
    drop(&life, STAMP_APPLICATION);
    assert_int_equal(lifetime_state_of_stamps(&life), LIFETIME_NO_APPLICATION);
    assert_string_equal(stage_name(STAMP_NIC, UNDIVIDED_WAY_IN), "way in, undivided");
    assert_string_equal(stage_name(STAMP_CLIENT_RX, UNDIVIDED_WAY_BACK), "way back, undivided");
    assert_string_equal(stage_name(STAMP_CLIENT_RX, UNDIVIDED_WAY_BACK | UNDIVIDED_NETWORK),
                        "both ways, undivided");
    assert_string_equal(stage_name(STAMP_NIC, UNDIVIDED_NETWORK), "network to server");
}

static void everything_has_a_name(void **state)
{
    (void)state;
    for (int k = 0; k < STAMP_KINDS; k++) {
        assert_true(strlen(stamp_name((enum stamp_kind)k)) > 3);
        assert_true(k == STAMP_INTENDED || strlen(stage_name((enum stamp_kind)k, 0)) > 3);
    }
    for (int s = 0; s < LIFETIME_STATES; s++)
        for (int t = 0; t < s; t++)
            assert_string_not_equal(lifetime_state_name((enum lifetime_state)s),
                                    lifetime_state_name((enum lifetime_state)t));
    assert_string_equal(role_name(stage_role(STAMP_HANDOFF)), "R");
    assert_string_equal(role_name(stage_role(STAMP_APPLICATION)), "A");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_stages),
        cmocka_unit_test(missing_stamps_merge_into_the_next),
        cmocka_unit_test(disorder_within_the_clock_error_is_none),
        cmocka_unit_test(unanswered_have_no_stages),
        cmocka_unit_test(random_stamps_always_add_up),
        cmocka_unit_test(states_follow_from_stamps),
        cmocka_unit_test(what_nothing_takes_is_not_missing),
        cmocka_unit_test(everything_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
