// SPDX-License-Identifier: MIT
//
// A run with a processor trace (traced_run.h): the functions found in the lives of the messages are
// the true ones, only what they need is decoded, and the slow function is the verdict. The same
// without an events log: the kernel's stamps are in the trace.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/export/run_summary.h"
#include "analysis/report/page/report_html.h"
#include "analysis/timeline/function_spans.h"
#include "tests/analysis/report/page_read.h"
#include "tests/analysis/run/traced_run.h"

// --- what is found -------------------------------------------------------------------------------

static void assert_well_formed(const struct core_timeline *core)
{
    const struct span *open[UINT8_MAX + 1];
    for (size_t i = 0; i < core->spans.count; i++) {
        const struct span *span = &core->spans.items[i];
        assert_true(span->end_ns >= span->begin_ns);
        assert_true(i == 0 || span->begin_ns >= span[-1].begin_ns);
        assert_true(i == 0 || span->depth <= span[-1].depth + 1);
        if (span->depth > 0) {
            assert_true(open[span->depth - 1]->end_ns >= span->end_ns);
            assert_true(open[span->depth - 1]->begin_ns <= span->begin_ns);
            assert_ptr_equal(&core->spans.items[core_timeline_parent(core, (uint32_t)i)],
                             open[span->depth - 1]);
        }
        open[span->depth] = span;
    }
}

static bool near(int64_t a, int64_t b)
{
    return a - b <= 2 && b - a <= 2; // converting rounds
}

static bool is_in_timeline(const struct run_analysis *found, const struct true_call *call)
{
    const struct core_timeline *core = host_timeline_core(&found->evidence.server, call->core);
    for (size_t i = 0; i < core->spans.count; i++) {
        const struct span *span = &core->spans.items[i];
        if (span->kind == SPAN_FUNCTION && near(span->begin_ns, call->begin) &&
            near(span->end_ns, call->end) && !(span->id & SPAN_ID_CUT) &&
            strcmp(found->evidence.server.names.items[span->name],
                   function_names[call->function]) == 0)
            return true;
    }
    return false;
}

// Each true call in the life of an explained message is there, whole and under its name.
static size_t check_lives(const struct traced_run *run, const struct run_analysis *found)
{
    const struct diagnosis *diagnosis = &found->findings.diagnoses.items[0];
    size_t checked = 0;
    for (size_t m = 0; m < diagnosis->messages.count; m++) {
        const struct lifetime *life =
            &found->lifetimes.all.items[diagnosis->messages.items[m].lifetime];
        for (size_t i = 0; i < run->truth.count; i++) {
            const struct true_call *call = &run->truth.items[i];
            if (call->begin < life->stamp_ns[STAMP_NIC] ||
                call->end > life->stamp_ns[STAMP_SERVER_TX])
                continue;
            if (!is_in_timeline(found, call))
                fail_msg("%s on core %u [%" PRId64 ", %" PRId64 "] is missing",
                         function_names[call->function], call->core, call->begin, call->end);
            checked++;
        }
    }
    return checked;
}

// And no function is there that was not called, but for pieces of the loop around all.
static size_t check_functions(const struct traced_run *run, const struct run_analysis *found)
{
    size_t functions = 0, wrong = 0;
    for (size_t c = 0; c < found->evidence.server.cores.count; c++) {
        const struct core_timeline *core = &found->evidence.server.cores.items[c];
        for (size_t i = 0; i < core->spans.count; i++) {
            const struct span *span = &core->spans.items[i];
            if (span->kind != SPAN_FUNCTION || span->id & SPAN_ID_CUT ||
                strcmp(found->evidence.server.names.items[span->name], function_names[SLEEP]) == 0)
                continue;
            bool true_one = false;
            for (size_t k = 0; k < run->truth.count && !true_one; k++)
                true_one = run->truth.items[k].core == core->core &&
                           near(run->truth.items[k].begin, span->begin_ns) &&
                           near(run->truth.items[k].end, span->end_ns);
            wrong += !true_one;
            functions++;
        }
    }
    assert_int_equal(wrong, 0);
    return functions;
}

