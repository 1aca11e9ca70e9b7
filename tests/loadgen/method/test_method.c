// SPDX-License-Identifier: MIT
//
// The method on made-up runs whose faults are known: each is found, and named first.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <gsl/gsl_randist.h>

#include "loadgen/method/method.h"

enum { REQUESTS = 20000, RATE = 10000 };

enum fault {
    HEALTHY,
    BUNCHED,    // sends leave together every 2 ms
    STALLING,   // the client stops for 5 ms every 50 ms
    UNREAD,     // the client leaves replies unread for 1 ms every 50 ms
    KEPT_BACK,  // as STALLING, but the server does not read, and the kernel has no room
    UNSENT,     // as KEPT_BACK, but the kernel has room and keeps the bytes until the window opens
    DRIFTING,   // the server slows down
    CONGESTED,  // latency follows a slow wave
    HEAVY,      // Pareto, index 0.9
    UNANSWERED, // 2 % of the requests
};

struct made_run {
    struct engine_result result;
    struct sample *samples;
};

static double latency_ns(enum fault fault, size_t i, size_t count, double *wave, gsl_rng *random)
{
    double ns = 30000 + gsl_ran_exponential(random, 10000);
    if (fault == DRIFTING)
        ns *= 1 + 2 * (double)i / (double)count;
    if (fault == CONGESTED) {
        *wave = 0.9999 * *wave + gsl_ran_gaussian(random, 0.02);
        ns *= exp(*wave);
    }
    if (fault == HEAVY)
        ns = gsl_ran_pareto(random, 0.9, 20000);
    return ns;
}

// A TSC of 1 GHz: ticks are ns. Sends cost 8 us, one after the other; TX stamps follow 1 us later.
static void make_many(struct made_run *run, enum fault fault, enum distribution_kind arrivals,
                      bool stamps, size_t count)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double due = 1e9, wave = 0;
    uint64_t free_at = 0;
    gsl_rng_set(random, 42);
    memset(run, 0, sizeof *run);
    run->samples = calloc(count, sizeof *run->samples);
    for (size_t i = 0; i < count; i++) {
        due +=
            arrivals == DISTRIBUTION_FIXED ? 1e9 / RATE : gsl_ran_exponential(random, 1e9 / RATE);
        struct sample *sample = &run->samples[i];
        sample->intended_tsc = (uint64_t)due;
        uint64_t send = sample->intended_tsc;
        if (fault == BUNCHED)
            send = (send / 2000000 + 1) * 2000000;
        bool stalls = send % 50000000 < 5000000;
        uint64_t stalled = stalls ? 5000000 - send % 50000000 : 0;
        if (fault == STALLING || fault == KEPT_BACK)
            send += stalled;
        if (fault == KEPT_BACK && stalls)
            sample->sender_high = SAMPLE_KEPT_BACK;
        send = send < free_at ? free_at : send;
        sample->send_tsc = send;
        sample->sent_tsc = free_at = send + 8000;
        if (stamps) {
            sample->tx_ns = 77000000000u + send + 1000 + (fault == UNSENT ? stalled : 0);
            sample->tx_source = STAMP_SOFTWARE;
        }
        sample->reply_tsc = send + (uint64_t)latency_ns(fault, i, count, &wave, random) +
                            (fault == UNSENT ? stalled : 0);
        if (stamps) {
            sample->rx_ns = 77000000000u + sample->reply_tsc - 3000;
            sample->rx_source = STAMP_SOFTWARE;
        }
        if (fault == UNREAD && sample->reply_tsc % 50000000 < 1000000)
            sample->reply_tsc += 1000000 - sample->reply_tsc % 50000000;
        sample->status = SAMPLE_ANSWERED;
        if (fault == UNANSWERED && i % 50 == 0)
            sample->status = SAMPLE_TIMED_OUT;
    }
    run->result = (struct engine_result){
        .samples = run->samples, .sample_count = count, .tsc_hz = 1e9, .start_tsc = 1000000000};
    gsl_rng_free(random);
}

static void make(struct made_run *run, enum fault fault, enum distribution_kind arrivals,
                 bool stamps)
{
    make_many(run, fault, arrivals, stamps, REQUESTS);
}

static void judge(enum fault fault, const struct method_settings *settings, struct method *method)
{
    struct made_run run;
    struct error err;
    make(&run, fault, settings->arrivals.kind, true);
    assert_int_equal(method_judge(&run.result, settings, fault != UNANSWERED, 0.5, method, &err),
                     0);
    free(run.samples);
}

