// SPDX-License-Identifier: MIT
#include "experiments/study/study_results.h"
#include "experiments/capture/capture_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/plots/report_cdf.h"
#include "analysis/report/page/report_set.h"
#include "base/json_numbers.h"
#include "base/quantile.h"
#include "base/text.h"
#include "loadgen/method/method_interval.h"

enum { CAUSES_SHOWN = 8 };

static const double study_quantiles[STUDY_QUANTILES] = {0.25, 0.5, 0.9, 0.99, 0.999, 0.9999};
static const char *const study_quantile_names[STUDY_QUANTILES] = {"p25", "p50",   "p90",
                                                                  "p99", "p99.9", "p99.99"};

// --- the results of one run ----------------------------------------------------------------------

int study_result_init(struct study_result *result, struct error *err)
{
    const struct experiment *experiment = &result->step->experiment;
    const size_t count = result->step->study ? 0 : experiment_load_count(experiment);
    for (size_t i = 0; i < count; i++) {
        const char *name = experiment_load_at(experiment, i)->name;
        struct study_load load = {.name = i ? name : NULL};
        snprintf(load.label, sizeof load.label, "%s", result->step->name);
        if (count > 1)
            text_append(load.label, sizeof load.label, ", load `%s`", name);
        if (array_push(&result->loads, load) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
    }
    return 0;
}

bool study_result_can_be_trusted(const struct study_result *result)
{
    for (size_t i = 0; i < result->loads.count; i++) {
        const char *verdict =
            json_string_value(json_object_get(result->loads.items[i].load, "verdict"));
        if (verdict && strcmp(verdict, "n/a") == 0)
            return false;
    }
    return true;
}

static int add_run(struct study_load *load, const struct run_folder *folder, struct error *err)
{
    struct latency_array *all = &load->latencies;
    size_t before = all->count;
    struct study_run_result one;
    json_t *measured, *found;
    if (run_results_read(folder, load->name, &measured, &found, err) < 0)
        return -ERROR_FAILED;
    int status = run_latencies_add(
        folder, load->name, json_number_value(json_object_get(measured, "tsc_hz")), all, err);
    if (status == 0) {
        double *own = all->items + before;
        quantile_sort(own, all->count - before);
        for (int q = 0; q < STUDY_QUANTILES; q++)
            one.latency_us[q] =
                quantile_if_seen(quantile_sorted(own, all->count - before, study_quantiles[q]),
                                 all->count - before, study_quantiles[q]);
        if (array_push(&load->runs, one) < 0)
            status = error_set(err, ERROR_FAILED, "out of memory for the latencies of all runs");
    }
    if (status == 0 && !load->load) {
        load->load = json_incref(measured);
        load->summary = json_incref(found);
    }
    json_decref(measured);
    json_decref(found);
    return status;
}

int study_result_add_run(struct study_result *result, const struct run_folder *folder,
                         struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < result->loads.count && status == 0; i++)
        status = add_run(&result->loads.items[i], folder, err);
    return status;
}

static void free_result(struct study_result *result)
{
    for (size_t i = 0; i < result->loads.count; i++) {
        struct study_load *load = &result->loads.items[i];
        array_free(&load->runs);
        array_free(&load->latencies);
        json_decref(load->load);
        json_decref(load->summary);
    }
    array_free(&result->loads);
    run_sets_free(&result->kept);
}

void study_results_free(struct study_results *results)
{
    for (size_t i = 0; i < results->steps.count; i++)
        free_result(&results->steps.items[i]);
    array_free(&results->steps);
    json_decref(results->comparisons);
    json_decref(results->gates);
    results->comparisons = results->gates = NULL;
}

// --- one percentile of a load's runs -------------------------------------------------------------

struct run_spread {
    double low, median, high;
};

static struct run_spread spread_of(const struct study_load *load, int q)
{
    double values[1000];
    size_t count = 0;
    for (size_t i = 0; i < load->runs.count && count < 1000; i++)
        if (!isnan(load->runs.items[i].latency_us[q]))
            values[count++] = load->runs.items[i].latency_us[q];
    quantile_sort(values, count);
    return (struct run_spread){quantile_sorted(values, count, 0),
                               quantile_sorted(values, count, 0.5),
                               quantile_sorted(values, count, 1)};
}

