// SPDX-License-Identifier: MIT
#include "analysis/report_command.h"

#include <stdio.h>
#include <string.h>

#include "analysis/diagnosis/slice_options.h"
#include "analysis/export/run_perfetto.h"
#include "analysis/export/run_summary.h"
#include "analysis/report/page/report_html.h"
#include "analysis/report/plots/report_plots.h"
#include "analysis/report/page/report_set.h"
#include "analysis/report/terminal/summary_text.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"
#include "analysis/run/run_lede.h"
#include "base/json_numbers.h"
#include "base/new_file.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/rights.h"
#include "base/text.h"

struct report_options {
    struct slice_options slices;
    const char *load;
    const char *categories;
    const char *output;
    const char *perfetto;
    const char *plots;
    bool png;
    bool text;
    bool full;
    bool json;
    bool quiet;
};

static const struct option_spec options[] = {
    SLICE_OPTIONS(struct report_options, slices),
    OPTION_STRING("load", 0, "NAME", struct report_options, load,
                  "of a run with several loads, the one to look from, instead of the first; the "
                  "page is report-NAME.html"),
    OPTION_STRING("categories", 0, "FILE", struct report_options, categories,
                  "categories of causes of your own, before the program's"),
    OPTION_STRING("out", 'o', "FILE", struct report_options, output,
                  "where the page goes (report.html in RUN, or view.html with requests chosen)"),
    OPTION_STRING("output", 0, "FILE", struct report_options, output, "the same as --out"),
    OPTION_STRING("perfetto", 0, "FILE", struct report_options, perfetto,
                  "also write the run, or what was chosen of it, for ui.perfetto.dev"),
    OPTION_STRING("plots", 0, "DIR", struct report_options, plots,
                  "also write each plot as SVG into that folder"),
    OPTION_FLAG("png", 0, struct report_options, png,
                "with --plots: a PNG beside each SVG (takes rsvg-convert)"),
    OPTION_FLAG("text", 0, struct report_options, text,
                "print the terminal summary only, write no page"),
    OPTION_FLAG("full", 0, struct report_options, full,
                "print all that the report says in words: stages, threads, queues, windows"),
    OPTION_FLAG("json", 0, struct report_options, json,
                "print the summary as one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct report_options, quiet,
                "no progress and no summary, only the page's path"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "report",
    .arguments = "RUN [options]",
    .summary = "Analyses a run folder and writes its report.",
    .details = "The page is one self-contained file: latency, stages, causes, and the timeline of "
               "every slow "
               "message.\n"
               "Exit codes: 0 done; 1 failed; 2 bad usage or input; 4 the run has no verdict "
               "(N/A), its load cannot be trusted, or Intel PT was asked for "
               "and shows nothing, and the report says why.",
    .options = options,
};

static int write_report(const struct run_analysis *run, const struct report_options *values,
                        struct error *err)
{
    char in_folder[4200];
    // What was chosen to be looked at does not replace the run's own page.
    bool view = slice_options_given(&values->slices) || values->categories;
    snprintf(in_folder, sizeof in_folder, "%s/%s%s.html", run->evidence.run_dir,
             view ? "view" : "report", run->evidence.result_suffix);
    const char *path = values->output ? values->output : in_folder;
    if (!values->text) {
        int written = report_write_html(run, path, err);
        if (written < 0)
            return written;
    }
    if (values->perfetto) {
        enum perfetto_extent extent = values->slices.slices.count || values->slices.messages.count
                                          ? PERFETTO_MESSAGES
                                      : slice_options_given(&values->slices) ? PERFETTO_WINDOWS
                                                                             : PERFETTO_RUN;
        int written = run_perfetto_write(run, extent, values->perfetto, err);
        if (written < 0)
            return written;
    }
    if (values->plots) {
        int written = report_plots_write(run, values->plots, values->png, err);
        if (written < 0)
            return written;
    }
    if (values->json)
        return json_print_new(run_summary_json(run), JSON_FOR_PEOPLE, "the summary", err);
    if (!values->quiet || values->text) {
        struct summary_style style = summary_style_for(stdout);
        style.full = values->full;
        summary_text_write(run, &style, stdout);
    } else {
        run_lede_write_doubt(run, stderr);
    }
    if (!values->text)
        printf("%s%s\n", values->quiet ? "" : "\nReport: ", path);
    if (values->plots && !values->quiet)
        printf("Plots: %s/*.svg\n", values->plots);
    if (fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print the summary");
    return 0;
}

// The folder of a sweep or a search, or one of several runs: its document is all there is to it.
static int report_document(const char *directory, const struct report_options *values,
                           struct error *err)
{
    bool is_load = report_is_load(directory);
    char in_folder[4200], verdict[1400], clean[1400];
    snprintf(in_folder, sizeof in_folder, "%s/report.html", directory);
    const char *path = values->output ? values->output : in_folder;
    json_t *document = is_load ? report_load_read(directory, err) : report_set_read(directory, err);
    if (!document)
        return -ERROR_INPUT;
    if (is_load)
        report_load_verdict(document, verdict, sizeof verdict);
    else
        report_set_verdict(document, verdict, sizeof verdict);
    int status = values->text ? 0
                 : is_load    ? report_load_write(document, path, err)
                              : report_set_write(directory, path, err);
    if (status == 0 && values->json)
        status = json_print_new(json_incref(document), JSON_INDENT(2) | JSON_REAL_PRECISION(9),
                                "the document", err);
    json_decref(document);
    if (status < 0 || values->json)
        return status;
    if (!values->quiet || values->text)
        printf("%s\n", text_clean(verdict, false, clean, sizeof clean));
    if (!values->text)
        printf("%s%s\n", values->quiet ? "" : "\nReport: ", path);
    return fflush(stdout) == EOF ? error_set_errno(err, ERROR_FAILED, "cannot print") : 0;
}

static int report_run(const char *directory, const struct report_options *values, struct error *err)
{
    struct diagnosis_slice_array slices = {0};
    struct run_analysis run = {0};
    struct progress progress;
    const struct run_request request = {.run_dir = directory,
                                        .load = values->load,
                                        .slices = &slices,
                                        .categories = values->categories};
    int result = slice_options_read(&values->slices, &slices, err);
    progress_init(&progress, values->quiet);
    if (result == 0 && values->plots)
        result = report_plots_folder(values->plots, err);
    if (result == 0 && values->output && !values->text)
        result = new_file_try(values->output, err);
    if (result == 0 && values->perfetto)
        result = new_file_try(values->perfetto, err);
    if (result == 0)
        result = run_analyze(&request, &progress, &run, err);
    progress_end(&progress);
    array_free(&slices);
    if (result < 0)
        return result;
    result = write_report(&run, values, err);
    int code = run_is_conclusive(&run) ? 0 : ERROR_INCONCLUSIVE;
    run_analysis_free(&run);
    return result < 0 ? result : code;
}

int report_command(int argc, char **argv)
{
    struct report_options values = {0};
    struct error err = {0};
    int positional;
    bool help;
    int result = options_parse(&usage, argc, argv, &values, &positional, &help, &err);
    if (result == 0 && !help && positional != 1)
        result = error_set(&err, ERROR_INPUT,
                           "report takes one run folder, not %d; see taillight report --help",
                           positional);
    else if (result == 0 && !help && values.png && !values.plots)
        result =
            error_set(&err, ERROR_INPUT, "--png says how plots are drawn: it takes --plots DIR");
    else if (result == 0 && !help)
        result = rights_become_owner((const char *const *)(argv + 1), 1, values.quiet, &err);
    bool document = result == 0 && !help && (report_is_load(argv[1]) || report_is_set(argv[1]));
    if (document && (values.plots || values.perfetto || values.load))
        result =
            error_set(&err, ERROR_INPUT,
                      "%s: --plots, --perfetto and --load are of a single run; this folder has "
                      "several, or a load alone",
                      argv[1]);
    else if (document)
        result = report_document(argv[1], &values, &err);
    else if (result == 0 && !help)
        result = report_run(argv[1], &values, &err);
    slice_options_free(&values.slices);
    return result < 0 ? error_report(&err) : result;
}
