// SPDX-License-Identifier: MIT
//
// What agents found and say, made up, and what becomes of it in the verdict on their pool.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <gsl/gsl_rng.h>

#include "base/quantile.h"
#include "loadgen/agents/agent_pool.h"
#include "tests/loadgen/method/method_series.h"

// The 95 % interval of the median of 2000 uniform values in [0, 100) + shift.
static struct agent_finding find(const char *name, double shift, uint64_t seed)
{
    double values[2000];
    series_fill(values, 2000, seed);
    for (size_t i = 0; i < 2000; i++)
        values[i] = values[i] * 100 + shift;
    quantile_sort(values, 2000);
    struct quantile_interval interval = quantile_interval_sorted(values, 2000, 0.5, 0.95);
    return (struct agent_finding){name, quantile_sorted(values, 2000, 0.5), interval.low,
                                  interval.high};
}

static void disagreement_is_found_where_there_is_one(void **state)
{
    (void)state;
    struct agent_disagreement pairs[4];
    // Medians of the same distribution: two 95 % intervals are disjoint in well under 2 % of cases.
    unsigned alarms = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        const struct agent_finding same[] = {find("a", 0, seed * 7919),
                                             find("b", 0, seed * 104729)};
        alarms += agent_disagreements(same, 2, pairs, 4) > 0;
    }
    assert_true(alarms <= 10);
    // Of three, one measures 12 us more: half-widths are about 2.2 us.
    const struct agent_finding three[] = {find("a", 0, 1), find("b", 12, 2), find("c", 0, 3)};
    assert_int_equal(agent_disagreements(three, 3, pairs, 4), 2);
    assert_true(pairs[0].low == 0 && pairs[0].high == 1 && pairs[1].low == 2 && pairs[1].high == 1);
    // Who does not know cannot disagree; a bound at infinity is one.
    const struct agent_finding odd[] = {{"a", 1, NAN, NAN}, {"b", 9, 8, INFINITY}, {"c", 5, 4, 6}};
    assert_int_equal(agent_disagreements(odd, 3, pairs, 4), 1);
}

// --- over the rounds of a pool -------------------------------------------------------------------

enum { ROUND = 200, ROUNDS = 40 };

static const struct agent_spec specs[] = {{.name = "one", .kind = AGENT_SYMMETRIC},
                                          {.name = "load", .kind = AGENT_THROUGHPUT},
                                          {.name = "other", .kind = AGENT_LATENCY}};

static struct fleet_outcome *new_fleet(void)
{
    struct fleet_outcome *fleet = calloc(1, sizeof *fleet);
    fleet->count = 3;
    for (size_t i = 0; i < 3; i++)
        fleet->agents[i] = (struct agent_outcome){.spec = &specs[i], .result = {.tsc_hz = 1e9}};
    return fleet;
}

// A request each 100 us; latencies are uniform from `low_us` on, 50 us wide.
static void measure(struct engine_result *result, double low_us, gsl_rng *random)
{
    result->sample_count = ROUND;
    for (size_t i = 0; i < ROUND; i++) {
        const uint64_t intended = 1000 + i * 100000;
        const double ns = (low_us + 50 * gsl_rng_uniform(random)) * 1e3;
        result->samples[i] =
            (struct sample){.intended_tsc = intended, .reply_tsc = intended + (uint64_t)ns};
    }
}

static size_t count_disagreements(const struct agents_measured *measured,
                                  const struct fleet_outcome *fleet, struct agent_finding *findings)
{
    const struct method_settings settings = {.quantile = 0.5, .confidence = 0.95};
    struct agent_disagreement pairs[4];
    struct error err;
    size_t count;
    assert_int_equal(agents_measured_judge(measured, fleet, &settings, findings, &count, &err), 0);
    assert_int_equal(count, 2); // not of the one that only loads
    assert_string_equal(findings[0].name, "one");
    assert_string_equal(findings[1].name, "other");
    return agent_disagreements(findings, count, pairs, 4);
}

// Medians 4 us apart, of which a round knows each to 7 us: all of them together tell. The pool that
// was thrown away before does not count.
static void all_rounds_count(void **state)
{
    (void)state;
    struct fleet_outcome *fleet = new_fleet();
    struct agents_measured *measured = calloc(1, sizeof *measured);
    struct agent_finding findings[AGENTS_MAX];
    struct error err;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    static struct sample samples[2][ROUND];
    for (unsigned i = 0; i < 2; i++)
        fleet->agents[2 * i].result.samples = samples[i];
    measure(&fleet->agents[0].result, 1000, random);
    measure(&fleet->agents[2].result, 100, random);
    assert_int_equal(agents_measured_add(measured, fleet, true, &err), 0);
    assert_int_equal(count_disagreements(measured, fleet, findings), 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        measure(&fleet->agents[0].result, 100, random);
        measure(&fleet->agents[2].result, 104, random);
        assert_int_equal(agents_measured_add(measured, fleet, round == 0, &err), 0);
        if (round == 0)
            assert_int_equal(count_disagreements(measured, fleet, findings), 0);
    }
    assert_int_equal(count_disagreements(measured, fleet, findings), 1);
    assert_int_equal(measured->agents[0].count, ROUNDS * ROUND);
    assert_true(series_near(findings[0].value, 125, 2) && series_near(findings[1].value, 129, 2));
    gsl_rng_free(random);
    agents_measured_free(measured);
    free(measured);
    free(fleet);
}

// --- what they say -------------------------------------------------------------------------------

static void say(struct agent_outcome *agent, const char *load, const char *client,
                const char *reason)
{
    json_decref(agent->report);
    agent->report = json_pack("{s:[s],s:{s:{s:s,s:s,s:s}}}", "reasons", reason, "method", "checks",
                              "load", load, "client", client, "arrivals", "passed");
}

static void lateness_weakens_only_what_is_measured(void **state)
{
    (void)state;
    struct fleet_outcome *fleet = new_fleet();
    struct agents_word word;
    for (size_t i = 0; i < 3; i++)
        say(&fleet->agents[i], "passed", "passed", "none");
    say(&fleet->agents[1], "passed", "failed", "client biased: late by itself");
    agents_hear(&word, fleet, true);
    assert_true(word.troubles.ok);
    assert_int_equal(word.client, METHOD_PASSED);
    assert_int_equal(word.arrivals, METHOD_PASSED);
    // That it did not load as it was to is everybody's matter.
    say(&fleet->agents[1], "failed", "failed", "rate not reached");
    agents_hear(&word, fleet, true);
    assert_false(word.troubles.ok);
    assert_string_equal(word.troubles.reasons[0], "agent load: rate not reached");
    assert_int_equal(word.client, METHOD_PASSED);
    say(&fleet->agents[1], "passed", "passed", "none");
    say(&fleet->agents[2], "passed", "failed", "client biased: late by itself");
    agents_hear(&word, fleet, true);
    assert_string_equal(word.troubles.reasons[0], "agent other: client biased: late by itself");
    assert_int_equal(word.client, METHOD_FAILED);
    for (size_t i = 0; i < 3; i++)
        json_decref(fleet->agents[i].report);
    free(fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disagreement_is_found_where_there_is_one),
        cmocka_unit_test(all_rounds_count),
        cmocka_unit_test(lateness_weakens_only_what_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
