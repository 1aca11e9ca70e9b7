// SPDX-License-Identifier: MIT
//
// A run folder with a processor trace beside its logs: a scenario's server, whose functions are
// written as Intel PT through libipt's encoder into a perf.data. The functions found in the lives
// of the messages are the true ones, only what they need is decoded, and the slow function is the
// verdict. The same without an events log: the kernel's stamps are in the trace.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/export/run_perfetto.h"
#include "analysis/export/run_summary.h"
#include "analysis/report/report_html.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"
#include "analysis/timeline/function_spans.h"
#include "base/log_file.h"
#include "profiler/clock_log.h"
#include "tests/analysis/export/perfetto_reader.h"
#include "tests/analysis/perf/perf_data_maker.h"

// Both headers have a struct scenario.
#define scenario pt_scenario
#include "tests/analysis/pt/pt_writer.h"
#undef scenario
#include "tests/analysis/diagnosis/scenario.h"

// --- the program: every function is the same seven bytes ----------------------------------------

enum { MAIN_LOOP, RECEIVE, WORK, INNER, SEND_REPLY, RX, DELIVER, SLEEP, WAKE, TRACED_FUNCTIONS };
static const char *const function_names[] = {"main_loop",
                                             "receive",
                                             "work",
                                             "inner",
                                             "send_reply",
                                             "tcp_v4_rcv",
                                             "sock_def_readable",
                                             "schedule_hrtimeout_range",
                                             "ep_autoremove_wake_function"};
enum { ARRIVES_BEFORE_NS = 900, DELIVERED_BEFORE_NS = 600 }; // a hand-off's end
enum { FUNCTION_BYTES = 8, BEHIND_CALL = 4, RX_THREAD = 77, OPERATIONS_PER_PSB = 8 };

// Again: return if the condition says so; call through a register; again.
static const char code_of_all[] = ".text\n.globl _start\n_start:\n"
                                  ".macro function name\n.type \\name, @function\n\\name:\n"
                                  ".byte 0x74, 0x04, 0xff, 0xd0, 0xeb, 0xfa, 0xc3, 0x90\n"
                                  ".size \\name, 8\n.endm\n";

static uint64_t address_of(int function)
{
    return USER_BASE + (uint64_t)function * FUNCTION_BYTES;
}

// --- the truth -----------------------------------------------------------------------------------

// At that time the function is called (or the innermost one returns).
struct operation {
    int64_t ns;
    int function; // -1: return
};
struct operations ARRAY_OF(struct operation);

struct true_call {
    int64_t begin, end;
    int function;
    uint16_t core;
};

struct traced_run {
    char path[200];
    struct scenario scenario;
    struct operations operations[2]; // by core
    struct ARRAY_OF(struct true_call) truth;
    uint64_t trace_bytes;
    uint32_t other_cores; // added to the cores whose trace it is said to be
};

static void add_call(struct traced_run *run, uint16_t core, int function, int64_t begin,
                     int64_t end)
{
    SCENARIO_PUSH(&run->operations[core], (struct operation){begin, function});
    SCENARIO_PUSH(&run->operations[core], (struct operation){end, -1});
}

static void call_during(struct traced_run *run, uint16_t core, int function, int64_t begin,
                        int64_t end)
{
    add_call(run, core, function, begin, end);
    SCENARIO_PUSH(&run->truth, (struct true_call){begin, end, function, core});
}

