// SPDX-License-Identifier: MIT
//
// Percentiles, counts and verdicts from made-up results whose figures are known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/method/load_reasons.h"
#include "loadgen/method/method_interval.h"
#include "workloads/protocols/protocol.h"

enum { REQUESTS = 1000 };

// A TSC of 1 GHz: ticks are ns. Request i is due at i ms, sent 1 us late and answered i + 1 us
// after it was due.
struct made_run {
    struct engine_result result;
    struct sample samples[REQUESTS];
};

static void make(struct made_run *run)
{
    memset(run, 0, sizeof *run);
    run->result = (struct engine_result){.end = ENGINE_COMPLETE,
                                         .samples = run->samples,
                                         .sample_count = REQUESTS,
                                         .connections_at_once = 4,
                                         .thread_count = 1,
                                         .depth = 8,
                                         .tsc_hz = 1e9,
                                         .start_tsc = 1000000,
                                         .end_tsc = 1001000000,
                                         .cpu_ns = 500000000,
                                         .spin_tsc = 400000000};
    for (uint64_t i = 0; i < REQUESTS; i++) {
        uint64_t intended = 1000000 + i * 1000000;
        run->samples[i] = (struct sample){.intended_tsc = intended,
                                          .send_tsc = intended + 1000,
                                          .sent_tsc = intended + 2000,
                                          .reply_tsc = intended + (i + 1) * 1000,
                                          .status = SAMPLE_ANSWERED};
    }
}

static void summarise(const struct made_run *run, struct load_summary *summary)
{
    struct error err;
    assert_int_equal(load_summarise(&run->result, 1000000000, summary, &err), 0);
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6 * fmax(1, fabs(b));
}

static void figures_are_exact(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (uint64_t i = 0; i < REQUESTS; i++) // in an order without one
        run.samples[i].reply_tsc = run.samples[i].intended_tsc + (i * 387 % REQUESTS + 1) * 1000;
    summarise(&run, &summary);
    assert_true(summary.ok);
    static const double expected[SUMMARY_QUANTILES] = {500, 900, 990, 999, NAN, 1000};
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++) {
        if (isnan(expected[i])) // no request lies beyond p99.99 of a thousand
            assert_true(isnan(summary.latency.us[i]) && isnan(summary.uncorrected.us[i]));
        else
            assert_true(near(summary.latency.us[i], expected[i]));
        if (!isnan(expected[i]))
            assert_true(near(summary.uncorrected.us[i], expected[i] - 1));
    }
    // Binomial(1000, 0.5): 95 % lie within 31 of 500.
    assert_true(summary.latency.interval[0].known);
    assert_true(fabs(summary.latency.interval[0].low - 469) <= 1);
    assert_true(fabs(summary.latency.interval[0].high - 532) <= 1);
    assert_false(summary.latency.interval[4].known); // 1000 samples do not bound p99.99
    assert_true(near(summary.lateness_p50_us, 1) && near(summary.lateness_p99_us, 1));
    assert_true(near(summary.offered_rate, 1000) && near(summary.achieved_rate, 1000));
    assert_true(near(summary.cpu_us_per_request, 100));
    assert_true(near(summary.spin_fraction, 0.4));
    assert_int_equal(summary.stamps_user, REQUESTS);
}

// The same values one after the other say less: the interval is the method's, and no narrower one.
static void the_interval_knows_of_dependence(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    summarise(&run, &summary);
    assert_true(near(summary.latency.us[0], 500));
    assert_true(summary.latency.interval[0].known);
    assert_true(summary.latency.interval[0].low < 300 && summary.latency.interval[0].high > 700);
    double values[REQUESTS];
    for (unsigned i = 0; i < REQUESTS; i++)
        values[i] = i + 1;
    struct percentile_interval found;
    struct error err;
    assert_int_equal(percentile_interval_take(values, REQUESTS, 1, 0.5, 0.95, &found, &err), 0);
    assert_true(near(found.interval.low, summary.latency.interval[0].low));
    assert_true(near(found.interval.high, summary.latency.interval[0].high));
}