static const struct method_settings plain = {
    .quantile = 0.99,
    .confidence = 0.95,
    .arrivals = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1},
    .rate = RATE,
    .turn = 16};

static void a_healthy_run_passes(void **state)
{
    (void)state;
    struct method method;
    judge(HEALTHY, &plain, &method);
    assert_int_equal(method.reason_count, 0);
    assert_true(method_is_satisfied(&method));
    assert_int_equal(method.arrivals.source, STAMP_SOFTWARE);
    assert_true(method.arrivals.back_to_back > 500);
    // Sends cost 8 us, some of which the intended gap took already: between sends that queued lie
    // 8 us each.
    assert_true(fabs(method.arrivals.back_to_back_us - 8) < 0.01);
    assert_true(fabs(method.arrivals.best - (1 - exp(-0.08)) - 0.01) < 1e-4);
    assert_true(method.arrivals.distance <= method.arrivals.best);
    assert_true(method.arrivals.distance > 0.05); // and the statistic does see it
    assert_true(method.arrivals.fit.known_p < 0.001);
    assert_true(method.client.lateness_p99_us < 0.01); // all lateness is explained by sends before
    assert_true(method.interval.width > 0 && method.interval.width < 10);
    assert_true(method.warm_up_s == 0);
}

static void user_time_stands_in_for_stamps(void **state)
{
    (void)state;
    struct made_run run;
    struct method method;
    struct error err;
    make(&run, HEALTHY, DISTRIBUTION_EXPONENTIAL, true);
    for (size_t i = 0; i < REQUESTS; i += 50) // 2 % came without
        run.samples[i].tx_ns = 0;
    assert_int_equal(method_judge(&run.result, &plain, true, 0.5, &method, &err), 0);
    assert_int_equal(method.arrivals.source, STAMP_USER);
    assert_true(method.arrivals.judged && method.arrivals.right);
    assert_int_equal(method.arrivals.gaps, REQUESTS - 1);
    free(run.samples);
}

static void expect(enum fault fault, enum method_check check, const char *reason)
{
    struct method method;
    judge(fault, &plain, &method);
    assert_int_equal(method.findings[check], METHOD_FAILED);
    assert_false(method_is_satisfied(&method));
    assert_true(method.reason_count > 0);
    assert_ptr_equal(strstr(method.reasons[0], reason), method.reasons[0]);
}

static void each_fault_is_named(void **state)
{
    (void)state;
    expect(BUNCHED, METHOD_ARRIVALS, "client biased: late by itself"); // 1 ms on a p99 of 76 us
    expect(STALLING, METHOD_CLIENT, "client biased: late by itself");
    expect(UNREAD, METHOD_CLIENT, "client biased: late in reading the replies");
    expect(DRIFTING, METHOD_STATIONARITY, "not stationary: ");
    expect(CONGESTED, METHOD_INDEPENDENCE, "not independent: ");
}

// What requests that depend on one another are worth is said in words that hold without them, too.
static void what_requests_tell_is_said(void **state)
{
    (void)state;
    struct method method;
    char *text = NULL;
    size_t bytes;
    for (unsigned dependent = 0; dependent < 2; dependent++) {
        judge(HEALTHY, &plain, &method);
        method.interval.worth = dependent ? 768 : (double)method.interval.count;
        FILE *out = open_memstream(&text, &bytes);
        method_print(&method, out);
        fclose(out);
        assert_int_equal(!!strstr(text, "20,000 requests tell as much of p99 as 768 independent "
                                        "ones: its interval is as wide\n"),
                         dependent);
        assert_int_equal(!!strstr(text, "20,000 requests, for p99 as good as independent of one "
                                        "another\n"),
                         !dependent);
        free(text);
    }
    judge(CONGESTED, &plain, &method);
    assert_non_null(strstr(method.reasons[0], "): all 20,000 together tell as much of p99 as "));
    assert_non_null(strstr(method.reasons[0], " independent ones, and p99 is known only to lie"));
}

// A server that does not read makes requests late, not the load.
static void a_closed_window_is_not_the_clients(void **state)
{
    (void)state;
    for (enum fault fault = KEPT_BACK; fault <= UNSENT; fault++) {
        struct method method;
        judge(fault, &plain, &method);
        assert_true(method.client.judged && !method.client.biased);
        assert_true(method.client.target_us > 1000);
        assert_true(method.client.share < 0.01);
    }
}

