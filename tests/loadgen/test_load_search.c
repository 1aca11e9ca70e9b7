// SPDX-License-Identifier: MIT
//
// The sweep's rates, the SLO's text, the search's decisions against servers whose capacity is
// known, and who is saturated in runs made up for it.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "loadgen/load_search.h"
#include "loadgen/load_plan.h"
#include "loadgen/method/load_saturation.h"

static void ranges_are_steps_or_factors(void **state)
{
    (void)state;
    struct sweep_range range;
    struct error err;
    assert_int_equal(sweep_range_parse("10k:200k:10k", &range, &err), 0);
    assert_int_equal(range.count, 20);
    assert_true(sweep_range_rate(&range, 0) == 10000 && sweep_range_rate(&range, 19) == 200000);
    assert_int_equal(sweep_range_parse("2k:15k:4k", &range, &err), 0);
    assert_int_equal(range.count, 4);
    assert_true(sweep_range_rate(&range, 3) == 14000);
    assert_int_equal(sweep_range_parse("1k:64k:x2", &range, &err), 0);
    assert_int_equal(range.count, 7);
    assert_true(sweep_range_rate(&range, 6) == 64000);
    assert_int_equal(sweep_range_parse("0.1:0.3:0.1", &range, &err), 0);
    assert_int_equal(range.count, 3);
    assert_int_equal(sweep_range_parse("5k:5k:1", &range, &err), 0);
    assert_int_equal(range.count, 1);
    const char *wrong[] = {"",          "10k",      "10k:20k",    "10k:20k:", "20k:10k:1k",
                           "0:10k:1k",  "1k:2k:0",  "1k:2k:x1",   "1k:2k:-1", "1k:2k:x",
                           "1k:2k:1k:", "a:2k:1k",  "1k:1M:1",    "1k::1k",   ":1k:1k",
                           "1k:2k:1kx", "-1:2k:1k", "1k:2k:x0.5", "nan:1:1",  "1k:inf:1k"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sweep_range_parse(wrong[i], &range, &err), -ERROR_INPUT);
}