// The load of that name of the first step; of a first load its first. NULL: it has none.
static const struct study_load *same_of_first(const struct study_results *results,
                                              const struct study_load *load)
{
    const struct study_load_array *loads = &results->steps.items[0].loads;
    for (size_t i = 0; i < loads->count; i++)
        if (load->name && loads->items[i].name ? strcmp(loads->items[i].name, load->name) == 0
                                               : load->name == loads->items[i].name)
            return &loads->items[i];
    return NULL;
}

// An arrow when all runs of a load are below, or all above, those of it in the first step; else
// nothing.
static const char *beside_first(const struct study_results *results, const struct study_load *own,
                                int q)
{
    const struct study_load *first = same_of_first(results, own);
    if (!first || first == own || first->runs.count < 2 || own->runs.count < 2)
        return "";
    const struct run_spread base = spread_of(first, q), here = spread_of(own, q);
    return here.high < base.low ? " ↓" : here.low > base.high ? " ↑" : "";
}

// --- as text -------------------------------------------------------------------------------------

static void write_cell(const struct study_results *results, const struct study_load *load, int q,
                       FILE *out)
{
    const struct run_spread spread = spread_of(load, q);
    fputs(" | ", out);
    fputs(TEXT_US(spread.median), out);
    if (load->runs.count == 1)
        return;
    fputs(" [", out);
    fputs(TEXT_US(spread.low), out);
    fputs(", ", out);
    fputs(TEXT_US(spread.high), out);
    fprintf(out, "]%s", beside_first(results, load, q));
}

static void write_row(const struct study_results *results, const struct study_load *load, FILE *out)
{
    char count[32];
    if (load->runs.count == 0)
        return;
    fprintf(out, "| %s | %zu | %s", load->label, load->runs.count,
            text_count(load->latencies.count, count));
    for (int q = 0; q < STUDY_QUANTILES; q++)
        write_cell(results, load, q, out);
    fputs(" |\n", out);
}

static void write_latencies(const struct study_results *results, FILE *out)
{
    fprintf(out, "| step | runs | requests");
    for (int q = 0; q < STUDY_QUANTILES; q++)
        fprintf(out, " | %s", study_quantile_names[q]);
    fprintf(out, " |\n|---|---:|---:");
    for (int q = 0; q < STUDY_QUANTILES; q++)
        fputs("|---:", out);
    fputs("|\n", out);
    for (size_t i = 0; i < results->steps.count; i++)
        for (size_t k = 0; k < results->steps.items[i].loads.count; k++)
            write_row(results, &results->steps.items[i].loads.items[k], out);
    fprintf(out, "\nLatency at the client, from the intended instant.%s\n",
            results->study->rounds > 1
                ? " The median of the runs [the lowest, the highest]; ↓ and ↑: all runs are "
                  "below, or above, all those of the first step."
                : "");
}

static void write_causes(const struct study_load *load, FILE *out)
{
    size_t i;
    int shown = 0;
    const json_t *cause;
    fprintf(out, "\n| cause | category | messages | median | total |\n|---|---|---:|---:|---:|\n");
    json_array_foreach(json_object_get(load->summary, "causes"), i, cause)
    {
        char name[200];
        if (!json_is_true(json_object_get(cause, "explains")) || shown++ >= CAUSES_SHOWN)
            continue;
        text_clean(json_string_value(json_object_get(cause, "cause")), false, name, sizeof name);
        fprintf(out, "| %s (%s) | %s | %lld | ", name,
                json_string_value(json_object_get(cause, "role")),
                json_string_value(json_object_get(cause, "category")),
                (long long)json_integer_value(json_object_get(cause, "messages")));
        fprintf(out, "%s | %s |\n", TEXT_US(json_number_value(json_object_get(cause, "median_us"))),
                TEXT_US(json_number_value(json_object_get(cause, "total_us"))));
    }
}

