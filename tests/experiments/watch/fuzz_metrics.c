// SPDX-License-Identifier: MIT
//
// What a scraper may send as its Accept header, and what a label may hold: one of the formats is
// chosen; in OpenMetrics each line is a comment or a name with quoted labels and a number, whatever
// the labels say; protobuf's messages have the lengths they say. The input: up to the first zero
// byte the header, then a label's value.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/watch/metric_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Behind a label's opening quote: its end, or NULL.
static const char *value_end(const char *at)
{
    for (; *at && *at != '"' && *at != '\n'; at++)
        if (*at == '\\' && *++at != '\\' && *at != '"' && *at != 'n')
            return NULL;
    return *at == '"' ? at + 1 : NULL;
}

static void check_line(const char *line, size_t bytes)
{
    const char *end = line + bytes;
    if (*line == '#')
        return;
    assert(strncmp(line, "taillight_", 10) == 0);
    line += strcspn(line, "{ \n");
    if (*line == '{') {
        do {
            line += 1 + strspn(line + 1, "abcdefghijklmnopqrstuvwxyz_");
            assert(line[0] == '=' && line[1] == '"');
            line = value_end(line + 2);
            assert(line && line < end);
        } while (*line == ',');
        assert(*line++ == '}');
    }
    assert(*line == ' ');
    char *rest;
    assert(!isnan(strtod(line + 1, &rest)) && rest == end);
}

static void check_openmetrics(const char *text)
{
    const char *last = "";
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        check_line(text, (size_t)(end - text));
        last = text;
    }
    assert(!*text && strcmp(last, "# EOF\n") == 0);
}

static size_t varint(const uint8_t **at, const uint8_t *end)
{
    size_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        assert(*at < end);
        value |= (size_t)(**at & 127) << shift;
        if (!(*(*at)++ & 128))
            return value;
    }
    abort();
}

static void check_protobuf(const uint8_t *at, size_t bytes)
{
    const uint8_t *end = at + bytes;
    while (at < end) {
        size_t message = varint(&at, end);
        assert(message > 0 && message <= (size_t)(end - at));
        at += message;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct metric_family counter = {"a", "seconds", "b", METRIC_COUNTER},
                                      latency = {"c", "", "d", METRIC_HISTOGRAM};
    struct metric_histogram histogram = {0};
    char accept[512], label[1024];
    if (size >= sizeof accept)
        return 0;
    memcpy(accept, data, size);
    accept[size] = '\0';
    size_t header = strlen(accept);
    snprintf(label, sizeof label, "%s", header < size ? accept + header + 1 : "");
    struct metric_output out = {.format = metric_format_accepted(accept), .text = evbuffer_new()};
    assert(out.format && metric_format_accepted(NULL) == &metric_openmetrics);
    const struct metric_labels labels = {2, {{"cause", label}, {"role", accept}}};
    double seconds = 0;
    memcpy(&seconds, data, size < sizeof seconds ? size : sizeof seconds);
    metric_observe(&histogram, isfinite(seconds) ? fabs(seconds) : 1);
    out.format->begin(&out, &counter);
    out.format->counter(&out, &labels, 1.5);
    out.format->end(&out);
    out.format->begin(&out, &latency);
    out.format->histogram(&out, &labels, &histogram);
    out.format->end(&out);
    out.format->finish(&out);
    evbuffer_add(out.text, "", 1);
    const size_t bytes = evbuffer_get_length(out.text) - 1;
    const uint8_t *text = evbuffer_pullup(out.text, -1);
    if (out.format == &metric_openmetrics)
        check_openmetrics((const char *)text);
    else
        check_protobuf(text, bytes);
    evbuffer_free(out.text);
    return 0;
}