static void what_the_load_summary_explains_is_not_explained_again(void **state)
{
    (void)state;
    struct method method;
    judge(UNANSWERED, &plain, &method);
    assert_int_equal(method.findings[METHOD_LOAD], METHOD_FAILED);
    assert_int_equal(method.reason_count, 0);
    assert_true(isinf(method.interval.value));
}

static void an_idle_less_client_is_out_of_cpu(void **state)
{
    (void)state;
    struct made_run run;
    struct method method;
    struct error err;
    make(&run, HEALTHY, DISTRIBUTION_EXPONENTIAL, true);
    assert_int_equal(method_judge(&run.result, &plain, true, 0.001, &method, &err), 0);
    assert_int_equal(method.findings[METHOD_CLIENT], METHOD_FAILED);
    assert_non_null(strstr(method.reasons[0], "client biased: out of CPU"));
    free(run.samples);
}

static void a_wanted_width_is_reached_or_not(void **state)
{
    (void)state;
    struct method method;
    struct method_settings settings = plain;
    settings.width_us = 10;
    settings.budget_s = 2;
    judge(HEALTHY, &settings, &method);
    assert_true(method_is_satisfied(&method) && method.needed_s < 2);
    settings.width_us = 0.5;
    judge(HEALTHY, &settings, &method);
    assert_int_equal(method.findings[METHOD_INTERVAL], METHOD_FAILED);
    assert_non_null(strstr(method.reasons[0], "budget spent: the interval of p99 is "));
    assert_true(method.needed_s > 10 && isfinite(method.needed_s));
    settings.width_us = 100;
    judge(HEAVY, &settings, &method);
    assert_non_null(strstr(method.reasons[0], "heavy tail: the interval of p99 is "));
    assert_true(fabs(method.interval.tail_index - 0.9) < 0.3);
}

static void even_arrivals_are_judged_too(void **state)
{
    (void)state;
    struct method method;
    struct method_settings settings = plain;
    settings.arrivals.kind = DISTRIBUTION_FIXED;
    judge(HEALTHY, &settings, &method);
    assert_int_equal(method.findings[METHOD_ARRIVALS], METHOD_PASSED);
    assert_true(method.arrivals.distance < 0.001 && method.arrivals.variation < 0.001);
    judge(BUNCHED, &settings, &method);
    assert_int_equal(method.findings[METHOD_ARRIVALS], METHOD_FAILED);
    // A Poisson process where even gaps were asked for.
    struct made_run run;
    struct error err;
    make(&run, HEALTHY, DISTRIBUTION_EXPONENTIAL, true);
    assert_int_equal(method_judge(&run.result, &settings, true, 0.5, &method, &err), 0);
    assert_int_equal(method.findings[METHOD_ARRIVALS], METHOD_FAILED);
    free(run.samples);
}

static void a_pause_between_rounds_is_no_gap(void **state)
{
    (void)state;
    struct made_run run;
    struct method method;
    struct error err;
    make(&run, HEALTHY, DISTRIBUTION_EXPONENTIAL, true);
    for (size_t i = REQUESTS / 2; i < REQUESTS; i++) {
        struct sample *sample = &run.samples[i];
        sample->intended_tsc += 500000000;
        sample->send_tsc += 500000000;
        sample->sent_tsc += 500000000;
        sample->reply_tsc += 500000000;
        sample->tx_ns += 500000000;
    }
    assert_int_equal(method_judge(&run.result, &plain, true, 0.5, &method, &err), 0);
    assert_int_equal(method.reason_count, 0);
    assert_true(method.arrivals.variation < 1.05);
    free(run.samples);
}

// Moves a run's requests so that they follow the pattern.
static void move(struct made_run *run, const struct rate_pattern *pattern, double duration_s)
{
    double x = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
        struct sample *sample = &run->samples[i];
        double at = (double)(sample->intended_tsc - run->result.start_tsc) / 1e9 / duration_s;
        x = rate_pattern_inverse(pattern, at, x);
        uint64_t by = (uint64_t)(int64_t)((x - at) * duration_s * 1e9);
        sample->intended_tsc += by;
        sample->send_tsc += by;
        sample->sent_tsc += by;
        sample->reply_tsc += by;
        sample->tx_ns += by;
        sample->rx_ns += by;
    }
}

