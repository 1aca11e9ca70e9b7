// SPDX-License-Identifier: MIT
//
// Prometheus' protobuf: a stream of io.prometheus.client.MetricFamily, each behind its length
// (github.com/prometheus/client_model, io/prometheus/client/metrics.proto). The only format that
// carries native histograms; the buckets with bounds go along, for readers that take those.
#include <stdio.h>

#include "experiments/watch/metric_format.h"

enum { FAMILY_NAME = 1, FAMILY_HELP = 2, FAMILY_TYPE = 3, FAMILY_METRIC = 4 };
enum { TYPE_COUNTER = 0, TYPE_HISTOGRAM = 4 };
enum { METRIC_LABEL = 1, METRIC_HAS_COUNTER = 3, METRIC_HAS_HISTOGRAM = 7 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { COUNTER_VALUE = 1 };
enum {
    HISTOGRAM_COUNT = 1,
    HISTOGRAM_SUM = 2,
    HISTOGRAM_BUCKET = 3,
    HISTOGRAM_SCHEMA = 5,
    HISTOGRAM_ZERO_THRESHOLD = 6,
    HISTOGRAM_ZERO_COUNT = 7,
    HISTOGRAM_SPAN = 12,
    HISTOGRAM_DELTA = 13,
};
enum { BUCKET_CUMULATIVE = 1, BUCKET_BOUND = 2 };
enum { SPAN_OFFSET = 1, SPAN_LENGTH = 2 };

static void begin(struct metric_output *out, const struct metric_family *family)
{
    char name[256];
    out->family = family;
    out->message = (struct protobuf){0};
    out->opened = protobuf_open_delimited(&out->message);
    snprintf(name, sizeof name, "taillight_%s%s", family->name,
             family->type == METRIC_COUNTER ? "_total" : "");
    protobuf_text(&out->message, FAMILY_NAME, name);
    protobuf_text(&out->message, FAMILY_HELP, family->help);
    protobuf_number(&out->message, FAMILY_TYPE,
                    family->type == METRIC_COUNTER ? TYPE_COUNTER : TYPE_HISTOGRAM);
}

static void write_labels(struct protobuf *out, const struct metric_labels *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        size_t label = protobuf_open(out, METRIC_LABEL);
        protobuf_text(out, LABEL_NAME, labels->items[i].name);
        protobuf_text(out, LABEL_VALUE, labels->items[i].value);
        protobuf_close(out, label);
    }
}

static void write_counter(struct metric_output *out, const struct metric_labels *labels,
                          double value)
{
    size_t metric = protobuf_open(&out->message, FAMILY_METRIC);
    write_labels(&out->message, labels);
    size_t counter = protobuf_open(&out->message, METRIC_HAS_COUNTER);
    protobuf_double(&out->message, COUNTER_VALUE, value);
    protobuf_close(&out->message, counter);
    protobuf_close(&out->message, metric);
}

static uint64_t write_bounds(struct protobuf *out, const struct metric_histogram *histogram)
{
    uint64_t sum = 0;
    for (int i = 0; i <= METRIC_BOUNDS; i++) {
        sum += histogram->counts[i];
        if (i == METRIC_BOUNDS)
            break; // +Inf is the count itself
        size_t bucket = protobuf_open(out, HISTOGRAM_BUCKET);
        protobuf_number(out, BUCKET_CUMULATIVE, sum);
        protobuf_double(out, BUCKET_BOUND, metric_bound(i));
        protobuf_close(out, bucket);
    }
    return sum;
}

// Spans of neighbouring buckets that are not empty: each by its distance from the end of the one
// before (the first: its own number) and its length; then all their counts as differences.
static void write_native(struct protobuf *out, const struct metric_histogram *histogram)
{
    protobuf_signed(out, HISTOGRAM_SCHEMA, METRIC_SCHEMA);
    protobuf_double(out, HISTOGRAM_ZERO_THRESHOLD, METRIC_ZERO_SECONDS);
    protobuf_number(out, HISTOGRAM_ZERO_COUNT, histogram->zeros);
    int after = 0; // behind the span before
    for (int i = 0; i < METRIC_NATIVE; i++) {
        int from = i;
        while (i < METRIC_NATIVE && histogram->native[i])
            i++;
        if (i == from)
            continue;
        size_t span = protobuf_open(out, HISTOGRAM_SPAN);
        protobuf_signed(out, SPAN_OFFSET, METRIC_NATIVE_FIRST + from - after);
        protobuf_number(out, SPAN_LENGTH, (uint64_t)(i - from));
        protobuf_close(out, span);
        after = METRIC_NATIVE_FIRST + i;
    }
    uint64_t before = 0;
    for (int i = 0; i < METRIC_NATIVE; i++)
        if (histogram->native[i]) {
            protobuf_signed(out, HISTOGRAM_DELTA, (int64_t)(histogram->native[i] - before));
            before = histogram->native[i];
        }
}

static void write_histogram(struct metric_output *out, const struct metric_labels *labels,
                            const struct metric_histogram *histogram)
{
    struct protobuf *to = &out->message;
    size_t metric = protobuf_open(to, FAMILY_METRIC);
    write_labels(to, labels);
    size_t opened = protobuf_open(to, METRIC_HAS_HISTOGRAM);
    protobuf_number(to, HISTOGRAM_COUNT, write_bounds(to, histogram));
    protobuf_double(to, HISTOGRAM_SUM, histogram->sum);
    write_native(to, histogram);
    protobuf_close(to, opened);
    protobuf_close(to, metric);
}

static void end(struct metric_output *out)
{
    protobuf_close(&out->message, out->opened);
    if (out->message.failed || evbuffer_add(out->text, out->message.items, out->message.count) < 0)
        out->failed = true;
    protobuf_free(&out->message);
    out->family = NULL;
}

static void finish(struct metric_output *out)
{
    (void)out; // the last message is the end
}

const struct metric_format metric_protobuf = {
    .content_type = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
                    "encoding=delimited",
    .media_type = "application/vnd.google.protobuf",
    .begin = begin,
    .counter = write_counter,
    .histogram = write_histogram,
    .end = end,
    .finish = finish,
};
