// SPDX-License-Identifier: MIT
#include "experiments/study/matrix_table.h"

#include <stdbool.h>
#include <string.h>

static const char baseline[] = "=baseline"; // the end of its label

static const char *label_of(const json_t *row)
{
    return json_string_value(json_object_get(row, "configuration"));
}

// Formats a time in us; "never" for the null that stands for requests without a reply.
static const char *micros(const json_t *of, const char *key, char out[32])
{
    const json_t *value = json_object_get(of, key);
    snprintf(out, 32, "%s", json_is_null(value) ? "never" : "-");
    if (json_is_number(value))
        snprintf(out, 32, "%.1f", json_number_value(value));
    return out;
}

// --- the last column: the first cause ------------------------------------------------------------

static void print_end(const json_t *row, FILE *out)
{
    const char *verdict = json_string_value(json_object_get(row, "load_verdict"));
    const json_t *cause = json_array_get(json_object_get(row, "causes"), 0);
    if (verdict && strcmp(verdict, "ok") != 0)
        fprintf(out, "  load %s: %s", verdict,
                json_string_value(json_array_get(json_object_get(row, "load_reasons"), 0)));
    else if (cause)
        fprintf(out, "  %s (%s)", json_string_value(json_object_get(cause, "cause")),
                json_string_value(json_object_get(cause, "role")));
    fputc('\n', out);
}

// --- latency, from the intended and from the send time -------------------------------------------

static const char *const intended[] = {"p50", "p99", "p99.9", "max"};
static const char *const sent[] = {"p50", "p99", "p99.9"};
enum { INTENDED = sizeof intended / sizeof *intended, SENT = sizeof sent / sizeof *sent };

static void print_latency_head(int width, FILE *out)
{
    fprintf(out, "%-*s  %*s | %*s\n%-*s ", width, "", INTENDED * 10 - 1,
            "latency from the intended instant, us", SENT * 10, "from the send, us", width,
            "configuration");
    for (size_t i = 0; i < INTENDED; i++)
        fprintf(out, " %9s", intended[i]);
    fputs(" |", out);
    for (size_t i = 0; i < SENT; i++)
        fprintf(out, " %9s", sent[i]);
    fprintf(out, "  first cause\n");
}

static void print_latency_row(const json_t *row, int width, FILE *out)
{
    char text[32];
    const json_t *corrected = json_object_get(row, "latency_us"),
                 *uncorrected = json_object_get(row, "uncorrected_latency_us");
    fprintf(out, "%-*s ", width, label_of(row));
    for (size_t i = 0; i < INTENDED; i++)
        fprintf(out, " %9s", micros(corrected, intended[i], text));
    fputs(" |", out);
    for (size_t i = 0; i < SENT; i++)
        fprintf(out, " %9s", micros(uncorrected, sent[i], text));
    print_end(row, out);
}

// --- what the rows cost compared with the baseline -----------------------------------------------

// Whether two labels differ in the last axis only.
static bool same_group(const char *left, const char *right)
{
    const char *a = strrchr(left, ' '), *b = strrchr(right, ' ');
    size_t length = a ? (size_t)(a - left) : 0;
    return length == (b ? (size_t)(b - right) : 0) && strncmp(left, right, length) == 0;
}

static bool is_baseline(const json_t *row)
{
    const char *label = label_of(row);
    size_t length = label ? strlen(label) : 0;
    return length >= sizeof baseline - 1 &&
           strcmp(label + length - (sizeof baseline - 1), baseline) == 0;
}

// The baseline of the row's group; with row NULL the first baseline there is.
static const json_t *baseline_of(const json_t *list, const json_t *row)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i,
                       one) if (is_baseline(one) &&
                                (!row || same_group(label_of(row), label_of(one)))) return one;
    return NULL;
}

// Prints the ratio of a value to the baseline's.
static void print_ratio(const json_t *value, const json_t *base, FILE *out)
{
    double one = json_number_value(value), other = json_number_value(base);
    if (one > 0 && other > 0)
        fprintf(out, " %6.2f", one / other);
    else
        fprintf(out, " %6s", "-");
}

static void print_percentile(const json_t *row, const json_t *base, const char *name, FILE *out)
{
    char text[32];
    const json_t *latency = json_object_get(row, "latency_us");
    const json_t *interval = json_object_get(json_object_get(row, "ci_us"), name);
    fprintf(out, " %9s", micros(latency, name, text));
    if (json_array_size(interval) == 2)
        snprintf(text, sizeof text, "%.1f-%.1f", json_number_value(json_array_get(interval, 0)),
                 json_number_value(json_array_get(interval, 1)));
    else
        strcpy(text, "-");
    fprintf(out, " %15s", text);
    print_ratio(json_object_get(latency, name),
                json_object_get(json_object_get(base, "latency_us"), name), out);
}

static void print_cost_head(int width, FILE *out)
{
    fprintf(out, "%-*s", width, "configuration");
    fprintf(out, " %9s %15s %6s %9s %15s %6s %9s %6s  %s\n", "p50/us", "95 %", "ratio", "p99/us",
            "95 %", "ratio", "CPU/us", "ratio", "first cause");
}

static void print_cost_row(const json_t *row, const json_t *base, int width, FILE *out)
{
    char text[32];
    fprintf(out, "%-*s", width, label_of(row));
    print_percentile(row, base, "p50", out);
    print_percentile(row, base, "p99", out);
    fprintf(out, " %9s", micros(row, "server_cpu_us", text));
    print_ratio(json_object_get(row, "server_cpu_us"), json_object_get(base, "server_cpu_us"), out);
    print_end(row, out);
}

void matrix_table_print(const json_t *list, FILE *out)
{
    int width = (int)strlen("configuration");
    const json_t *before = NULL;
    bool costs = baseline_of(list, NULL) != NULL;
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        int length = (int)json_string_length(json_object_get(row, "configuration"));
        width = length > width ? length : width;
    }
    (costs ? print_cost_head : print_latency_head)(width, out);
    json_array_foreach(list, i, row)
    {
        const char *skipped = json_string_value(json_object_get(row, "skipped"));
        if (costs && before && !same_group(label_of(before), label_of(row)))
            fputc('\n', out);
        before = row;
        if (skipped)
            fprintf(out, "%-*s  skipped: %s\n", width, label_of(row), skipped);
        else if (costs)
            print_cost_row(row, baseline_of(list, row), width, out);
        else
            print_latency_row(row, width, out);
    }
    if (costs)
        fprintf(out, "\nCPU: time that the server's cores were busy, for each answered request; "
                     "ratio: to the group's baseline.\n");
}
