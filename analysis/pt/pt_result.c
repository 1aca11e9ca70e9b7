// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analysis/pt/pt_trace.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/new_file.h"
#include "base/text.h"

static bool same_function(const struct pt_function_total *total, const struct pt_span *span)
{
    return total->function == span->function && total->kind == span->kind &&
           total->task == span->task && total->known == span->function_known;
}

// The position of the span's function in the list, where it is added when it is new; MAP_NONE: no
// memory.
static uint32_t totals_find(struct pt_function_totals *totals, const struct pt_span *span)
{
    uint64_t hash = hash_pair(span->function + span->kind, span->task);
    uint32_t found =
        map_find(&totals->positions, hash, at, same_function(&totals->list.items[at], span));
    if (found != MAP_NONE)
        return found;
    struct pt_function_total added = {.function = span->function,
                                      .task = span->task,
                                      .kind = span->kind,
                                      .known = span->function_known};
    if (array_push(&totals->list, added) < 0 ||
        map_add(&totals->positions, hash, totals->list.count - 1) < 0)
        return MAP_NONE;
    return (uint32_t)totals->list.count - 1;
}

// A short trace is better off without a page of what was found last.
static uint32_t totals_find_early(struct pt_function_totals *totals, const struct pt_span *span)
{
    enum { EARLY = 256 };
    if (++totals->asked > EARLY && !totals->recent)
        totals->recent = calloc(PT_RECENT_FUNCTIONS, sizeof *totals->recent);
    return totals_find(totals, span);
}

static inline uint32_t totals_find_again(struct pt_function_totals *totals,
                                         const struct pt_span *span)
{
    _Static_assert(PT_RECENT_FUNCTIONS == 1 << 10, "the hash fits");
    uint32_t *recent = &totals->recent[(span->function + span->task) * 0x9e3779b97f4a7c15u >> 54];
    uint32_t found = *recent - 1;
    if (*recent == 0 || !same_function(&totals->list.items[found], span)) {
        found = totals_find(totals, span);
        *recent = found == MAP_NONE ? 0 : found + 1;
    }
    return found;
}

static inline int totals_add(struct pt_function_totals *totals, const struct pt_span *span)
{
    uint32_t found =
        totals->recent ? totals_find_again(totals, span) : totals_find_early(totals, span);
    if (found == MAP_NONE)
        return -1;
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
    size_t room = count ? count : 1;
    *out = (struct pt_result){.trace = trace, .streams = calloc(room, sizeof *out->streams)};
    struct pt_stream *streams = calloc(room, sizeof *streams);
    int result = 0;
    if (!streams || !out->streams)
        result = error_set(err, ERROR_FAILED, "out of memory for %s streams", TEXT_COUNT(count));
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
        free(stream->functions.recent);
        map_free(&stream->functions.positions);
        pt_calls_free(stream->stacks);
    }
    free(result->streams);
    result->streams = NULL;
}

// --- sums over all streams -----------------------------------------------------------------------
// How the time of a decoded trace divides among functions: in total, and by process.

static int by_identity(const void *a, const void *b)
{
    const struct pt_function_total *x = a, *y = b;
    return order_of(x->task, y->task) ?:
           order_of(x->kind, y->kind) ?:
           order_of(x->known, y->known) ?:
           order_of(x->function, y->function);
}

static int by_self(const void *a, const void *b)
{
    const struct pt_function_total *x = a, *y = b;
    return order_of(y->self, x->self) ?: by_identity(a, b);
}

static struct pt_function_list collect_functions(const struct pt_result *result, bool by_process)
{
    struct pt_function_list all = {0};
    for (size_t s = 0; s < result->trace->streams.count; s++) {
        const struct pt_function_list *list = &result->streams[s].functions.list;
        for (size_t i = 0; i < list->count; i++) {
            struct pt_function_total item = list->items[i];
            item.task = by_process ? pt_label_process(result->trace, item.task) : 0;
            if (array_push(&all, item) < 0)
                return all;
        }
    }
    return all;
}

