// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_trace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/pt/pt_parallel.h"
#include "base/input_file.h"

int pt_trace_init(struct pt_trace *trace, struct error *err)
{
    memset(trace, 0, sizeof *trace);
    return pt_code_init(&trace->code, err);
}

int pt_trace_add_code(struct pt_trace *trace, const struct code_given *given, size_t count,
                      struct error *err)
{
    if (count == 0)
        return 0;
    trace->symbols = &trace->code.symbols;
    return pt_code_add_given(&trace->code, &trace->memory, given, count, PT_SPACE_ALL, err);
}

void pt_trace_free(struct pt_trace *trace)
{
    for (size_t i = 0; i < trace->streams.count; i++) {
        struct pt_trace_stream *stream = trace->streams.items[i];
        if (stream->file)
            input_unmap(stream->stream.bytes.data);
        free(stream->file);
        pt_packets_free(&stream->packets);
        array_free(&stream->changes);
        array_free(&stream->switches);
        free(stream);
    }
    array_free(&trace->streams);
    pt_code_free(&trace->code);
    pt_memory_free(&trace->memory);
    array_free(&trace->tasks);
    for (size_t i = 0; i < trace->notes.count; i++)
        free(trace->notes.items[i]);
    array_free(&trace->notes);
    if (trace->keeper_free)
        trace->keeper_free(trace->keeper);
    trace->keeper_free = NULL;
}

struct pt_trace_stream *pt_trace_add(struct pt_trace *trace, struct error *err)
{
    struct pt_trace_stream *stream = calloc(1, sizeof *stream);
    if (!stream || array_push(&trace->streams, stream) < 0) {
        free(stream);
        error_set(err, ERROR_FAILED, "out of memory for a stream");
        return NULL;
    }
    stream->cpu = PT_NO_CPU;
    stream->stream.packets = &stream->packets;
    return stream;
}

// --- scanning ------------------------------------------------------------------------------------
// Parts of all streams at once: a stream that is longer than the others is not waited for. How many
// follows from its length alone, and so does its index of PSBs, whatever the machine.

enum { PART_BYTES = 4 << 20, MOST_PARTS = 64, SCANNED_A_THREAD = 1 << 20 };

struct scanning {
    struct pt_trace *trace;
    bool glance;
    struct scan_parts ARRAY_OF(struct pt_packets_part) parts;
    struct scan_firsts ARRAY_OF(size_t) firsts; // of each stream, and behind the last
};

static size_t stream_of(const struct scanning *scanning, size_t part)
{
    const struct scan_firsts *firsts = &scanning->firsts;
    return array_bound(0, firsts->count, at, firsts->items[at] <= part) - 1;
}

static size_t part_count(const struct scanning *scanning, size_t stream)
{
    return scanning->firsts.items[stream + 1] - scanning->firsts.items[stream];
}

static int scan_part(void *context, size_t index, struct error *err)
{
    struct scanning *scanning = context;
    size_t stream = stream_of(scanning, index);
    return pt_packets_scan_part(&scanning->trace->streams.items[stream]->stream.bytes,
                                PT_MOST_SYNCS / part_count(scanning, stream),
                                &scanning->parts.items[index], err);
}

static int cut_stream(struct scanning *scanning, const struct pt_trace_stream *stream)
{
    uint64_t bytes = stream->stream.bytes.bytes, count = bytes / PART_BYTES;
    count = count < 1 ? 1 : count < MOST_PARTS ? count : MOST_PARTS;
    if (stream->packets.glanced)
        count = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct pt_packets_part part = {.from = bytes / count * i,
                                       .to = i + 1 < count ? bytes / count * (i + 1) : UINT64_MAX,
                                       .glance = scanning->glance};
        if (array_push(&scanning->parts, part) < 0)
            return -1;
    }
    return array_push(&scanning->firsts, scanning->parts.count);
}