static void one_is_no_plural(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    char *text = NULL;
    size_t bytes = 0;
    make(&run);
    run.result.connections_at_once = 1;
    run.samples[0].status = SAMPLE_ERROR_REPLY;
    run.result.counts.unexpected = 1;
    summarise(&run, &summary);
    const struct load_facts facts = {
        .server = "s", .protocol = &memcached_text_protocol, .rate = 1, .arrivals = "fixed"};
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    load_summary_print(&summary, &run.result, &facts, out);
    fclose(out);
    assert_non_null(
        strstr(text, "at 1 request/s (fixed arrivals, seed 0) for 1.00 s on 1 connection\n"));
    assert_non_null(strstr(text, "(0 misses, 1 error)"));
    assert_non_null(strstr(text, "; 1 reply to no request\n"));
    assert_non_null(strstr(text, " of the time idle (spinning)\n"));
    free(text);
    const struct load_facts asleep = {.server = "s",
                                      .protocol = &memcached_text_protocol,
                                      .rate = 1,
                                      .arrivals = "fixed",
                                      .sleeps = true,
                                      .sentinel = true};
    run.result.nodes = 1;
    run.result.counts.redirections.map_reads = 10;
    out = open_memstream(&text, &bytes);
    assert_non_null(out);
    load_summary_print(&summary, &run.result, &asleep, out);
    fclose(out);
    assert_non_null(strstr(text, " of the time idle (asleep)\n"));
    assert_non_null(strstr(text, "  masters    1; 0 requests tried later, "));
    assert_non_null(strstr(text, "the sentinels asked again 10 times\n"));
    assert_null(strstr(text, "  nodes "));
    free(text);
}

// It is no client's doing, whatever core it had: all that comes is read at the end.
static void a_server_that_answers_nothing_is_named(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (unsigned i = 0; i < REQUESTS; i++)
        run.samples[i].status = SAMPLE_TIMED_OUT;
    run.result.cpu_ns = 300000000; // of a second
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_SILENT);
    assert_non_null(strstr(summary.reasons[0], "the server answered none of 1,000 that were sent"));
}

static void the_unanswered_are_infinite(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (unsigned i = 0; i < 15; i++) {
        struct sample *sample = &run.samples[i];
        sample->reply_tsc = 0;
        sample->status = i < 5 ? SAMPLE_UNSENT : i < 10 ? SAMPLE_TIMED_OUT : SAMPLE_LOST;
        if (sample->status == SAMPLE_UNSENT)
            sample->send_tsc = sample->sent_tsc = 0;
    }
    summarise(&run, &summary);
    assert_false(summary.ok);
    assert_int_equal(summary.unsent, 5);
    assert_int_equal(summary.timed_out, 5);
    assert_int_equal(summary.lost, 5);
    assert_int_equal(summary.answered, REQUESTS - 15);
    assert_int_equal(summary.sent, REQUESTS - 5);
    assert_true(near(summary.latency.us[0], 515));
    assert_true(isinf(summary.latency.us[2]) && isinf(summary.latency.us[5]));
    assert_int_equal(summary.uncorrected.count, REQUESTS - 5); // what was not sent is not in it
    const unsigned last = summary.reason_count - 1;            // what explains it comes first
    assert_non_null(strstr(summary.reasons[last], "15 of 1,000 requests were not answered"));
    assert_int_equal(summary.doubts[last], DOUBT_UNANSWERED);
    assert_non_null(strstr(summary.reasons[last], "p99 and above are `never`"));

    const struct load_facts facts = {
        .server = "s", .protocol = &memcached_text_protocol, .rate = 1000};
    json_t *json = load_summary_json(&summary, &run.result, &facts);
    assert_string_equal(json_string_value(json_object_get(json, "verdict")), "n/a");
    json_t *latency = json_object_get(json, "latency_us");
    assert_true(near(json_number_value(json_object_get(latency, "p50")), 515));
    assert_true(json_is_null(json_object_get(latency, "p99")));
    assert_true(json_is_null(json_object_get(latency, "max")));
    assert_int_equal(json_integer_value(json_object_get(json, "timed_out")), 5);
    json_t *errors = json_object_get(json, "errors");
    assert_int_equal(json_integer_value(json_object_get(errors, "lost")), 5);
    char *text = json_dumps(json, 0); // strict JSON: an infinity would not have come out
    assert_non_null(text);
    free(text);
    json_decref(json);
}