static void write_load(const struct study_result *result, const struct study_load *load, FILE *out)
{
    char verdict[1200];
    const char *text = json_string_value(json_object_get(load->summary, "verdict"));
    text_clean(text ? text : "", false, verdict, sizeof verdict);
    fprintf(out, "\n## %s\n\n%s ([report](%s/report%s%s.html))\n", load->label, verdict,
            result->folder, load->name ? "-" : "", load->name ? load->name : "");
    write_causes(load, out);
}

static void write_step(const struct study_result *result, FILE *out)
{
    if (result->step->study || !capture_choice_records(result->step->experiment.backend))
        return;
    for (size_t i = 0; i < result->loads.count; i++)
        write_load(result, &result->loads.items[i], out);
}

static void write_comparisons(const struct study_results *results, FILE *out)
{
    size_t i, k;
    const json_t *one, *slice;
    json_array_foreach(results->comparisons, i, one)
    {
        const char *load = json_string_value(json_object_get(one, "load")),
                   *only = json_string_value(json_object_get(one, "only_in"));
        fprintf(out, "\n## %s: %s against %s", json_string_value(json_object_get(one, "name")),
                json_string_value(json_object_get(one, "candidate")),
                json_string_value(json_object_get(one, "base")));
        fprintf(out, load ? ", load `%s`\n\n" : "\n\n", load);
        if (only) {
            fprintf(out, "Only the %s has this load.\n", only);
            continue;
        }
        json_array_foreach(json_object_get(one, "slices"), k, slice)
            fprintf(out, "- %s: %s\n", json_string_value(json_object_get(slice, "slice")),
                    json_string_value(json_object_get(slice, "verdict")));
        json_array_foreach(json_object_get(one, "percentiles"), k, slice)
            fprintf(out, "- %s\n", json_string_value(json_object_get(slice, "verdict")));
        fprintf(out, "\n([page](%s))\n", json_string_value(json_object_get(one, "page")));
    }
}

void study_results_print(const struct study_results *results, FILE *out)
{
    bool curves = false;
    fprintf(out, "# %s\n\n", results->study->name);
    for (size_t i = 0; i < results->steps.count; i++)
        curves |= results->steps.items[i].loads.count > 0;
    if (curves)
        write_latencies(results, out);
    if (curves)
        fputs("\n![Distributions of latency](cdf.svg)\n", out);
    for (size_t i = 0; i < results->steps.count; i++)
        write_step(&results->steps.items[i], out);
    write_comparisons(results, out);
    for (size_t i = 0; i < results->steps.count; i++)
        if (results->steps.items[i].step->study)
            fprintf(
                out,
                "\n%s is a study of its own: [results](%s/results.md), [page](%s/report.html)\n",
                results->steps.items[i].step->name, results->steps.items[i].folder,
                results->steps.items[i].folder);
}

// --- as JSON -------------------------------------------------------------------------------------

static json_t *latency_json(const struct study_load *load)
{
    json_t *latency = json_object();
    for (int q = 0; q < STUDY_QUANTILES; q++) {
        json_t *all = json_array();
        for (size_t i = 0; i < load->runs.count; i++)
            json_array_append_new(all, json_number_or_null(load->runs.items[i].latency_us[q]));
        json_t *one = json_pack("{s:o,s:o}", "runs", all, "pooled_ci",
                                json_interval_or_null(&load->pooled_interval[q]));
        const struct run_spread spread = spread_of(load, q);
        json_set_percentile(one, "median", spread.median);
        if (load->runs.count > 1) {
            json_set_percentile(one, "lowest", spread.low);
            json_set_percentile(one, "highest", spread.high);
        }
        json_set_percentile(one, "pooled", load->pooled_us[q]);
        json_object_set_new(latency, study_quantile_names[q], one);
    }
    return latency;
}

