// SPDX-License-Identifier: MIT
#include "experiments/study/matrix.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "analysis/report/page/report_set.h"
#include "base/json_numbers.h"
#include "experiments/capture/capture_backend.h"

static const char baseline[] = "=baseline"; // the end of its label

static const char *label_of(const json_t *row)
{
    return json_string_value(json_object_get(row, "configuration"));
}

// Formats a time in us; "never" for the null that stands for requests without a reply.
static const char *micros(const json_t *of, const char *key, char out[32])
{
    const double us = json_percentile(of, key);
    if (isfinite(us))
        snprintf(out, 32, "%.1f", us);
    else
        snprintf(out, 32, "%s", isnan(us) ? "-" : "never");
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

static void print_table(const json_t *list, FILE *out)
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

// A table for each load beside the first, of the same configurations.
static void print_others(const json_t *list, FILE *out)
{
    const char *name;
    json_t *ignored;
    json_object_foreach(json_object_get(json_array_get(list, 0), "loads"), name, ignored)
    {
        json_t *rows = json_array(), *row;
        size_t i;
        json_array_foreach(list, i, row)
        {
            json_t *own = json_object_get(json_object_get(row, "loads"), name);
            json_t *copy = json_copy(own ? own : row); // a skipped one has no loads
            json_object_set(copy, "configuration", json_object_get(row, "configuration"));
            json_array_append_new(rows, copy);
        }
        fprintf(out, "\nThe load `%s`:\n", name);
        print_table(rows, out);
        json_decref(rows);
    }
}

// --- one configuration ---------------------------------------------------------------------------

// The first three of the causes that explain something.
static json_t *first_causes(const json_t *summary)
{
    json_t *list = json_array();
    size_t i;
    json_t *cause;
    json_array_foreach(json_object_get(summary, "causes"), i,
                       cause) if (json_is_true(json_object_get(cause, "explains")) &&
                                  json_array_size(list) < 3)
        json_array_append_new(list,
                              json_pack("{s:O,s:O,s:O}", "cause", json_object_get(cause, "cause"),
                                        "role", json_object_get(cause, "role"), "total_us",
                                        json_object_get(cause, "total_us")));
    return list;
}

// How long the server's cores were busy for each answered request of all loads, over one or more
// runs; unknown when one of the runs has not recorded it.
struct cpu_sum {
    double busy_ns, answered;
    bool unknown;
};

static double answered_of(const struct run_folder *folder, const char *name)
{
    struct error unusable;
    char of_load[LOAD_FOLDER_BYTES], file[LOAD_FOLDER_BYTES + 16];
    snprintf(file, sizeof file, "%s/load.json", run_load_folder(name, of_load));
    json_t *load = run_folder_read_json(folder, file, &unusable);
    const double answered = json_number_value(json_object_get(load, "answered"));
    json_decref(load);
    return answered;
}

static void add_cpu(struct cpu_sum *sum, const struct run_folder *folder)
{
    struct error unusable;
    json_t *experiment = run_folder_read_json(folder, "experiment.json", &unusable);
    const json_t *busy = json_object_get(json_object_get(experiment, "server_cpu"), "busy_ns");
    sum->unknown |= !json_is_number(busy);
    sum->busy_ns += json_number_value(busy);
    sum->answered += answered_of(folder, NULL);
    const char *name;
    json_t *load;
    json_object_foreach(json_object_get(experiment, "loads"), name, load)
    {
        (void)load;
        sum->answered += answered_of(folder, name);
    }
    json_decref(experiment);
}

static json_t *cpu_json(const struct cpu_sum *sum)
{
    return sum->unknown || sum->answered <= 0 ? json_null()
                                              : json_real(sum->busy_ns / sum->answered / 1000);
}

// name: of the load (NULL: the first or only one).
static json_t *load_row(const struct run_folder *folder, const char *name, struct error *err)
{
    json_t *load, *summary;
    if (run_results_read(folder, name, &load, &summary, err) < 0)
        return NULL;
    json_t *row = json_pack(
        "{s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:o}", "load_verdict", json_object_get(load, "verdict"),
        "load_reasons", json_object_get(load, "reasons"), "achieved_rate",
        json_object_get(load, "achieved_rate"), "requests", json_object_get(load, "scheduled"),
        "latency_us", json_object_get(load, "latency_us"), "ci_us", json_object_get(load, "ci_us"),
        "uncorrected_latency_us", json_object_get(load, "uncorrected_latency_us"), "verdict",
        json_object_get(summary, "verdict"), "causes", first_causes(summary));
    if (!row)
        error_set(err, ERROR_FAILED, "%s: the load's summary lacks something", folder->path);
    json_decref(load);
    json_decref(summary);
    return row;
}

static json_t *single_row(const struct run_folder *folder, struct error *err)
{
    struct cpu_sum cpu = {0};
    json_t *row = load_row(folder, NULL, err);
    if (!row)
        return NULL;
    add_cpu(&cpu, folder);
    json_object_set_new(row, "server_cpu_us", cpu_json(&cpu));
    return row;
}

static json_t *repeated_cpu(const struct run_folder *folder, const json_t *repetitions)
{
    struct cpu_sum cpu = {.unknown = json_array_size(repetitions) == 0};
    size_t i;
    json_t *one;
    json_array_foreach(repetitions, i, one)
    {
        struct run_folder inside;
        struct error unusable;
        if (run_folder_inside(folder, json_string_value(json_object_get(one, "folder")), &inside,
                              &unusable) < 0)
            cpu.unknown = true;
        else
            add_cpu(&cpu, &inside);
    }
    return cpu_json(&cpu);
}

// Of one load: repetitions.json's outermost object, or one of its `loads`.
static json_t *pooled_row(json_t *all)
{
    const json_t *pooled = json_object_get(all, "pooled");
    json_t *alone = json_copy(all); // the other loads have rows of their own
    char doubt[REPORT_DOUBT_BYTES];
    json_object_del(alone, "loads");
    json_t *row =
        json_pack("{s:O,s:O,s:O,s:O,s:I,s:s}", "requests", json_object_get(pooled, "requests"),
                  "latency_us", json_object_get(pooled, "latency_us"), "ci_us",
                  json_object_get(pooled, "ci_us"), "between", json_object_get(all, "between"),
                  "repetitions", (json_int_t)json_array_size(json_object_get(all, "list")),
                  "load_verdict", report_set_doubt(alone, doubt)[0] ? "n/a" : "ok");
    if (row && doubt[0])
        json_object_set_new(row, "load_reasons", json_pack("[s]", doubt));
    json_decref(alone);
    return row;
}

static json_t *repeated_row(const struct run_folder *folder, struct error *err)
{
    json_t *all = run_folder_read_json(folder, "repetitions.json", err);
    json_t *row = all ? pooled_row(all) : NULL, *others = json_object(), *load;
    const char *name;
    if (row)
        json_object_set_new(row, "server_cpu_us",
                            repeated_cpu(folder, json_object_get(all, "list")));
    json_object_foreach(json_object_get(all, "loads"), name, load)
        json_object_set_new(others, name, pooled_row(load));
    if (json_object_size(others))
        json_object_set(row, "loads", others);
    if (all && !row)
        error_set(err, ERROR_FAILED, "%s: repetitions.json lacks something", folder->path);
    json_decref(others);
    json_decref(all);
    return row;
}

// Adds the loads beside the first, where there are any, to the row of a run.
static int add_others(json_t *row, const struct experiment *experiment,
                      const struct run_folder *folder, struct error *err)
{
    const size_t count = experiment_load_count(experiment);
    if (count < 2)
        return 0;
    json_object_set_new(row, "load", json_string(experiment->load.name));
    if (experiment->repetitions > 1)
        return 0;
    json_t *others = json_object();
    json_object_set_new(row, "loads", others);
    for (size_t i = 1; i < count; i++) {
        const char *name = experiment_load_at(experiment, i)->name;
        json_t *one = load_row(folder, name, err);
        if (!one || json_object_set_new(others, name, one) < 0)
            return -ERROR_FAILED;
    }
    return 0;
}

// --- the document -------------------------------------------------------------------------------

static int write_matrix(const struct run_folder *folder, const char *name, json_t *list,
                        const struct run_results_settings *results, struct error *err)
{
    char doubt[REPORT_DOUBT_BYTES];
    json_t *document = json_pack("{s:s,s:I,s:O}", "name", name, "count",
                                 (json_int_t)json_array_size(list), "list", list);
    int result = document ? run_folder_write_json(folder, "matrix.json", document, err)
                          : error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0 && results->gates)
        result = gate_report_write_json(&results->gates->results, folder, err);
    if (result == 0)
        result = report_set_write(folder->path, NULL, err);
    if (result == 0 && results->json)
        result = json_print_new(json_incref(document), JSON_FOR_PEOPLE, "the table", err);
    else if (result == 0) {
        if (!results->quiet)
            print_table(list, stdout);
        if (!results->quiet)
            print_others(list, stdout);
        if (!results->quiet)
            putchar('\n');
        if (report_set_doubt(document, doubt)[0])
            fprintf(results->quiet ? stderr : stdout, "%s\n", doubt);
        printf("%s%s/report.html\n", results->quiet ? "" : "Report: ", folder->path);
    }
    if (result == 0 && fflush(stdout) == EOF)
        result = error_set_errno(err, ERROR_FAILED, "cannot print the table");
    json_decref(document);
    return result;
}

