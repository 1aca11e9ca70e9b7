// SPDX-License-Identifier: MIT
#include "analysis/export/run_perfetto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/export/perfetto.h"
#include "base/array.h"

enum { CORES_TRACK = 1, THREADS_TRACK = 2, MESSAGES_TRACK = 3, FULL_BYTES = 1 << 20 };

struct run_export {
    const struct run_analysis *run;
    struct perfetto *file;
    struct perfetto_sequence sequence;
    struct perfetto_moments moments; // that are to be seen
    struct error *err;
    int result;
};

// Called after each slice: writes the sequence to the file when it is large enough.
static void flush_full(struct run_export *export)
{
    if (export->result == 0 && export->sequence.packets.count > FULL_BYTES)
        export->result = perfetto_flush(export->file, &export->sequence, export->err);
}

static void fail_memory(struct run_export *export)
{
    if (export->result == 0)
        export->result = error_set(export->err, ERROR_FAILED, "out of memory for the trace");
}

// --- cores -------------------------------------------------------------------------------------

static uint64_t name_of_span(struct run_export *export, uint64_t *names, const struct span *span)
{
    const struct name_array *all = &export->run->evidence.server.names;
    if (span->name >= all->count)
        return 0;
    if (names[span->name] == 0)
        names[span->name] = perfetto_name(&export->sequence, all->items[span->name]);
    return names[span->name];
}

static void write_core(struct run_export *export, const struct core_timeline *core, uint64_t *names,
                       const uint64_t *categories)
{
    int64_t open[UINT8_MAX + 1];
    unsigned depth = 0;
    uint64_t track = run_perfetto_core_track(core->core);
    for (size_t i = 0; i <= core->spans.count && export->result == 0; i++) {
        const struct span *span = i < core->spans.count ? &core->spans.items[i] : NULL;
        if (span && !perfetto_moments_have(&export->moments, span->begin_ns, span->end_ns))
            continue;
        while (depth > (span ? span->depth : 0))
            perfetto_end(&export->sequence, track, (uint64_t)open[--depth]);
        if (!span)
            break;
        struct perfetto_note note = {"thread", span->id};
        const struct perfetto_slice slice = {.track = track,
                                             .time_ns = (uint64_t)span->begin_ns,
                                             .name = name_of_span(export, names, span),
                                             .category = categories[span->kind],
                                             .notes = &note,
                                             .note_count = span->kind == SPAN_TASK};
        perfetto_begin(&export->sequence, &slice);
        open[depth++] = span->end_ns;
        flush_full(export);
    }
}

static void write_cores(struct run_export *export)
{
    const struct host_timeline *server = &export->run->evidence.server;
    uint64_t categories[SPAN_KINDS];
    uint64_t *names = calloc(server->names.count + 1, sizeof *names);
    if (!names) {
        fail_memory(export);
        return;
    }
    for (int kind = 0; kind < SPAN_KINDS; kind++)
        categories[kind] =
            perfetto_category(&export->sequence, span_kind_word((enum span_kind)kind));
    perfetto_track(&export->sequence, CORES_TRACK, 0, "server cores", 1);
    for (size_t i = 0; i < server->cores.count; i++) {
        const struct core_timeline *core = &server->cores.items[i];
        char name[32];
        snprintf(name, sizeof name, "core %u", core->core);
        perfetto_track(&export->sequence, run_perfetto_core_track(core->core), CORES_TRACK, name,
                       core->core);
        write_core(export, core, names, categories);
    }
    free(names);
}

// --- threads -----------------------------------------------------------------------------------

struct call_flow {
    uint32_t call;
    uint64_t flow;
};
struct call_flows ARRAY_OF(struct call_flow);

static int by_call(const void *left, const void *right)
{
    const struct call_flow *a = left, *b = right;
    return order_of(a->call, b->call) ?: order_of(a->flow, b->flow);
}

// Which requests each call received or answered.
static struct call_flows flows_of_calls(struct run_export *export)
{
    const struct lifetime_array *lives = &export->run->lifetimes.all;
    struct call_flows flows = {0};
    for (size_t i = 0; i < lives->count; i++) {
        const struct lifetime *life = &lives->items[i];
        const uint32_t calls[] = {life->receive_call, life->send_call};
        for (int k = 0; k < 2; k++)
            if (life->state != LIFETIME_UNANSWERED &&
                calls[k] < export->run->evidence.calls.count &&
                array_push(&flows, (struct call_flow){calls[k], run_perfetto_flow(life->request)}) <
                    0)
                fail_memory(export);
    }
    array_sort(&flows, by_call);
    return flows;
}