static void a_changing_rate_is_judged_in_its_own_time(void **state)
{
    (void)state;
    static const char *const patterns[] = {"step:0.5,1.5", "ramp:0.5,1.5", "diurnal:0.8"};
    for (unsigned i = 0; i < 3; i++) {
        struct made_run run;
        struct method method;
        struct error err;
        struct method_settings settings = plain;
        settings.duration_s = (double)REQUESTS / RATE;
        assert_int_equal(rate_pattern_parse(patterns[i], &settings.pattern, &err), 0);
        make(&run, HEALTHY, DISTRIBUTION_EXPONENTIAL, true);
        move(&run, &settings.pattern, settings.duration_s);
        assert_int_equal(method_judge(&run.result, &settings, true, 0.5, &method, &err), 0);
        assert_int_equal(method.reason_count, 0);
        assert_int_equal(method.findings[METHOD_ARRIVALS], METHOD_PASSED);
        assert_int_equal(method.findings[METHOD_INDEPENDENCE], METHOD_UNKNOWN);
        assert_false(method.interval.interval.known);
        assert_int_equal(method.levels.count, i == 0 ? 2 : 0);
        assert_int_equal(method.findings[METHOD_STATIONARITY],
                         i == 0 ? METHOD_PASSED : METHOD_UNKNOWN);
        if (i == 0)
            assert_in_range(method.levels.items[1].count, 14000, 16000);
        // The second level drifts; the first does not.
        for (size_t k = method.levels.items[0].count; i == 0 && k < REQUESTS; k++) {
            run.samples[k].reply_tsc += 10 * (k - method.levels.items[0].count);
            run.samples[k].rx_ns += 10 * (k - method.levels.items[0].count);
        }
        assert_int_equal(method_judge(&run.result, &settings, true, 0.5, &method, &err), 0);
        if (i == 0)
            assert_non_null(strstr(method.reasons[0], "not stationary at 1.5 times the rate: "));
        assert_true(method.arrivals.variation < 1.03);
        // Were it asked to hold still, its gaps would be no exponential's.
        settings.pattern = (struct rate_pattern){0};
        assert_int_equal(method_judge(&run.result, &settings, true, 0.5, &method, &err), 0);
        assert_true(method.arrivals.variation > 1.05);
        free(run.samples);
    }
}

static void the_document_is_strict_json(void **state)
{
    (void)state;
    struct method method;
    struct made_run run;
    struct error err;
    for (size_t count = 0; count <= REQUESTS; count = count ? count * 27 : 1) {
        make(&run, count % 2 ? HEALTHY : UNANSWERED, DISTRIBUTION_EXPONENTIAL, true);
        run.result.sample_count = count;
        assert_int_equal(method_judge(&run.result, &plain, true, 0.5, &method, &err), 0);
        assert_int_equal(method.reason_count, 0); // too few to judge is no fault
        json_t *json = method_json(&method);
        char *text = json_dumps(json, 0); // an infinity would not have come out
        assert_non_null(text);
        assert_string_equal(json_string_value(json_object_get(json, "target")), "p99");
        assert_int_equal(json_object_size(json_object_get(json, "checks")), METHOD_CHECKS);
        assert_true(json_is_object(json_object_get(json, "ci")));
        free(text);
        json_decref(json);
        free(run.samples);
    }
}

// Requests at 20,000/s dealt in turn to senders that each send one after the other, for cost_ns.
// Every second request of the last sender is late by late_ns of its own, which delays no other: the
// senders' gaps are longer. Their sends overlap.
static void make_senders(struct made_run *run, unsigned senders, enum distribution_kind arrivals,
                         uint64_t cost_ns, uint64_t late_ns)
{
    const double mean_ns = 50000;
    uint64_t free_at[8] = {0};
    double due = 1e9;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 7);
    make(run, HEALTHY, arrivals, true);
    for (size_t i = 0; i < REQUESTS; i++) {
        struct sample *sample = &run->samples[i];
        const size_t own = i % senders;
        due += arrivals == DISTRIBUTION_FIXED ? mean_ns : gsl_ran_exponential(random, mean_ns);
        sample->intended_tsc = (uint64_t)due;
        uint64_t send = sample->intended_tsc < free_at[own] ? free_at[own] : sample->intended_tsc;
        sample->send_tsc = send + (own + 1 == senders && i / senders % 2 ? late_ns : 0);
        sample->sent_tsc = free_at[own] = sample->send_tsc + cost_ns;
        sample->tx_ns = 77000000000u + sample->send_tsc + 1000;
        sample->reply_tsc = sample->send_tsc + 200000 + gsl_rng_get(random) % 10000;
        sample->rx_ns = 77000000000u + sample->reply_tsc - 3000;
        sample_set_sender(sample, (unsigned)own);
    }
    gsl_rng_free(random);
}

