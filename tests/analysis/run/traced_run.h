// SPDX-License-Identifier: MIT
//
// A run folder with a processor trace beside its logs: a scenario's server, whose functions are
// written as Intel PT through libipt's encoder into a perf.data; and which calls are in it.
#ifndef TESTS_ANALYSIS_RUN_TRACED_RUN_H
#define TESTS_ANALYSIS_RUN_TRACED_RUN_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"
#include "base/log_file.h"
#include "profiler/clock/clock_log.h"
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
    bool has_losses;      // the recording says that it lacks something
    uint32_t other_cores; // added to the cores whose trace it is said to be
    int64_t later_ns;     // that the trace was taken than all else
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

static void write_operation(struct writer *writer, const struct operation *operation,
                            int64_t later_ns, int *stack, int *depth)
{
    writer->now = (uint64_t)(operation->ns + later_ns) * CYCLES_PER_NS;
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

static uint8_t *write_trace(const struct operations *operations, int64_t later_ns, uint64_t *bytes)
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
    writer.now =
        (uint64_t)(SCENARIO_BEGIN_NS - 500500 + later_ns) * CYCLES_PER_NS; // the thread runs
    write_psb(&writer, address_of(MAIN_LOOP));
    for (size_t i = 0; i < operations->count; i++) {
        if (depth == 1 && i % OPERATIONS_PER_PSB == 0 && i > 0)
            write_psb(&writer, address_of(MAIN_LOOP) + BEHIND_CALL);
        write_operation(&writer, &operations->items[i], later_ns, stack, &depth);
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

// 2 pieces with gaps, an error noted by perf, 1,000 records lost, and a record cut short.
static void make_losses(struct maker *maker)
{
    static const uint64_t flags[] = {PERF_AUX_PARTIAL, PERF_AUX_COLLISION, 0};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        make_record(maker, PERF_AUX, 0);
        make_u64(maker, 0);
        make_u64(maker, 0);
        make_u64(maker, flags[i]);
        make_sample_id(maker, SERVER_THREAD, SERVER_THREAD, 20, 0, 7);
    }
    make_record(maker, PERF_AUXTRACE_ERROR, 0);
    for (int i = 0; i < 6; i++)
        make_u32(maker, 0); // without a time
    make_u64(maker, 0);
    static const char message[64] = "overflow packet";
    make_bytes(maker, message, sizeof message);
    make_record_end(maker);
    make_record(maker, PERF_LOST, 0);
    make_u64(maker, 7);
    make_u64(maker, 1000);
    make_sample_id(maker, SERVER_THREAD, SERVER_THREAD, 21, 0, 7);
    make_record(maker, PERF_LOST, 0);
    make_record_end(maker);
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
        uint8_t *trace = write_trace(&run->operations[core], run->later_ns, &bytes);
        make_auxtrace(&maker, core, core + run->other_cores, 0, trace, bytes);
        run->trace_bytes += bytes;
        free(trace);
    }
    if (run->has_losses)
        make_losses(&maker);
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

static const char capture[] =
    "{\"backend\": \"intel_pt\", \"dropped\": {}, \"intel_pt\": {\"perf_data\": "
    "\"perf.data\"}}";

static int traced_run_setup(void **state)
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

static int traced_run_teardown(void **state)
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

static void traced_run_analyze(const struct traced_run *run, struct run_analysis *out)
{
    struct progress progress;
    struct error err = {0};
    progress_init(&progress, true);
    if (run_analyze(&(struct run_request){.run_dir = run->path}, &progress, out, &err) < 0)
        fail_msg("%s", err.text);
}

#endif
