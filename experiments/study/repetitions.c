// SPDX-License-Identifier: MIT
#include "experiments/study/repetitions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/report/page/report_set.h"
#include "analysis/run/input/run_path.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/json_numbers.h"
#include "base/quantile.h"
#include "base/text.h"
#include "experiments/results/run_results.h"
#include "loadgen/method/between_runs.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method_interval.h"

static const double confidence = 0.95; // of the pooled percentiles

struct repetition_array ARRAY_OF(struct repetition);

// What all repetitions of one load came to.
struct load_series {
    const char *name; // NULL: the first or only load
    struct repetition_array repetitions;
    struct latency_array latencies; // of all requests, us, in the order in which they were sent
    double pooled_us[SUMMARY_QUANTILES]; // of these (NaN: too few), and their intervals
    struct quantile_interval pooled_interval[SUMMARY_QUANTILES];
    json_t *list;        // one object per repetition
    char percentile[32]; // the one that the load's method has judged
};
struct load_series_array ARRAY_OF(struct load_series);

struct series {
    struct run_folder folder;
    struct load_series_array loads; // the first load's first
    struct run_set_array kept;      // what the gates are judged on, of each load
    bool available;
};

// --- one repetition ------------------------------------------------------------------------------

static double number_or_nan(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int add_repetition(struct load_series *series, const char *name,
                          const struct run_folder *folder, uint64_t seed, struct error *err)
{
    json_t *load, *summary;
    if (run_results_read(folder, series->name, &load, &summary, err) < 0)
        return -ERROR_FAILED;
    const json_t *method = json_object_get(load, "method"),
                 *interval = json_object_get(method, "ci");
    const char *percentile = json_string_value(json_object_get(method, "target"));
    if (!percentile) {
        json_decref(load);
        json_decref(summary);
        return error_set(err, ERROR_FAILED, "%s: the load's summary lacks its method",
                         folder->path);
    }
    snprintf(series->percentile, sizeof series->percentile, "%s", percentile);
    struct repetition one = {.value = number_or_nan(interval, "value"),
                             .interval = {.low = number_or_nan(interval, "low"),
                                          .high = number_or_nan(interval, "high")}};
    one.interval.known = isfinite(one.interval.low) && isfinite(one.interval.high);
    json_t *object = json_pack(
        "{s:s,s:I,s:O,s:O,s:O,s:O,s:O,s:O,s:O}", "folder", name, "seed", (json_int_t)seed,
        "requests", json_object_get(load, "scheduled"), "load_verdict",
        json_object_get(load, "verdict"), "load_reasons", json_object_get(load, "reasons"),
        "latency_us", json_object_get(load, "latency_us"), "ci_us", json_object_get(load, "ci_us"),
        "ci", interval, "verdict", json_object_get(summary, "verdict"));
    json_decref(summary);
    int result = 0;
    if (!object || json_array_append_new(series->list, object) < 0 ||
        array_push(&series->repetitions, one) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the repetitions");
    if (result == 0)
        result = run_latencies_add(folder, series->name, number_or_nan(load, "tsc_hz"),
                                   &series->latencies, err);
    json_decref(load);
    return result;
}

static int run_one(struct series *series, struct experiment *experiment, uint64_t seed,
                   const struct run_settings *settings, const struct run_results_settings *results,
                   struct error *err)
{
    char name[40], path[RUN_PATH_BYTES + 128];
    struct run_folder folder;
    struct run_results_settings silent = *results;
    bool available = false;
    snprintf(name, sizeof name, "repetition-%zu", series->loads.items[0].repetitions.count + 1);
    const struct run_settings here = {.folder = run_folder_path(&series->folder, name, path),
                                      .progress = settings->progress,
                                      .orders = settings->orders};
    silent.silent = true;
    int result = experiment_set_seed(experiment, seed, err);
    if (result < 0)
        return result;
    progress_phase(settings->progress, "repetition %s of %s",
                   TEXT_COUNT(series->loads.items[0].repetitions.count + 1),
                   TEXT_COUNT(experiment->repetitions));
    result = run_experiment(experiment, &here, &folder, err);
    if (result == 0)
        result = run_results_write(&folder, &silent, &series->kept, &available, err);
    for (size_t i = 0; i < series->loads.count && result == 0; i++)
        result = add_repetition(&series->loads.items[i], name, &folder,
                                experiment_load_at(experiment, i)->seed, err);
    series->available &= available;
    return result < 0 ? error_prefix(err, "%s", name) : 0;
}

// --- all of them ---------------------------------------------------------------------------------

// Percentiles of the requests of all repetitions, in the order in which they were sent.
static int pool(struct load_series *series, struct error *err)
{
    const struct latency_array *all = &series->latencies;
    int result =
        percentile_intervals_take(all->items, all->count, summary_quantiles, SUMMARY_QUANTILES,
                                  confidence, series->pooled_us, series->pooled_interval, err);
    for (unsigned i = 0; i < SUMMARY_QUANTILES && result == 0; i++)
        series->pooled_us[i] =
            quantile_if_seen(series->pooled_us[i], all->count, summary_quantiles[i]);
    return result;
}

static json_t *pooled_json(const struct load_series *series)
{
    json_t *latency = json_object(), *intervals = json_object();
    const struct latency_array *all = &series->latencies;
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++) {
        json_set_percentile(latency, summary_quantile_names[i], series->pooled_us[i]);
        if (summary_quantiles[i] < 1)
            json_object_set_new(intervals, summary_quantile_names[i],
                                json_interval_or_null(&series->pooled_interval[i]));
    }
    return json_pack("{s:I,s:o,s:o}", "requests", (json_int_t)all->count, "latency_us", latency,
                     "ci_us", intervals);
}

static struct between_runs between_of(const struct load_series *load)
{
    struct between_runs found;
    between_runs_judge(load->repetitions.items, load->repetitions.count, confidence, &found);
    return found;
}

static void print_words(const struct load_series *load)
{
    const struct between_runs found = between_of(load);
    if (load->name)
        printf("\nThe load `%s`: ", load->name);
    printf("%s repetitions, %s requests; pooled:", TEXT_COUNT(load->repetitions.count),
           TEXT_COUNT(load->latencies.count));
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        if (!isnan(load->pooled_us[i]))
            printf(" %s %s", summary_quantile_names[i], TEXT_US(load->pooled_us[i]));
    putchar('\n');
    between_runs_print(&found, load->repetitions.items, load->repetitions.count, load->percentile,
                       stdout);
}

// Of the loads beside the first, by name; NULL: there are none.
static json_t *others_json(const struct series *series)
{
    json_t *others = series->loads.count > 1 ? json_object() : NULL;
    for (size_t i = 1; i < series->loads.count; i++) {
        const struct load_series *load = &series->loads.items[i];
        const struct between_runs found = between_of(load);
        json_object_set_new(others, load->name,
                            json_pack("{s:o,s:o,s:O}", "pooled", pooled_json(load), "between",
                                      between_runs_json(&found, load->percentile), "list",
                                      load->list));
    }
    return others;
}

// repetitions.json; the caller owns it.
static json_t *write_document(struct series *series, const struct experiment *experiment,
                              struct error *err)
{
    const struct load_series *first = &series->loads.items[0];
    const struct between_runs found = between_of(first);
    json_t *document = json_pack(
        "{s:s,s:I,s:b,s:o,s:o,s:O,s:s*,s:o*}", "name", experiment->name, "count",
        (json_int_t)first->repetitions.count, "restart", true, "pooled", pooled_json(first),
        "between", between_runs_json(&found, first->percentile), "list", first->list, "load",
        series->loads.count > 1 ? experiment->load.name : NULL, "loads", others_json(series));
    if (!document)
        error_set(err, ERROR_FAILED, "out of memory for the repetitions");
    else if (run_folder_write_json(&series->folder, "repetitions.json", document, err) < 0) {
        json_decref(document);
        document = NULL;
    }
    return document;
}

static int print_repetitions(const struct series *series, json_t *document,
                             const struct run_results_settings *results, struct error *err)
{
    if (results->silent)
        return 0;
    if (results->json)
        return json_print_new(json_incref(document), JSON_FOR_PEOPLE, "the repetitions", err);
    char doubt[REPORT_DOUBT_BYTES];
    if (report_set_doubt(document, doubt)[0])
        fprintf(results->quiet ? stderr : stdout, "%s\n", doubt);
    for (size_t i = 0; i < series->loads.count && !results->quiet; i++)
        print_words(&series->loads.items[i]);
    printf("%s%s/report.html\n", results->quiet ? "" : "Report: ", series->folder.path);
    return fflush(stdout) == EOF
               ? error_set_errno(err, ERROR_FAILED, "cannot print the repetitions")
               : 0;
}

// Writes the results of all repetitions: their document, their gates, their page.
static int write_repetitions(struct series *series, const struct experiment *experiment,
                             const struct run_results_settings *results, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < series->loads.count && result == 0; i++)
        result = pool(&series->loads.items[i], err);
    json_t *document = result == 0 ? write_document(series, experiment, err) : NULL;
    result = document ? gate_report_runs(results->gates, experiment, &series->folder, &series->kept,
                                         experiment->configuration, err)
                      : -(int)err->kind;
    if (result == 0)
        result = report_set_write(series->folder.path, NULL, err);
    if (result == 0)
        result = print_repetitions(series, document, results, err);
    json_decref(document);
    return result;
}

