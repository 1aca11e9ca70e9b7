// SPDX-License-Identifier: MIT
#include "analysis/trace_export.h"

#include <stdlib.h>

#include "analysis/export/pt_folded.h"
#include "analysis/export/pt_perfetto.h"
#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_result.h"
#include "analysis/pt/pt_strip.h"
#include "analysis/report/page/page_trace.h"
#include "base/text.h"

struct stream_export {
    struct export *all;
    size_t stream;
    struct pt_order order;
    struct pt_folded folded;
    struct pt_page_stream page;
};

struct export
{
    const struct pt_export_files *files;
    struct pt_perfetto *perfetto;
    struct stream_export *streams;
    struct pt_strip *strips;
    void **contexts; // of the streams
    size_t count;
};

static int take_spans(void *context, const struct pt_nested_span *spans, size_t count,
                      struct error *err)
{
    struct stream_export *stream = context;
    int result = 0;
    if (stream->all->perfetto)
        result = pt_perfetto_take(stream->all->perfetto, stream->stream, spans, count, err);
    if (result == 0 && stream->all->files->folded)
        result = pt_folded_take(&stream->folded, spans, count, err);
    if (result == 0 && stream->all->files->page)
        result = pt_page_take(&stream->page, spans, count, err);
    return result;
}

static int take_span(void *context, const struct pt_span *span, struct error *err)
{
    struct stream_export *stream = context;
    const struct pt_export_files *files = stream->all->files;
    if (files->strips && pt_strip_take(&stream->all->strips[stream->stream], span) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the timeline");
    bool ordered = files->perfetto || files->folded || files->page;
    return ordered ? pt_order_take(&stream->order, span, err) : 0;
}

// All strips cover the same time: that of the whole trace.
static void place_strips(struct export *export, const struct pt_trace *trace)
{
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t i = 0; i < export->count; i++) {
        const struct pt_packets *packets = &trace->streams.items[i]->packets;
        begin = packets->first_tsc && packets->first_tsc < begin ? packets->first_tsc : begin;
        end = packets->last_tsc > end ? packets->last_tsc : end;
    }
    for (size_t i = 0; i < export->count; i++)
        export->strips[i] = (struct pt_strip){.begin = begin, .end = end > begin ? end : begin};
}

static int export_open(struct export *export, const struct pt_trace *trace, struct error *err)
{
    export->count = trace->streams.count;
    export->streams = calloc(export->count + 1, sizeof *export->streams);
    export->contexts = calloc(export->count + 1, sizeof *export->contexts);
    export->strips = calloc(export->count + 1, sizeof *export->strips);
    if (!export->streams || !export->contexts || !export->strips)
        return error_set(err, ERROR_FAILED, "out of memory for %s streams",
                         TEXT_COUNT(export->count));
    for (size_t i = 0; i < export->count; i++) {
        struct stream_export *stream = &export->streams[i];
        *stream = (struct stream_export){.all = export, .stream = i};
        stream->order.sink = take_spans;
        stream->order.context = stream;
        stream->page.most = PT_PAGE_SPANS / export->count + 2;
        export->contexts[i] = stream;
    }
    place_strips(export, trace);
    if (!export->files->perfetto)
        return 0;
    export->perfetto = pt_perfetto_create(trace, export->files->perfetto, err);
    return export->perfetto ? 0 : -ERROR_FAILED;
}

static int write_folded(struct export *export, const struct pt_trace *trace, struct error *err)
{
    struct pt_folded all = {0};
    int result = 0;
    for (size_t i = 0; result == 0 && i < export->count; i++)
        result = pt_folded_add(&all, &export->streams[i].folded, err);
    if (result == 0)
        result = pt_folded_write(&all, trace, export->files->folded, err);
    pt_folded_free(&all);
    return result;
}

static int write_page(const struct export *export, const struct pt_result *result,
                      struct error *err)
{
    struct pt_page_stream *streams = calloc(export->count + 1, sizeof *streams);
    if (!streams)
        return error_set(err, ERROR_FAILED, "out of memory for %s", export->files->page);
    for (size_t i = 0; i < export->count; i++)
        streams[i] = export->streams[i].page;
    int written = pt_page_write(result, streams, export->files->page, err);
    free(streams);
    return written;
}

static void export_free(struct export *export)
{
    for (size_t i = 0; export->streams && i < export->count; i++) {
        pt_order_free(&export->streams[i].order);
        pt_folded_free(&export->streams[i].folded);
        pt_page_free(&export->streams[i].page);
    }
    for (size_t i = 0; export->strips && i < export->count; i++)
        pt_strip_free(&export->strips[i]);
    free(export->strips);
    free(export->streams);
    free(export->contexts);
}

int pt_export_decode(const struct pt_trace *trace, const struct pt_decode_options *options,
                     const struct pt_export_files *files, struct pt_result *out, struct error *err)
{
    struct export export = {.files = files};
    bool spans = files->perfetto || files->folded || files->strips || files->page;
    *out = (struct pt_result){.trace = trace};
    int result = export_open(&export, trace, err);
    if (result == 0)
        result =
            pt_result_decode(trace, options, spans ? take_span : NULL, export.contexts, out, err);
    for (size_t i = 0; result == 0 && i < export.count; i++)
        result = pt_order_finish(&export.streams[i].order, err);
    struct error ignored;
    int closed = pt_perfetto_close(export.perfetto, result < 0, result < 0 ? &ignored : err);
    result = result < 0 ? result : closed;
    if (result == 0 && files->folded)
        result = write_folded(&export, trace, err);
    if (result == 0 && files->csv)
        result = pt_functions_write_csv(out, files->csv, err);
    if (result == 0 && files->page)
        result = write_page(&export, out, err);
    if (result == 0 && files->strips)
        pt_strip_print(export.strips, out, files->strips);
    export_free(&export);
    return result;
}
