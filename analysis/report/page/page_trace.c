// SPDX-License-Identifier: MIT
#include "analysis/report/page/page_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pt/pt_trace.h"
#include "analysis/pt/calls/pt_span.h"
#include "analysis/report/page/page_write.h"

// --- keeping -----------------------------------------------------------------------------------

static uint64_t length_of(const struct pt_nested_span *nested)
{
    return nested->span.end - nested->span.begin;
}

static void leave_out(struct pt_page_stream *stream, const struct pt_nested_span *nested)
{
    uint64_t length = length_of(nested), inner = nested->span.inner;
    stream->left_out++;
    stream->left_out_self += length > inner ? length - inner : 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return order_of(left, right);
}

// Leaves out the shorter half.
static int thin_out(struct pt_page_stream *stream, struct error *err)
{
    struct pt_page_spans *spans = &stream->spans;
    uint64_t *lengths = malloc(spans->count * sizeof *lengths);
    size_t kept = 0;
    if (!lengths)
        return error_set(err, ERROR_FAILED, "out of memory for the page's spans");
    for (size_t i = 0; i < spans->count; i++)
        lengths[i] = length_of(&spans->items[i]);
    qsort(lengths, spans->count, sizeof *lengths, by_value);
    stream->least = lengths[spans->count / 2] + 1;
    free(lengths);
    for (size_t i = 0; i < spans->count; i++) {
        if (length_of(&spans->items[i]) >= stream->least)
            spans->items[kept++] = spans->items[i];
        else
            leave_out(stream, &spans->items[i]);
    }
    spans->count = kept;
    return 0;
}

int pt_page_take(struct pt_page_stream *stream, const struct pt_nested_span *spans, size_t count,
                 struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        if (length_of(&spans[i]) < stream->least)
            leave_out(stream, &spans[i]);
        else if (array_push(&stream->spans, spans[i]) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for the page's spans");
        else if (stream->spans.count > stream->most)
            result = thin_out(stream, err);
    }
    return result;
}

void pt_page_free(struct pt_page_stream *stream)
{
    array_free(&stream->spans);
}

// --- writing -----------------------------------------------------------------------------------

struct trace_page {
    const struct pt_result *result;
    const struct pt_page_stream *streams;
    struct pt_map labels; // number of a name, plus 1
    json_t *names;
    uint64_t begin, end; // of the streams that have time
    bool timed;
};

static void find_extent(struct trace_page *page)
{
    const struct pt_trace *trace = page->result->trace;
    page->begin = UINT64_MAX;
    for (size_t i = 0; i < trace->streams.count; i++)
        page->timed |= trace->streams.items[i]->timed;
    for (size_t i = 0; i < trace->streams.count; i++) {
        const struct pt_stream_result *stream = &page->result->streams[i];
        if (trace->streams.items[i]->timed != page->timed || stream->calls.spans == 0)
            continue;
        page->begin = stream->first < page->begin ? stream->first : page->begin;
        page->end = stream->last > page->end ? stream->last : page->end;
    }
    if (page->begin > page->end || !page->timed)
        page->begin = 0;
}

static double amount(const struct trace_page *page, uint64_t ticks)
{
    return page->timed ? pt_trace_duration_ns(page->result->trace, ticks) : (double)ticks;
}

static int add_name(json_t *names, const char *text)
{
    json_t *name = json_string(text);
    return json_array_append_new(names, name ? name : json_string("?")); // it is no UTF-8
}

// The index of the span's name; negative: no memory.
static int64_t label_of(struct trace_page *page, const struct pt_span *span)
{
    struct pt_map_key key = pt_map_key_of(span, 0);
    uint32_t *number = pt_map_at(&page->labels, key);
    char text[PT_LABEL_BYTES];
    if (!number)
        return -1;
    if (*number == 0) {
        const char *label = pt_label(page->result->trace, (enum pt_span_kind)key.kind, key.function,
                                     key.known, text);
        if (add_name(page->names, label) < 0)
            return -1;
        *number = (uint32_t)json_array_size(page->names);
    }
    return *number - 1;
}

enum column { KIND, LABEL, TASK, DEPTH, CUT, FROM, SPAN, COLUMNS };
static const char *const column_names[COLUMNS] = {"kind", "label", "task", "depth",
                                                  "cut",  "from",  "span"};