// Of a stream at which a glance is not enough nothing is kept.
static int join_glances(struct scanning *scanning, size_t index, struct error *err)
{
    struct pt_trace_stream *stream = scanning->trace->streams.items[index];
    struct pt_packets *packets = &stream->packets;
    int result = pt_packets_join(&scanning->parts.items[scanning->firsts.items[index]],
                                 part_count(scanning, index), packets, err);
    if (result <= 0)
        return result;
    if (pt_packets_glanced(packets)) {
        stream->timed = true;
        return 0;
    }
    pt_packets_free(packets);
    *packets = (struct pt_packets){0};
    return 0;
}

static int join_stream(struct scanning *scanning, size_t index, struct error *err)
{
    struct pt_trace_stream *stream = scanning->trace->streams.items[index];
    if (scanning->glance)
        return join_glances(scanning, index, err);
    if (stream->packets.glanced)
        return 0;
    int result = pt_packets_join(&scanning->parts.items[scanning->firsts.items[index]],
                                 part_count(scanning, index), &stream->packets, err);
    if (result == 0)
        result = pt_packets_scan(&stream->stream.bytes, &stream->packets, err);
    if (result < 0)
        return result;
    stream->timed = stream->packets.count[PT_KIND_TSC] > 0;
    if (stream->file && stream->packets.syncs.count == 0)
        return error_set(err, ERROR_INPUT,
                         "%s: no PSB in its %llu bytes, so this is no Intel PT stream (or one "
                         "too short to decode)",
                         stream->file, (unsigned long long)stream->stream.bytes.bytes);
    return 0;
}

// How many threads it takes to look at them once.
static unsigned threads_to_scan(const struct pt_trace *trace)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < trace->streams.count; i++)
        bytes += trace->streams.items[i]->stream.bytes.bytes;
    return pt_parallel_worth(trace->threads, bytes, SCANNED_A_THREAD);
}

static int scan_streams(struct pt_trace *trace, bool glance, struct error *err)
{
    struct scanning scanning = {.trace = trace, .glance = glance};
    int result = array_push(&scanning.firsts, (size_t)0);
    for (size_t i = 0; result == 0 && i < trace->streams.count; i++)
        result = cut_stream(&scanning, trace->streams.items[i]);
    if (result < 0)
        error_set(err, ERROR_FAILED, "out of memory for a look at the trace");
    if (result == 0)
        result =
            pt_parallel(scanning.parts.count, threads_to_scan(trace), scan_part, &scanning, err);
    for (size_t i = 0; result == 0 && i < trace->streams.count; i++)
        result = join_stream(&scanning, i, err);
    for (size_t i = 0; i < scanning.parts.count; i++)
        pt_packets_free(&scanning.parts.items[i].found);
    array_free(&scanning.parts);
    array_free(&scanning.firsts);
    return result < 0 ? result : 0;
}

int pt_trace_scan(struct pt_trace *trace, struct error *err)
{
    int result = trace->windows_only ? scan_streams(trace, true, err) : 0;
    return result < 0 ? result : scan_streams(trace, false, err);
}

struct refining {
    const struct pt_trace *trace;
    const struct pt_windows *windows;
};

static int refine_stream(void *context, size_t index, struct error *err)
{
    const struct refining *refining = context;
    struct pt_trace_stream *stream = refining->trace->streams.items[index];
    const struct pt_windows *own = stream->stream.windows;
    return pt_windows_refine(own ? own : refining->windows, &stream->stream.bytes, &stream->packets,
                             err);
}

int pt_trace_refine(struct pt_trace *trace, const struct pt_windows *windows, struct error *err)
{
    struct refining refining = {trace, windows};
    return pt_parallel(trace->streams.count, threads_to_scan(trace), refine_stream, &refining, err);
}