static void objectives_are_percentiles_with_limits(void **state)
{
    (void)state;
    struct slo slo;
    struct error err;
    assert_int_equal(slo_parse("p99<=200us", &slo, &err), 0);
    assert_true(slo.quantile == 0.99 && slo.limit_us == 200 && !slo.strict);
    assert_true(slo_is_met(&slo, 200) && !slo_is_met(&slo, 200.1) && !slo_is_met(&slo, INFINITY));
    assert_int_equal(slo_parse("p99.9 < 1.5ms", &slo, &err), 0);
    assert_true(fabs(slo.quantile - 0.999) < 1e-12 && slo.limit_us == 1500 && slo.strict);
    assert_false(slo_is_met(&slo, 1500));
    const char *wrong[] = {
        "",         "p99",       "p99=200us", "p99<=",      "p99<=200",  "p100<=1ms",
        "p0<=1ms",  "99<=1ms",   "p99>=1ms",  "p99<=0us",   "p99<=1msx", "p<=1ms",
        "p-1<=1ms", "pnan<=1ms", "p99<=-1ms", "p99<==200us"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(slo_parse(wrong[i], &slo, &err), -ERROR_INPUT);
}

// A server that meets the SLO up to `capacity`; one trial in `noise` says the contrary.
struct server {
    double capacity;
    unsigned noise;
    uint64_t seed;
};

static enum search_end search_on(const struct server *server, struct search *search, double *low,
                                 double *high)
{
    enum search_end end;
    double next;
    while ((end = search_next(search, &next, low, high)) == SEARCH_GOING_ON) {
        bool met = next <= server->capacity;
        if (server->noise && hash64(server->seed + search->trials) % server->noise == 0)
            met = !met;
        assert_true(next >= search->lowest && next <= search->highest);
        search_note(search, next, met ? CURVE_MET : CURVE_MISSED);
    }
    return end;
}

static struct search from_to(double lowest, double highest)
{
    return (struct search){.lowest = lowest, .highest = highest, .ratio = 1.05};
}

static void the_search_closes_in_and_confirms(void **state)
{
    (void)state;
    for (double capacity = 1000; capacity < 3e6; capacity *= 1.37) {
        struct server server = {.capacity = capacity};
        struct search search = from_to(1000, INFINITY);
        double low, high;
        assert_int_equal(search_on(&server, &search, &low, &high), SEARCH_FOUND);
        assert_true(low <= capacity && high > capacity && high <= low * 1.05);
        assert_true(search.trials <= 3 + log2(capacity / 1000) + 6);
    }
}

static void the_search_stays_in_its_range(void **state)
{
    (void)state;
    double low, high;
    struct server server = {.capacity = 5000};
    struct search search = from_to(1000, 3000);
    assert_int_equal(search_on(&server, &search, &low, &high), SEARCH_ALL_MET);
    assert_true(low == 3000 && isinf(high));
    search = from_to(6000, 30000);
    assert_int_equal(search_on(&server, &search, &low, &high), SEARCH_NONE_MET);
    assert_true(low == 0 && high == 6000 && search.trials == 2);
}

// With one wrong trial in twelve the result is off by more than the resolution in few cases only.
static void the_search_bears_noise(void **state)
{
    (void)state;
    unsigned right = 0, all = 200;
    for (unsigned i = 0; i < all; i++) {
        struct server server = {.capacity = 20000, .noise = 12, .seed = i * 1000};
        struct search search = from_to(1000, INFINITY);
        double low, high;
        enum search_end end = search_on(&server, &search, &low, &high);
        assert_true(search.trials <= SEARCH_TRIALS_MAX);
        right += end == SEARCH_FOUND && low <= 20000 * 1.05 && high >= 20000 / 1.05;
    }
    assert_true(right >= all * 8 / 10);
}

static void the_search_leaves_the_undecidable(void **state)
{
    (void)state;
    struct search search = from_to(1000, INFINITY);
    double next, low, high;
    while (search_next(&search, &next, &low, &high) == SEARCH_GOING_ON)
        search_note(&search, next, CURVE_UNDECIDED);
    assert_int_equal(search_next(&search, &next, &low, &high), SEARCH_UNDECIDED);
    assert_int_equal(search.trials, SEARCH_DOUBTS);
    // Undecided from 4000 on: the rates below are found all the same.
    search = from_to(1000, INFINITY);
    while (search_next(&search, &next, &low, &high) == SEARCH_GOING_ON)
        search_note(&search, next, next < 4000 ? CURVE_MET : CURVE_UNDECIDED);
    assert_int_equal(search_next(&search, &next, &low, &high), SEARCH_FOUND);
    assert_true(low < 4000 && high >= 4000 && high <= low * 1.05);
}

// --- saturation ----------------------------------------------------------------------------------

enum { RATE = 10000, REQUESTS = RATE }; // a second, a tick a nanosecond

// Sends take send_ns each and the server serve_ns; both one after the other.
static void make_run(double send_ns, double serve_ns, double idle, struct load_outcome *outcome)
{
    struct engine_result *run = &outcome->result;
    double sent = 0, served = 0;
    *outcome = (struct load_outcome){0};
    run->samples = calloc(REQUESTS, sizeof *run->samples);
    assert_non_null(run->samples);
    run->sample_count = REQUESTS;
    run->tsc_hz = 1e9;
    run->start_tsc = 1;
    run->connection_count = 16;
    run->depth = 4096;
    run->depth_is_cap = true;
    for (size_t i = 0; i < REQUESTS; i++) {
        double intended = 1 + (double)i * 1e9 / RATE;
        sent = fmax(intended, sent) + send_ns;
        served = fmax(sent, served) + serve_ns;
        run->samples[i].intended_tsc = (uint64_t)intended;
        run->samples[i].send_tsc = run->samples[i].sent_tsc = (uint64_t)sent;
        run->samples[i].reply_tsc = (uint64_t)served;
    }
    outcome->summary.scheduled = outcome->summary.answered = REQUESTS;
    outcome->summary.duration_s = 1;
    outcome->summary.spin_fraction = idle;
}

static enum saturation who_in(struct load_outcome *outcome, const char *why)
{
    struct load_saturation found;
    load_saturation_judge(&outcome->result, &outcome->summary, &found);
    free(outcome->result.samples);
    if (!strstr(found.why, why))
        fail_msg("%s, not %s", found.why, why);
    return found.who;
}

static void saturation_is_told_apart(void **state)
{
    (void)state;
    struct load_outcome run;
    make_run(5000, 50000, 0.5, &run);
    assert_int_equal(who_in(&run, ""), SATURATION_NONE);
    make_run(5000, 150000, 0.5, &run);
    assert_int_equal(who_in(&run, "in flight grew from 1"), SATURATION_SERVER);
    make_run(150000, 50000, 0.5, &run);
    assert_int_equal(who_in(&run, "were due and not sent"), SATURATION_CLIENT);
    make_run(5000, 50000, 0.01, &run);
    assert_int_equal(who_in(&run, "only 1.00 % of its time"), SATURATION_CLIENT);
    // Requests wait in the client, but for room: not its fault while it idles.
    make_run(150000, 50000, 0.5, &run);
    run.result.delayed_by_depth = 3000;
    assert_int_equal(who_in(&run, "3,000 of 10,000 requests found every connection full"),
                     SATURATION_SERVER);
    make_run(5000, 50000, 0.5, &run);
    run.summary.timed_out = 3;
    assert_int_equal(who_in(&run, "3 of 10,000 requests had no reply in time"), SATURATION_SERVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_steps_or_factors),
        cmocka_unit_test(objectives_are_percentiles_with_limits),
        cmocka_unit_test(the_search_closes_in_and_confirms),
        cmocka_unit_test(the_search_stays_in_its_range),
        cmocka_unit_test(the_search_bears_noise),
        cmocka_unit_test(the_search_leaves_the_undecidable),
        cmocka_unit_test(saturation_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