static double value_of(struct trace_page *page, const struct pt_nested_span *nested,
                       enum column column)
{
    const struct pt_span *span = &nested->span;
    switch (column) {
    case KIND:
        return span->kind;
    case LABEL:
        return (double)label_of(page, span);
    case TASK:
        return span->task == PT_NO_TASK ? -1 : (double)span->task;
    case DEPTH:
        return nested->depth;
    case CUT:
        return span->cut_begin + 2 * span->cut_end;
    case FROM:
        return amount(page, span->begin > page->begin ? span->begin - page->begin : 0);
    default:
        return amount(page, span->end - span->begin);
    }
}

static int write_stream(struct trace_page *page, size_t index, FILE *out, struct error *err)
{
    const struct pt_page_stream *stream = &page->streams[index];
    const struct pt_stream_result *decoded = &page->result->streams[index];
    int result = 0;
    fprintf(out,
            "{\"name\":%zu,\"errors\":%" PRIu64
            ",\"lost\":%.0f,\"least\":%.0f,\"left_out\":%" PRIu64 ",\"left_out_self\":%.0f",
            index, decoded->error_count, amount(page, decoded->calls.gap_time),
            amount(page, stream->least), stream->left_out, amount(page, stream->left_out_self));
    for (int column = 0; result == 0 && column < COLUMNS; column++) {
        fprintf(out, ",\"%s\":[", column_names[column]);
        for (size_t i = 0; result == 0 && i < stream->spans.count; i++) {
            double value = value_of(page, &stream->spans.items[i], (enum column)column);
            if (column == LABEL && value < 0)
                result = error_set(err, ERROR_FAILED, "out of memory for names");
            fprintf(out, "%s%.0f", i ? "," : "", value);
        }
        fputc(']', out);
    }
    fputc('}', out);
    return result;
}

static json_t *tasks_json(const struct pt_trace *trace)
{
    json_t *out = json_array();
    for (size_t i = 0; i < trace->tasks.count; i++) {
        const struct pt_task_name *task = &trace->tasks.items[i];
        json_t *name = json_string(task->name);
        json_array_append_new(out,
                              json_pack("[I, I, o]", (json_int_t)task->task,
                                        (json_int_t)task->process, name ? name : json_string("?")));
    }
    return out;
}

static json_t *notes_json(const struct pt_trace *trace)
{
    json_t *out = json_array();
    for (size_t i = 0; i < trace->notes.count; i++)
        json_array_append_new(out, json_string(trace->notes.items[i]));
    return out;
}

static int write_member(const char *key, json_t *value, FILE *out, struct error *err)
{
    fprintf(out, ",\"%s\":", key);
    int result = value ? page_write_json(value, out, err)
                       : error_set(err, ERROR_FAILED, "out of memory for the page");
    json_decref(value);
    return result;
}

static int write_data(void *context, FILE *out, struct error *err)
{
    struct trace_page *page = context;
    const struct pt_trace *trace = page->result->trace;
    int result = 0;
    fprintf(out, "{\"unit\":\"%s\",\"length\":%.0f,\"streams\":[",
            !page->timed         ? "instructions"
            : trace->clock.valid ? "ns"
                                 : "ticks",
            amount(page, page->end > page->begin ? page->end - page->begin : 0));
    for (size_t i = 0; result == 0 && i < trace->streams.count; i++) {
        fputs(i ? "," : "", out);
        result = write_stream(page, i, out, err);
    }
    fputc(']', out);
    if (result == 0)
        result = write_member("names", json_incref(page->names), out, err);
    if (result == 0)
        result = write_member("tasks", tasks_json(trace), out, err);
    if (result == 0)
        result = write_member("notes", notes_json(trace), out, err);
    fputc('}', out);
    return result;
}

int pt_page_write(const struct pt_result *result, const struct pt_page_stream *streams,
                  const char *path, struct error *err)
{
    struct trace_page page = {.result = result, .streams = streams, .names = json_array()};
    bool named = page.names != NULL;
    for (size_t i = 0; named && i < result->trace->streams.count; i++)
        named = add_name(page.names, result->trace->streams.items[i]->name) == 0;
    find_extent(&page);
    static const char *const scripts[] = {"page_plot.js", "page_trace.js", NULL};
    const struct page html = {.template_name = "page_trace.html",
                              .title = "Processor trace",
                              .scripts = scripts,
                              .write_data = write_data,
                              .context = &page};
    int written = !named ? error_set(err, ERROR_FAILED, "out of memory for %s", path)
                         : page_write(&html, path, err);
    json_decref(page.names);
    pt_map_free(&page.labels);
    return written;
}
