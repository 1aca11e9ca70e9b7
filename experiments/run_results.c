// SPDX-License-Identifier: MIT
#include "experiments/run_results.h"

#include <stdio.h>

#include "analysis/analyze_command.h"
#include "analysis/export/run_summary.h"
#include "analysis/report/report_html.h"
#include "analysis/report/summary_text.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"

static int print_json(const struct run_analysis *run, struct error *err)
{
    json_t *summary = run_summary_json(run);
    int written =
        summary ? json_dumpf(summary, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;
    json_decref(summary);
    if (written < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print the summary");
    return 0;
}

static int print(const struct run_analysis *run, const struct run_results_settings *settings,
                 const char *report, struct error *err)
{
    if (settings->json)
        return print_json(run, err);
    if (!settings->quiet) {
        struct summary_style style = summary_style_for(stdout);
        style.full = settings->full;
        summary_text_write(run, &style, stdout);
        printf("\nReport: ");
    }
    printf("%s\n", report);
    if (fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print the summary");
    return 0;
}

int run_results_write(const struct run_folder *folder, const struct run_results_settings *settings,
                      bool *available, struct error *err)
{
    char report[RUN_PATH_BYTES + 128];
    struct run_analysis run = {.evidence.name = ""};
    progress_phase(settings->progress, "analyzing");
    int result = run_analyze(folder->path, NULL, 0, NULL, settings->progress, &run, err);
    if (result < 0)
        return result;
    progress_phase(settings->progress, "writing the report");
    result = report_write_html(&run, run_folder_path(folder, "report.html", report), err);
    if (result == 0)
        result = run_analysis_write(&run, err);
    progress_end(settings->progress);
    *available = run.findings.verdict_available;
    if (result == 0 && !settings->silent)
        result = print(&run, settings, report, err);
    run_analysis_free(&run);
    return result;
}