// How much of the time with known calls a side's messages spent in a function, and in what it
// called.
static double share_in_calls(const struct run_analysis *found, const char *name, int side)
{
    const struct call_node_array *calls = &found->findings.diagnoses.items[0].views.calls;
    double ns = 0;
    for (size_t i = 1; i < calls->count; i++)
        if (calls->items[i].kind == SPAN_FUNCTION &&
            strcmp(found->evidence.server.names.items[calls->items[i].name], name) == 0)
            ns += calls->items[i].ns[side];
    return ns / calls->items[0].ns[side];
}

static void functions_of_a_trace_enter_the_lives(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    traced_run_analyze(run, &found);
    print_message("%s\n", found.findings.verdict);
    print_message("decoded %" PRIu64 " of %" PRIu64 " bytes for %" PRIu64 " messages, %" PRIu64
                  " functions\n",
                  found.evidence.trace.decoded, found.evidence.trace.bytes,
                  found.evidence.trace.messages, found.evidence.trace.functions);
    assert_string_equal(found.evidence.trace.problem, "");
    assert_true(found.evidence.trace.present);
    assert_int_equal(found.evidence.trace.errors, 0);
    assert_int_equal(found.evidence.trace.streams, 2);
    assert_int_equal(found.evidence.trace.bytes, run->trace_bytes);
    assert_true(found.evidence.trace.messages < run->scenario.requests.count / 20);
    assert_true(found.evidence.trace.decoded > 0 &&
                found.evidence.trace.decoded < found.evidence.trace.bytes / 4);
    assert_non_null(strstr(found.findings.verdict, "inner slower (A)"));
    for (size_t c = 0; c < found.evidence.server.cores.count; c++)
        assert_well_formed(&found.evidence.server.cores.items[c]);
    assert_true(check_lives(run, &found) > 100);
    assert_true(check_functions(run, &found) > 100);
    // The events' hand-off is the delivery's end.
    const struct trace_stamps *stamps = &found.evidence.trace.stamps;
    assert_true(stamps->handoff.compared > 10 &&
                stamps->arrival.compared == stamps->handoff.compared);
    assert_int_equal(stamps->unseen, 0);
    assert_true(near((int64_t)stamps->handoff.p50_ns, -DELIVERED_BEFORE_NS));
    assert_true(near((int64_t)stamps->handoff.most_ns, -DELIVERED_BEFORE_NS));
    assert_true(stamps->arrival.least_ns > 0);
    // The slow function stands out among the calls of slow messages, also in who called it.
    double slow = share_in_calls(&found, "inner", VIEW_SLICE);
    assert_true(slow > 0.5 && slow > 2 * share_in_calls(&found, "inner", VIEW_REFERENCE));
    assert_true(share_in_calls(&found, "work", VIEW_SLICE) >= slow);
    run_analysis_free(&found);
}

// --- a trace alone -------------------------------------------------------------------------------

// Each stamp that is there is the true one.
static size_t check_stamps(const struct traced_run *run, const struct run_analysis *found)
{
    size_t known = 0;
    for (size_t i = 0; i < found->lifetimes.all.count; i++) {
        const struct lifetime *life = &found->lifetimes.all.items[i];
        int64_t handoff = run->scenario.requests.items[life->request].handoff;
        assert_int_equal(lifetime_has(life, STAMP_NIC), lifetime_has(life, STAMP_HANDOFF));
        if (!lifetime_has(life, STAMP_HANDOFF)) {
            assert_true(life->merged >> STAMP_HANDOFF & 1);
            continue;
        }
        if (!near(life->stamp_ns[STAMP_HANDOFF], handoff - DELIVERED_BEFORE_NS))
            fail_msg("request %zu: M(h) %" PRId64 " and not %" PRId64, i,
                     life->stamp_ns[STAMP_HANDOFF], handoff - DELIVERED_BEFORE_NS);
        assert_true(near(life->stamp_ns[STAMP_NIC], handoff - ARRIVES_BEFORE_NS));
        assert_int_equal(life->stamp_core[STAMP_HANDOFF], 1);
        known++;
    }
    return known;
}

