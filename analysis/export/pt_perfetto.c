// SPDX-License-Identifier: MIT
#include "analysis/export/pt_perfetto.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "analysis/pt/pt_trace.h"
#include "base/array.h"

enum { CORES_TRACK = 1 }; // parent of the cores' tracks

struct open_slice {
    uint64_t track, end;
    bool interrupt; // an interrupt, or inside one
};

// The state of one stream, used by one thread at a time.
struct stream_export {
    struct perfetto_sequence sequence;
    struct pt_map names;
    uint64_t categories[PT_SPAN_LOST + 1];
    struct open_slices ARRAY_OF(struct open_slice) open;
};

struct pt_perfetto {
    const struct pt_trace *trace;
    struct perfetto *file;
    struct stream_export *streams;
    pthread_mutex_t labels; // names are looked up by one thread at a time
};

// --- tracks ------------------------------------------------------------------------------------

static int compare_tasks(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return order_of(a, b);
}

// Every thread that was switched in anywhere, once. Idling stays on the core's track.
static int write_threads(const struct pt_trace *trace, struct perfetto_sequence *out,
                         struct error *err)
{
    struct task_numbers ARRAY_OF(uint32_t) tasks = {0};
    char text[PT_LABEL_BYTES];
    int result = 0;
    for (size_t s = 0; result == 0 && s < trace->streams.count; s++) {
        const struct pt_switches *switches = &trace->streams.items[s]->switches;
        for (size_t i = 0; result == 0 && i < switches->count; i++)
            if (array_push(&tasks, switches->items[i].task) < 0)
                result = error_set(err, ERROR_FAILED, "out of memory for threads");
    }
    array_sort(&tasks, compare_tasks);
    for (size_t i = 0; result == 0 && i < tasks.count; i++) {
        uint32_t task = tasks.items[i];
        if (task == 0 || (i > 0 && task == tasks.items[i - 1]))
            continue;
        perfetto_thread(out, pt_perfetto_thread_track(task), pt_label_process(trace, task), task,
                        pt_label(trace, PT_SPAN_TASK, task, false, text));
    }
    array_free(&tasks);
    return result;
}

static int write_tracks(struct pt_perfetto *export, struct error *err)
{
    const struct pt_trace *trace = export->trace;
    struct perfetto_sequence tracks;
    perfetto_sequence_init(&tracks, 0);
    perfetto_track(&tracks, CORES_TRACK, 0, "cores", 1);
    for (size_t i = 0; i < trace->streams.count; i++)
        perfetto_track(&tracks, pt_perfetto_core_track(i), CORES_TRACK,
                       trace->streams.items[i]->name, (uint32_t)i);
    int result = write_threads(trace, &tracks, err);
    if (result == 0)
        result = perfetto_flush(export->file, &tracks, err);
    perfetto_sequence_free(&tracks);
    return result;
}

static uint64_t trace_begin(const struct pt_trace *trace)
{
    uint64_t begin = UINT64_MAX;
    for (size_t i = 0; i < trace->streams.count; i++) {
        uint64_t first = trace->streams.items[i]->packets.first_tsc;
        if (first && first < begin)
            begin = first;
    }
    return begin == UINT64_MAX ? 0 : pt_trace_ns(trace, begin);
}

static const char *time_axis(const struct pt_trace *trace)
{
    bool timed = false;
    for (size_t i = 0; i < trace->streams.count; i++)
        timed |= trace->streams.items[i]->timed;
    return !timed               ? "instructions executed"
           : trace->clock.valid ? "perf's clock, ns"
                                : "ticks of the TSC";
}

struct pt_perfetto *pt_perfetto_create(const struct pt_trace *trace, const char *path,
                                       struct error *err)
{
    static const char *const categories[] = {
        [PT_SPAN_FUNCTION] = "function",   [PT_SPAN_SYSCALL] = "syscall",
        [PT_SPAN_INTERRUPT] = "interrupt", [PT_SPAN_UNTRACED] = "not traced",
        [PT_SPAN_TASK] = "task",           [PT_SPAN_LOST] = "lost"};
    struct pt_perfetto *export = calloc(1, sizeof *export);
    struct stream_export *streams = calloc(trace->streams.count + 1, sizeof *streams);
    if (!export || !streams) {
        free(export);
        free(streams);
        error_set(err, ERROR_FAILED, "out of memory for %s", path);
        return NULL;
    }
    *export = (struct pt_perfetto){.trace = trace, .streams = streams};
    pthread_mutex_init(&export->labels, NULL);
    for (size_t i = 0; i < trace->streams.count; i++) {
        perfetto_sequence_init(&streams[i].sequence, (uint32_t)i + 1);
        for (size_t k = 0; k <= PT_SPAN_LOST; k++)
            streams[i].categories[k] = perfetto_category(&streams[i].sequence, categories[k]);
    }
    export->file = perfetto_create(path, time_axis(trace), trace_begin(trace), err);
    if (export->file && write_tracks(export, err) == 0)
        return export;
    struct error ignored;
    pt_perfetto_close(export, true, &ignored);
    return NULL;
}

