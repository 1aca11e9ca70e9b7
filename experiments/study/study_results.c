// SPDX-License-Identifier: MIT
#include "experiments/study/study_results.h"
#include "experiments/capture/capture_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/report_cdf.h"
#include "analysis/report/report_set.h"
#include "base/json_numbers.h"
#include "base/quantile.h"
#include "base/text.h"
#include "loadgen/method/method_interval.h"

enum { CAUSES_SHOWN = 8 };

static const double study_quantiles[STUDY_QUANTILES] = {0.25, 0.5, 0.9, 0.99, 0.999, 0.9999};
static const char *const study_quantile_names[STUDY_QUANTILES] = {"p25", "p50",   "p90",
                                                                  "p99", "p99.9", "p99.99"};

// --- the results of one run ----------------------------------------------------------------------

int study_result_add_run(struct study_result *result, const struct run_folder *folder,
                         struct error *err)
{
    struct latency_array *all = &result->latencies;
    size_t before = all->count;
    struct study_run_result one;
    json_t *load = run_folder_read_json(folder, "client/load.json", err);
    json_t *summary = load ? run_folder_read_json(folder, "summary.json", err) : NULL;
    int status =
        summary ? run_latencies_add(folder, NULL,
                                    json_number_value(json_object_get(load, "tsc_hz")), all, err)
                : -ERROR_FAILED;
    if (status == 0) {
        double *own = all->items + before;
        quantile_sort(own, all->count - before);
        for (int q = 0; q < STUDY_QUANTILES; q++)
            one.latency_us[q] =
                quantile_if_seen(quantile_sorted(own, all->count - before, study_quantiles[q]),
                                 all->count - before, study_quantiles[q]);
        if (array_push(&result->runs, one) < 0)
            status = error_set(err, ERROR_FAILED, "out of memory for the latencies of all runs");
    }
    if (status == 0 && !result->load) {
        result->load = json_incref(load);
        result->summary = json_incref(summary);
    }
    json_decref(load);
    json_decref(summary);
    return status;
}

void study_results_free(struct study_results *results)
{
    for (size_t i = 0; i < results->steps.count; i++) {
        struct study_result *one = &results->steps.items[i];
        array_free(&one->runs);
        array_free(&one->latencies);
        run_sets_free(&one->kept);
        json_decref(one->load);
        json_decref(one->summary);
    }
    array_free(&results->steps);
    json_decref(results->comparisons);
    json_decref(results->gates);
    results->comparisons = results->gates = NULL;
}

// --- one percentile of a step's runs -------------------------------------------------------------

struct run_spread {
    double low, median, high;
};

static struct run_spread spread_of(const struct study_result *result, int q)
{
    double values[1000];
    size_t count = 0;
    for (size_t i = 0; i < result->runs.count && count < 1000; i++)
        if (!isnan(result->runs.items[i].latency_us[q]))
            values[count++] = result->runs.items[i].latency_us[q];
    quantile_sort(values, count);
    return (struct run_spread){quantile_sorted(values, count, 0),
                               quantile_sorted(values, count, 0.5),
                               quantile_sorted(values, count, 1)};
}

// An arrow when all runs of a step are below, or all above, those of the first step; else nothing.
static const char *beside_first(const struct study_results *results, size_t step, int q)
{
    const struct study_result *first = &results->steps.items[0], *own = &results->steps.items[step];
    if (step == 0 || first->runs.count < 2 || own->runs.count < 2)
        return "";
    const struct run_spread base = spread_of(first, q), here = spread_of(own, q);
    return here.high < base.low ? " ↓" : here.low > base.high ? " ↑" : "";
}

// --- as text -------------------------------------------------------------------------------------

static void write_cell(const struct study_results *results, size_t step, int q, FILE *out)
{
    const struct study_result *result = &results->steps.items[step];
    const struct run_spread spread = spread_of(result, q);
    fputs(" | ", out);
    fputs(TEXT_US(spread.median), out);
    if (result->runs.count == 1)
        return;
    fputs(" [", out);
    fputs(TEXT_US(spread.low), out);
    fputs(", ", out);
    fputs(TEXT_US(spread.high), out);
    fprintf(out, "]%s", beside_first(results, step, q));
}