static void write_call(struct run_export *export, const struct application_call *call,
                       const uint64_t *names, uint64_t category, const uint64_t *flows,
                       size_t flow_count)
{
    uint64_t track = run_perfetto_thread_track(call->thread);
    bool data = call->kind == CALL_RECEIVE || call->kind == CALL_SEND;
    const struct perfetto_note notes[] = {{"bytes", call->length},
                                          {"connection", call->connection}};
    const struct perfetto_slice slice = {.track = track,
                                         .time_ns = (uint64_t)call->entry_ns,
                                         .name = names[call->kind],
                                         .category = category,
                                         .flows = flows,
                                         .flow_count = flow_count,
                                         .notes = notes,
                                         .note_count = data ? 2 : 0};
    perfetto_begin(&export->sequence, &slice);
    perfetto_end(&export->sequence, track, (uint64_t)call->exit_ns);
    flush_full(export);
}

// What the thread was called when it first ran on a core that was captured; NULL: not known.
static const char *name_of_thread(const struct host_timeline *server, uint32_t thread)
{
    size_t count;
    const struct thread_stint *first = host_timeline_stints(server, thread, &count);
    const struct core_timeline *core = count ? host_timeline_core(server, first->core) : NULL;
    if (!core)
        return NULL;
    const struct span *spans = core->spans.items;
    size_t at = array_bound(0, core->spans.count, i, spans[i].begin_ns < first->begin_ns);
    for (; at < core->spans.count && spans[at].begin_ns < first->end_ns; at++)
        if (spans[at].kind == SPAN_TASK && spans[at].id == thread)
            return spans[at].name < server->names.count ? server->names.items[spans[at].name]
                                                        : NULL;
    return NULL;
}

static void begin_thread(struct run_export *export, uint32_t thread)
{
    const char *known = name_of_thread(&export->run->evidence.server, thread);
    char name[80];
    snprintf(name, sizeof name, "%.40s %" PRIu32, known ? known : "thread", thread);
    perfetto_track(&export->sequence, run_perfetto_thread_track(thread), THREADS_TRACK, name,
                   thread);
}

static void write_threads(struct run_export *export)
{
    const struct application_calls *calls = &export->run->evidence.calls;
    struct call_flows flows = flows_of_calls(export);
    struct numbers ARRAY_OF(uint64_t) own = {0};
    uint64_t names[] = {[CALL_RECEIVE] = perfetto_name(&export->sequence, "receive"),
                        [CALL_SEND] = perfetto_name(&export->sequence, "send"),
                        [CALL_ACCEPT] = perfetto_name(&export->sequence, "accept"),
                        [CALL_CLOSE] = perfetto_name(&export->sequence, "close"),
                        [CALL_WAIT] = perfetto_name(&export->sequence, "wait")};
    uint64_t category = perfetto_category(&export->sequence, "socket call");
    size_t next = 0;
    if (calls->count)
        perfetto_track(&export->sequence, THREADS_TRACK, 0, "server threads: socket calls", 2);
    for (size_t i = 0; i < calls->count && export->result == 0; i++) {
        const struct application_call *call = &calls->items[i];
        if (i == 0 || call->thread != call[-1].thread)
            begin_thread(export, call->thread);
        own.count = 0;
        for (; next < flows.count && flows.items[next].call == i; next++)
            if (array_push(&own, flows.items[next].flow) < 0)
                fail_memory(export);
        if (perfetto_moments_have(&export->moments, call->entry_ns, call->exit_ns))
            write_call(export, call, names, category, own.items, own.count);
    }
    array_free(&own);
    array_free(&flows);
}

// --- messages ----------------------------------------------------------------------------------

// A row of the messages' group, taken until `end`.
struct row {
    int64_t end;
    uint32_t number;
};
struct rows ARRAY_OF(struct row); // a heap: the row that is free first is items[0]

static void sift_down(struct rows *rows)
{
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < rows->count; child++)
            if (rows->items[child].end < rows->items[least].end)
                least = child;
        if (least == at)
            return;
        struct row moved = rows->items[at];
        rows->items[at] = rows->items[least];
        rows->items[least] = moved;
        at = least;
    }
}

static void sift_up(struct rows *rows)
{
    for (size_t at = rows->count - 1; at > 0 && rows->items[at].end < rows->items[(at - 1) / 2].end;
         at = (at - 1) / 2) {
        struct row moved = rows->items[at];
        rows->items[at] = rows->items[(at - 1) / 2];
        rows->items[(at - 1) / 2] = moved;
    }
}

