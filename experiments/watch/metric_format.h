// SPDX-License-Identifier: MIT
//
// How metrics are written for who asks for them: a format is a file and a row of operations. Names
// come without the "taillight_" in front and, counters, without "_total"; both are added.
#ifndef EXPERIMENTS_WATCH_METRIC_FORMAT_H
#define EXPERIMENTS_WATCH_METRIC_FORMAT_H

#include <event2/buffer.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/protobuf.h"
#include "experiments/watch/metric_histogram.h"

enum metric_type { METRIC_COUNTER, METRIC_HISTOGRAM };

struct metric_family {
    const char *name, *unit, *help; // unit: "" is none
    enum metric_type type;
};

enum { METRIC_LABELS = 4, METRIC_LABEL_BYTES = 400 };

struct metric_labels {
    size_t count;
    struct {
        const char *name, *value;
    } items[METRIC_LABELS];
};

// What is being written. A zeroed one with its format is at the beginning.
struct metric_output {
    const struct metric_format *format;
    struct evbuffer *text;
    struct protobuf message; // freed by end()
    size_t opened;
    const struct metric_family *family; // the one begun last
    bool failed;                        // no memory: what is written is not whole
};

// One family after the other: begin, its metrics, end. finish: after the last.
struct metric_format {
    const char *content_type;
    const char *media_type; // what an Accept header calls it
    void (*begin)(struct metric_output *out, const struct metric_family *family);
    void (*counter)(struct metric_output *out, const struct metric_labels *labels, double value);
    void (*histogram)(struct metric_output *out, const struct metric_labels *labels,
                      const struct metric_histogram *histogram);
    void (*end)(struct metric_output *out);
    void (*finish)(struct metric_output *out);
};

extern const struct metric_format metric_openmetrics; // OpenMetrics 1.0, the text
extern const struct metric_format metric_protobuf;    // io.prometheus.client.MetricFamily

#endif