static void a_slow_server_is_no_result(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (uint64_t i = 0; i < REQUESTS; i++) // replies 2 ms apart: half the rate
        run.samples[i].reply_tsc = 1000000 + (i + 1) * 2000000;
    run.result.end_tsc = 2001000000;
    run.result.cpu_ns = 2000000000;
    summarise(&run, &summary);
    assert_false(summary.ok);
    assert_true(near(summary.achieved_rate, 500));
    assert_non_null(strstr(summary.reasons[0], "rate not reached: 500 of 1,000"));
    assert_non_null(strstr(summary.reasons[0], "server did not keep up"));
    assert_int_equal(summary.doubts[0], DOUBT_OVERLOADED);
    // A few requests a second are told apart, too.
    run.result.tsc_hz /= 400;
    assert_int_equal(load_summarise(&run.result, 400000000000, &summary, &(struct error){0}), 0);
    assert_non_null(strstr(summary.reasons[0], "rate not reached: 1.25 of 2.5 requests/s"));
    run.result.tsc_hz *= 400;
    // It found nothing to do for much of the time by the clock; for most of that it did not run.
    run.result.cpu_ns = 500000000;
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "this client had its core for only 25 % of the"));
    assert_int_equal(summary.doubts[0], DOUBT_STARVED);
    run.result.cpu_ns = 2000000000;
    // A standstill is to blame as far as it goes.
    run.result.standstill = (struct standstill){150000000, 301000000};
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "server did not keep up"));
    assert_int_equal(summary.doubts[0], DOUBT_OVERLOADED);
    run.result.standstill.lasted_tsc = 400000000;
    summarise(&run, &summary);
    assert_non_null(
        strstr(summary.reasons[0], "this client stood still for 400 ms, 300 ms after the begin"));
    assert_int_equal(summary.doubts[0], DOUBT_STARVED);
    run.result.standstill = (struct standstill){0};
    // So is a time in which nobody was answered.
    for (uint64_t i = 0; i < REQUESTS; i++) {
        run.samples[i].connection = (uint32_t)i % 8;
        run.samples[i].reply_tsc = run.samples[i].send_tsc + 1000;
        if (i >= 600)
            run.samples[i].reply_tsc = 1400000000 + i * 1000;
    }
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "no reply came on any connection for 800 ms"));
    assert_int_equal(summary.doubts[0], DOUBT_SILENT);
    for (uint64_t i = 0; i < REQUESTS; i++)
        run.samples[i].connection = 0;
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_OVERLOADED);
    run.result.spin_tsc = 1000;
    for (uint64_t i = 0; i < REQUESTS; i++) // a stall of 30 ms at the end is no lower rate
        run.samples[i].reply_tsc = run.samples[i].send_tsc + (i < 990 ? 1000 : 30000000);
    summarise(&run, &summary);
    assert_true(summary.ok);
    run.samples[REQUESTS - 1].reply_tsc += 300000000; // nor is one that was lost and sent again
    summarise(&run, &summary);
    assert_true(summary.ok);
    for (uint64_t i = 0; i < REQUESTS; i++) // 8 % too slow is
        run.samples[i].reply_tsc = 1000000 + (i + 1) * 1080000;
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "this client ran out of CPU"));
    assert_non_null(strstr(summary.reasons[0], "more --threads on cores of their own, agents"));
    assert_int_equal(summary.doubts[0], DOUBT_SPENT);
}

