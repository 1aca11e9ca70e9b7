// SPDX-License-Identifier: MIT
#include "experiments/results/run_results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/analyze_command.h"
#include "analysis/export/run_summary.h"
#include "analysis/report/page/report_html.h"
#include "analysis/report/terminal/summary_text.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"
#include "analysis/run/run_lede.h"
#include "base/json_numbers.h"
#include "base/log_file.h"
#include "loadgen/client/sample_log.h"

static int print_results(const struct run_analysis *run,
                         const struct run_results_settings *settings, const char *report,
                         struct error *err)
{
    if (settings->json)
        return json_print_new(run_summary_json(run), JSON_FOR_PEOPLE, "the summary", err);
    if (!settings->quiet) {
        struct summary_style style = summary_style_for(stdout);
        style.full = settings->full;
        summary_text_write(run, &style, stdout);
        printf("\nReport: ");
    } else {
        run_lede_write_doubt(run, stderr);
    }
    printf("%s\n", report);
    if (fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print the summary");
    return 0;
}

int run_results_keep(const struct experiment *experiment, const char *path,
                     struct run_set_array *kept, struct error *err)
{
    for (size_t i = 0; i < experiment_load_count(experiment); i++) {
        struct run_set set = {.path = ""};
        snprintf(set.path, sizeof set.path, "%s", path ? path : "");
        snprintf(set.load, sizeof set.load, "%s", experiment_load_at(experiment, i)->name);
        if (array_push(kept, set) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the results of a load");
    }
    return 0;
}

// Analyzes one of the run's loads (NULL: the first or only one), writes its three files and keeps
// what is wanted of it. The caller frees *run where that succeeds.
static int write_load(const struct run_folder *folder, const char *load, struct run_set *kept,
                      struct progress *progress, struct run_analysis *run,
                      char report[RUN_PATH_BYTES + 128], struct error *err)
{
    char name[LOAD_FOLDER_BYTES + 16];
    const struct run_request request = {
        .run_dir = folder->path, .load = load, .profiled = &kept->slices};
    progress_phase(progress, "analyzing%s%s", load ? " the load " : "", load ? load : "");
    int result = run_analyze(&request, progress, run, err);
    if (result < 0)
        return result;
    progress_phase(progress, "writing the report");
    snprintf(name, sizeof name, "report%s.html", run->evidence.result_suffix);
    result = report_write_html(run, run_folder_path(folder, name, report), err);
    if (result == 0)
        result = run_analysis_write(run, run->evidence.run_dir, err);
    if (result == 0 && kept->slices.count)
        result = run_set_add(kept, run, err);
    progress_end(progress);
    if (result < 0)
        run_analysis_free(run);
    return result;
}

// What is printed of a load beside the first.
struct other_words {
    char name[RUN_LOAD_NAME_BYTES];
    char lede[LEDE_BYTES];
    char report[RUN_PATH_BYTES + 128];
};
struct other_words_array ARRAY_OF(struct other_words);

static int write_other(const struct run_folder *folder, struct run_set *kept,
                       struct progress *progress, struct other_words_array *words, bool *available,
                       struct error *err)
{
    struct run_analysis run = {.evidence.name = ""};
    struct other_words one = {.lede = ""};
    struct run_lede lede;
    int result = write_load(folder, kept->load, kept, progress, &run, one.report, err);
    if (result < 0)
        return error_prefix(err, "the load `%s`", kept->load);
    run_lede(&run, &lede);
    snprintf(one.name, sizeof one.name, "%s", kept->load);
    snprintf(one.lede, sizeof one.lede, "%s", lede.text);
    *available &= run_is_conclusive(&run);
    run_analysis_free(&run);
    return array_push(words, one) < 0 ? error_set(err, ERROR_FAILED, "out of memory") : 0;
}

static void print_others(const struct other_words_array *words,
                         const struct run_results_settings *settings)
{
    for (size_t i = 0; i < words->count && !settings->json; i++)
        if (settings->quiet)
            printf("%s\n", words->items[i].report);
        else
            printf("\nThe load `%s`: %s\nReport: %s\n", words->items[i].name, words->items[i].lede,
                   words->items[i].report);
}

int run_results_write(const struct run_folder *folder, const struct run_results_settings *settings,
                      struct run_set_array *kept, bool *available, struct error *err)
{
    char report[RUN_PATH_BYTES + 128];
    struct run_analysis run = {.evidence.name = ""};
    struct other_words_array others = {0};
    *available = true;
    int result = 0;
    for (size_t i = 1; i < kept->count && result == 0; i++)
        result = write_other(folder, &kept->items[i], settings->progress, &others, available, err);
    if (result == 0)
        result = write_load(folder, NULL, &kept->items[0], settings->progress, &run, report, err);
    if (result < 0)
        goto out;
    *available &= run_is_conclusive(&run);
    if (result == 0 && !settings->silent)
        result = print_results(&run, settings, report, err);
    if (result == 0 && !settings->silent)
        print_others(&others, settings);
    run_analysis_free(&run);
out:
    array_free(&others);
    return result;
}

int run_results_read(const struct run_folder *folder, const char *load, json_t **measured,
                     json_t **found, struct error *err)
{
    char of_load[LOAD_FOLDER_BYTES], file[LOAD_FOLDER_BYTES + 32];
    snprintf(file, sizeof file, "%s/load.json", run_load_folder(load, of_load));
    *measured = run_folder_read_json(folder, file, err);
    snprintf(file, sizeof file, "summary%s%s.json", load ? "-" : "", load ? load : "");
    *found = *measured ? run_folder_read_json(folder, file, err) : NULL;
    if (*found)
        return 0;
    json_decref(*measured);
    *measured = NULL;
    return -ERROR_FAILED;
}

int run_latencies_add(const struct run_folder *folder, const char *load, double tsc_hz,
                      struct latency_array *out, struct error *err)
{
    char of_load[LOAD_FOLDER_BYTES], name[LOAD_FOLDER_BYTES + 16], path[RUN_PATH_BYTES + 128];
    struct log_reader reader;
    snprintf(name, sizeof name, "%s/samples.tlog", run_load_folder(load, of_load));
    int result = log_reader_open(&reader, run_folder_path(folder, name, path), LOG_SAMPLES,
                                 SAMPLE_LOG_VERSION, sizeof(struct sample), err);
    if (result < 0)
        return result;
    const struct sample *samples = reader.records;
    if (array_reserve(out, out->count + reader.count) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the latencies of all runs");
    for (size_t i = 0; result == 0 && i < reader.count; i++)
        out->items[out->count++] =
            sample_is_answered(&samples[i])
                ? (double)(int64_t)(samples[i].reply_tsc - samples[i].intended_tsc) / tsc_hz * 1e6
                : INFINITY;
    log_reader_close(&reader);
    return result;
}