static void a_trace_alone_has_the_stamps_of_the_kernel(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    unlink(in_folder(run, "server/events.tlog"));
    unlink(in_folder(run, "server/sockets.tlog"));
    traced_run_analyze(run, &found);
    print_message("%s\n", found.findings.verdict);
    print_message("%" PRIu64 " hand-offs known, %" PRIu64 " not\n", found.evidence.trace.handoffs,
                  found.evidence.trace.handoffs_unknown);
    size_t requests = run->scenario.requests.count;
    assert_int_equal(found.evidence.trace.handoffs + found.evidence.trace.handoffs_unknown,
                     requests);
    assert_int_equal(check_stamps(run, &found), found.evidence.trace.handoffs);
    assert_true(found.evidence.trace.handoffs_unknown < requests / 100);
    assert_true(found.findings.verdict_available);
    assert_non_null(strstr(found.findings.verdict, "inner slower (A)"));
    assert_non_null(strstr(found.findings.verdict, "M(n) and M(h) are from the processor's trace"));
    run_analysis_free(&found);
    write_file(run, "server/perf.data", "PERFILE2 and no more", 20);
    traced_run_analyze(run, &found);
    assert_non_null(strstr(found.evidence.trace.problem, "perf.data"));
    assert_false(found.evidence.has_events);
    assert_int_equal(found.lifetimes.states[LIFETIME_WHOLE], requests); // by the shim
    assert_int_equal(found.lifetimes.join.without_arrivals, requests);
    assert_false(found.findings.verdict_available);
    run_analysis_free(&found);
}

// --- what is said of a trace ---------------------------------------------------------------------

static void a_trace_that_cannot_be_read_is_told(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    write_file(run, "server/perf.data", "PERFILE2 and no more", 20);
    traced_run_analyze(run, &found);
    assert_false(found.evidence.trace.present);
    assert_non_null(strstr(found.evidence.trace.problem, "perf.data"));
    assert_true(found.findings.verdict_available); // contexts are enough for one
    assert_null(strstr(found.findings.verdict, "inner"));
    run_analysis_free(&found);
    unlink(in_folder(run, "server/perf.data"));
    traced_run_analyze(run, &found);
    assert_non_null(strstr(found.evidence.trace.problem, "server/perf.data is not there"));
    run_analysis_free(&found);
    static const char outside[] = "{\"intel_pt\": {\"perf_data\": \"../x\"}}";
    write_file(run, "server/capture.json", outside, strlen(outside));
    traced_run_analyze(run, &found);
    assert_non_null(strstr(found.evidence.trace.problem, "not a file's name"));
    run_analysis_free(&found);
}

// By its time: the clock log's ends before it begins. Without events nothing of it is taken either.
static void a_trace_of_another_run_is_told(void **state)
{
    struct traced_run *run = *state;
    static const char why[] = "the trace is of another run than server/clock.tlog, all of it at "
                              "least ";
    struct run_analysis found;
    run->later_ns = 5 * SCENARIO_BEGIN_NS;
    make_recording(run);
    traced_run_analyze(run, &found);
    print_message("%s\n", found.evidence.trace.problem);
    assert_false(found.evidence.trace.present);
    assert_non_null(strstr(found.evidence.trace.problem, why));
    assert_non_null(strstr(found.findings.verdict, why));
    assert_true(found.findings.verdict_available); // contexts are enough for one
    assert_false(run_is_conclusive(&found));       // what was asked for by name is not there
    run_analysis_free(&found);
    unlink(in_folder(run, "server/events.tlog"));
    unlink(in_folder(run, "server/sockets.tlog"));
    traced_run_analyze(run, &found);
    assert_non_null(strstr(found.evidence.trace.problem, why));
    assert_int_equal(found.evidence.trace.handoffs, 0);
    assert_false(found.findings.verdict_available);
    run_analysis_free(&found);
}