static void pauses_between_rounds_do_not_count(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (unsigned i = REQUESTS / 2; i < REQUESTS; i++) { // the second round begins 3 s later
        run.samples[i].intended_tsc += 3000000000;
        run.samples[i].send_tsc += 3000000000;
        run.samples[i].sent_tsc += 3000000000;
        run.samples[i].reply_tsc += 3000000000;
    }
    run.result.end_tsc += 3000000000;
    run.result.paused_tsc = 3000000000;
    summarise(&run, &summary);
    assert_true(summary.ok);
    assert_true(near(summary.achieved_rate, 1000) && near(summary.spin_fraction, 0.4));
    run.result.paused_tsc = 0;
    summarise(&run, &summary);
    assert_true(near(summary.achieved_rate, 250));
    load_summary_add_reason(&summary, DOUBT_UNSURE, "and %s", "more");
    assert_string_equal(summary.reasons[summary.reason_count - 1], "and more");
    assert_int_equal(summary.doubts[summary.reason_count - 1], DOUBT_UNSURE);
}

// Whoever says one reason says the first.
static void the_reason_that_explains_the_others_is_the_first(void **state)
{
    (void)state;
    struct load_summary summary = {.ok = true};
    load_summary_add_reason(&summary, DOUBT_UNANSWERED, "%s", "not answered");
    load_summary_add_reason(&summary, DOUBT_STARVED, "%s", "no core");
    load_summary_add_reason(&summary, DOUBT_CLOSED, "%s", "no room");
    load_summary_add_reason(&summary, DOUBT_STARVED, "%s", "nor later");
    static const char *const order[] = {"no core", "nor later", "no room", "not answered"};
    assert_int_equal(summary.reason_count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_string_equal(summary.reasons[i], order[i]);
    assert_int_equal(summary.doubts[3], DOUBT_UNANSWERED);
    while (summary.reason_count < SUMMARY_REASONS) // the least important one has no room
        load_summary_add_reason(&summary, DOUBT_UNSURE, "%s", "unsure");
    load_summary_add_reason(&summary, DOUBT_DEPENDENT, "%s", "left out");
    load_summary_add_reason(&summary, DOUBT_ABSENT, "%s", "nobody");
    assert_int_equal(summary.reason_count, SUMMARY_REASONS);
    assert_string_equal(summary.reasons[0], "nobody");
    assert_string_equal(summary.reasons[SUMMARY_REASONS - 1], "unsure");
    assert_false(summary.ok);
}

static void waiting_for_room_is_said(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    run.result.delayed_by_depth = 5; // of 1000, with a depth the user chose: tolerable
    summarise(&run, &summary);
    assert_true(summary.ok);
    run.result.depth = 64;
    run.result.depth_is_cap = true; // the cap never is, where it is what they wait for
    summarise(&run, &summary);
    assert_true(summary.ok);
    run.result.counts.in_flight_max = 64;
    summarise(&run, &summary);
    assert_false(summary.ok);
    assert_non_null(strstr(summary.reasons[0], "64 in flight on each, the in-flight cap"));
    run.result.counts.in_flight_max = 20;
    run.result.delayed_by_depth = 50;
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0],
                           "at most 20 in flight on all of them, since the server took no more"));
    run.result.counts.ended = 7;
    summarise(&run, &summary);
    assert_non_null(
        strstr(summary.reasons[0], "20 in flight on all of them, which the server closed 7 times"));
    run.result.counts.ended = 0;
    run.result.depth_is_cap = false;
    run.result.cpu_ns = 1000000000; // all of its core
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "closed-loop"));
    assert_null(strstr(summary.reasons[0], "server")); // the rate was reached: it may be the client
}

