// SPDX-License-Identifier: MIT
#include "analysis/run/run_trace_events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/deliveries.h"
#include "analysis/pt/pt_trace.h"
#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_result.h"
#include "base/array.h"
#include "base/text.h"

// What part a function has in the delivery of a message.
enum path { PATH_NEW, PATH_OTHER, PATH_ARRIVES, PATH_DELIVERS, PATH_WAKES, PATH_SLEEPS };

// Looks up names; one thread at a time.
struct naming {
    const struct pt_trace *trace;
    pthread_mutex_t lock;
};

struct traced_delivery {
    uint64_t delivered, arrived; // TSC; 0: not known (yet)
    bool lost;                   // nothing is known from `delivered` to `arrived`
    bool wakes;                  // a thread that slept until then
};

struct traced_sleep {
    uint64_t tsc;
    uint32_t task;
};

// One stream's deliveries, as they end.
struct core_deliveries {
    struct naming *naming;
    struct pt_map paths; // enum path of each function
    struct traced_deliveries ARRAY_OF(struct traced_delivery) items;
    struct traced_sleeps ARRAY_OF(struct traced_sleep) sleeps; // in wait calls
    uint64_t woke;                                             // when a thread was woken last
};

static enum path path_of(const char *name)
{
    static const struct {
        const char *name;
        enum path path;
    } known[] = {{"tcp_v4_rcv", PATH_ARRIVES},
                 {"tcp_v6_rcv", PATH_ARRIVES},
                 {"sock_def_readable", PATH_DELIVERS},
                 // What the wait queues of sockets and epoll call; which, depends on the kernel.
                 {"default_wake_function", PATH_WAKES},
                 {"autoremove_wake_function", PATH_WAKES},
                 {"ep_autoremove_wake_function", PATH_WAKES},
                 {"try_to_wake_up", PATH_WAKES},
                 {"schedule_hrtimeout_range", PATH_SLEEPS}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].path;
    return PATH_OTHER;
}