// The recording is of cores that the server was not on.
// With a request each 60 us the call that is closest to a hand-off is another message's. Of many
// messages the true one is not in what is decoded, so how far the clock is off is known about.
static void a_trace_with_another_clock_is_told(void **state)
{
    enum { LATER_NS = 200000, ABOUT_NS = 15000 };
    struct traced_run *run = *state;
    struct run_analysis found;
    run->later_ns = LATER_NS;
    make_recording(run);
    traced_run_analyze(run, &found);
    print_message("%s\n", found.findings.verdict);
    double apart_ns = run_trace_apart_ns(&found.evidence.trace);
    assert_true(fabs(apart_ns - LATER_NS) < ABOUT_NS);
    assert_non_null(strstr(found.findings.verdict, "; the trace's times are some "));
    assert_non_null(
        strstr(found.findings.verdict, " behind the events', so that nothing shorter "));
    assert_true(found.findings.diagnoses.items[0].granularity_ns >= apart_ns);
    run_analysis_free(&found);
}

static void a_trace_that_shows_nothing_is_told(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    struct error err = {0};
    static const char nothing[] = "functions are N/A: the processor's trace shows nothing of the "
                                  "slow messages'";
    static const char by_itself[] = "{\"backend\": \"intel_pt\", \"asked\": \"auto\", "
                                    "\"intel_pt\": {\"perf_data\": \"perf.data\"}}";
    traced_run_analyze(run, &found);
    assert_true(run_is_conclusive(&found));
    assert_true(found.evidence.trace.slow_ns > 0);
    assert_true(found.evidence.trace.slow_traced_ns >= 0.999 * found.evidence.trace.slow_ns);
    assert_true(found.evidence.trace.slow_traced_ns <= found.evidence.trace.slow_ns);
    assert_non_null(
        strstr(found.findings.verdict, "nothing was dropped; functions are known for "));
    run_analysis_free(&found);

    run->other_cores = 6;
    make_recording(run);
    traced_run_analyze(run, &found);
    print_message("%s\n", found.findings.verdict);
    assert_non_null(strstr(found.findings.verdict, nothing));
    assert_null(strstr(found.findings.verdict, "nothing was dropped"));
    assert_true(found.findings.verdict_available); // contexts are enough for one
    assert_false(run_is_conclusive(&found));
    assert_int_equal(report_write_html(&found, in_folder(run, "report.html"), &err), 0);
    char *page = page_read(in_folder(run, "report.html")), *data = page_read_data(page);
    assert_non_null(strstr(data, "\"lack\":\"the processor"));
    free(data);
    free(page);
    json_t *trace = run_summary_trace(&found.evidence.trace);
    assert_true(json_is_true(json_object_get(trace, "asked")));
    assert_non_null(strstr(json_string_value(json_object_get(trace, "lack")), "shows nothing"));
    assert_true(json_number_value(json_object_get(trace, "slow_traced_ns")) == 0);
    json_decref(trace);
    run_analysis_free(&found);

    write_file(run, "server/capture.json", by_itself, strlen(by_itself));
    traced_run_analyze(run, &found);
    assert_non_null(strstr(found.findings.verdict, nothing));
    assert_true(run_is_conclusive(&found)); // nobody asked for it by name
    run_analysis_free(&found);
}

static void what_the_trace_lost_is_told(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    static const char cut[] =
        "{\"backend\": \"intel_pt\", \"dropped\": {}, \"intel_pt\": {\"perf_data\": "
        "\"perf.data\", \"truncated\": 3}}";
    write_file(run, "server/capture.json", cut, strlen(cut));
    traced_run_analyze(run, &found);
    assert_non_null(strstr(found.findings.verdict, "; no record was dropped; functions are known"));
    assert_non_null(strstr(found.findings.verdict, "(3 cuts for want of buffer)"));
    run_analysis_free(&found);

    run->has_losses = true;
    make_recording(run);
    traced_run_analyze(run, &found);
    assert_non_null(strstr(found.findings.verdict,
                           "(3 cuts for want of buffer, 2 pieces with gaps, 1 error noted by perf, "
                           "1,000 records lost by perf, 1 malformed record)"));
    json_t *trace = run_summary_trace(&found.evidence.trace);
    assert_int_equal(json_integer_value(json_object_get(trace, "gaps")), 2);
    assert_int_equal(json_integer_value(json_object_get(trace, "perf_errors")), 1);
    assert_int_equal(json_integer_value(json_object_get(trace, "perf_lost")), 1000);
    assert_int_equal(json_integer_value(json_object_get(trace, "malformed")), 1);
    json_decref(trace);
    run_analysis_free(&found);
}

