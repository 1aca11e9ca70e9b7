// SPDX-License-Identifier: MIT
//
// Distributions and arrivals as people write them: taken, refused with a mend, and written back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/distribution_text.h"

static void texts_are_taken_and_written_back(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum distribution_unit unit;
        struct distribution expected;
    } cases[] = {
        {"fixed:10000ns", UNIT_NS, {.kind = DISTRIBUTION_FIXED, .first = 10000}},
        {"uniform:5000ns,15000ns",
         UNIT_NS,
         {.kind = DISTRIBUTION_UNIFORM, .first = 5000, .second = 15000}},
        {"exponential:1500", UNIT_BYTES, {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1500}},
        {"normal:100,15", UNIT_NONE, {.kind = DISTRIBUTION_NORMAL, .first = 100, .second = 15}},
        {"lognormal:1,0.5", UNIT_NONE, {.kind = DISTRIBUTION_LOGNORMAL, .first = 1, .second = 0.5}},
        {"pareto:3,1.5", UNIT_NONE, {.kind = DISTRIBUTION_PARETO, .first = 3, .second = 1.5}},
        {"gpd:0,214.476,0.348238",
         UNIT_BYTES,
         {.kind = DISTRIBUTION_GPD, .second = 214.476, .third = 0.348238}},
        {"gev:30,8,-0.25",
         UNIT_BYTES,
         {.kind = DISTRIBUTION_GEV, .first = 30, .second = 8, .third = -0.25}},
        {"bimodal:5000ns,100000ns,0.05",
         UNIT_NS,
         {.kind = DISTRIBUTION_BIMODAL, .first = 5000, .second = 100000, .third = 0.05}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct distribution d;
        struct error err = {0};
        char written[200];
        if (distribution_parse(cases[i].text, cases[i].unit, &d, &err) != 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_int_equal(d.kind, cases[i].expected.kind);
        assert_true(d.first == cases[i].expected.first && d.second == cases[i].expected.second &&
                    d.third == cases[i].expected.third);
        assert_string_equal(distribution_format(&d, cases[i].unit, written, sizeof written),
                            cases[i].text);
    }
}

static void units_are_read(void **state)
{
    (void)state;
    struct distribution d;
    struct error err;
    assert_int_equal(distribution_parse("bimodal:5us,1.5ms,0.05", UNIT_NS, &d, &err), 0);
    assert_true(d.first == 5000 && d.second == 1500000);
    assert_int_equal(distribution_parse("uniform:30.5,4KiB", UNIT_BYTES, &d, &err), 0);
    assert_true(d.first == 30.5 && d.second == 4096);
}

static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"quick", "\"quick\" is no distribution; write one of fixed:VALUE, uniform:LOW,HIGH"},
        {"quick:3", "\"quick:3\" is no distribution"},
        {"fixed:10", "fixed: \"10\" is not a duration"},
        {"fixed:1us,2us", "write fixed:VALUE"},
        {"gpd:1us,2us", "write gpd:LOCATION,SCALE,SHAPE"},
        {"gpd:1us,0us,0.1", "gpd: 0us must be more than 0"},
        {"gpd:1us,2us,x", "gpd: \"x\" is not a number"},
        {"exponential:0", "exponential: 0 must be more than 0"},
        {"uniform:3us,2us", "uniform: [3us, 2us] ends before it begins"},
        {"bimodal:1us,2us,1.5", "bimodal: the probability 1.5 is more than 1"},
        {"lognormal:1us,0", "lognormal: 0 must be more than 0"},
        {"empirical:/nonexistent.csv", "empirical: cannot open the values /nonexistent.csv"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct distribution d;
        struct error err = {0};
        int result = distribution_parse(cases[i].text, UNIT_NS, &d, &err);
        if (result != -ERROR_INPUT || strncmp(err.text, cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("%s: expected \"%s\", got \"%s\"", cases[i].text, cases[i].said, err.text);
    }
}

static void arrivals_have_a_finite_mean(void **state)
{
    (void)state;
    static const char *const good[] = {"exponential", "fixed", "uniform", "lognormal:1,0.5",
                                       "gpd:0,16.0292,0.154971"};
    static const char *const bad[] = {"sometimes", "pareto:1,1", "gpd:0,1,1",
                                      "fixed:0",   "exp:1",      "gev:0,3,-988888"};
    char written[200];
    struct distribution d;
    struct error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(arrivals_parse(good[i], &d, &err), 0);
        assert_string_equal(arrivals_format(&d, written, sizeof written), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(arrivals_parse(bad[i], &d, &err), -ERROR_INPUT);
        assert_non_null(strstr(err.text, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_taken_and_written_back),
        cmocka_unit_test(units_are_read),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(arrivals_have_a_finite_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