static int map_file(const char *path, struct pt_bytes *out, struct error *err)
{
    const void *data = NULL;
    size_t bytes = 0;
    int descriptor = input_open(path, err);
    if (descriptor < 0)
        return descriptor;
    int result = input_map(descriptor, path, &data, &bytes, err);
    if (result == 0 && !data)
        result = error_set(err, ERROR_INPUT, "%s: empty, so there is no trace in it", path);
    if (result == 0)
        *out = (struct pt_bytes){.bytes = bytes, .data = data, .mapped = true};
    close(descriptor);
    return result;
}

int pt_trace_add_file(struct pt_trace *trace, const char *path, uint32_t cpu,
                      const struct pt_recorder *recorder, struct error *err)
{
    struct pt_trace_stream *stream = pt_trace_add(trace, err);
    if (!stream)
        return -ERROR_FAILED;
    snprintf(stream->name, sizeof stream->name, "%s", path);
    stream->cpu = cpu;
    stream->stream.recorder = *recorder;
    char *file = strdup(path);
    int result = file ? map_file(path, &stream->stream.bytes, err)
                      : error_set(err, ERROR_FAILED, "out of memory for a stream");
    if (result < 0)
        free(file);
    else
        stream->file = file;
    return result;
}

void pt_trace_note(struct pt_trace *trace, const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    trace->notes_count++;
    if (length >= 0 && array_push(&trace->notes, text) < 0)
        free(text);
}

uint64_t pt_trace_ns(const struct pt_trace *trace, uint64_t tsc)
{
    if (!trace->clock.valid)
        return tsc;
    unsigned __int128 scaled = (unsigned __int128)tsc * trace->clock.multiplier;
    return trace->clock.zero + (uint64_t)(scaled >> trace->clock.shift);
}

double pt_trace_duration_ns(const struct pt_trace *trace, uint64_t ticks)
{
    if (!trace->clock.valid)
        return (double)ticks;
    return (double)ticks * (double)trace->clock.multiplier /
           (double)((uint64_t)1 << trace->clock.shift);
}

// --- names for people ----------------------------------------------------------------------------

static const struct pt_task_name *task_of(const struct pt_trace *trace, uint32_t task)
{
    for (size_t i = 0; i < trace->tasks.count; i++)
        if (trace->tasks.items[i].task == task)
            return &trace->tasks.items[i];
    return NULL;
}

const char *pt_label_task(const struct pt_trace *trace, uint32_t task)
{
    const struct pt_task_name *known = task_of(trace, task);
    return known ? known->name : task == 0 ? "idle" : "";
}

uint32_t pt_label_process(const struct pt_trace *trace, uint32_t task)
{
    const struct pt_task_name *known = task_of(trace, task);
    return known && known->process ? known->process : task;
}

const char *pt_label(const struct pt_trace *trace, enum pt_span_kind kind, uint64_t function,
                     bool known, char out[PT_LABEL_BYTES])
{
    static const char *const untraced[] = {"[not traced]", "[kernel: syscall]",
                                           "[kernel: interrupt or fault]", "[not traced]"};
    const struct pt_symbols *symbols = trace->symbols;
    if (kind == PT_SPAN_UNTRACED)
        return untraced[function <= PT_UNTRACED_OTHER ? function : 0];
    if (kind == PT_SPAN_LOST)
        return "[lost]";
    if (kind == PT_SPAN_TASK) {
        const char *name = pt_label_task(trace, (uint32_t)function);
        if (name[0])
            return name;
        snprintf(out, PT_LABEL_BYTES, "thread %" PRIu64, function);
    } else if (!known && function) {
        if (!pt_code_locate(&trace->code, function, out, PT_LABEL_BYTES))
            snprintf(out, PT_LABEL_BYTES, "0x%" PRIx64, function);
    } else if (known && symbols) {
        symbols->name(symbols->context, function, out, PT_LABEL_BYTES);
    } else {
        snprintf(out, PT_LABEL_BYTES, "[unknown]");
    }
    return out;
}