static int by_time(const void *left, const void *right)
{
    const struct operation *a = left, *b = right;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

static int by_value(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

// Where nothing is ready the thread sleeps in its wait call, until the first delivery wakes it. It
// does not run meanwhile: the timeline has this call in two pieces.
static void make_sleep(struct traced_run *run, const struct time_array *handoffs, int64_t entry,
                       int64_t exit)
{
    enum { LOOKS_NS = 300, RETURNS_NS = 500 }; // for what is ready, and then
    size_t low = 0, high = handoffs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (handoffs->items[middle] <= entry + LOOKS_NS)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == handoffs->count || exit <= entry + LOOKS_NS + RETURNS_NS)
        return;
    int64_t first = handoffs->items[low];
    add_call(run, 0, SLEEP, entry + LOOKS_NS / 2, exit - RETURNS_NS);
    call_during(run, 1, WAKE, first - DELIVERED_BEFORE_NS + 10, first - DELIVERED_BEFORE_NS + 30);
}

static void make_truth(struct traced_run *run)
{
    const struct scenario *s = &run->scenario;
    struct time_array handoffs = {0};
    for (size_t i = 0; i < s->requests.count; i++)
        SCENARIO_PUSH(&handoffs, s->requests.items[i].handoff);
    qsort(handoffs.items, handoffs.count, sizeof *handoffs.items, by_value);
    for (size_t i = 0; i < s->calls.count; i++) {
        const struct call *call = &s->calls.items[i];
        int64_t entry = (int64_t)(call->entry_tsc / CYCLES_PER_NS),
                exit = (int64_t)(call->exit_tsc / CYCLES_PER_NS);
        if (call->kind == CALL_RECEIVE || call->kind == CALL_SEND)
            call_during(run, 0, call->kind == CALL_SEND ? SEND_REPLY : RECEIVE, entry + 20,
                        exit - 20);
        else if (call->kind == CALL_WAIT)
            make_sleep(run, &handoffs, entry, exit);
    }
    for (size_t i = 0; i < s->requests.count; i++) {
        const struct scenario_request *r = &s->requests.items[i];
        call_during(run, 0, WORK, r->application + 100, r->reply - 100);
        call_during(run, 0, INNER, r->application + 200, r->reply - 200);
        call_during(run, 1, RX, r->handoff - ARRIVES_BEFORE_NS, r->handoff + 50);
        call_during(run, 1, DELIVER, r->handoff - DELIVERED_BEFORE_NS, r->handoff - 100);
    }
    array_free(&handoffs);
    for (int core = 0; core < 2; core++)
        qsort(run->operations[core].items, run->operations[core].count,
              sizeof *run->operations[core].items, by_time);
}

// --- the trace -----------------------------------------------------------------------------------

static void write_operation(struct writer *writer, const struct operation *operation, int *stack,
                            int *depth)
{
    writer->now = (uint64_t)operation->ns * CYCLES_PER_NS;
    if (operation->function < 0) {
        assert_true(*depth > 1);
        --*depth;
        write_branch(writer, true);
        write_address(writer, ppt_tip, address_of(stack[*depth - 1]) + BEHIND_CALL);
        return;
    }
    stack[(*depth)++] = operation->function;
    write_branch(writer, false);
    write_address(writer, ppt_tip, address_of(operation->function));
}

static uint8_t *write_trace(const struct operations *operations, uint64_t *bytes)
{
    struct writer writer = {.capacity = operations->count * 64 + 4096,
                            .timing = TIMING_TSC_OFTEN,
                            .ratio = NOMINAL_RATIO};
    struct pt_config config;
    int stack[32] = {MAIN_LOOP}, depth = 1;
    writer.data = malloc(writer.capacity);
    pt_config_init(&config);
    config.begin = writer.data;
    config.end = config.begin + writer.capacity;
    writer.encoder = pt_alloc_encoder(&config);
    assert_non_null(writer.encoder);
    writer.now = (uint64_t)(SCENARIO_BEGIN_NS - 500500) * CYCLES_PER_NS; // the thread runs
    write_psb(&writer, address_of(MAIN_LOOP));
    for (size_t i = 0; i < operations->count; i++) {
        if (depth == 1 && i % OPERATIONS_PER_PSB == 0 && i > 0)
            write_psb(&writer, address_of(MAIN_LOOP) + BEHIND_CALL);
        write_operation(&writer, &operations->items[i], stack, &depth);
    }
    assert_int_equal(depth, 1);
    assert_false(writer.failed);
    *bytes = writer_offset(&writer);
    pt_free_encoder(writer.encoder);
    return writer.data;
}

static void make_info(struct maker *maker)
{
    // PMU's type; clock: shift, multiplier, zero, valid; bits of TSC and no return compression;
    // switches; snapshot; per CPU; MTC's bits; CTC; CYC's bit; ratio; filter
    const uint64_t values[] = {8, 1,     1,       0, 1, 0x400, 0x800,         3, 0,
                               1, 0x200, 0x3c000, 0, 0, 0x2,   NOMINAL_RATIO, 0};
    make_record(maker, PERF_AUXTRACE_INFO, 0);
    make_u32(maker, PERF_AUXTRACE_INTEL_PT);
    make_u32(maker, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        make_u64(maker, values[i]);
    make_record_end(maker);
}

static const char *in_folder(const struct traced_run *run, const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", run->path, name);
    return path;
}

static void write_file(const struct traced_run *run, const char *name, const void *bytes,
                       size_t count)
{
    FILE *file = fopen(in_folder(run, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void make_program(const struct traced_run *run)
{
    char source[2000], command[1000];
    size_t length = (size_t)snprintf(source, sizeof source, "%s", code_of_all);
    for (int i = 0; i < TRACED_FUNCTIONS; i++)
        length += (size_t)snprintf(source + length, sizeof source - length, "function %s\n",
                                   function_names[i]);
    write_file(run, "code.S", source, length);
    snprintf(command, sizeof command,
             "cd %s && mkdir -p server/symfs/opt && cc -nostdlib -static "
             "-Wl,-Ttext=0x400000,--build-id=none -o server/symfs/opt/program code.S",
             run->path);
    assert_int_equal(system(command), 0);
}

static void make_recording(struct traced_run *run)
{
    struct maker maker = make_file();
    make_info(&maker);
    static const uint32_t threads[] = {SERVER_THREAD, RX_THREAD};
    for (size_t i = 0; i < 2; i++) {
        make_comm(&maker, threads[i], i ? "rx" : "memcached", 1, true);
        make_mmap2(&maker, threads[i], USER_BASE, 4096, 4096, "/opt/program", 2, 5);
    }
    make_switch(&maker, false, RX_THREAD, 0, 10, 1);
    for (size_t i = 0; i < run->scenario.events.count; i++) {
        const struct event *event = &run->scenario.events.items[i];
        if (event->kind == EVENT_SWITCH && event->core == 0)
            make_switch(&maker, false, event->id, 0, event->time - MONOTONIC_AHEAD_NS, 0);
    }
    for (uint32_t core = 0; core < 2; core++) {
        uint64_t bytes;
        uint8_t *trace = write_trace(&run->operations[core], &bytes);
        make_auxtrace(&maker, core, core + run->other_cores, 0, trace, bytes);
        run->trace_bytes += bytes;
        free(trace);
    }
    make_file_end(&maker);
    write_file(run, "server/perf.data", maker.bytes, maker.count);
    free(maker.bytes);
}

// --- the folder ----------------------------------------------------------------------------------

#define WRITE_LOG(run, name, kind, version, array)                                                 \
    assert_int_equal(log_write(in_folder(run, name), kind, version, sizeof *(array)->items,        \
                               (array)->items, (array)->count, 0, &err),                           \
                     0)

static void write_clock(const struct traced_run *run)
{
    struct ARRAY_OF(struct clock_reading) readings = {0};
    struct error err = {0};
    const int64_t ahead[HOST_CLOCKS] = {
        [HOST_CLOCK_MONOTONIC] = MONOTONIC_AHEAD_NS, [HOST_CLOCK_REALTIME] = REALTIME_AHEAD_NS};
    for (int64_t at = SCENARIO_BEGIN_NS / 2; at < 2 * SCENARIO_BEGIN_NS; at += 100000000)
        for (uint32_t clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS; clock++)
            SCENARIO_PUSH(&readings, (struct clock_reading){.clock = clock,
                                                            .width = 20,
                                                            .tsc = (uint64_t)at * CYCLES_PER_NS,
                                                            .ns = at + ahead[clock]});
    WRITE_LOG(run, "server/clock.tlog", LOG_CLOCK, CLOCK_LOG_VERSION, &readings);
    array_free(&readings);
}

static const char capture[] = "{\"backend\": \"intel_pt\", \"intel_pt\": {\"perf_data\": "
                              "\"perf.data\"}}";

static int setup(void **state)
{
    struct traced_run *run = calloc(1, sizeof *run);
    struct error err = {0};
    struct scenario_options options = {.requests = 20000,
                                       .connections = 16,
                                       .gap_ns = 60000,
                                       .fault = FAULT_SLOW,
                                       .faults = 20,
                                       .fault_ns = 300000,
                                       .seed = 11};
    struct scenario *s = &run->scenario;
    snprintf(run->path, sizeof run->path, "/tmp/traced-run-XXXXXX");
    assert_non_null(mkdtemp(run->path));
    assert_int_equal(mkdir(in_folder(run, "client"), 0755), 0);
    assert_int_equal(mkdir(in_folder(run, "server"), 0755), 0);
    scenario_build(s, &options);
    WRITE_LOG(run, "client/samples.tlog", LOG_SAMPLES, SAMPLE_LOG_VERSION, &s->samples);
    WRITE_LOG(run, "client/connections.tlog", LOG_CONNECTIONS, 1, &s->client);
    WRITE_LOG(run, "server/events.tlog", LOG_EVENTS, EVENT_LOG_VERSION, &s->events);
    WRITE_LOG(run, "server/sockets.tlog", LOG_CONNECTIONS, 1, &s->sockets);
    WRITE_LOG(run, "server/calls.tlog", LOG_CALLS, MESSAGE_LOG_VERSION, &s->calls);
    WRITE_LOG(run, "server/connections.tlog", LOG_CONNECTIONS, 1, &s->shim);
    write_clock(run);
    write_file(run, "server/capture.json", capture, strlen(capture));
    make_program(run);
    make_truth(run);
    make_recording(run);
    *state = run;
    return 0;
}

static int teardown(void **state)
{
    struct traced_run *run = *state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", run->path);
    assert_int_equal(system(command), 0);
    scenario_free(&run->scenario);
    for (int core = 0; core < 2; core++)
        array_free(&run->operations[core]);
    array_free(&run->truth);
    free(run);
    return 0;
}

static void analyze(const struct traced_run *run, struct run_analysis *out)
{
    struct progress progress;
    struct error err = {0};
    progress_init(&progress, true);
    if (run_analyze(&(struct run_request){.run_dir = run->path}, &progress, out, &err) < 0)
        fail_msg("%s", err.text);
}

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
    analyze(run, &found);
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
    analyze(run, &found);
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
    analyze(run, &found);
    assert_non_null(strstr(found.evidence.trace.problem, "perf.data"));
    assert_false(found.evidence.has_events);
    assert_int_equal(found.lifetimes.states[LIFETIME_WHOLE], 0);
    run_analysis_free(&found);
}

// --- the same for Perfetto -----------------------------------------------------------------------

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
    analyze(run, &found);
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
    analyze(run, &found);
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

static void a_trace_that_cannot_be_read_is_told(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    write_file(run, "server/perf.data", "PERFILE2 and no more", 20);
    analyze(run, &found);
    assert_false(found.evidence.trace.present);
    assert_non_null(strstr(found.evidence.trace.problem, "perf.data"));
    assert_true(found.findings.verdict_available); // contexts are enough for one
    assert_null(strstr(found.findings.verdict, "inner"));
    run_analysis_free(&found);
    unlink(in_folder(run, "server/perf.data"));
    analyze(run, &found);
    assert_non_null(strstr(found.evidence.trace.problem, "server/perf.data is not there"));
    run_analysis_free(&found);
    static const char outside[] = "{\"intel_pt\": {\"perf_data\": \"../x\"}}";
    write_file(run, "server/capture.json", outside, strlen(outside));
    analyze(run, &found);
    assert_non_null(strstr(found.evidence.trace.problem, "not a file's name"));
    run_analysis_free(&found);
}

static bool file_has(const char *path, const char *words)
{
    char line[8192];
    bool found = false;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (!found && fgets(line, sizeof line, file))
        found = strstr(line, words) != NULL;
    fclose(file);
    return found;
}

// The recording is of cores that the server was not on.
static void a_trace_that_shows_nothing_is_told(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    struct error err = {0};
    static const char nothing[] = "functions are N/A: the processor's trace shows nothing of the "
                                  "slow messages'";
    static const char by_itself[] = "{\"backend\": \"intel_pt\", \"asked\": \"auto\", "
                                    "\"intel_pt\": {\"perf_data\": \"perf.data\"}}";
    analyze(run, &found);
    assert_true(run_is_conclusive(&found));
    assert_true(found.evidence.trace.slow_ns > 0);
    assert_true(found.evidence.trace.slow_traced_ns >= 0.999 * found.evidence.trace.slow_ns);
    assert_true(found.evidence.trace.slow_traced_ns <= found.evidence.trace.slow_ns);
    assert_non_null(
        strstr(found.findings.verdict, "nothing was dropped; functions are known for "));
    run_analysis_free(&found);

    run->other_cores = 6;
    make_recording(run);
    analyze(run, &found);
    print_message("%s\n", found.findings.verdict);
    assert_non_null(strstr(found.findings.verdict, nothing));
    assert_null(strstr(found.findings.verdict, "nothing was dropped"));
    assert_true(found.findings.verdict_available); // contexts are enough for one
    assert_false(run_is_conclusive(&found));
    assert_int_equal(report_write_html(&found, in_folder(run, "report.html"), &err), 0);
    assert_true(file_has(in_folder(run, "report.html"), "\"lack\":\"the processor"));
    json_t *trace = run_summary_trace(&found.evidence.trace);
    assert_true(json_is_true(json_object_get(trace, "asked")));
    assert_non_null(strstr(json_string_value(json_object_get(trace, "lack")), "shows nothing"));
    assert_true(json_number_value(json_object_get(trace, "slow_traced_ns")) == 0);
    json_decref(trace);
    run_analysis_free(&found);

    write_file(run, "server/capture.json", by_itself, strlen(by_itself));
    analyze(run, &found);
    assert_non_null(strstr(found.findings.verdict, nothing));
    assert_true(run_is_conclusive(&found)); // nobody asked for it by name
    run_analysis_free(&found);
}

static void what_the_trace_lost_is_told(void **state)
{
    struct traced_run *run = *state;
    struct run_analysis found;
    static const char cut[] = "{\"backend\": \"intel_pt\", \"intel_pt\": {\"perf_data\": "
                              "\"perf.data\", \"truncated\": 3}}";
    write_file(run, "server/capture.json", cut, strlen(cut));
    analyze(run, &found);
    assert_non_null(strstr(found.findings.verdict, "; no record was dropped; functions are known"));
    assert_non_null(strstr(found.findings.verdict, "(3 cuts for want of buffer)"));
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
        cmocka_unit_test_setup_teardown(functions_of_a_trace_enter_the_lives, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_alone_has_the_stamps_of_the_kernel, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_is_written_for_perfetto, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_chosen_is_written_for_perfetto, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_that_cannot_be_read_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_that_shows_nothing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_trace_lost_is_told, setup, teardown),
        cmocka_unit_test(functions_are_cut_where_contexts_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