// --- slices ------------------------------------------------------------------------------------

static void close_to(const struct pt_perfetto *export, struct stream_export *to, size_t depth)
{
    while (to->open.count > depth) {
        const struct open_slice *last = &to->open.items[--to->open.count];
        perfetto_end(&to->sequence, last->track, pt_trace_ns(export->trace, last->end));
    }
}

// The number of the span's name, 0: no memory.
static uint64_t name_of(struct pt_perfetto *export, struct stream_export *to,
                        const struct pt_span *span)
{
    struct pt_map_key key = pt_map_key_of(span, 0);
    uint32_t *number = pt_map_at(&to->names, key);
    if (number && *number == 0) {
        char text[PT_LABEL_BYTES];
        pthread_mutex_lock(&export->labels);
        *number = (uint32_t)perfetto_name(
            &to->sequence,
            pt_label(export->trace, (enum pt_span_kind)key.kind, key.function, key.known, text));
        pthread_mutex_unlock(&export->labels);
    }
    return number ? *number : 0;
}

static int write_span(struct pt_perfetto *export, size_t stream,
                      const struct pt_nested_span *nested, struct error *err)
{
    const struct pt_span *span = &nested->span;
    struct stream_export *to = &export->streams[stream];
    close_to(export, to, nested->depth);
    bool interrupt = span->kind == PT_SPAN_INTERRUPT ||
                     (to->open.count && to->open.items[to->open.count - 1].interrupt);
    bool on_core = interrupt || span->kind == PT_SPAN_TASK || span->kind == PT_SPAN_LOST ||
                   span->task == PT_NO_TASK || span->task == 0;
    struct open_slice open = {.track = on_core ? pt_perfetto_core_track(stream)
                                               : pt_perfetto_thread_track(span->task),
                              .end = span->end,
                              .interrupt = interrupt};
    uint64_t flow = span->task;
    struct perfetto_note notes[] = {{"thread", span->task}};
    bool task = span->kind == PT_SPAN_TASK;
    struct perfetto_slice slice = {.track = open.track,
                                   .time_ns = pt_trace_ns(export->trace, span->begin),
                                   .name = name_of(export, to, span),
                                   .category = to->categories[span->kind],
                                   .flows = &flow,
                                   .flow_count = task && span->task != 0,
                                   .notes = notes,
                                   .note_count = task};
    if (slice.name == 0 || array_push(&to->open, open) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for names");
    perfetto_begin(&to->sequence, &slice);
    return 0;
}

int pt_perfetto_take(struct pt_perfetto *export, size_t stream, const struct pt_nested_span *spans,
                     size_t count, struct error *err)
{
    enum { FULL_BYTES = 1 << 20 };
    struct stream_export *to = &export->streams[stream];
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        result = write_span(export, stream, &spans[i], err);
        if (result == 0 && to->sequence.packets.count > FULL_BYTES)
            result = perfetto_flush(export->file, &to->sequence, err);
    }
    close_to(export, to, 0);
    return result;
}

int pt_perfetto_close(struct pt_perfetto *export, bool failed, struct error *err)
{
    int result = 0;
    if (!export)
        return 0;
    for (size_t i = 0; i < export->trace->streams.count; i++) {
        struct stream_export *stream = &export->streams[i];
        if (!failed && result == 0)
            result = perfetto_flush(export->file, &stream->sequence, err);
        perfetto_sequence_free(&stream->sequence);
        pt_map_free(&stream->names);
        array_free(&stream->open);
    }
    if (failed || result < 0)
        perfetto_abandon(export->file);
    else
        result = perfetto_close(export->file, err);
    pthread_mutex_destroy(&export->labels);
    free(export->streams);
    free(export);
    return result;
}