static void a_sender_is_late_by_itself(void **state)
{
    (void)state;
    for (unsigned senders = 2; senders <= 3; senders++) {
        struct made_run run;
        struct client_bias bias;
        struct error err;
        // 60 us a send, one each 50 us: one sender would be behind for ever.
        make_senders(&run, senders, DISTRIBUTION_FIXED, 60000, 20000);
        static double latencies[REQUESTS]; // none: its lateness alone is asked for
        assert_int_equal(client_bias_judge(&run.result, latencies, 0.99, 0.5, &bias, &err), 0);
        assert_true(bias.lateness_p50_us == 0);
        assert_true(fabs(bias.lateness_p99_us - 20) < 1e-6);
        free(run.samples);
    }
}

static void senders_queue_for_themselves(void **state)
{
    (void)state;
    for (unsigned senders = 2; senders <= 3; senders++) {
        struct made_run run;
        struct method method;
        struct error err;
        struct method_settings settings = plain;
        settings.rate = 20000;
        make_senders(&run, senders, DISTRIBUTION_EXPONENTIAL, 30000, 0);
        assert_int_equal(method_judge(&run.result, &settings, true, 0.5, &method, &err), 0);
        // What comes sooner than 30 us after the one before queues only behind its own sender's,
        // the second or third last: an Erlang distribution.
        double x = 30.0 / 50,
               soon = senders == 2 ? 1 - exp(-x) * (1 + x) : 1 - exp(-x) * (1 + x + x * x / 2);
        assert_true(fabs(method.arrivals.best - 0.01 - soon) < 0.01);
        assert_true(method.arrivals.distance <= method.arrivals.best);
        assert_true((double)method.arrivals.back_to_back >= soon * REQUESTS * 0.9);
        assert_true((double)method.arrivals.back_to_back <= soon * REQUESTS * 1.5);
        assert_true(fabs(method.arrivals.back_to_back_us - 30) < 0.01);
        assert_true(method.client.lateness_p99_us < 0.01);
        free(run.samples);
    }
}

static void the_sender_lies_beside_the_flags(void **state)
{
    (void)state;
    struct sample sample = {.flags = SAMPLE_RX_COALESCED};
    assert_int_equal(sample_sender(&sample), 0); // as older logs have it
    sample_set_sender(&sample, 127);
    assert_int_equal(sample_sender(&sample), 127);
    assert_true(sample.flags & SAMPLE_RX_COALESCED);
    sample_set_sender(&sample, 130);
    assert_int_equal(sample_sender(&sample), 130);
    assert_int_equal(sample.operation, 0);
    sample_set_sender(&sample, 4095);
    assert_int_equal(sample_sender(&sample), 4095);
    sample_set_sender(&sample, 4098);
    assert_int_equal(sample_sender(&sample), 2);
    sample.flags &= (uint8_t)~SAMPLE_RX_COALESCED;
    assert_int_equal(sample_sender(&sample), 2);
}

// Fifteen times the same run, one after the other: more requests than are judged while somebody
// waits for the end.
static void who_interrupts_gets_the_figures_without_the_method(void **state)
{
    (void)state;
    enum { TIMES = 16 };
    struct error err = {0};
    struct made_run run;
    struct load_summary summary;
    struct method method;
    make(&run, HEALTHY, DISTRIBUTION_EXPONENTIAL, true);
    struct sample *all = calloc((size_t)TIMES * REQUESTS, sizeof *all);
    for (size_t i = 0; i < (size_t)TIMES * REQUESTS; i++) {
        const uint64_t later = i / REQUESTS * 2000000000;
        all[i] = run.samples[i % REQUESTS];
        all[i].intended_tsc += later;
        all[i].send_tsc += later;
        all[i].sent_tsc += later;
        all[i].reply_tsc += later;
        all[i].tx_ns += later;
    }
    struct engine_result result = run.result;
    result.samples = all;
    for (int interrupted = 0; interrupted < 2; interrupted++)
        for (int many = 0; many < 2; many++) {
            result.sample_count = many ? (size_t)TIMES * REQUESTS : REQUESTS;
            result.end = interrupted ? ENGINE_INTERRUPTED : ENGINE_COMPLETE;
            assert_int_equal(load_judge(&result, (many ? TIMES : 1) * UINT64_C(2000000000), &plain,
                                        &summary, &method, &err),
                             0);
            assert_true(summary.answered == result.sample_count);
            assert_int_equal(method.findings[METHOD_CLIENT] == METHOD_UNKNOWN, interrupted && many);
            assert_int_equal(strstr(summary.reasons[summary.ok ? 0 : summary.reason_count - 1],
                                    "was not judged") != NULL,
                             interrupted && many);
        }
    free(all);
    free(run.samples);
}