// Takes a row that is free from `begin` to `end`, a new one if none is.
static uint32_t take_row(struct run_export *export, struct rows *rows, int64_t begin, int64_t end)
{
    if (rows->count && rows->items[0].end <= begin) {
        rows->items[0].end = end;
        uint32_t number = rows->items[0].number;
        sift_down(rows);
        return number;
    }
    uint32_t number = (uint32_t)rows->count;
    char name[32];
    snprintf(name, sizeof name, "row %" PRIu32, number + 1);
    perfetto_track(&export->sequence, run_perfetto_row_track(number), MESSAGES_TRACK, name, number);
    if (array_push(rows, (struct row){end, number}) < 0)
        fail_memory(export);
    else
        sift_up(rows);
    return number;
}

enum { OPERATIONS_NAMED = 32 };
struct message_names {
    uint64_t operations[OPERATIONS_NAMED + 1]; // 0: not yet named; the last one: of any other
    uint64_t stages[STAGES], message_category, stage_category;
};

static uint64_t name_of_operation(struct run_export *export, struct message_names *names,
                                  uint16_t operation)
{
    const char *name = run_operation_name(export->run, 0, operation);
    bool named = name && operation < OPERATIONS_NAMED;
    uint64_t *number = &names->operations[named ? operation : OPERATIONS_NAMED];
    if (*number == 0)
        *number = perfetto_name(&export->sequence, named ? name : "request");
    return *number;
}

static void write_stages(struct run_export *export, const struct lifetime *life, uint64_t track,
                         const struct message_names *names)
{
    uint64_t flow = run_perfetto_flow(life->request);
    int64_t at = life->stamp_ns[STAMP_INTENDED];
    int first = 0, last = 0; // the first after the send; the last of all
    for (int stage = STAMP_CLIENT_TX; stage < STAGES; stage++) {
        first = first == 0 && life->stage_ns[stage] > 0 ? stage : first;
        last = life->stage_ns[stage] > 0 ? stage : last;
    }
    for (int stage = STAMP_SEND; stage < STAGES; stage++) {
        if (life->stage_ns[stage] <= 0)
            continue;
        const struct perfetto_slice slice = {.track = track,
                                             .time_ns = (uint64_t)at,
                                             .name = names->stages[stage],
                                             .category = names->stage_category,
                                             .flows = &flow,
                                             .flow_count = stage == first || stage == last};
        perfetto_begin(&export->sequence, &slice);
        at += (int64_t)life->stage_ns[stage];
        perfetto_end(&export->sequence, track, (uint64_t)at);
    }
}

static void write_message(struct run_export *export, const struct lifetime *life,
                          struct message_names *names, struct rows *rows)
{
    int64_t begin = life->stamp_ns[STAMP_INTENDED], end = begin;
    for (int stage = STAMP_SEND; stage < STAGES; stage++)
        end += (int64_t)life->stage_ns[stage];
    if (!perfetto_moments_have(&export->moments, begin, end))
        return;
    uint64_t track = run_perfetto_row_track(take_row(export, rows, begin, end));
    const struct perfetto_note notes[] = {{"request", (int64_t)life->request},
                                          {"latency_ns", (int64_t)life->latency_ns},
                                          {"connection", life->connection},
                                          {"operation", life->operation},
                                          {"thread", life->thread}};
    const struct perfetto_slice slice = {.track = track,
                                         .time_ns = (uint64_t)begin,
                                         .name = name_of_operation(export, names, life->operation),
                                         .category = names->message_category,
                                         .notes = notes,
                                         .note_count = sizeof notes / sizeof *notes};
    perfetto_begin(&export->sequence, &slice);
    write_stages(export, life, track, names);
    perfetto_end(&export->sequence, track, (uint64_t)end);
    flush_full(export);
}

static void write_messages(struct run_export *export)
{
    const struct lifetime_array *lives = &export->run->lifetimes.all;
    struct rows rows = {0};
    struct message_names names = {
        .message_category = perfetto_category(&export->sequence, "request"),
        .stage_category = perfetto_category(&export->sequence, "stage"),
    };
    for (int stage = STAMP_SEND; stage < STAGES; stage++)
        names.stages[stage] = perfetto_name(
            &export->sequence,
            stage_name((enum stamp_kind)stage, join_undivided(&export->run->lifetimes.join)));
    perfetto_track(&export->sequence, MESSAGES_TRACK, 0, "requests", 0);
    for (size_t i = 0; i < lives->count && export->result == 0; i++)
        if (lives->items[i].state != LIFETIME_UNANSWERED &&
            lifetime_has(&lives->items[i], STAMP_INTENDED))
            write_message(export, &lives->items[i], &names, &rows);
    array_free(&rows);
}

