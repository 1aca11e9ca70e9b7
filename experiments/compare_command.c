// SPDX-License-Identifier: MIT
#include "experiments/commands.h"

#include <stdio.h>
#include <unistd.h>

#include "analysis/compare/comparison_json.h"
#include "analysis/diagnosis/slice_options.h"
#include "analysis/report/report_compare.h"
#include "base/json_numbers.h"
#include "base/options.h"
#include "base/rights.h"
#include "experiments/results/gate_report.h"
#include "analysis/compare/gates.h"

struct compare_options {
    struct slice_options slices;
    const char *output, *gates, *categories;
    struct gate_report_options report;
    bool json, quiet;
};

static const struct option_spec options[] = {
    SLICE_OPTIONS(struct compare_options, slices),
    OPTION_STRING("out", 'o', "FILE", struct compare_options, output,
                  "write the comparison's page there"),
    OPTION_STRING("output", 0, "FILE", struct compare_options, output, "the same as --out"),
    OPTION_STRING("categories", 0, "FILE", struct compare_options, categories,
                  "categories of causes of your own, before those of the runs"),
    OPTION_STRING("gates", 'g', "FILE", struct compare_options, gates,
                  "judge the gates of this file (those of the candidate's experiment)"),
    GATE_REPORT_OPTIONS(struct compare_options, report),
    OPTION_FLAG("json", 0, struct compare_options, json,
                "print the comparison as one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct compare_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "compare",
    .arguments = "BASE CANDIDATE [options]",
    .summary = "What changed between two builds, by how much, because of what.",
    .details = "Each is a run folder, or a folder of repetitions, which make the intervals know "
               "how runs differ by "
               "themselves. Each percentile is compared, and the messages of a slice of the one "
               "with those of the "
               "same slice of the other; without --slice the slowest percent (p99-100) and the "
               "ordinary ones "
               "(p45-55).\n"
               "Exit codes: 0 done; 1 failed; 2 bad usage or input; 3 a gate failed; 4 a gate or "
               "the load of a side is inconclusive, or nothing could be "
               "compared (and why).",
    .options = options,
};

// Reads the gates of a file, or, without one, those of the candidate's experiment.
static int read_gates(const char *file, const char *candidate, struct gate_array *out,
                      struct error *err)
{
    char folder[4200], path[4300];
    if (file)
        return gates_load(file, true, out, err);
    run_set_folder(candidate, 0, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/experiment.json", folder);
    return access(path, F_OK) == 0 ? gates_load(path, false, out, err) : 0;
}

static int write_text(const struct comparison *comparison, const struct compare_options *chosen,
                      const struct gate_report *judged, struct error *err)
{
    report_compare_text(comparison, stdout);
    if (chosen->output)
        printf("\nReport: %s\n", chosen->output);
    if (judged->results.count)
        putchar('\n');
    return gate_report_write(judged, &chosen->report, comparison->sides[COMPARE_CANDIDATE]->name,
                             false, stdout, err);
}

static int write_json(const struct comparison *comparison, const struct compare_options *chosen,
                      const struct gate_report *judged, struct error *err)
{
    json_t *document = comparison_json(comparison);
    if (json_object_set_new(document, "gates", gate_results_json(&judged->results)) < 0) {
        json_decref(document);
        return error_set(err, ERROR_FAILED, "out of memory for the comparison");
    }
    int result = json_print_new(document, JSON_FOR_PEOPLE, "the comparison", err);
    if (result < 0)
        return result;
    return gate_report_write(judged, &chosen->report, comparison->sides[COMPARE_CANDIDATE]->name,
                             true, NULL, err);
}

static int judge_and_write(const struct comparison *comparison, const struct gate_array *gates,
                           const struct compare_options *chosen, struct error *err)
{
    struct gate_report judged = {.waiting = 0};
    int result = gates_judge(gates, comparison, &judged.results, err);
    if (result == 0 && chosen->output)
        result = report_compare_html(comparison, chosen->output, err);
    if (result == 0)
        result = (chosen->json ? write_json : write_text)(comparison, chosen, &judged, err);
    if (result == 0)
        result = gate_results_exit_code(&judged.results);
    // Where there are gates, they alone decide the result of comparing two single runs.
    bool decided = judged.results.count && comparison_is_single(comparison);
    gate_report_free(&judged);
    const bool conclusive =
        !comparison_is_doubtful(comparison) && (decided || comparison_any_known(comparison));
    return result == 0 && !conclusive ? ERROR_INCONCLUSIVE : result;
}

static int compare_folders(char *const folders[COMPARE_SIDES], const struct compare_options *chosen,
                           struct error *err)
{
    struct gate_array gates = {0};
    struct diagnosis_slice_array slices = {0};
    struct comparison comparison = {.has_base = true};
    struct progress progress;
    progress_init(&progress, chosen->quiet);
    // Both, before either is analysed, which may take minutes.
    int result = run_set_check(folders[COMPARE_BASE], err);
    if (result == 0)
        result = run_set_check(folders[COMPARE_CANDIDATE], err);
    if (result == 0)
        result = read_gates(chosen->gates, folders[COMPARE_CANDIDATE], &gates, err);
    if (result == 0)
        result = slice_options_read(&chosen->slices, &slices, err);
    if (result == 0 && chosen->slices.messages.count &&
        !(run_set_is_run(folders[COMPARE_BASE]) && run_set_is_run(folders[COMPARE_CANDIDATE])))
        result = error_set(err, ERROR_INPUT,
                           "--message: a request is one run's; name one of each side's "
                           "repetitions, e.g. BASE/repetition-1");
    const struct comparison_request request = {
        .base = folders[COMPARE_BASE],
        .candidate = folders[COMPARE_CANDIDATE],
        .slices = &slices,
        .gates = &gates,
        .gate_slice = chosen->slices.slices.count ? slices.items : NULL,
        .categories = chosen->categories};
    if (result == 0)
        result = comparison_make(&comparison, &request, &progress, err);
    if (result == 0)
        result = judge_and_write(&comparison, &gates, chosen, err);
    comparison_free(&comparison);
    array_free(&slices);
    array_free(&gates);
    return result;
}

int compare_command(int argc, char **argv)
{
    struct compare_options chosen = {0};
    struct error err = {0};
    int positional;
    bool help;
    int result = options_parse(&usage, argc, argv, &chosen, &positional, &help, &err);
    if (result == 0 && !help && positional != COMPARE_SIDES)
        result = error_set(&err, ERROR_INPUT,
                           "compare takes two run folders, the base and the candidate, not %d; see "
                           "taillight compare --help",
                           positional);
    else if (result == 0 && !help)
        result =
            rights_become_owner((const char *const *)(argv + 1), COMPARE_SIDES, chosen.quiet, &err);
    if (result == 0 && !help)
        result = compare_folders(argv + 1, &chosen, &err);
    slice_options_free(&chosen.slices);
    return result < 0 ? error_report(&err) : result;
}