static bool is_near(double one, double other)
{
    return fabs(one - other) < 0.02 * fabs(other);
}

// Of a long run the level and the client are judged by every so manieth request: they are found as
// all show them. What is reported, the percentile and its interval, is of all.
static void a_long_run_is_judged_by_fewer(void **state)
{
    (void)state;
    enum { LONG = 700000 };
    static const enum fault faults[] = {HEALTHY, STALLING, UNREAD, DRIFTING};
    const double q = plain.quantile;
    struct error err;
    assert_int_equal(independence_evidence(REQUESTS, q), 1);
    assert_int_equal(independence_evidence(LONG, q), 3);
    assert_int_equal(independence_evidence(LONG, 0.9999), 1);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct made_run run;
        struct load_summary summary;
        struct method method;
        struct stationarity all;
        struct percentile_interval interval;
        make_many(&run, faults[i], DISTRIBUTION_EXPONENTIAL, true, LONG);
        double *us = calloc(LONG, sizeof *us), *work = calloc(LONG, sizeof *work);
        for (size_t k = 0; k < LONG; k++)
            us[k] = sample_latency_us(&run.samples[k], 1e9);
        run.result.spin_tsc = run.result.end_tsc = run.samples[LONG - 1].reply_tsc;
        assert_int_equal(load_judge(&run.result, UINT64_C(1000000000) * LONG / RATE, &plain,
                                    &summary, &method, &err),
                         0);
        assert_int_equal(stationarity_judge(us, LONG, q, &all, &err), 0);
        assert_int_equal(method.stationarity.stationary, all.stationary);
        assert_int_equal(all.stationary, faults[i] != DRIFTING);
        assert_true(is_near(method.stationarity.target.first, all.target.first));
        assert_true(is_near(method.stationarity.median.second, all.median.second));
        assert_true(is_near(method.client.target_us, quantile_of(us, LONG, q, work)));
        assert_int_equal(method.client.biased, faults[i] == STALLING || faults[i] == UNREAD);
        assert_int_equal(percentile_interval_take(us, LONG, method.independence.thinning, q, 0.95,
                                                  &interval, &err),
                         0);
        const struct percentile_interval *told = &method.interval;
        assert_true(told->value == quantile_of(us, LONG, q, work));
        assert_true(told->interval.low == interval.interval.low &&
                    told->interval.high == interval.interval.high);
        assert_true(told->worth == interval.worth && told->tail_index == interval.tail_index);
        free(work);
        free(us);
        free(run.samples);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_run_passes),
        cmocka_unit_test(user_time_stands_in_for_stamps),
        cmocka_unit_test(each_fault_is_named),
        cmocka_unit_test(what_requests_tell_is_said),
        cmocka_unit_test(a_closed_window_is_not_the_clients),
        cmocka_unit_test(what_the_load_summary_explains_is_not_explained_again),
        cmocka_unit_test(an_idle_less_client_is_out_of_cpu),
        cmocka_unit_test(a_wanted_width_is_reached_or_not),
        cmocka_unit_test(even_arrivals_are_judged_too),
        cmocka_unit_test(a_pause_between_rounds_is_no_gap),
        cmocka_unit_test(a_changing_rate_is_judged_in_its_own_time),
        cmocka_unit_test(a_sender_is_late_by_itself),
        cmocka_unit_test(senders_queue_for_themselves),
        cmocka_unit_test(the_sender_lies_beside_the_flags),
        cmocka_unit_test(the_document_is_strict_json),
        cmocka_unit_test(who_interrupts_gets_the_figures_without_the_method),
        cmocka_unit_test(a_long_run_is_judged_by_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
