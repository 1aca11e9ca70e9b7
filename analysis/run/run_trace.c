// SPDX-License-Identifier: MIT
#include "analysis/run/run_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/diagnosis/trace_windows.h"
#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_result.h"
#include "analysis/pt/pt_trace.h"
#include "analysis/run/input/run_recording.h"
#include "analysis/timeline/function_spans.h"
#include "analysis/timeline/span.h"
#include "base/text.h"
#include "base/units.h"

// One core's functions on their way from the trace into the timeline.
struct core_functions {
    struct core_timeline *core;
    const struct time_source *clock;
    struct pt_order order;
    struct pt_windows windows;
    struct pt_nested_spans spans; // functions only, in TSC
    struct losses ARRAY_OF(struct pt_window) lost;
    uint64_t first, last; // TSC
    bool began;
};

// --- time --------------------------------------------------------------------------------------

static int64_t host_of(const struct time_source *clock, uint64_t tsc)
{
    return time_source_to_host(clock, HOST_CLOCK_TSC, tsc);
}

// The first TSC in [low, high] that is not before that host time.
static uint64_t tsc_of(const struct time_source *clock, uint64_t low, uint64_t high,
                       int64_t host_ns)
{
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (host_of(clock, middle) < host_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int set_windows(struct core_functions *to, struct pt_trace_stream *stream,
                       const struct time_range_array *ranges)
{
    uint64_t first = stream->packets.first_tsc, last = stream->packets.last_tsc;
    for (size_t i = 0; ranges && i < ranges->count; i++) {
        struct pt_window window = {tsc_of(to->clock, first, last, ranges->items[i].begin_ns),
                                   tsc_of(to->clock, first, last, ranges->items[i].end_ns)};
        if (array_push(&to->windows, window) < 0)
            return -1;
    }
    stream->stream.windows = &to->windows;
    return 0;
}

// --- spans -------------------------------------------------------------------------------------

// The events log gives tasks and idle time; the trace only adds functions.
static int take_spans(void *context, const struct pt_nested_span *spans, size_t count,
                      struct error *err)
{
    struct core_functions *to = context;
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        const struct pt_span *span = &spans[i].span;
        if (!to->began)
            to->first = span->begin;
        to->began = true;
        to->last = span->end > to->last ? span->end : to->last;
        if (span->kind == PT_SPAN_LOST)
            result = array_push(&to->lost, (struct pt_window){span->begin, span->end});
        else if (span->kind != PT_SPAN_TASK)
            result = array_push(&to->spans, spans[i]);
    }
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for the trace's functions") : 0;
}

// The ranges in which nothing was lost. A part of the trace that was decoded to its end also shows
// that nothing else happened up to the PSB behind it.
static uint64_t known_until(const struct pt_stream_result *result,
                            const struct pt_trace_stream *stream, uint64_t tsc)
{
    const struct pt_syncs *syncs = &stream->packets.syncs;
    if (result->error_count || result->counts.overflows || stream->packets.flaws.count)
        return tsc;
    size_t at = pt_packets_find(&stream->packets, tsc);
    while (at < syncs->count && syncs->items[at].tsc < tsc)
        at++;
    return at < syncs->count ? syncs->items[at].tsc : tsc;
}

static int add_known(struct core_functions *from, uint64_t begin, uint64_t end)
{
    struct time_range_array *traced = &from->core->traced;
    struct time_range range = {host_of(from->clock, begin), host_of(from->clock, end)};
    if (range.end_ns <= range.begin_ns)
        return 0;
    struct time_range *last = traced->count ? &traced->items[traced->count - 1] : NULL;
    if (!last || range.begin_ns > last->end_ns)
        return array_push(traced, range);
    if (range.end_ns > last->end_ns)
        last->end_ns = range.end_ns;
    return 0;
}

static int set_traced(struct core_functions *from, const struct pt_stream_result *result,
                      const struct pt_trace_stream *stream)
{
    uint64_t known = from->first;
    int failed = 0;
    for (size_t i = 0; failed == 0 && from->began && i <= from->lost.count; i++) {
        bool end = i == from->lost.count;
        uint64_t until = end ? from->last : from->lost.items[i].from;
        if (until >= known && (until > known || end))
            failed = add_known(from, known, known_until(result, stream, until));
        if (!end)
            known = from->lost.items[i].to;
    }
    return failed;
}

// --- names -------------------------------------------------------------------------------------

struct naming {
    const struct pt_trace *trace;
    struct name_table table;
    struct pt_map numbers; // plus 1
};

static int name_of(struct naming *naming, const struct pt_span *span, uint32_t *out)
{
    struct pt_map_key key = pt_map_key_of(span, 0);
    uint32_t *number = pt_map_at(&naming->numbers, key);
    if (!number)
        return -1;
    if (*number == 0) {
        char text[PT_LABEL_BYTES];
        uint32_t name;
        const char *label =
            pt_label(naming->trace, (enum pt_span_kind)key.kind, key.function, key.known, text);
        if (name_table_intern(&naming->table, label, PT_LABEL_BYTES, &name) < 0)
            return -1;
        *number = name + 1;
    }
    *out = *number - 1;
    return 0;
}

// --- into the timeline -------------------------------------------------------------------------

static int add_functions(struct core_functions *from, struct naming *naming, struct run_trace *out,
                         struct error *err)
{
    struct span_array functions = {0};
    int result = 0;
    for (size_t i = 0; result == 0 && i < from->spans.count; i++) {
        const struct pt_span *span = &from->spans.items[i].span;
        bool cut = span->cut_begin || span->cut_end;
        uint32_t name = 0;
        result = name_of(naming, span, &name);
        struct span function = {
            .begin_ns = host_of(from->clock, span->begin),
            .end_ns = host_of(from->clock, span->end),
            .id = (pt_label_is_kernel(span->function) ? (uint32_t)SPAN_ID_KERNEL : 0) |
                  (cut ? (uint32_t)SPAN_ID_CUT : 0),
            .name = name & SPAN_NAMES,
            .kind = SPAN_FUNCTION};
        if (result == 0)
            result = array_push(&functions, function);
    }
    out->functions += functions.count;
    result = result < 0 ? error_set(err, ERROR_FAILED, "no memory for the trace's functions")
                        : core_timeline_add_functions(from->core, &functions, err);
    array_free(&functions);
    return result;
}

static struct core_timeline *timeline_of(struct host_timeline *server, uint32_t cpu)
{
    for (size_t i = 0; i < server->cores.count; i++)
        if (server->cores.items[i].core == cpu)
            return &server->cores.items[i];
    return NULL;
}

static int add_results(const struct pt_result *result, struct core_functions *cores,
                       struct host_timeline *server, struct run_trace *out, struct error *err)
{
    struct naming naming = {.trace = result->trace};
    int failed = name_table_init(&naming.table, &server->names) < 0
                     ? error_set(err, ERROR_FAILED, "no memory for names of functions")
                     : 0;
    for (size_t i = 0; failed == 0 && i < result->trace->streams.count; i++) {
        const struct pt_stream_result *stream = &result->streams[i];
        out->decoded += stream->counts.walked_bytes;
        out->errors += stream->error_count;
        out->overflows += stream->counts.overflows;
        double granularity =
            pt_trace_duration_ns(result->trace, pt_calls_granularity(&stream->calls));
        if (granularity > out->granularity_ns)
            out->granularity_ns = granularity;
        if (!cores[i].core)
            continue;
        if (set_traced(&cores[i], stream, result->trace->streams.items[i]) < 0)
            failed = error_set(err, ERROR_FAILED, "no memory for what was traced");
        else
            failed = add_functions(&cores[i], &naming, out, err);
        for (size_t k = 0; k < cores[i].core->traced.count; k++)
            out->traced_ns += (double)(cores[i].core->traced.items[k].end_ns -
                                       cores[i].core->traced.items[k].begin_ns);
    }
    name_table_fini(&naming.table);
    pt_map_free(&naming.numbers);
    return failed;
}

// --- what it is worth --------------------------------------------------------------------------

// How much of the range lies in the other ranges, which are ascending and disjoint.
static double covered_ns(const struct time_range_array *by, struct time_range range)
{
    double sum = 0;
    size_t i = array_bound(0, by->count, at, by->items[at].end_ns <= range.begin_ns);
    for (; i < by->count && by->items[i].begin_ns < range.end_ns; i++) {
        int64_t begin = by->items[i].begin_ns, end = by->items[i].end_ns;
        begin = begin > range.begin_ns ? begin : range.begin_ns;
        end = end < range.end_ns ? end : range.end_ns;
        sum += (double)(end - begin);
    }
    return sum;
}

static void weigh(const struct trace_windows *windows, struct host_timeline *server,
                  struct run_trace *out)
{
    for (size_t i = 0; i < windows->core_count; i++) {
        const struct time_range_array *slow = &windows->cores[i].slow;
        const struct core_timeline *core = timeline_of(server, windows->cores[i].core);
        for (size_t k = 0; k < slow->count; k++) {
            out->slow_ns += (double)(slow->items[k].end_ns - slow->items[k].begin_ns);
            if (core)
                out->slow_traced_ns += covered_ns(&core->traced, slow->items[k]);
        }
    }
}

const char *run_trace_lack(const struct run_trace *trace, char words[RUN_TRACE_WORDS])
{
    char time[32];
    words[0] = '\0';
    if (trace->problem[0])
        return trace->problem;
    if (!trace->present)
        return words;
    if (trace->bytes == 0)
        snprintf(words, RUN_TRACE_WORDS, "the recording holds no processor trace");
    else if (trace->streams == 0)
        snprintf(words, RUN_TRACE_WORDS,
                 "the recording's trace is of threads, and the cores' is needed");
    else if (trace->slow_ns > 0 && trace->slow_traced_ns <= 0)
        snprintf(words, RUN_TRACE_WORDS,
                 "the processor's trace shows nothing of the slow messages' %s on the server's "
                 "cores (%s of its %s bytes decoded, %s decode error%s)",
                 units_format_ns(trace->slow_ns, time, sizeof time), TEXT_COUNT(trace->decoded),
                 TEXT_COUNT(trace->bytes), TEXT_COUNT(trace->errors),
                 text_plural((double)trace->errors));
    return words;
}

double run_trace_apart_ns(const struct run_trace *trace)
{
    // The event is written in the function whose call the trace shows, microseconds after it
    // begins.
    enum { HANDOFF_NS = 50 * 1000 };
    double apart_ns = fabs(trace->stamps.handoff.p50_ns);
    return apart_ns > HANDOFF_NS ? apart_ns : 0;
}

static void take_losses(const struct perf_data *recording, struct run_trace *out)
{
    out->gaps = recording->aux_gaps;
    out->perf_errors = recording->trace_errors;
    out->perf_lost = recording->lost_records;
    out->malformed = recording->complaint_count;
}

// --- the whole ---------------------------------------------------------------------------------

static int decode(struct pt_trace *trace, const struct trace_windows *windows,
                  const struct run_trace_input *input, struct host_timeline *server,
                  struct run_trace *out, struct error *err)
{
    size_t count = trace->streams.count;
    static const struct pt_windows nothing;
    struct core_functions *cores = calloc(count + 1, sizeof *cores);
    void **contexts = calloc(count + 1, sizeof *contexts);
    struct pt_decode_options options = {0};
    struct pt_result result = {.trace = trace};
    int failed = cores && contexts ? 0 : -1;
    for (size_t i = 0; failed == 0 && i < count; i++) {
        struct pt_trace_stream *stream = trace->streams.items[i];
        cores[i] = (struct core_functions){.clock = &input->clock};
        cores[i].order.sink = take_spans;
        cores[i].order.context = &cores[i];
        contexts[i] = &cores[i].order;
        out->bytes += stream->packets.bytes;
        out->streams += stream->cpu != PT_NO_CPU;
        stream->stream.windows = &nothing;
        if (stream->cpu == PT_NO_CPU || !stream->timed)
            continue;
        cores[i].core = timeline_of(server, stream->cpu);
        if (cores[i].core)
            failed = set_windows(&cores[i], stream, trace_windows_of(windows, cores[i].core->core));
    }
    if (failed < 0)
        failed =
            error_set(err, ERROR_FAILED, "no memory for a trace of %s streams", TEXT_COUNT(count));
    if (failed == 0)
        failed = pt_trace_refine(trace, &nothing, err);
    if (failed == 0)
        failed = pt_result_decode(trace, &options, pt_order_take, contexts, &result, err);
    for (size_t i = 0; failed == 0 && i < count; i++)
        failed = pt_order_finish(&cores[i].order, err);
    if (failed == 0)
        failed = add_results(&result, cores, server, out, err);
    pt_result_free(&result);
    for (size_t i = 0; cores && i < count; i++) {
        pt_order_free(&cores[i].order);
        array_free(&cores[i].windows);
        array_free(&cores[i].spans);
        array_free(&cores[i].lost);
    }
    free(cores);
    free(contexts);
    return failed;
}

// How far all of the trace is from the clock log's time; 0: some of it is within.
static int64_t apart_ns(const struct pt_trace *trace, const struct clock_map *clock)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < trace->streams.count; i++) {
        const struct pt_packets *packets = &trace->streams.items[i]->packets;
        if (!packets->first_tsc)
            continue;
        first = packets->first_tsc < first ? packets->first_tsc : first;
        last = packets->last_tsc > last ? packets->last_tsc : last;
    }
    return last ? clock_map_apart_ns(clock, HOST_CLOCK_TSC, first, last) : 0;
}

