// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_result.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"

static bool same_function(const struct pt_function_total *total, const struct pt_span *span)
{
    return total->function == span->function && total->kind == span->kind &&
           total->task == span->task && total->known == span->function_known;
}

static int totals_add(struct pt_function_totals *totals, const struct pt_span *span)
{
    uint64_t hash = hash_pair(span->function + span->kind, span->task);
    uint32_t found =
        map_find(&totals->positions, hash, at, same_function(&totals->list.items[at], span));
    if (found == MAP_NONE) {
        struct pt_function_total added = {.function = span->function,
                                          .task = span->task,
                                          .kind = span->kind,
                                          .known = span->function_known};
        if (array_push(&totals->list, added) < 0 ||
            map_add(&totals->positions, hash, totals->list.count - 1) < 0)
            return -1;
        found = (uint32_t)totals->list.count - 1;
    }
    struct pt_function_total *item = &totals->list.items[found];
    uint64_t duration = span->end - span->begin;
    item->calls += !span->cut_begin;
    item->total += duration;
    item->self += duration > span->inner ? duration - span->inner : 0;
    return 0;
}

static int tasks_add(struct pt_task_totals *tasks, const struct pt_span *span)
{
    size_t i = 0;
    while (i < tasks->count && tasks->items[i].task != span->task)
        i++;
    if (i == tasks->count && array_push(tasks, (struct pt_task_total){.task = span->task}) < 0)
        return -1;
    tasks->items[i].switched_in++;
    tasks->items[i].time += span->end - span->begin;
    return 0;
}

static int take_span(void *context, const struct pt_span *span, struct error *err)
{
    struct pt_stream_result *stream = context;
    int added = 0;
    if (stream->first == 0 || span->begin < stream->first)
        stream->first = span->begin;
    if (span->end > stream->last)
        stream->last = span->end;
    if (span->kind == PT_SPAN_TASK)
        added = tasks_add(&stream->tasks, span);
    else if (span->kind != PT_SPAN_LOST)
        added = totals_add(&stream->functions, span);
    if (added < 0)
        return error_set(err, ERROR_FAILED, "out of memory for totals by function");
    return stream->also ? stream->also(stream->also_context, span, err) : 0;
}

static int take_piece(void *context, size_t index, const struct pt_piece *piece, bool contiguous,
                      struct error *err)
{
    struct pt_result *result = context;
    struct pt_stream_result *stream = &result->streams[index];
    pt_walk_counts_add(&stream->counts, &piece->counts);
    stream->pieces++;
    stream->error_count += piece->errors.count;
    for (size_t i = 0; i < piece->errors.count && stream->errors.count < PT_ERRORS_KEPT; i++)
        if (array_push(&stream->errors, piece->errors.items[i]) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for decode errors");
    return pt_calls_take(stream->stacks, piece, contiguous, err);
}

static double seconds_now(void)
{
    return (double)monotonic_ns() / 1e9;
}

int pt_result_decode(const struct pt_trace *trace, const struct pt_decode_options *options,
                     pt_span_sink *also, void *const *contexts, struct pt_result *out,
                     struct error *err)
{
    size_t count = trace->streams.count;
    *out = (struct pt_result){.trace = trace, .streams = calloc(count + 1, sizeof *out->streams)};
    struct pt_stream *streams = calloc(count + 1, sizeof *streams);
    int result = 0;
    if (!streams || !out->streams)
        result = error_set(err, ERROR_FAILED, "out of memory for %zu streams", count);
    for (size_t i = 0; result == 0 && i < count; i++) {
        const struct pt_trace_stream *from = trace->streams.items[i];
        struct pt_stream_result *to = &out->streams[i];
        streams[i] = from->stream;
        to->also = also;
        to->also_context = contexts ? contexts[i] : NULL;
        to->stacks = pt_calls_alloc(from->switches.count ? &from->switches : NULL, from->timed,
                                    take_span, to, err);
        result = to->stacks ? 0 : -ERROR_FAILED;
    }
    double begin = seconds_now();
    if (result == 0)
        result = pt_decode(&trace->memory, trace->symbols, streams, count, options, take_piece, out,
                           err);
    for (size_t i = 0; result == 0 && i < count; i++) {
        result = pt_calls_finish(out->streams[i].stacks, err);
        out->streams[i].calls = *pt_calls_counts(out->streams[i].stacks);
    }
    out->seconds = seconds_now() - begin;
    free(streams);
    return result;
}

void pt_result_free(struct pt_result *result)
{
    for (size_t i = 0; result->streams && i < result->trace->streams.count; i++) {
        struct pt_stream_result *stream = &result->streams[i];
        array_free(&stream->errors);
        array_free(&stream->tasks);
        array_free(&stream->functions.list);
        map_free(&stream->functions.positions);
        pt_calls_free(stream->stacks);
    }
    free(result->streams);
    result->streams = NULL;
}
