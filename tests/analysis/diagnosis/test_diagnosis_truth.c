// SPDX-License-Identifier: MIT
//
// The floors of what the diagnosis must get right about random servers with known causes; `make
// bench BENCH=diagnosis` scores a thousand and more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/analysis/diagnosis/synthetic_score.h"

enum { SEEDS = 80, PT_SEEDS = 20 };

static void assert_floors(struct score *score)
{
    double error = score_median(&score->errors), coverage = score_median(&score->coverage);
    print_message("top cause right in %u of %u; wrong blame in %u of %u; of messages %llu of %llu; "
                  "error median %.3f; coverage median %.3f least %.3f\n",
                  score->right, score->scenarios, score->blamed_wrong, score->blamed,
                  (unsigned long long)score->messages_right, (unsigned long long)score->messages,
                  error, coverage, score->coverage.items[0]);
    assert_true(score->right >= 0.98 * score->scenarios);
    assert_true(score->blamed_wrong <= 0.01 * score->blamed);
    assert_true((double)score->messages_right >= 0.95 * (double)score->messages);
    assert_true(error <= 0.05);
    assert_true(coverage >= 0.96);
    score_free(score);
}

static void top_causes_are_right(void **state)
{
    (void)state;
    struct score score = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        assert_int_equal(score_seed(&score, seed, false, false), 0);
    assert_floors(&score);
}

static void they_are_so_through_intel_pt(void **state)
{
    (void)state;
    struct score score = {0};
    for (uint64_t seed = 1; seed <= PT_SEEDS; seed++)
        assert_int_equal(score_seed(&score, 1000 + seed, false, true), 0);
    assert_floors(&score);
}

static void each_lifetime_has_its_own_causes(void **state)
{
    (void)state;
    struct score scores[PARTS] = {0};
    for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
        assert_int_equal(score_parts(scores, seed, false), 0);
        assert_int_equal(score_parts(scores, seed, true), 0);
    }
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        print_message("%s, quiet in %u of %u: ", lifetime_part_name((enum lifetime_part)part),
                      scores[part].quiet_right, scores[part].quiet);
        assert_true(scores[part].scenarios >= 5);
        assert_true(scores[part].quiet_right >= 0.97 * scores[part].quiet);
        assert_floors(&scores[part]);
    }
}

static void nothing_is_reported_where_nothing_is_wrong(void **state)
{
    (void)state;
    struct score score = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        assert_int_equal(score_seed(&score, seed, true, false), 0);
    print_message("quiet in %u of %u\n", score.quiet_right, score.quiet);
    assert_true(score.quiet_right >= 0.99 * SEEDS);
    score_free(&score);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_causes_are_right),
        cmocka_unit_test(they_are_so_through_intel_pt),
        cmocka_unit_test(each_lifetime_has_its_own_causes),
        cmocka_unit_test(nothing_is_reported_where_nothing_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