int run_trace_open(const char *run_dir, const json_t *capture, const struct clock_map *clock,
                   bool windows_only, struct pt_trace *trace, struct run_trace *out,
                   struct error *err)
{
    struct run_recording recording;
    if (!run_recording_find(&recording, run_dir, capture, "intel_pt", out->problem))
        return 0;
    struct code_image_options options = {.recording = recording.path,
                                         .symfs = recording.symfs[0] ? recording.symfs : NULL};
    int result = pt_trace_init(trace, err);
    if (result < 0)
        return result;
    struct error unusable = {0};
    trace->windows_only = windows_only;
    result = pt_trace_load_perf(trace, recording.path, &options, &unusable);
    const int64_t apart = result == 0 ? apart_ns(trace, clock) : 0;
    if (result == 0 && apart == 0)
        return 1;
    if (apart)
        snprintf(out->problem, sizeof out->problem,
                 "the trace is of another run than server/clock.tlog, all of it at least %s %s "
                 "that: copy both from where they were",
                 TEXT_INSTANT((double)llabs(apart)), apart < 0 ? "before" : "after");
    else
        snprintf(out->problem, sizeof out->problem, "%.390s", unusable.text);
    pt_trace_free(trace);
    return 0;
}

int run_trace_add(const struct run_trace_input *input, struct host_timeline *server,
                  struct run_trace *out, struct error *err)
{
    struct pt_trace trace;
    struct trace_windows windows = {0};
    int result =
        run_trace_open(input->run_dir, input->capture, input->clock_map, true, &trace, out, err);
    if (result <= 0)
        return result;
    out->present = true;
    take_losses(trace.recording, out);
    result =
        trace_windows_choose(input->diagnosis, input->slices, input->slice_count, &windows, err);
    out->messages = windows.messages;
    if (result == 0)
        result = decode(&trace, &windows, input, server, out, err);
    if (result == 0)
        weigh(&windows, server, out);
    if (result == 0 && !out->handoffs && !out->handoffs_unknown &&
        trace_stamps_compare(server, input->diagnosis->lifetimes, input->diagnosis->lifetime_count,
                             &out->stamps) < 0)
        result = error_set(err, ERROR_FAILED, "no memory to compare the trace's stamps");
    trace_windows_free(&windows);
    pt_trace_free(&trace);
    return result;
}