// --- functions into contexts ---------------------------------------------------------------------

static void add_span(struct span_array *to, enum span_kind kind, int64_t begin, int64_t end,
                     unsigned depth)
{
    SCENARIO_PUSH(to, (struct span){.begin_ns = begin,
                                    .end_ns = end,
                                    .name = (uint32_t)(begin * 1000 + end) & SPAN_NAMES,
                                    .kind = kind,
                                    .depth = (uint8_t)depth});
}

static void assert_piece(const struct core_timeline *core, size_t index, enum span_kind kind,
                         int64_t begin, int64_t end, unsigned depth, bool cut)
{
    assert_true(index < core->spans.count);
    const struct span *span = &core->spans.items[index];
    assert_int_equal(span->kind, kind);
    assert_int_equal(span->begin_ns, begin);
    assert_int_equal(span->end_ns, end);
    assert_int_equal(span->depth, depth);
    assert_int_equal(span->id & SPAN_ID_CUT, cut ? SPAN_ID_CUT : 0);
}

static void functions_are_cut_where_contexts_are(void **state)
{
    (void)state;
    struct core_timeline core = {0};
    struct span_array functions = {0};
    struct error err = {0};
    add_span(&core.spans, SPAN_TASK, 0, 100, 0);
    add_span(&core.spans, SPAN_IRQ, 30, 40, 1); // begins inside 20-35 and 10-60
    add_span(&core.spans, SPAN_IDLE, 100, 200, 0);
    add_span(&functions, SPAN_FUNCTION, 10, 60, 0);
    add_span(&functions, SPAN_FUNCTION, 20, 35, 0);
    add_span(&functions, SPAN_FUNCTION, 50, 50, 0); // no time at all
    add_span(&functions, SPAN_FUNCTION, 70, 120, 0);
    add_span(&functions, SPAN_FUNCTION, 80, 110, 0);
    assert_int_equal(core_timeline_add_functions(&core, &functions, &err), 0);
    assert_int_equal(core.spans.count, 10);
    assert_piece(&core, 0, SPAN_TASK, 0, 100, 0, false);
    assert_piece(&core, 1, SPAN_FUNCTION, 10, 60, 1, false);
    assert_piece(&core, 2, SPAN_FUNCTION, 20, 30, 2, true);
    assert_piece(&core, 3, SPAN_IRQ, 30, 40, 2, false);
    assert_piece(&core, 4, SPAN_FUNCTION, 30, 35, 3, true);
    assert_piece(&core, 5, SPAN_FUNCTION, 70, 100, 1, true);
    assert_piece(&core, 6, SPAN_FUNCTION, 80, 100, 2, true);
    assert_piece(&core, 7, SPAN_IDLE, 100, 200, 0, false);
    assert_piece(&core, 8, SPAN_FUNCTION, 100, 120, 1, true);
    assert_piece(&core, 9, SPAN_FUNCTION, 100, 110, 2, true);
    assert_well_formed(&core);
    array_free(&core.spans);
    array_free(&core.enclosing);
    array_free(&functions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_of_a_trace_enter_the_lives, traced_run_setup,
                                        traced_run_teardown),
        cmocka_unit_test_setup_teardown(a_trace_alone_has_the_stamps_of_the_kernel,
                                        traced_run_setup, traced_run_teardown),
        cmocka_unit_test_setup_teardown(a_trace_that_cannot_be_read_is_told, traced_run_setup,
                                        traced_run_teardown),
        cmocka_unit_test_setup_teardown(a_trace_of_another_run_is_told, traced_run_setup,
                                        traced_run_teardown),
        cmocka_unit_test_setup_teardown(a_trace_with_another_clock_is_told, traced_run_setup,
                                        traced_run_teardown),
        cmocka_unit_test_setup_teardown(a_trace_that_shows_nothing_is_told, traced_run_setup,
                                        traced_run_teardown),
        cmocka_unit_test_setup_teardown(what_the_trace_lost_is_told, traced_run_setup,
                                        traced_run_teardown),
        cmocka_unit_test(functions_are_cut_where_contexts_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
