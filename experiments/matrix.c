// SPDX-License-Identifier: MIT
#include "experiments/matrix.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const columns[] = {"p50", "p99", "p99.9", "max"};
enum { COLUMNS = sizeof columns / sizeof *columns };

// --- one configuration ---------------------------------------------------------------------------

// The causes that explain most, first three.
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

static json_t *single_row(const struct run_folder *folder, struct error *err)
{
    json_t *load = run_folder_read_json(folder, "client/load.json", err);
    json_t *summary = load ? run_folder_read_json(folder, "summary.json", err) : NULL, *row = NULL;
    if (summary)
        row = json_pack(
            "{s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:o}", "load_verdict", json_object_get(load, "verdict"),
            "load_reasons", json_object_get(load, "reasons"), "achieved_rate",
            json_object_get(load, "achieved_rate"), "requests", json_object_get(load, "scheduled"),
            "latency_us", json_object_get(load, "latency_us"), "ci_us",
            json_object_get(load, "ci_us"), "verdict", json_object_get(summary, "verdict"),
            "causes", first_causes(summary));
    if (summary && !row)
        error_set(err, ERROR_FAILED, "%s: the load's summary lacks something", folder->path);
    json_decref(load);
    json_decref(summary);
    return row;
}

static json_t *repeated_row(const struct run_folder *folder, struct error *err)
{
    json_t *all = run_folder_read_json(folder, "repetitions.json", err), *row = NULL;
    json_t *pooled = json_object_get(all, "pooled");
    if (all)
        row =
            json_pack("{s:O,s:O,s:O,s:O,s:O}", "requests", json_object_get(pooled, "requests"),
                      "latency_us", json_object_get(pooled, "latency_us"), "ci_us",
                      json_object_get(pooled, "ci_us"), "between", json_object_get(all, "between"),
                      "repetitions", json_object_get(all, "count"));
    if (all && !row)
        error_set(err, ERROR_FAILED, "%s: repetitions.json lacks something", folder->path);
    json_decref(all);
    return row;
}

// --- the table -----------------------------------------------------------------------------------

static void print_row(const json_t *row, int width, FILE *out)
{
    const json_t *latency = json_object_get(row, "latency_us");
    const json_t *cause = json_array_get(json_object_get(row, "causes"), 0);
    const char *verdict = json_string_value(json_object_get(row, "load_verdict"));
    fprintf(out, "%-*s", width, json_string_value(json_object_get(row, "configuration")));
    for (size_t i = 0; i < COLUMNS; i++) {
        const json_t *value = json_object_get(latency, columns[i]);
        if (json_is_number(value))
            fprintf(out, " %10.1f", json_number_value(value));
        else
            fprintf(out, " %10s", "-");
    }
    const char *skipped = json_string_value(json_object_get(row, "skipped"));
    if (skipped)
        fprintf(out, "  skipped: %s", skipped);
    else if (verdict && strcmp(verdict, "ok") != 0)
        fprintf(out, "  load %s: %s", verdict,
                json_string_value(json_array_get(json_object_get(row, "load_reasons"), 0)));
    else if (cause)
        fprintf(out, "  %s (%s)", json_string_value(json_object_get(cause, "cause")),
                json_string_value(json_object_get(cause, "role")));
    fputc('\n', out);
}

static void print_table(const json_t *list, const struct run_folder *folder, FILE *out)
{
    int width = (int)strlen("configuration");
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        int length = (int)json_string_length(json_object_get(row, "configuration"));
        width = length > width ? length : width;
    }
    fprintf(out, "%-*s", width, "configuration");
    for (i = 0; i < COLUMNS; i++)
        fprintf(out, " %7s/us", columns[i]);
    fprintf(out, "  first cause\n");
    json_array_foreach(list, i, row) print_row(row, width, out);
    fprintf(out, "\nFolder: %s\n", folder->path);
}

static int finish(const struct run_folder *folder, const char *name, json_t *list,
                  const struct run_results_settings *results, struct error *err)
{
    json_t *document = json_pack("{s:s,s:I,s:O}", "name", name, "count",
                                 (json_int_t)json_array_size(list), "list", list);
    int result = document ? run_folder_write_json(folder, "matrix.json", document, err)
                          : error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0 && results->json)
        json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    if (result == 0 && results->json)
        putchar('\n');
    else if (result == 0 && results->quiet)
        printf("%s/matrix.json\n", folder->path);
    else if (result == 0)
        print_table(list, folder, stdout);
    if (result == 0 && fflush(stdout) == EOF)
        result = error_set_errno(err, ERROR_FAILED, "cannot print the table");
    json_decref(document);
    return result;
}

// --- all of them ---------------------------------------------------------------------------------

static int run_configuration(struct experiment *experiment, size_t number,
                             const struct run_folder *folder, matrix_run_one run_one,
                             const struct run_settings *settings,
                             const struct run_results_settings *results, json_t *list,
                             bool *available, struct error *err)
{
    char name[40], path[RUN_PATH_BYTES + 128];
    struct run_folder inside;
    struct run_results_settings silent = *results;
    bool verdict = false;
    snprintf(name, sizeof name, "configuration-%zu", number);
    run_folder_path(folder, name, path);
    const struct run_settings here = {.folder = path, .progress = settings->progress};
    silent.silent = true;
    progress_end(settings->progress);
    if (!results->quiet)
        fprintf(stderr, "%s: %s\n", name, experiment->configuration);
    int result = run_one(experiment, &here, &silent, &verdict, err);
    bool skipped = result == -ERROR_INCONCLUSIVE && experiment->capture_optional;
    if (result < 0 && !skipped)
        return error_prefix(err, "%s (%s)", name, experiment->configuration);
    // One that is not watched has no verdict to lack.
    *available &= verdict || skipped || experiment->backend == CAPTURE_BACKEND_NONE;
    snprintf(inside.path, sizeof inside.path, "%.*s", RUN_PATH_BYTES - 1, path);
    json_t *row = skipped                       ? json_pack("{s:s}", "skipped", err->text)
                  : experiment->repetitions > 1 ? repeated_row(&inside, err)
                                                : single_row(&inside, err);
    if (!row)
        return -ERROR_FAILED;
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
    int result = run_folder_make_empty(&folder, settings->folder, set->items[0].name, err);
    for (size_t i = 0; result == 0 && i < set->count; i++)
        result = run_configuration(&set->items[i], i + 1, &folder, run_one, settings, results, list,
                                   available, err);
    progress_end(settings->progress);
    if (result == 0)
        result = finish(&folder, set->items[0].name, list, results, err);
    json_decref(list);
    return result;
}
