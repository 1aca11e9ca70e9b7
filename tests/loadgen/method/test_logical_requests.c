// SPDX-License-Identifier: MIT
//
// Logical requests against what is known of them: each lasts as long as its slowest request, none
// that lacks a reply is answered, and of a server that delays a share p of its answers, whichever
// they are, 1 - (1 - p)^K of the logical requests are slow.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "loadgen/method/load_reasons.h"
#include "loadgen/method/logical_requests.h"
#include "loadgen/method/method.h"

enum {
    FANOUT = 10,
    LOGICAL = 20000,
    REQUESTS = FANOUT * LOGICAL,
    FAST_NS = 100000,
    SLOW_NS = 900000
};

struct made_run {
    struct engine_result result;
    struct sample *samples;
};

// A TSC of 1 GHz. The requests of logical request i are due at i ms, and leave 1 us one after the
// other; a share of them, drawn, is answered late.
static void make(struct made_run *run, double share)
{
    run->samples = calloc(REQUESTS, sizeof *run->samples);
    assert_non_null(run->samples);
    run->result = (struct engine_result){.end = ENGINE_COMPLETE,
                                         .samples = run->samples,
                                         .sample_count = REQUESTS,
                                         .fanout = FANOUT,
                                         .connections_at_once = 16,
                                         .thread_count = 1,
                                         .depth = 8,
                                         .tsc_hz = 1e9,
                                         .start_tsc = 1000000,
                                         .end_tsc = 1000000 + (uint64_t)LOGICAL * 1000000,
                                         .cpu_ns = (uint64_t)LOGICAL * 1000000,
                                         .spin_tsc = (uint64_t)LOGICAL * 800000};
    for (uint64_t i = 0; i < REQUESTS; i++) {
        const uint64_t intended = 1000000 + i / FANOUT * 1000000;
        const bool slow = (double)(hash64(i) >> 11) * 0x1p-53 < share;
        run->samples[i] = (struct sample){.intended_tsc = intended,
                                          .send_tsc = intended + i % FANOUT * 1000 + 100,
                                          .sent_tsc = intended + i % FANOUT * 1000 + 1000,
                                          .reply_tsc = intended + (slow ? SLOW_NS : FAST_NS),
                                          .key = (uint32_t)i};
    }
}

static void summarise(const struct made_run *run, struct load_summary *summary)
{
    struct error err;
    assert_int_equal(load_summarise(&run->result, (uint64_t)LOGICAL * 1000000, summary, &err), 0);
}

static void the_slowest_one_counts(void **state)
{
    (void)state;
    struct made_run run;
    struct engine_result logical;
    struct error err;
    make(&run, 0);
    run.samples[FANOUT + 3].reply_tsc += 50000;
    run.samples[FANOUT + 4].status = SAMPLE_MISS;
    run.samples[2 * FANOUT].reply_tsc += 70000;
    assert_int_equal(logical_requests_make(&run.result, &logical, &err), 0);
    assert_int_equal(logical.sample_count, LOGICAL);
    const struct sample *one = &logical.samples[1];
    assert_int_equal(one->reply_tsc - one->intended_tsc, FAST_NS + 50000);
    assert_int_equal(one->key, FANOUT + 3); // whose reply it waited for
    assert_int_equal(one->status, SAMPLE_MISS);
    assert_int_equal(one->send_tsc - one->intended_tsc, 100);
    assert_int_equal(one->sent_tsc - one->intended_tsc, (FANOUT - 1) * 1000 + 1000);
    assert_int_equal(logical.samples[2].key, 2 * FANOUT);
    logical_requests_free(&run.result, &logical);
    // Without a fan-out it is the result itself.
    run.result.fanout = 1;
    assert_int_equal(logical_requests_make(&run.result, &logical, &err), 0);
    assert_ptr_equal(logical.samples, run.samples);
    logical_requests_free(&run.result, &logical);
    assert_ptr_equal(run.result.samples, run.samples);
    free(run.samples);
}

