// SPDX-License-Identifier: MIT
#include "experiments/results/run_results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/analyze_command.h"
#include "analysis/export/run_summary.h"
#include "analysis/report/report_html.h"
#include "analysis/report/summary_text.h"
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
    } else if (!run_is_conclusive(run)) { // else the exit code alone would say it
        struct run_lede lede;
        run_lede(run, &lede);
        const char *end = strstr(lede.text, ". ");
        fprintf(stderr, "%.*s\n", (int)(end ? (size_t)(end - lede.text) : strlen(lede.text)),
                lede.text);
    }
    printf("%s\n", report);
    if (fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print the summary");
    return 0;
}

int run_results_write(const struct run_folder *folder, const struct run_results_settings *settings,
                      struct run_set *kept, bool *available, struct error *err)
{
    char report[RUN_PATH_BYTES + 128];
    struct run_analysis run = {.evidence.name = ""};
    const struct run_request request = {.run_dir = folder->path, .profiled = &kept->slices};
    progress_phase(settings->progress, "analyzing");
    int result = run_analyze(&request, settings->progress, &run, err);
    if (result < 0)
        return result;
    progress_phase(settings->progress, "writing the report");
    result = report_write_html(&run, run_folder_path(folder, "report.html", report), err);
    if (result == 0)
        result = run_analysis_write(&run, run.evidence.run_dir, err);
    if (result == 0 && kept->slices.count)
        result = run_set_add(kept, &run, err);
    progress_end(settings->progress);
    *available = run_is_conclusive(&run);
    if (result == 0 && !settings->silent)
        result = print_results(&run, settings, report, err);
    run_analysis_free(&run);
    return result;
}

int run_latencies_add(const struct run_folder *folder, double tsc_hz, struct latency_array *out,
                      struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    struct log_reader reader;
    int result = log_reader_open(&reader, run_folder_path(folder, "client/samples.tlog", path),
                                 LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), err);
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