static void write_latencies(const struct study_results *results, FILE *out)
{
    char count[32];
    bool repeated = false;
    fprintf(out, "| step | runs | requests");
    for (int q = 0; q < STUDY_QUANTILES; q++)
        fprintf(out, " | %s", study_quantile_names[q]);
    fprintf(out, " |\n|---|---:|---:");
    for (int q = 0; q < STUDY_QUANTILES; q++)
        fputs("|---:", out);
    fputs("|\n", out);
    for (size_t i = 0; i < results->steps.count; i++) {
        const struct study_result *result = &results->steps.items[i];
        if (result->runs.count == 0)
            continue;
        repeated |= result->runs.count > 1;
        fprintf(out, "| %s | %zu | %s", result->step->name, result->runs.count,
                text_count(result->latencies.count, count));
        for (int q = 0; q < STUDY_QUANTILES; q++)
            write_cell(results, i, q, out);
        fputs(" |\n", out);
    }
    fprintf(out, "\nLatency at the client, from the intended instant.%s\n",
            repeated ? " The median of the runs [the lowest, the highest]; ↓ and ↑: all runs are "
                       "below, or above, all those of the first step."
                     : "");
}

static void write_causes(const struct study_result *result, FILE *out)
{
    size_t i;
    int shown = 0;
    const json_t *cause;
    fprintf(out, "\n| cause | category | messages | median | total |\n|---|---|---:|---:|---:|\n");
    json_array_foreach(json_object_get(result->summary, "causes"), i, cause)
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

static void write_step(const struct study_result *result, FILE *out)
{
    char verdict[1200];
    const char *text = json_string_value(json_object_get(result->summary, "verdict"));
    if (result->step->study || !capture_choice_records(result->step->experiment.backend))
        return;
    text_clean(text ? text : "", false, verdict, sizeof verdict);
    fprintf(out, "\n## %s\n\n%s ([report](%s/report.html))\n", result->step->name, verdict,
            result->folder);
    write_causes(result, out);
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
        curves |= results->steps.items[i].runs.count > 0;
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

static json_t *latency_json(const struct study_result *result)
{
    json_t *latency = json_object();
    for (int q = 0; q < STUDY_QUANTILES; q++) {
        json_t *all = json_array();
        for (size_t i = 0; i < result->runs.count; i++)
            json_array_append_new(all, json_number_or_null(result->runs.items[i].latency_us[q]));
        json_t *one = json_pack("{s:o,s:o}", "runs", all, "pooled_ci",
                                json_interval_or_null(&result->pooled_interval[q]));
        const struct run_spread spread = spread_of(result, q);
        json_set_percentile(one, "median", spread.median);
        if (result->runs.count > 1) {
            json_set_percentile(one, "lowest", spread.low);
            json_set_percentile(one, "highest", spread.high);
        }
        json_set_percentile(one, "pooled", result->pooled_us[q]);
        json_object_set_new(latency, study_quantile_names[q], one);
    }
    return latency;
}

static json_t *step_json(const struct study_result *result)
{
    if (result->step->study)
        return json_pack("{s:s,s:s,s:b}", "step", result->step->name, "folder", result->folder,
                         "study", 1);
    return json_pack("{s:s,s:s,s:b,s:I,s:I,s:o,s:O?,s:O?,s:O?,s:O?}", "step", result->step->name,
                     "folder", result->folder, "study", 0, "runs", (json_int_t)result->runs.count,
                     "requests", (json_int_t)result->latencies.count, "latency_us",
                     latency_json(result), "load_verdict", json_object_get(result->load, "verdict"),
                     "load_reasons", json_object_get(result->load, "reasons"), "verdict",
                     json_object_get(result->summary, "verdict"), "causes",
                     json_object_get(result->summary, "causes"));
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
    for (size_t i = 0; i < results->steps.count && count < CDF_SERIES_MAX; i++) {
        const struct study_result *one = &results->steps.items[i];
        if (one->latencies.count)
            series[count++] =
                (struct cdf_series){one->step->name, one->latencies.items, one->latencies.count};
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
static int pool(struct study_result *result, struct error *err)
{
    struct latency_array *all = &result->latencies;
    int status = percentile_intervals_take(all->items, all->count, study_quantiles, STUDY_QUANTILES,
                                           0.95, result->pooled_us, result->pooled_interval, err);
    for (int q = 0; q < STUDY_QUANTILES && status == 0; q++)
        result->pooled_us[q] =
            quantile_if_seen(result->pooled_us[q], all->count, study_quantiles[q]);
    quantile_sort(all->items, all->count);
    return status;
}

int study_results_write(struct study_results *results, const struct run_folder *folder,
                        struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < results->steps.count && status == 0; i++)
        status = pool(&results->steps.items[i], err);
    if (status == 0)
        status = write_file(results, folder, "cdf.svg", draw_curves, err);
    if (status == 0)
        status = write_file(results, folder, "results.md", study_results_print, err);
    if (status == 0)
        status = write_json(results, folder, err);
    return status < 0 ? status : report_set_write(folder->path, NULL, err);
}