// --- numbers over time -------------------------------------------------------------------------

struct queue_change {
    int64_t time_ns;
    int change;
};
struct queue_changes ARRAY_OF(struct queue_change);

static int by_change_time(const void *left, const void *right)
{
    const struct queue_change *a = left, *b = right;
    return order_of(a->time_ns, b->time_ns) ?: order_of(a->change, b->change);
}

// How many requests had reached the server and were not yet answered.
static void write_queue(struct run_export *export)
{
    const struct lifetime_array *lives = &export->run->lifetimes.all;
    struct queue_changes changes = {0};
    int64_t queue = 0;
    for (size_t i = 0; i < lives->count; i++) {
        const struct lifetime *life = &lives->items[i];
        if (lifetime_has(life, STAMP_NIC) && lifetime_has(life, STAMP_REPLY) &&
            (array_push(&changes, (struct queue_change){life->stamp_ns[STAMP_NIC], 1}) < 0 ||
             array_push(&changes, (struct queue_change){life->stamp_ns[STAMP_REPLY], -1}) < 0))
            fail_memory(export);
    }
    array_sort(&changes, by_change_time);
    if (changes.count)
        perfetto_counter_track(&export->sequence, RUN_PERFETTO_QUEUE_TRACK,
                               "requests in the server");
    for (size_t i = 0; i < changes.count && export->result == 0; i++) {
        int64_t at = changes.items[i].time_ns;
        queue += changes.items[i].change;
        if (!perfetto_moments_have(&export->moments, at, at))
            continue;
        perfetto_counter(&export->sequence, RUN_PERFETTO_QUEUE_TRACK, (uint64_t)at, queue);
        flush_full(export);
    }
    array_free(&changes);
}

static int by_intended(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return order_of(*a, *b);
}

static void write_rate(struct run_export *export)
{
    enum { STEP_NS = 10000000, STEPS_A_SECOND = 100 };
    const struct lifetime_array *lives = &export->run->lifetimes.all;
    struct times ARRAY_OF(int64_t) due = {0};
    for (size_t i = 0; i < lives->count; i++)
        if (lifetime_has(&lives->items[i], STAMP_INTENDED) &&
            array_push(&due, lives->items[i].stamp_ns[STAMP_INTENDED]) < 0)
            fail_memory(export);
    array_sort(&due, by_intended);
    if (due.count)
        perfetto_counter_track(&export->sequence, RUN_PERFETTO_RATE_TRACK,
                               "requests due, a second");
    for (size_t i = 0; i < due.count && export->result == 0;) {
        int64_t begin = due.items[0] + (due.items[i] - due.items[0]) / STEP_NS * STEP_NS;
        size_t first = i;
        while (i < due.count && due.items[i] < begin + STEP_NS)
            i++;
        if (perfetto_moments_have(&export->moments, begin, begin + STEP_NS))
            perfetto_counter(&export->sequence, RUN_PERFETTO_RATE_TRACK, (uint64_t)begin,
                             (int64_t)(i - first) * STEPS_A_SECOND);
        flush_full(export);
    }
    array_free(&due);
}

// --- the file ----------------------------------------------------------------------------------

int run_perfetto_write(const struct run_analysis *run, enum perfetto_extent extent,
                       const char *path, struct error *err)
{
    struct run_export export = {.run = run, .err = err};
    export.file = perfetto_create(path, "host time of the server (CLOCK_MONOTONIC_RAW)",
                                  (uint64_t)run->lifetimes.begin_ns, err);
    if (!export.file)
        return -ERROR_FAILED;
    perfetto_sequence_init(&export.sequence, 1);
    if (perfetto_moments_of(run, extent, &export.moments) < 0)
        fail_memory(&export);
    write_messages(&export);
    write_queue(&export);
    write_rate(&export);
    write_cores(&export);
    write_threads(&export);
    array_free(&export.moments.spans);
    if (export.result == 0)
        export.result = perfetto_flush(export.file, &export.sequence, err);
    perfetto_sequence_free(&export.sequence);
    if (export.result == 0)
        return perfetto_close(export.file, err);
    perfetto_abandon(export.file);
    return export.result;
}
