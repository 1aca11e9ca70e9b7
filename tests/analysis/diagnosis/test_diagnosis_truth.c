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

// For how long a core spun for a lock within a time, by its spans.
static double spun_ns(const struct core_timeline *core, int64_t begin, int64_t end)
{
    int64_t sum = 0;
    for (size_t i = 0; i < core->spans.count; i++) {
        const struct span *span = &core->spans.items[i];
        if (span->kind == SPAN_FUNCTION && span->name == NAME_native_queued_spin_lock_slowpath)
            sum += synthetic_overlap(span->begin_ns, span->end_ns, begin, end);
    }
    return (double)sum;
}

// Whatever asks for the lock: the packet or the thread at work for the message or for one ahead of
// it, or an interrupt. Another program that spins (osq_lock) has the core all the same.
static void a_contended_lock_is_the_cause_whoever_asks_for_it(void **state)
{
    (void)state;
    static const char spinning[] = "spinning for a lock in ";
    const unsigned causes = 1u << CAUSED_BY_SOFTIRQ_A | 1u << CAUSED_BY_UNEXPECTED |
                            1u << CAUSED_BY_SLOW_RECEIVE | 1u << CAUSED_BY_TASK_A;
    const struct diagnosis_slice slowest = {.low = 0.98, .high = 1};
    unsigned by_others = 0, intruded = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct synthetic_options options = {.seed = seed,
                                            .messages = 1500,
                                            .gap_ns = 60000,
                                            .causes = causes,
                                            .hits = 4,
                                            .noise = 0.05,
                                            .functions = true,
                                            .truth = true,
                                            .spins = true};
        struct synthetic s;
        struct diagnosis found = {0};
        struct error err = {0};
        synthetic_build(&s, &options);
        struct diagnosis_input input = synthetic_input(&s);
        assert_int_equal(diagnose(&input, &slowest, &found, &err), 0);
        for (size_t i = 0, at = 0; i < found.messages.count; i++) {
            uint64_t number = found.messages.items[i].lifetime;
            const struct lifetime *life = &s.lives.items[number];
            double spun = spun_ns(&s.server.cores.items[1], life->stamp_ns[STAMP_NIC],
                                  life->stamp_ns[STAMP_HANDOFF]) +
                          spun_ns(&s.server.cores.items[0], life->stamp_ns[STAMP_HANDOFF],
                                  life->stamp_ns[STAMP_SERVER_TX]);
            double named = 0;
            for (; at < found.attributions.count && found.attributions.items[at].lifetime == number;
                 at++) {
                const struct attribution *one = &found.attributions.items[at];
                const char *name = found.causes.items[one->cause].name;
                if (strncmp(name, spinning, strlen(spinning)) == 0)
                    named += (double)one->ns;
                assert_string_not_equal(name, "spinning for a lock in osq_lock");
                intruded += strcmp(name, "nginx") == 0;
            }
            // What it saved elsewhere, as the wake-up of a thread that was still up, is taken off.
            assert_true(fabs(named - spun) <= 0.05 * spun + 4000);
            by_others += spun > 0 && s.hit[life->request] == 0;
        }
        diagnosis_free(&found);
        synthetic_free(&s);
    }
    assert_true(by_others >= 10 && intruded >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_causes_are_right),
        cmocka_unit_test(they_are_so_through_intel_pt),
        cmocka_unit_test(a_contended_lock_is_the_cause_whoever_asks_for_it),
        cmocka_unit_test(each_lifetime_has_its_own_causes),
        cmocka_unit_test(nothing_is_reported_where_nothing_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