// --- all of them ---------------------------------------------------------------------------------

static bool load_can_be_trusted(const json_t *row)
{
    const char *verdict = json_string_value(json_object_get(row, "load_verdict")), *name;
    bool trusted = !verdict || strcmp(verdict, "n/a") != 0;
    json_t *other;
    json_object_foreach(json_object_get(row, "loads"), name, other) trusted &=
        load_can_be_trusted(other);
    return trusted;
}

static int run_configuration(struct experiment *experiment, size_t number,
                             const struct run_folder *folder, matrix_run_one run_one,
                             const struct run_settings *settings,
                             const struct run_results_settings *results, json_t *list,
                             bool *available, struct error *err)
{
    char name[40];
    struct run_folder inside;
    struct run_results_settings silent = *results;
    bool verdict = false;
    snprintf(name, sizeof name, "configuration-%zu", number);
    if (run_folder_inside(folder, name, &inside, err) < 0)
        return -ERROR_INPUT;
    const struct run_settings here = {
        .folder = inside.path, .progress = settings->progress, .orders = settings->orders};
    silent.silent = true;
    progress_end(settings->progress);
    if (!results->quiet)
        fprintf(stderr, "%s: %s\n", name, experiment->configuration);
    int result = run_one(experiment, &here, &silent, &verdict, err);
    bool skipped = result == -ERROR_INCONCLUSIVE && experiment->capture_optional;
    if (result < 0 && !skipped)
        return error_prefix(err, "%s (%s)", name, experiment->configuration);
    json_t *row = skipped                       ? json_pack("{s:s}", "skipped", err->text)
                  : experiment->repetitions > 1 ? repeated_row(&inside, err)
                                                : single_row(&inside, err);
    if (!row)
        return -ERROR_FAILED;
    if (!skipped && add_others(row, experiment, &inside, err) < 0) {
        json_decref(row);
        return -ERROR_FAILED;
    }
    // Without a capture there is no verdict to be expected but the load's.
    *available &= verdict || skipped ||
                  (!capture_choice_records(experiment->backend) && load_can_be_trusted(row));
    json_object_set_new(row, "configuration", json_string(experiment->configuration));
    json_object_set_new(row, "folder", json_string(name));
    return json_array_append_new(list, row) < 0 ? error_set(err, ERROR_FAILED, "out of memory") : 0;
}

int matrix_run(struct experiment_set *set, matrix_run_one run_one,
               const struct run_settings *settings, const struct run_results_settings *results,
               bool *available, struct error *err)
{
    struct run_folder folder;
    json_t *list = json_array();
    *available = true;
    int result = run_make_folder(set->items[0].name, settings, &folder, err);
    for (size_t i = 0; result == 0 && i < set->count; i++)
        result = run_configuration(&set->items[i], i + 1, &folder, run_one, settings, results, list,
                                   available, err);
    progress_end(settings->progress);
    if (result == 0)
        result = write_matrix(&folder, set->items[0].name, list, results, err);
    json_decref(list);
    return result;
}