static void errors_and_ends_are_said(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (unsigned i = 0; i < 20; i++)
        run.samples[i].status = SAMPLE_ERROR_REPLY;
    run.samples[20].status = SAMPLE_MISS;
    run.result.counts.replies[REPLY_VALUE] = REQUESTS - 1;
    summarise(&run, &summary);
    assert_int_equal(summary.answered, REQUESTS); // an answer, whatever it says
    assert_int_equal(summary.misses, 1);
    assert_non_null(strstr(summary.reasons[0], "20 of 1,000 replies were errors"));
    assert_int_equal(summary.doubts[0], DOUBT_ERRORS);
    strcpy(run.result.counts.first_fault.text, "\"-NOAUTH\"");
    run.result.counts.first_fault.kind = ERROR_FAILED;
    summarise(&run, &summary);
    assert_string_equal(summary.reasons[0],
                        "20 of 1,000 replies were errors; the first: \"-NOAUTH\"");
    run.result.counts.wrong_values = 20;
    summarise(&run, &summary);
    assert_int_equal(summary.reason_count, 1);
    assert_non_null(strstr(summary.reasons[0], "20 of 1,000 replies were not the value"));
    // Each kind by itself; but what answers another request's operation is of none.
    for (unsigned i = 30; i < 80; i++)
        run.samples[i].status = SAMPLE_ERROR_REPLY;
    summarise(&run, &summary);
    assert_int_equal(summary.reason_count, 2);
    assert_non_null(strstr(summary.reasons[0], "50 of 1,000 replies were errors; the first"));
    assert_non_null(strstr(summary.reasons[1], "20 of 1,000 replies were not the value"));
    run.result.counts.mismatched = 50;
    summarise(&run, &summary);
    assert_int_equal(summary.reason_count, 1);
    assert_int_equal(summary.doubts[0], DOUBT_ERRORS);
    assert_non_null(strstr(summary.reasons[0], "70 of 1,000 replies were errors, 50 of them of a "
                                               "kind that cannot answer the request"));
    make(&run);
    run.result.counts.unexpected = 10;
    summarise(&run, &summary);
    assert_true(summary.ok);
    run.result.counts.unexpected = 11;
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "11 replies came to no request"));
    make(&run);
    run.result.end = ENGINE_INTERRUPTED;
    run.result.counts.ended = run.result.counts.broken = 1;
    strcpy(run.result.counts.first_break.text, "connection 3 broke");
    summarise(&run, &summary);
    assert_int_equal(summary.reason_count, 2);
    assert_non_null(strstr(summary.reasons[0], "interrupted"));
    assert_non_null(strstr(summary.reasons[1], "connections broke: 1 of 4 connections ended"));
    assert_non_null(strstr(summary.reasons[1], "; the first: connection 3 broke"));
}

static void an_empty_cache_is_said(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    run.result.counts.replies[REPLY_VALUE] = 450; // and 100 that were stored
    for (unsigned i = 0; i < 450; i++)
        run.samples[i].status = SAMPLE_MISS;
    summarise(&run, &summary);
    assert_true(summary.ok);
    run.samples[450].status = SAMPLE_MISS;
    run.result.counts.replies[REPLY_VALUE] = 449;
    summarise(&run, &summary);
    assert_int_equal(summary.reason_count, 1);
    assert_non_null(strstr(summary.reasons[0], "451 of 900 reads found nothing"));
    assert_non_null(strstr(summary.reasons[0], "or ask a web server for what it has"));
    assert_int_equal(summary.doubts[0], DOUBT_MISSES);
}

// Closed by the server after so many requests each, in order: what opens a new one is dropped.
static void a_server_that_new_connections_do_not_reach_is_no_restart(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    struct connection_counts *counts = &run.result.counts;
    counts->ended = counts->reconnects = 78;
    counts->reconnects_failed = 20;
    counts->first_end_tsc = run.result.start_tsc + (uint64_t)(0.25 * run.result.tsc_hz);
    counts->last_reconnect_tsc = run.result.start_tsc + (uint64_t)(0.75 * run.result.tsc_hz);
    summarise(&run, &summary);
    assert_false(summary.ok);
    assert_int_equal(summary.doubts[0], DOUBT_UNOPENED);
    assert_non_null(strstr(summary.reasons[0], "connections could not be opened again at once: 78 "
                                               "times one of 4 connections ended"));
    assert_non_null(strstr(summary.reasons[0], "20 attempts failed)"));
    error_set(&counts->first_failure, ERROR_FAILED, "why");
    counts->ended = counts->reconnects = 4; // each once: it was away
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_RESTARTED);
    assert_non_null(strstr(summary.reasons[0], "20 attempts failed: why)"));
    counts->sessions.ended = 4; // it was not: the load ended them
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_UNOPENED);
    counts->sessions.ended = 0;
    counts->portless = 20; // it was not: none of them came to it
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_PORTLESS);
    assert_non_null(strstr(summary.reasons[0], "no local port was left for 20 attempts"));
    assert_int_equal(summary.doubts[1], DOUBT_UNOPENED);
}