static void one_that_is_lost_loses_all(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run, 0);
    run.samples[5].status = SAMPLE_LOST;
    run.samples[5].reply_tsc = 0;
    run.samples[6].status = SAMPLE_TIMED_OUT; // of the same
    run.samples[6].reply_tsc = 0;
    run.samples[3 * FANOUT + 9].status = SAMPLE_UNSENT;
    run.samples[3 * FANOUT + 9].send_tsc = run.samples[3 * FANOUT + 9].sent_tsc = 0;
    run.samples[3 * FANOUT + 9].reply_tsc = 0;
    summarise(&run, &summary);
    assert_int_equal(summary.scheduled, REQUESTS);
    assert_int_equal(summary.answered, REQUESTS - 3);
    assert_int_equal(summary.lost, 1);
    assert_int_equal(summary.logical_scheduled, LOGICAL);
    assert_int_equal(summary.logical_answered, LOGICAL - 2);
    assert_true(isinf(summary.latency.us[SUMMARY_QUANTILES - 1]) &&
                isinf(summary.each.us[SUMMARY_QUANTILES - 1]));
    assert_int_equal(summary.latency.count, LOGICAL);
    assert_int_equal(summary.each.count, REQUESTS);
    // Rates are of logical requests.
    assert_true(fabs(summary.offered_rate - 1000) < 1e-6);
    assert_true(fabs(summary.achieved_rate - 1000.0 * (LOGICAL - 2) / LOGICAL) < 1e-6);
    free(run.samples);
}

static void the_slow_ones_follow_the_law(void **state)
{
    (void)state;
    static const double shares[] = {0.003, 0.02, 0.05, 0.08, 0.2};
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        const double p = shares[s], expected = 1 - pow(1 - p, FANOUT);
        struct made_run run;
        struct load_summary summary;
        size_t slow = 0;
        struct engine_result logical;
        struct error err;
        make(&run, p);
        assert_int_equal(logical_requests_make(&run.result, &logical, &err), 0);
        for (size_t i = 0; i < LOGICAL; i++)
            slow += logical.samples[i].reply_tsc - logical.samples[i].intended_tsc == SLOW_NS;
        logical_requests_free(&run.result, &logical);
        const double deviation = sqrt(expected * (1 - expected) / LOGICAL);
        assert_true(fabs((double)slow / LOGICAL - expected) < 4 * deviation);
        summarise(&run, &summary);
        for (unsigned q = 0; summary_quantiles[q] < 0.9995; q++) {
            assert_true(fabs(1 - summary_quantiles[q] - expected) > 4 * deviation);
            const bool is_slow = 1 - summary_quantiles[q] < expected;
            assert_true(fabs(summary.latency.us[q] - (is_slow ? SLOW_NS : FAST_NS) / 1e3) < 1e-6);
            const bool each_is_slow = 1 - summary_quantiles[q] < p;
            assert_true(fabs(summary.each.us[q] - (each_is_slow ? SLOW_NS : FAST_NS) / 1e3) < 1e-6);
        }
        free(run.samples);
    }
}

// The method judges logical requests, and takes their requests for no arrivals of their own.
static void the_method_judges_them(void **state)
{
    (void)state;
    struct made_run run;
    struct method method;
    struct error err;
    make(&run, 0.02);
    uint64_t at = 1000000;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        if (i && i % FANOUT == 0)
            at += (uint64_t)(-log(1 - (double)(hash64(~i) >> 11) * 0x1p-53) * 1e6);
        struct sample *sample = &run.samples[i];
        const int64_t moved = (int64_t)(at - sample->intended_tsc);
        sample->intended_tsc += (uint64_t)moved;
        sample->send_tsc += (uint64_t)moved;
        sample->sent_tsc += (uint64_t)moved;
        sample->reply_tsc += (uint64_t)moved;
    }
    const struct method_settings settings = {
        .quantile = 0.99,
        .confidence = 0.95,
        .arrivals = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1},
        .rate = 1000,
        .turn = 16,
        .duration_s = 20};
    assert_int_equal(method_judge(&run.result, &settings, true, 0.8, &method, &err), 0);
    assert_int_equal(method.findings[METHOD_ARRIVALS], METHOD_PASSED);
    assert_int_equal(method.arrivals.gaps, LOGICAL - 1);
    assert_true(method.arrivals.distance < 0.02);
    assert_int_equal(method.findings[METHOD_CLIENT], METHOD_PASSED);
    assert_true(fabs(method.client.target_us - SLOW_NS / 1e3) < 1e-6);
    assert_int_equal(method.interval.count, LOGICAL);
    assert_true(fabs(method.interval.value - SLOW_NS / 1e3) < 1e-6);
    assert_int_equal(method.settings.turn, 8); // 16 connections in tens
    // Judged as requests for themselves, nine of ten gaps are none.
    run.result.fanout = 1;
    struct method_settings alone = settings;
    alone.rate = 10000;
    assert_int_equal(method_judge(&run.result, &alone, true, 0.8, &method, &err), 0);
    assert_int_equal(method.findings[METHOD_ARRIVALS], METHOD_FAILED);
    free(run.samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_one_counts),
        cmocka_unit_test(one_that_is_lost_loses_all),
        cmocka_unit_test(the_slow_ones_follow_the_law),
        cmocka_unit_test(the_method_judges_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