static int add_loads(struct series *series, const struct experiment *experiment, struct error *err)
{
    for (size_t i = 0; i < experiment_load_count(experiment); i++) {
        const struct load_series load = {.name = i ? experiment_load_at(experiment, i)->name : NULL,
                                         .list = json_array()};
        if (!load.list || array_push(&series->loads, load) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
    }
    return 0;
}

static void free_loads(struct series *series)
{
    for (size_t i = 0; i < series->loads.count; i++) {
        array_free(&series->loads.items[i].repetitions);
        array_free(&series->loads.items[i].latencies);
        json_decref(series->loads.items[i].list);
    }
    array_free(&series->loads);
}

int repetitions_run(struct experiment *experiment, const struct run_settings *settings,
                    const struct run_results_settings *results, bool *available, struct error *err)
{
    struct series series = {.available = true};
    uint64_t seed = experiment->load.seed;
    int result = run_make_folder(experiment->name, settings, &series.folder, err);
    if (result == 0)
        result = add_loads(&series, experiment, err);
    if (result == 0)
        result = run_results_keep(experiment, NULL, &series.kept, err);
    if (result == 0)
        result = gate_report_want(results->gates, experiment, &series.kept, err);
    for (uint64_t i = 0; result == 0 && i < experiment->repetitions; i++)
        result = run_one(&series, experiment, i ? hash64(seed + i) & 0xffffffff : seed, settings,
                         results, err);
    if (result == 0)
        result = write_repetitions(&series, experiment, results, err);
    *available = series.available;
    free_loads(&series);
    run_sets_free(&series.kept);
    return result;
}