static void a_restart_is_told_from_connections_that_end(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    struct connection_counts *counts = &run.result.counts;
    counts->ended = counts->reconnects = 4;
    summarise(&run, &summary);
    assert_true(summary.ok); // closed with nothing left to answer, and opened again
    counts->broken = counts->reconnects_failed = counts->lost[LOSS_RESET] = 1;
    counts->first_end_tsc = run.result.start_tsc + (uint64_t)(0.25 * run.result.tsc_hz);
    strcpy(counts->first_break.text, "connection 3 broke");
    summarise(&run, &summary);
    assert_false(summary.ok);
    assert_non_null(strstr(summary.reasons[0], "server restarted midway: 4 of 4 connections ended "
                                               "from 0.250 s on, 4 opened again"));
    assert_int_equal(summary.doubts[0], DOUBT_RESTARTED);
    counts->reconnects = 3; // by its listening socket, which a process that is killed closes last
    counts->given_up = 1;
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "server went away midway: 4 of 4 connections ended "
                                               "from 0.250 s on, 3 opened again"));
    counts->first_end_tsc = run.result.start_tsc - (uint64_t)(0.01 * run.result.tsc_hz);
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "4 of 4 connections ended from before the begin on, "
                                               "3 opened again"));
    counts->first_end_tsc = run.result.start_tsc + (uint64_t)(0.25 * run.result.tsc_hz);
    counts->reconnects = 4;
    counts->given_up = 0;
    // It listened all along: all broke together, or one after another for seconds.
    counts->reconnects_failed = 0;
    counts->broken = 4;
    counts->last_reconnect_tsc = run.result.start_tsc + (uint64_t)(0.5 * run.result.tsc_hz);
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_RESTARTED);
    counts->replies[REPLY_MALFORMED] = 4; // this client closed them
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_DISCONNECTED);
    counts->replies[REPLY_MALFORMED] = 0;
    counts->ended = counts->broken = counts->reconnects = 9; // each again and again
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_DISCONNECTED);
    assert_non_null(
        strstr(summary.reasons[0], "connections broke: 9 times one of 4 connections ended"));
    counts->ended = counts->broken = counts->reconnects = 4;
    counts->last_reconnect_tsc = run.result.start_tsc + (uint64_t)(4.5 * run.result.tsc_hz);
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_DISCONNECTED);
    assert_non_null(strstr(summary.reasons[0], "connections broke: 4 of 4 connections ended"));
    // Of several nodes it is said which one, if it is one.
    run.result.nodes = 3;
    strcpy(counts->broken_at, "n:7002");
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "connections broke at one node, n:7002: 4 of 4 "));
    counts->reconnects = 1;
    summarise(&run, &summary);
    assert_non_null(
        strstr(summary.reasons[0], "a node was lost, n:7002: 4 of 4 connections ended"));
    counts->broken_elsewhere = 1;
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "connections broke: 4 of 4 connections ended"));
    run.result.nodes = 0;
    counts->reconnects = 4;
    const struct load_facts facts = {
        .server = "s", .protocol = &memcached_text_protocol, .arrivals = "fixed"};
    json_t *json = load_summary_json(&summary, &run.result, &facts);
    assert_int_equal(json_integer_value(json_object_get(json, "reconnects")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "lost_by"), "reset")),
                     1);
    json_decref(json);
    counts->reconnects = 0;
    counts->given_up = 4;
    summarise(&run, &summary);
    assert_non_null(strstr(summary.reasons[0], "connections broke: 4 of 4"));
    assert_int_equal(summary.doubts[0], DOUBT_DISCONNECTED);
    assert_non_null(strstr(summary.reasons[0], "from 0.250 s on, none opened again (0 attempts "
                                               "failed), 4 given up, "));
    counts->reconnects_failed = 90; // nobody listens where it was
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_RESTARTED);
    assert_non_null(strstr(summary.reasons[0], "server went away midway: 4 of 4 connections ended "
                                               "from 0.250 s on, none opened again (90 attempts"));
}