static json_t *load_json(const struct study_load *load)
{
    return json_pack("{s:I,s:I,s:o,s:O?,s:O?,s:O?,s:O?}", "runs", (json_int_t)load->runs.count,
                     "requests", (json_int_t)load->latencies.count, "latency_us",
                     latency_json(load), "load_verdict", json_object_get(load->load, "verdict"),
                     "load_reasons", json_object_get(load->load, "reasons"), "verdict",
                     json_object_get(load->summary, "verdict"), "causes",
                     json_object_get(load->summary, "causes"));
}

// The first load's members are the step's own.
static json_t *step_json(const struct study_result *result)
{
    json_t *step = json_pack("{s:s,s:s,s:b}", "step", result->step->name, "folder", result->folder,
                             "study", result->step->study != NULL);
    json_t *others = json_object();
    for (size_t i = 0; i < result->loads.count; i++) {
        json_t *one = load_json(&result->loads.items[i]);
        if (i)
            json_object_set(others, result->loads.items[i].name, one);
        else
            json_object_update(step, one);
        json_decref(one);
    }
    if (json_object_size(others)) {
        json_object_set_new(step, "load", json_string(result->step->experiment.load.name));
        json_object_set(step, "loads", others);
    }
    json_decref(others);
    return step;
}

static int write_json(const struct study_results *results, const struct run_folder *folder,
                      struct error *err)
{
    json_t *list = json_array();
    for (size_t i = 0; i < results->steps.count; i++)
        json_array_append_new(list, step_json(&results->steps.items[i]));
    json_t *document = json_pack("{s:s,s:I,s:o,s:O,s:O*}", "name", results->study->name, "rounds",
                                 (json_int_t)results->study->rounds, "list", list, "compare",
                                 results->comparisons, "gates", results->gates);
    int status = document ? run_folder_write_json(folder, "study.json", document, err)
                          : error_set(err, ERROR_FAILED, "out of memory for study.json");
    json_decref(document);
    return status;
}

// --- files ---------------------------------------------------------------------------------------

static void draw_curves(const struct study_results *results, FILE *out)
{
    struct cdf_series series[CDF_SERIES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < results->steps.count; i++)
        for (size_t k = 0; k < results->steps.items[i].loads.count; k++) {
            const struct study_load *one = &results->steps.items[i].loads.items[k];
            if (one->latencies.count && count < CDF_SERIES_MAX)
                series[count++] =
                    (struct cdf_series){one->label, one->latencies.items, one->latencies.count};
        }
    report_cdf_svg(series, count, out);
}

static int write_file(const struct study_results *results, const struct run_folder *folder,
                      const char *name, void (*write)(const struct study_results *, FILE *),
                      struct error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return error_set_errno(err, ERROR_FAILED, "no memory for %s", name);
    write(results, memory);
    int status = fclose(memory) == 0 ? run_folder_write(folder, name, text, bytes, err)
                                     : error_set_errno(err, ERROR_FAILED, "no memory for %s", name);
    free(text);
    return status;
}

// Sums up the latencies of all runs, and sorts them. The intervals want them in order of time.
static int pool(struct study_load *load, struct error *err)
{
    struct latency_array *all = &load->latencies;
    int status = percentile_intervals_take(all->items, all->count, study_quantiles, STUDY_QUANTILES,
                                           0.95, load->pooled_us, load->pooled_interval, err);
    for (int q = 0; q < STUDY_QUANTILES && status == 0; q++)
        load->pooled_us[q] = quantile_if_seen(load->pooled_us[q], all->count, study_quantiles[q]);
    quantile_sort(all->items, all->count);
    return status;
}

int study_results_write(struct study_results *results, const struct run_folder *folder,
                        struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < results->steps.count; i++)
        for (size_t k = 0; k < results->steps.items[i].loads.count && status == 0; k++)
            status = pool(&results->steps.items[i].loads.items[k], err);
    if (status == 0)
        status = write_file(results, folder, "cdf.svg", draw_curves, err);
    if (status == 0)
        status = write_file(results, folder, "results.md", study_results_print, err);
    if (status == 0)
        status = write_json(results, folder, err);
    return status < 0 ? status : report_set_write(folder->path, NULL, err);
}