static int add_delivery(struct core_deliveries *to, struct traced_delivery delivery,
                        struct error *err)
{
    if (array_push(&to->items, delivery) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the trace's deliveries");
    return 0;
}

static int take_span(void *context, const struct pt_span *span, struct error *err)
{
    struct core_deliveries *to = context;
    if (span->kind == PT_SPAN_LOST)
        return add_delivery(
            to,
            (struct traced_delivery){.delivered = span->begin, .arrived = span->end, .lost = true},
            err);
    if (span->kind != PT_SPAN_FUNCTION)
        return 0;
    uint32_t *path = pt_map_at(&to->paths, pt_map_key_of(span, 0));
    if (!path)
        return error_set(err, ERROR_FAILED, "no memory for the trace's functions");
    if (*path == PATH_NEW) {
        char text[PT_LABEL_BYTES];
        pthread_mutex_lock(&to->naming->lock);
        *path = path_of(pt_label(to->naming->trace, PT_SPAN_FUNCTION, span->function,
                                 span->function_known, text));
        pthread_mutex_unlock(&to->naming->lock);
    }
    if (span->cut_begin || *path == PATH_OTHER)
        return 0;
    if (*path == PATH_WAKES)
        to->woke = span->begin;
    if (*path == PATH_SLEEPS && span->task != PT_NO_TASK &&
        array_push(&to->sleeps, (struct traced_sleep){span->begin, span->task}) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the trace's sleeps");
    if (*path == PATH_DELIVERS) {
        struct traced_delivery delivery = {.delivered = span->begin,
                                           .wakes = to->woke >= span->begin};
        return add_delivery(to, delivery, err);
    }
    if (*path != PATH_ARRIVES)
        return 0;
    for (size_t i = to->items.count; i > 0 && to->items.items[i - 1].delivered >= span->begin; i--)
        if (!to->items.items[i - 1].arrived)
            to->items.items[i - 1].arrived = span->begin;
    return 0;
}

// --- times -------------------------------------------------------------------------------------

// The CLOCK_MONOTONIC reading, as events carry it, that converts to this host time. Both clocks
// advance alike but for a slew, so a few steps of approximation are enough.
static uint64_t monotonic_of(const struct time_source *clock, int64_t host_ns)
{
    uint64_t value = (uint64_t)host_ns;
    for (int i = 0; i < 8; i++) {
        int64_t off = host_ns - time_source_to_host(clock, HOST_CLOCK_MONOTONIC, value);
        if (off == 0)
            break;
        value += (uint64_t)off;
    }
    return value;
}

static int by_delivery(const void *left, const void *right)
{
    const struct delivery *a = left, *b = right;
    return order_of(a->delivered_ns, b->delivered_ns);
}

static int gather(const struct pt_trace *trace, const struct core_deliveries *cores,
                  const struct time_source *clock, struct delivery_array *out)
{
    for (size_t c = 0; c < trace->streams.count; c++) {
        const struct pt_trace_stream *stream = trace->streams.items[c];
        if (stream->cpu >= NO_CORE || !stream->timed)
            continue;
        for (size_t i = 0; i < cores[c].items.count; i++) {
            const struct traced_delivery *found = &cores[c].items.items[i];
            struct delivery delivery = {
                .delivered_ns = time_source_to_host(clock, HOST_CLOCK_TSC, found->delivered),
                .arrived_ns = time_source_to_host(clock, HOST_CLOCK_TSC, found->arrived),
                .core = (uint16_t)stream->cpu,
                .arrival_known = found->arrived != 0,
                .wakes = found->wakes,
                .lost = found->lost};
            if (array_push(out, delivery) < 0)
                return -1;
        }
    }
    array_sort(out, by_delivery);
    return 0;
}

static int by_thread_and_time(const void *left, const void *right)
{
    const struct thread_sleep *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread > b->thread ? 1 : -1;
    return order_of(a->time_ns, b->time_ns);
}

// A thread got a core, which had idled until then, or had done so some time before.
struct task_start {
    uint32_t task;
    uint16_t core;
    uint64_t tsc, idle_tsc; // 0: it had not idled
};
struct task_starts ARRAY_OF(struct task_start);

static int by_task_and_tsc(const void *left, const void *right)
{
    const struct task_start *a = left, *b = right;
    if (a->task != b->task)
        return a->task > b->task ? 1 : -1;
    return order_of(a->tsc, b->tsc);
}

static int gather_starts(const struct pt_trace *trace, struct task_starts *out)
{
    for (size_t c = 0; c < trace->streams.count; c++) {
        const struct pt_trace_stream *stream = trace->streams.items[c];
        struct task_start start = {.core = (uint16_t)stream->cpu};
        for (size_t i = 0; stream->cpu < NO_CORE && i < stream->switches.count; i++) {
            start.task = stream->switches.items[i].task;
            start.tsc = stream->switches.items[i].tsc;
            if (start.task == 0)
                start.idle_tsc = start.tsc;
            else if (array_push(out, start) < 0)
                return -1;
        }
    }
    array_sort(out, by_task_and_tsc);
    return 0;
}

// When the core that a thread went to sleep on began to idle before it ran it again; 0: it did not
// idle, or another core ran it, on whose account nothing is known of this one's.
static uint64_t idle_before(const struct task_starts *starts, uint16_t core,
                            const struct traced_sleep *sleep)
{
    size_t next = array_bound(
        0, starts->count, at,
        starts->items[at].task < sleep->task ||
            (starts->items[at].task == sleep->task && starts->items[at].tsc <= sleep->tsc));
    const struct task_start *start = next < starts->count ? &starts->items[next] : NULL;
    return start && start->task == sleep->task && start->core == core ? start->idle_tsc : 0;
}

// Empty where no delivery woke a thread: then this kernel's wake function has an unknown name.
static int gather_sleeps(const struct pt_trace *trace, const struct core_deliveries *cores,
                         const struct time_source *clock, const struct delivery_array *deliveries,
                         struct thread_sleeps *out)
{
    struct task_starts starts = {0};
    bool any = false;
    for (size_t i = 0; i < deliveries->count && !any; i++)
        any = deliveries->items[i].wakes;
    int result = any ? gather_starts(trace, &starts) : 0;
    for (size_t c = 0; c < trace->streams.count && any; c++) {
        const struct pt_trace_stream *stream = trace->streams.items[c];
        for (size_t i = 0; stream->timed && i < cores[c].sleeps.count && result == 0; i++) {
            const struct traced_sleep *found = &cores[c].sleeps.items[i];
            const uint64_t idle = idle_before(&starts, (uint16_t)stream->cpu, found);
            struct thread_sleep sleep = {
                .time_ns = time_source_to_host(clock, HOST_CLOCK_TSC, found->tsc),
                .idle_ns = idle ? time_source_to_host(clock, HOST_CLOCK_TSC, idle) : INT64_MIN,
                .thread = found->task};
            result = array_push(out, sleep);
        }
    }
    array_free(&starts);
    array_sort(out, by_thread_and_time);
    return result;
}

// --- events ------------------------------------------------------------------------------------

static int add_switches(const struct pt_trace *trace, const struct time_source *clock,
                        struct event_array *out)
{
    for (size_t c = 0; c < trace->streams.count; c++) {
        const struct pt_trace_stream *stream = trace->streams.items[c];
        for (size_t i = 0; stream->cpu < NO_CORE && i < stream->switches.count; i++) {
            const struct pt_switch *to = &stream->switches.items[i];
            int64_t at = time_source_to_host(clock, HOST_CLOCK_TSC, to->tsc);
            struct event event = {.time = monotonic_of(clock, at),
                                  .kind = EVENT_SWITCH,
                                  .core = (uint16_t)stream->cpu,
                                  .id = to->task};
            strncpy(event.payload.text, pt_label_task(trace, to->task),
                    sizeof event.payload.text - 1);
            if (array_push(out, event) < 0)
                return -1;
        }
    }
    return 0;
}

static int add_stamps(const struct delivery_array *deliveries,
                      const struct delivered_calls *matched, const struct application_calls *calls,
                      const struct time_source *clock, struct event_array *out)
{
    for (size_t i = 0; i < matched->count; i++) {
        const struct application_call *call = &calls->items[matched->items[i].call];
        const struct delivery *from = &deliveries->items[matched->items[i].delivery];
        struct event event = {.time = monotonic_of(clock, from->arrived_ns),
                              .kind = EVENT_SEGMENT,
                              .core = from->core,
                              .id = call->connection,
                              .payload.a = call->offset + call->length};
        if (from->arrival_known && array_push(out, event) < 0)
            return -1;
        event.kind = EVENT_HANDOFF;
        event.time = monotonic_of(clock, from->delivered_ns);
        event.payload.b = call->offset;
        if (array_push(out, event) < 0)
            return -1;
    }
    return 0;
}

// --- the whole ---------------------------------------------------------------------------------

static int make_events(const struct pt_trace *trace, const struct core_deliveries *cores,
                       const struct time_source *clock, const struct application_calls *calls,
                       struct event_array *out, struct run_trace *counts, struct error *err)
{
    struct delivery_array deliveries = {0};
    struct delivered_calls matched = {0};
    struct thread_sleeps sleeps = {0};
    int result = gather(trace, cores, clock, &deliveries);
    if (result == 0)
        result = gather_sleeps(trace, cores, clock, &deliveries, &sleeps);
    if (result == 0)
        result = deliveries_match(&deliveries, &sleeps, calls, &matched, &counts->handoffs_unknown);
    if (result == 0)
        result = add_switches(trace, clock, out);
    if (result == 0)
        result = add_stamps(&deliveries, &matched, calls, clock, out);
    counts->handoffs = matched.count;
    array_free(&deliveries);
    array_free(&matched);
    array_free(&sleeps);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for events from the trace") : 0;
}

static int decode(struct pt_trace *trace, const struct time_source *clock,
                  const struct application_calls *calls, struct event_array *out,
                  struct run_trace *counts, struct error *err)
{
    size_t count = trace->streams.count;
    struct naming naming = {.trace = trace, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct core_deliveries *cores = calloc(count + 1, sizeof *cores);
    void **contexts = calloc(count + 1, sizeof *contexts);
    struct pt_decode_options options = {0};
    struct pt_result result = {.trace = trace};
    int failed = 0;
    if (!cores || !contexts)
        failed =
            error_set(err, ERROR_FAILED, "no memory for a trace of %s streams", TEXT_COUNT(count));
    for (size_t i = 0; failed == 0 && i < count; i++) {
        cores[i].naming = &naming;
        contexts[i] = &cores[i];
    }
    if (failed == 0)
        failed = pt_result_decode(trace, &options, take_span, contexts, &result, err);
    if (failed == 0)
        failed = make_events(trace, cores, clock, calls, out, counts, err);
    pt_result_free(&result);
    for (size_t i = 0; cores && i < count; i++) {
        pt_map_free(&cores[i].paths);
        array_free(&cores[i].items);
        array_free(&cores[i].sleeps);
    }
    free(cores);
    free(contexts);
    return failed;
}

int run_trace_events(const char *run_dir, const json_t *capture, const struct clock_map *clock_map,
                     const struct time_source *clock, const struct application_calls *calls,
                     struct event_array *out, struct run_trace *out_trace, struct error *err)
{
    struct pt_trace trace;
    *out = (struct event_array){0};
    int result = run_trace_open(run_dir, capture, clock_map, false, &trace, out_trace, err);
    if (result <= 0)
        return result;
    result = decode(&trace, clock, calls, out, out_trace, err);
    pt_trace_free(&trace);
    return result;
}