// A queue of new connections that is too small: some are reset, some not answered for a second, and
// the others are served all along.
static void a_server_that_drops_some_connections_was_there(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    struct connection_counts *counts = &run.result.counts;
    counts->ended = counts->broken = 3; // of 4
    counts->reconnects = 2;
    counts->reconnects_failed = 5;
    counts->first_end_tsc = run.result.start_tsc + (uint64_t)(0.25 * run.result.tsc_hz);
    counts->last_reconnect_tsc = run.result.start_tsc + (uint64_t)(2.5 * run.result.tsc_hz);
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_DISCONNECTED);
    assert_non_null(strstr(summary.reasons[0], "connections broke: 3 of 4 connections ended"));
    counts->ended += counts->sessions.ended = 40; // and the load ends them, too
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_DISCONNECTED);
    counts->ended++; // all of them: it was away
    counts->broken++;
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_RESTARTED);
}

// A sentinel named another master: whose connections were opened is no failure of the first one's.
static void a_failover_is_told_first(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    struct connection_counts *counts = &run.result.counts;
    run.result.nodes = 2;
    counts->ended = counts->broken = counts->given_up = 4;
    counts->reconnects_failed = 90;
    counts->first_end_tsc = run.result.start_tsc + (uint64_t)(0.25 * run.result.tsc_hz);
    counts->redirections.failovers = (struct timed_count){1, 2000000000, 2000000000};
    counts->redirections.first_failover_tsc = counts->first_end_tsc;
    counts->redirections.connections = 4;
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_FAILED_OVER);
    assert_string_equal(summary.reasons[0],
                        "another master took over: 0.250 s after the begin, and 2.00 s passed "
                        "until it answered; 4 connections to it were opened");
    assert_int_equal(summary.doubts[1], DOUBT_RESTARTED);
    counts->redirections.failovers = (struct timed_count){2, 3000000000, 2000000000};
    summarise(&run, &summary);
    assert_string_equal(summary.reasons[0],
                        "another master took over 2 times: first 0.250 s after the begin, and at "
                        "most 2.00 s passed until it answered; 4 connections to it were opened");
}

static void kernel_stamps_make_a_network_time(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (unsigned i = 0; i < 100; i++) {
        run.samples[i].tx_ns = 5000;
        run.samples[i].rx_ns = 5000 + 30000;
        run.samples[i].tx_source = run.samples[i].rx_source = STAMP_SOFTWARE;
    }
    summarise(&run, &summary);
    assert_int_equal(summary.network.count, 100);
    assert_true(near(summary.network.us[0], 30));
    assert_int_equal(summary.stamps_software, 100);
    assert_int_equal(summary.stamps_user, 900);
}

static void nothing_at_all_is_survived(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    run.result.sample_count = 0;
    summarise(&run, &summary);
    assert_false(summary.ok);
    assert_true(isnan(summary.latency.us[0]) && isnan(summary.cpu_us_per_request));
    const struct load_facts facts = {
        .server = "s", .protocol = &memcached_text_protocol, .rate = 1000};
    json_t *json = load_summary_json(&summary, &run.result, &facts);
    assert_true(json_is_null(json_object_get(json, "cpu_us_per_request")));
    json_decref(json);
}

