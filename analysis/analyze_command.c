// SPDX-License-Identifier: MIT
#include "analysis/analyze_command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/analyze_trace.h"
#include "analysis/diagnosis/slice_options.h"
#include "analysis/export/run_database.h"
#include "analysis/export/run_summary.h"
#include "analysis/report/terminal/summary_pieces.h"
#include "analysis/run/run_analyze.h"
#include "base/json_numbers.h"
#include "base/options.h"
#include "base/rights.h"
#include "base/text.h"
#include "base/units.h"

// Of the table of causes.
enum { CAUSE_COLUMNS = 29, CATEGORY_COLUMN = 2 + CAUSE_COLUMNS + 3 * 10 + 2 };

struct analyze_options {
    struct slice_options slices;
    const char *load, *categories, *out;
    uint64_t logs_bytes;
    bool json, quiet;
};

static const struct option_spec options[] = {
    SLICE_OPTIONS(struct analyze_options, slices),
    OPTION_STRING("load", 0, "NAME", struct analyze_options, load,
                  "of a run with several loads, the one to look from, instead of the first; "
                  "run-NAME.db and summary-NAME.json are written"),
    OPTION_STRING("categories", 0, "FILE", struct analyze_options, categories,
                  "categories of causes of your own, before the program's"),
    OPTION_STRING("out", 0, "DIR", struct analyze_options, out,
                  "where run.db and summary.json are written, instead of RUN"),
    OPTION_BYTES("logs", 0, "SIZE", struct analyze_options, logs_bytes,
                 "of a capture in segments whose logs are more, look at that part with most of the "
                 "slowest requests (512MiB): it takes some four times the memory"),
    OPTION_FLAG("json", 0, struct analyze_options, json,
                "print summary.json's document on stdout, and nothing else"),
    OPTION_FLAG("quiet", 'q', struct analyze_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "analyze",
    .arguments = "RUN [options]",
    .summary = "Analyses what a run captured: lifetimes, and why the slow requests were slow.",
    .details =
        "Reads the run folder RUN, writes RUN/run.db and RUN/summary.json, and prints why the slow "
        "requests were slow. With requests or categories chosen it only prints, and writes with "
        "--out: RUN "
        "keeps what it has.\n"
        "RUN may be what `taillight capture` wrote by itself, of a server whose clients are not "
        "ours: its "
        "requests are then found by the turns that arrivals and answers take, and latency is the "
        "server's "
        "own.\n"
        "A perf.data or a trace.json in RUN's place, or --pt FILE for a bare stream, is an Intel "
        "PT trace: "
        "its functions are rebuilt instead (taillight-analyze(1)).\n"
        "Exit codes: 0 done; 1 failed; 2 bad usage or input; 4 the evidence allows no verdict "
        "(N/A), the load "
        "cannot be trusted, or Intel PT was asked for and shows nothing.",
    .options = options,
};

static int write_summary(const struct run_analysis *analysis, const char *path, struct error *err)
{
    json_t *summary = run_summary_json(analysis);
    int result = summary ? json_write(summary, JSON_INDENT(2), path, err)
                         : error_set(err, ERROR_FAILED, "no memory for %s", path);
    json_decref(summary);
    return result;
}

int run_analysis_write(const struct run_analysis *analysis, const char *folder, struct error *err)
{
    char path[4400];
    const char *suffix = analysis->evidence.result_suffix;
    snprintf(path, sizeof path, "%s/run%s.db", folder, suffix);
    int result = run_database_write(analysis, path, err);
    if (result < 0)
        return result;
    snprintf(path, sizeof path, "%s/summary%s.json", folder, suffix);
    return write_summary(analysis, path, err);
}

// The last column, the category, takes the lines it needs.
static void print_cause(const struct summary *s, const struct cause *cause)
{
    char name[CAUSE_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s (%s)%s", cause->name, role_name(cause->role),
             summary_cause_mark(cause));
    summary_label(s, name, 2, CAUSE_COLUMNS);
    fprintf(s->out, " %9s %9s %9s  ", TEXT_COUNT(cause->messages), TEXT_NS(cause->median_ns),
            TEXT_NS(cause->total_ns));
    summary_wrapped(s, cause->category, CATEGORY_COLUMN);
}

static void print_causes(const struct summary *s, const struct diagnosis *diagnosis)
{
    char words[96], line[1400];
    const struct run_lifetimes *lives = &s->run->lifetimes;
    bool bounded = diagnosis->slice.from_ns != diagnosis->slice.to_ns;
    double from = bounded ? (double)(diagnosis->slice.from_ns - lives->begin_ns) : 0;
    double to = (double)((bounded ? diagnosis->slice.to_ns : lives->end_ns) - lives->begin_ns);
    snprintf(line, sizeof line, "From %s to %s, %s, %s of %s messages", TEXT_INSTANT(from),
             TEXT_INSTANT(to), diagnosis_slice_words(&diagnosis->slice, words, sizeof words),
             TEXT_COUNT(diagnosis->messages.count), TEXT_COUNT(diagnosis->candidates));
    if (diagnosis->not_available)
        text_append(line, sizeof line, ": N/A: %s", diagnosis->reason);
    else
        text_append(line, sizeof line, ", normal is %s:", TEXT_NS(diagnosis->reference_latency_ns));
    fputc('\n', s->out);
    summary_wrapped(s, line, 0);
    if (diagnosis->not_available)
        return;
    fprintf(s->out, "  %-*s %9s %9s %9s  %s\n", CAUSE_COLUMNS, "cause", "messages", "median",
            "total", "category");
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        print_cause(s, &diagnosis->causes.items[i]);
    if (isnan(diagnosis->coverage_median))
        return;
    summary_explained(s, diagnosis, "");
    summary_explain_marks(s, diagnosis, diagnosis->causes.count);
}

// folder: where it was written; NULL: nowhere.
static void print_findings(const struct run_analysis *run, const char *folder)
{
    const struct summary_style style = summary_style_for(stdout);
    const struct summary s = {run, &style, stdout};
    if (isatty(STDOUT_FILENO))
        summary_wrapped(&s, run->findings.verdict, 0);
    else // for other programs a line
        printf("%s\n", run->findings.verdict);
    for (size_t i = 0; i < run->findings.diagnoses.count; i++)
        print_causes(&s, &run->findings.diagnoses.items[i]);
    char words[RUN_TRACE_WORDS];
    const char *lack = run_trace_lack(&run->evidence.trace, words);
    if (lack[0])
        printf("\nNo functions: %s\n", lack);
    else if (run->evidence.trace.present)
        printf("\nFunctions of %s messages, from %.3g %% of the processor's trace (%s decode "
               "errors)\n",
               TEXT_COUNT(run->evidence.trace.messages),
               run->evidence.trace.bytes
                   ? 100 * (double)run->evidence.trace.decoded / (double)run->evidence.trace.bytes
                   : 0,
               TEXT_COUNT(run->evidence.trace.errors));
    if (folder)
        printf("\nwritten: %s/run%s.db, %s/summary%s.json\n", folder, run->evidence.result_suffix,
               folder, run->evidence.result_suffix);
    else
        printf("\nnot written: this is a view of %s (--out DIR writes it)\n",
               run->evidence.run_dir);
}

// The folder to write to, NULL: none. What was chosen to be looked at does not replace the run's
// own result.
static int choose_folder(const char *run_dir, const struct analyze_options *chosen,
                         const char **folder, struct error *err)
{
    bool view = slice_options_given(&chosen->slices) || chosen->categories;
    *folder = chosen->out ? chosen->out : view ? NULL : run_dir;
    if (chosen->out && mkdir(chosen->out, 0700) < 0 && errno != EEXIST)
        return error_set(err, ERROR_INPUT, "--out %s: %s", chosen->out, strerror(errno));
    return 0;
}

static int analyze(const char *run_dir, const struct analyze_options *chosen, struct error *err)
{
    struct diagnosis_slice_array slices = {0};
    struct run_analysis run = {0};
    struct progress progress;
    const char *folder = NULL;
    const struct run_request request = {.run_dir = run_dir,
                                        .load = chosen->load,
                                        .slices = &slices,
                                        .categories = chosen->categories,
                                        .segments = {.most_bytes = chosen->logs_bytes}};
    int result = slice_options_read(&chosen->slices, &slices, err);
    if (result == 0)
        result = choose_folder(run_dir, chosen, &folder, err);
    progress_init(&progress, chosen->quiet);
    if (result == 0)
        result = run_analyze(&request, &progress, &run, err);
    array_free(&slices);
    if (result < 0)
        return result;
    if (folder)
        result = run_analysis_write(&run, folder, err);
    if (result == 0 && chosen->json)
        result = json_print_new(run_summary_json(&run), JSON_INDENT(2), "the summary", err);
    else if (result == 0)
        print_findings(&run, folder);
    int code = run_is_conclusive(&run) ? 0 : ERROR_INCONCLUSIVE;
    run_analysis_free(&run);
    return result < 0 ? result : code;
}

int analyze_command(int argc, char **argv)
{
    if (pt_analyze_wants(argc, argv))
        return pt_analyze_command(argc, argv);
    struct analyze_options chosen = {0};
    struct error err = {0};
    int positional;
    bool help;
    int result = options_parse(&usage, argc, argv, &chosen, &positional, &help, &err);
    if (result == 0 && !help && positional != 1)
        result =
            error_set(&err, ERROR_INPUT,
                      "analyze takes one run folder, %d were given; see taillight analyze --help",
                      positional);
    else if (result == 0 && !help)
        result = rights_become_owner((const char *const *)(argv + 1), 1, chosen.quiet, &err);
    if (result == 0 && !help)
        result = analyze(argv[1], &chosen, &err);
    slice_options_free(&chosen.slices);
    return result < 0 ? error_report(&err) : result;
}
