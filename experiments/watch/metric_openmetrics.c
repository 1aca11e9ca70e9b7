// SPDX-License-Identifier: MIT
//
// OpenMetrics 1.0 (github.com/OpenObservability/OpenMetrics, specification/OpenMetrics.md).
#include <stdio.h>
#include <string.h>

#include "experiments/watch/metric_format.h"

static void begin(struct metric_output *out, const struct metric_family *family)
{
    static const char *const types[] = {
        [METRIC_COUNTER] = "counter",
        [METRIC_HISTOGRAM] = "histogram",
    };
    out->family = family;
    evbuffer_add_printf(out->text, "# TYPE taillight_%s %s\n", family->name, types[family->type]);
    if (family->unit[0])
        evbuffer_add_printf(out->text, "# UNIT taillight_%s %s\n", family->name, family->unit);
    evbuffer_add_printf(out->text, "# HELP taillight_%s %s\n", family->name, family->help);
}

// A label's value: backslash, quote and newline are escaped.
static const char *escaped(const char *text, char out[METRIC_LABEL_BYTES])
{
    size_t used = 0;
    for (; *text && used + 3 < METRIC_LABEL_BYTES; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            out[used++] = '\\';
        out[used++] = *text == '\n' ? 'n' : *text;
    }
    out[used] = '\0';
    return out;
}

// bound: a bucket's, "" for none.
static void write_name(struct metric_output *out, const char *suffix,
                       const struct metric_labels *labels, const char *bound)
{
    char value[METRIC_LABEL_BYTES];
    const char *before = "{";
    evbuffer_add_printf(out->text, "taillight_%s%s", out->family->name, suffix);
    for (size_t i = 0; i < labels->count; i++, before = ",")
        evbuffer_add_printf(out->text, "%s%s=\"%s\"", before, labels->items[i].name,
                            escaped(labels->items[i].value, value));
    if (bound[0]) {
        evbuffer_add_printf(out->text, "%sle=\"%s\"", before, bound);
        before = ",";
    }
    evbuffer_add_printf(out->text, "%s ", *before == ',' ? "}" : "");
}

static void write_counter(struct metric_output *out, const struct metric_labels *labels,
                          double value)
{
    write_name(out, "_total", labels, "");
    evbuffer_add_printf(out->text, "%.15g\n", value);
}

static void write_histogram(struct metric_output *out, const struct metric_labels *labels,
                            const struct metric_histogram *histogram)
{
    uint64_t sum = 0;
    for (int bucket = 0; bucket <= METRIC_BOUNDS; bucket++) {
        char bound[32] = "+Inf";
        if (bucket < METRIC_BOUNDS)
            snprintf(bound, sizeof bound, "%.9g", metric_bound(bucket));
        sum += histogram->counts[bucket];
        write_name(out, "_bucket", labels, bound);
        evbuffer_add_printf(out->text, "%llu\n", (unsigned long long)sum);
    }
    write_name(out, "_sum", labels, "");
    evbuffer_add_printf(out->text, "%.9g\n", histogram->sum);
    write_name(out, "_count", labels, "");
    evbuffer_add_printf(out->text, "%llu\n", (unsigned long long)sum);
}

static void end(struct metric_output *out)
{
    out->family = NULL;
}

// A text without this line is known to be cut short.
static void finish(struct metric_output *out)
{
    if (evbuffer_add_printf(out->text, "# EOF\n") < 0)
        out->failed = true;
}

const struct metric_format metric_openmetrics = {
    .content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
    .media_type = "application/openmetrics-text",
    .begin = begin,
    .counter = write_counter,
    .histogram = write_histogram,
    .end = end,
    .finish = finish,
};
