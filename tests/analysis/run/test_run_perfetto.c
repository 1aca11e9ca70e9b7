// SPDX-License-Identifier: MIT
//
// A run with a processor trace (traced_run.h), written for Perfetto and read back: whole, and what
// was chosen of it.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/export/run_perfetto.h"
#include "tests/analysis/export/perfetto_reader.h"
#include "tests/analysis/run/traced_run.h"

// The slices of a core's track are its spans, in the same order.
static size_t check_core_track(const struct run_analysis *found, const struct core_timeline *core,
                               const struct read_trace *read)
{
    size_t next = 0;
    for (size_t i = 0; i < read->slices.count; i++) {
        const struct read_slice *slice = &read->slices.items[i];
        if (slice->track != run_perfetto_core_track(core->core))
            continue;
        assert_true(next < core->spans.count);
        const struct span *span = &core->spans.items[next++];
        assert_int_equal(slice->begin, span->begin_ns);
        assert_int_equal(slice->end, span->end_ns);
        assert_int_equal(slice->depth, span->depth);
        assert_string_equal(slice->name, found->evidence.server.names.items[span->name]);
        assert_string_equal(slice->category, span_kind_word(span->kind));
    }
    assert_int_equal(next, core->spans.count);
    return next;
}

// From the send to the call that received, to the call that answered, to the reply.
static void check_flows(const struct run_analysis *found, const struct read_trace *read)
{
    size_t lives = found->lifetimes.all.count + 2;
    unsigned *stages = calloc(lives, sizeof *stages), *calls = calloc(lives, sizeof *calls);
    size_t requests = 0;
    for (size_t i = 0; i < read->slices.count; i++) {
        const struct read_slice *slice = &read->slices.items[i];
        requests += strcmp(slice->category, "request") == 0;
        assert_true(slice->flow <= found->lifetimes.all.count);
        stages[slice->flow] += strcmp(slice->category, "stage") == 0;
        calls[slice->flow] += strcmp(slice->category, "socket call") == 0;
    }
    assert_int_equal(requests, found->lifetimes.all.count);
    for (size_t i = 1; i <= found->lifetimes.all.count; i++) {
        assert_int_equal(stages[i], 2);
        assert_int_equal(calls[i], 2);
    }
    free(stages);
    free(calls);
}

static void check_stages(const struct run_analysis *found, const struct read_trace *read)
{
    double sliced = 0, wanted = 0;
    for (size_t i = 0; i < read->slices.count; i++)
        if (strcmp(read->slices.items[i].category, "stage") == 0)
            sliced += (double)(read->slices.items[i].end - read->slices.items[i].begin);
    for (size_t i = 0; i < found->lifetimes.all.count; i++)
        wanted += found->lifetimes.all.items[i].latency_ns;
    assert_true(sliced == wanted); // stages add up to latencies
}

// As many requests as came have left the server in the end, and none leaves before it came; those
// that were due are all in the rate.
static void check_counters(const struct run_analysis *found, const struct read_trace *read)
{
    int64_t due = 0, queue = -1;
    size_t changes = 0;
    for (size_t i = 0; i < read->values.count; i++) {
        const struct read_value *value = &read->values.items[i];
        if (value->track == RUN_PERFETTO_RATE_TRACK)
            due += value->value / 100;
        if (value->track != RUN_PERFETTO_QUEUE_TRACK)
            continue;
        changes++;
        queue = value->value;
        assert_true(queue >= 0);
    }
    assert_int_equal(queue, 0);
    assert_int_equal(changes, 2 * found->lifetimes.all.count);
    assert_int_equal(due, found->lifetimes.all.count);
}

// What went on while one of the slow messages was under way, and nothing else.
static void what_was_chosen_is_written_for_perfetto(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    struct perfetto_moments moments;
    struct error err = {0};
    char path[300];
    size_t wanted = 0, requests = 0, spans = 0, of_all = 0;
    traced_run_analyze(run, &found);
    snprintf(path, sizeof path, "%s/slice.pftrace", run->path);
    assert_int_equal(run_perfetto_write(&found, PERFETTO_MESSAGES, path, &err), 0);
    struct read_trace read = read_perfetto(path);
    if (read.wrong)
        fail_msg("%s", read.wrong);
    assert_int_equal(perfetto_moments_of(&found, PERFETTO_MESSAGES, &moments), 0);
    assert_true(moments.spans.count > 0);
    for (size_t i = 0; i < found.lifetimes.all.count; i++) {
        const struct lifetime *life = &found.lifetimes.all.items[i];
        wanted += perfetto_moments_have(&moments, life->stamp_ns[STAMP_INTENDED],
                                        life->stamp_ns[STAMP_REPLY_READ]);
    }
    for (size_t i = 0; i < read.slices.count; i++) {
        const struct read_slice *slice = &read.slices.items[i];
        requests += strcmp(slice->category, "request") == 0;
        spans += slice->track >> 40 == 1;
        assert_true(strcmp(slice->category, "stage") == 0 ||
                    perfetto_moments_have(&moments, (int64_t)slice->begin, (int64_t)slice->end));
    }
    for (size_t c = 0; c < found.evidence.server.cores.count; c++)
        of_all += found.evidence.server.cores.items[c].spans.count;
    assert_int_equal(requests, wanted);
    assert_true(requests > 0 && requests < found.lifetimes.all.count);
    assert_true(spans > 0 && spans < of_all);
    for (size_t i = 1; i < moments.spans.count; i++)
        assert_true(moments.spans.items[i].begin_ns > moments.spans.items[i - 1].end_ns);
    array_free(&moments.spans);
    read_trace_free(&read);
    run_analysis_free(&found);
}

static void a_run_is_written_for_perfetto(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    struct error err = {0};
    char path[300];
    size_t spans = 0;
    traced_run_analyze(run, &found);
    // One of each kind, as far as the spans go.
    for (size_t c = 0; c < found.evidence.server.cores.count; c++)
        for (size_t i = 0; i < found.evidence.server.cores.items[c].spans.count; i++)
            found.evidence.server.cores.items[c].spans.items[i].kind =
                (enum span_kind)(i % SPAN_KINDS);
    snprintf(path, sizeof path, "%s/run.pftrace", run->path);
    assert_int_equal(run_perfetto_write(&found, PERFETTO_RUN, path, &err), 0);
    struct read_trace read = read_perfetto(path);
    if (read.wrong)
        fail_msg("%s", read.wrong);
    for (size_t c = 0; c < found.evidence.server.cores.count; c++)
        spans += check_core_track(&found, &found.evidence.server.cores.items[c], &read);
    check_flows(&found, &read);
    check_stages(&found, &read);
    check_counters(&found, &read);
    print_message("%zu spans, %zu slices, %" PRIu64 " packets\n", spans, read.slices.count,
                  read.packets);
    assert_true(run_perfetto_write(&found, PERFETTO_RUN, "/nowhere/at/all", &err) < 0);
    read_trace_free(&read);
    run_analysis_free(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_is_written_for_perfetto, traced_run_setup,
                                        traced_run_teardown),
        cmocka_unit_test_setup_teardown(what_was_chosen_is_written_for_perfetto, traced_run_setup,
                                        traced_run_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