// While others had its core it spun for more time than it had.
static void what_a_request_took_of_a_starved_core_is_not_known(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    run.result.cpu_ns = 110000000;
    summarise(&run, &summary);
    assert_true(isnan(summary.cpu_us_per_request));
    assert_true(near(summary.core_share, 0.11));
}

// Of HTTP/2 and UDP, whose connections go on.
static void a_reply_that_is_none_is_quoted(void **state)
{
    (void)state;
    struct made_run run;
    struct load_summary summary;
    make(&run);
    for (unsigned i = 0; i < REQUESTS; i++)
        run.samples[i].status = SAMPLE_LOST;
    run.result.counts.lost[LOSS_MALFORMED] = REQUESTS;
    error_set(&run.result.counts.first_fault, ERROR_FAILED, "\"no grpc-status\"");
    summarise(&run, &summary);
    assert_int_equal(summary.doubts[0], DOUBT_ERRORS);
    assert_string_equal(
        summary.reasons[0],
        "1,000 replies, beside no others, were none that the protocol allows: their "
        "requests are lost; the first: \"no grpc-status\"");
    run.result.counts.broken = 1; // then its end says so
    summarise(&run, &summary);
    assert_int_not_equal(summary.doubts[0], DOUBT_ERRORS);
}

static void check_nothing_sent(const struct made_run *run, enum load_doubt doubt,
                               const char *expected)
{
    struct load_summary summary;
    summarise(run, &summary);
    assert_false(summary.ok);
    assert_int_equal(summary.doubts[0], doubt);
    if (!strstr(summary.reasons[0], expected))
        fail_msg("%s", summary.reasons[0]);
    assert_int_equal(summary.hindered, doubt != DOUBT_TOO_SHORT);
}

// An open loop had nothing to send; a closed one could not.
static void a_load_that_sent_nothing_says_why(void **state)
{
    (void)state;
    struct made_run run;
    make(&run);
    run.result.sample_count = 0;
    run.result.cpu_ns = 1000000000;
    check_nothing_sent(&run, DOUBT_TOO_SHORT, "the rate is too low");
    run.result.closed_loop = true;
    check_nothing_sent(&run, DOUBT_TOO_SHORT, "no connection had room for one");
    run.result.counts.streams_spent = 4;
    check_nothing_sent(&run, DOUBT_TOO_SHORT, "allowed no further stream");
    run.result.counts.streams_spent = 0;
    run.result.late_tsc = 1000000001;
    check_nothing_sent(&run, DOUBT_STARVED, "no core for so long");
    run.result.counts.unexpected = 7;
    check_nothing_sent(&run, DOUBT_SURPLUS, "replies to nothing");
    run.result.counts.ended = 4;
    check_nothing_sent(&run, DOUBT_DISCONNECTED, "no request was sent within 1.00 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_that_is_none_is_quoted),
        cmocka_unit_test(a_load_that_sent_nothing_says_why),
        cmocka_unit_test(figures_are_exact),
        cmocka_unit_test(one_is_no_plural),
        cmocka_unit_test(a_server_that_answers_nothing_is_named),
        cmocka_unit_test(the_unanswered_are_infinite),
        cmocka_unit_test(the_interval_knows_of_dependence),
        cmocka_unit_test(an_empty_cache_is_said),
        cmocka_unit_test(a_slow_server_is_no_result),
        cmocka_unit_test(pauses_between_rounds_do_not_count),
        cmocka_unit_test(the_reason_that_explains_the_others_is_the_first),
        cmocka_unit_test(waiting_for_room_is_said),
        cmocka_unit_test(errors_and_ends_are_said),
        cmocka_unit_test(a_server_that_new_connections_do_not_reach_is_no_restart),
        cmocka_unit_test(a_failover_is_told_first),
        cmocka_unit_test(a_server_that_drops_some_connections_was_there),
        cmocka_unit_test(a_restart_is_told_from_connections_that_end),
        cmocka_unit_test(kernel_stamps_make_a_network_time),
        cmocka_unit_test(nothing_at_all_is_survived),
        cmocka_unit_test(what_a_request_took_of_a_starved_core_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