// Adds up entries of the same function and process.
static void merge_same_functions(struct pt_function_list *all)
{
    size_t kept = 0;
    if (all->count == 0)
        return;
    array_sort(all, by_identity);
    for (size_t i = 1; i < all->count; i++) {
        struct pt_function_total *to = &all->items[kept], *from = &all->items[i];
        if (by_identity(to, from) == 0) {
            to->calls += from->calls;
            to->total += from->total;
            to->self += from->self;
        } else {
            all->items[++kept] = *from;
        }
    }
    all->count = kept + 1;
}

struct pt_function_list pt_functions_all(const struct pt_result *result)
{
    struct pt_function_list all = collect_functions(result, false);
    merge_same_functions(&all);
    array_sort(&all, by_self);
    return all;
}

// --- by process --------------------------------------------------------------------------------

size_t pt_functions_of_process(const struct pt_function_list *list, size_t first)
{
    size_t end = first;
    while (end < list->count && list->items[end].task == list->items[first].task)
        end++;
    return end - first;
}

uint64_t pt_functions_time(const struct pt_function_list *list, size_t first, size_t count)
{
    uint64_t time = 0;
    for (size_t i = first; i < first + count; i++)
        time += list->items[i].self;
    return time;
}

struct group {
    size_t first, count;
    uint64_t time;
};

static int by_time(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return order_of(y->time, x->time) ?: order_of(x->first, y->first);
}

struct pt_function_list pt_functions_by_process(const struct pt_result *result)
{
    struct pt_function_list all = collect_functions(result, true), sorted = {0};
    struct groups ARRAY_OF(struct group) groups = {0};
    merge_same_functions(&all);
    for (size_t at = 0; at < all.count;) {
        struct group group = {.first = at, .count = pt_functions_of_process(&all, at)};
        group.time = pt_functions_time(&all, group.first, group.count);
        qsort(all.items + at, group.count, sizeof *all.items, by_self);
        at += group.count;
        if (array_push(&groups, group) < 0)
            break;
    }
    array_sort(&groups, by_time);
    for (size_t g = 0; g < groups.count; g++)
        for (size_t i = 0; i < groups.items[g].count; i++)
            if (array_push(&sorted, all.items[groups.items[g].first + i]) < 0)
                g = groups.count - 1; // short of memory: the list is incomplete
    array_free(&groups);
    array_free(&all);
    return sorted;
}

// --- CSV ---------------------------------------------------------------------------------------

// Quoted where need be (RFC 4180).
static void write_field(const char *text, FILE *out)
{
    if (!strpbrk(text, "\",\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_row(const struct pt_trace *trace, const struct pt_function_total *item, FILE *out)
{
    char name[PT_LABEL_BYTES];
    if (item->task != PT_NO_TASK)
        fprintf(out, "%" PRIu32, item->task);
    fputc(',', out);
    write_field(pt_label_task(trace, item->task), out);
    fputc(',', out);
    write_field(pt_label(trace, (enum pt_span_kind)item->kind, item->function, item->known, name),
                out);
    fprintf(out, ",%s,%" PRIu64 ",%.0f,%.0f\n",
            item->kind == PT_SPAN_UNTRACED       ? ""
            : pt_label_is_kernel(item->function) ? "kernel"
                                                 : "user",
            item->calls, pt_trace_duration_ns(trace, item->total),
            pt_trace_duration_ns(trace, item->self));
}

int pt_functions_write_csv(const struct pt_result *result, const char *path, struct error *err)
{
    struct new_file file;
    if (new_file_open(&file, path, err) < 0)
        return -(int)ERROR_FAILED;
    FILE *out = file.file;
    struct pt_function_list list = pt_functions_by_process(result);
    fputs("process,command,function,space,calls,total,self\n", out);
    for (size_t i = 0; i < list.count; i++)
        write_row(result->trace, &list.items[i], out);
    array_free(&list);
    return new_file_finish(&file, 0, err);
}
