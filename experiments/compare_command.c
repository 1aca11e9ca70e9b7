// SPDX-License-Identifier: MIT
#include "experiments/compare_command.h"

#include <stdio.h>

#include "analysis/diagnosis/slice_options.h"
#include "analysis/report/report_compare.h"
#include "base/options.h"
#include "experiments/compare_runs.h"
#include "experiments/compare_sets.h"

struct compare_options {
    struct slice_options slices;
    const char *output, *gates, *categories;
    struct gate_report_options report;
    bool json, quiet;
};

static const struct option_spec options[] = {
    SLICE_OPTIONS(struct compare_options, slices),
    OPTION_STRING("output", 'o', "FILE", struct compare_options, output,
                  "write the comparison's page there"),
    OPTION_STRING("categories", 0, "FILE", struct compare_options, categories,
                  "categories of causes of your own, before those of both runs"),
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
    .summary = "What changed between two runs, by how much, because of what.",
    .details = "Both are run folders, or folders of repetitions. Of two runs, the messages of a "
               "slice of the one are\ncompared with those of the same slice of the other; without "
               "--slice the slowest percent (p99-100)\nand the ordinary ones (p45-55). Of "
               "repetitions, each percentile with its interval, and its causes.\nExit codes: 3 a "
               "gate failed; 4 a gate is inconclusive, or nothing could be compared (and why).",
    .options = options,
};

// The usual ones when nothing was asked for.
static int choose_slices(const struct slice_options *asked, struct diagnosis_slice_array *out,
                         struct error *err)
{
    int result = slice_options_read(asked, out, err);
    bool nothing = asked->slices.count == 0 && asked->messages.count == 0 && asked->from_ns == 0 &&
                   asked->to_ns == 0;
    return result == 0 && nothing ? compare_runs_usual_slices(out, err) : result;
}

static int print_json(json_t *document, struct error *err)
{
    bool printed = document &&
                   json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0 &&
                   putchar('\n') != EOF;
    json_decref(document);
    return printed ? 0 : error_set(err, ERROR_FAILED, "cannot print the comparison");
}

static int compare_two(char *const folders[COMPARE_SIDES], const struct compare_options *chosen,
                       json_t **document, struct error *err)
{
    struct diagnosis_slice_array slices = {0};
    struct run_comparison comparison = {0};
    struct progress progress;
    const char *const paths[COMPARE_SIDES] = {folders[COMPARE_BASE], folders[COMPARE_CANDIDATE]};
    progress_init(&progress, chosen->quiet);
    int result = choose_slices(&chosen->slices, &slices, err);
    if (result == 0)
        result = compare_runs(paths, &slices, chosen->categories, &progress, &comparison, err);
    if (result == 0 && chosen->output)
        result = report_compare_html(&comparison, chosen->output, err);
    if (result == 0 && chosen->json)
        *document = run_comparison_json(&comparison);
    else if (result == 0)
        report_compare_text(&comparison, stdout);
    if (result == 0 && chosen->output && !chosen->json)
        printf("\nReport: %s\n", chosen->output);
    bool available = compare_runs_any_known(&comparison);
    run_comparison_free(&comparison);
    array_free(&slices);
    return result < 0 ? result : available ? 0 : ERROR_INCONCLUSIVE;
}

// Sets of runs: no page, and one slice, for the gates of causes.
static int check_sets_options(const struct compare_options *chosen,
                              const struct diagnosis_slice_array *slices, struct error *err)
{
    if (chosen->output)
        return error_set(err, ERROR_INPUT,
                         "--output: the page shows two runs; name one of each side's repetitions, "
                         "e.g. BASE/repetition-1");
    if (chosen->categories)
        return error_set(err, ERROR_INPUT,
                         "--categories: two runs are compared by category, repetitions are not; "
                         "name one of each side's, e.g. BASE/repetition-1");
    if (slices->count > 1 || chosen->slices.messages.count || chosen->slices.from_ns ||
        chosen->slices.to_ns)
        return error_set(err, ERROR_INPUT,
                         "repetitions are compared whole: --slice once at most, no --message, "
                         "--from or --to");
    return 0;
}

static int compare_repetitions(char *const folders[COMPARE_SIDES],
                               const struct compare_options *chosen, const struct gate_array *gates,
                               json_t **document, struct error *err)
{
    struct diagnosis_slice_array slices = {0};
    int result = slice_options_read(&chosen->slices, &slices, err);
    if (result == 0)
        result = check_sets_options(chosen, &slices, err);
    const struct compare_sets_options sets = {.slice = slices.count ? slices.items : NULL,
                                              .report = chosen->report,
                                              .json = chosen->json,
                                              .quiet = chosen->quiet};
    if (result == 0)
        result = compare_sets(folders, gates, &sets, document, err);
    array_free(&slices);
    return result;
}

// Two runs with gates: the gates say how it ends, the comparison of the runs what changed.
static int judge_runs(char *const folders[COMPARE_SIDES], const struct compare_options *chosen,
                      const struct gate_array *gates, json_t *document, struct error *err)
{
    json_t *judged = NULL;
    const struct compare_sets_options sets = {
        .report = chosen->report, .json = chosen->json, .quiet = chosen->quiet, .gates_only = true};
    int result = compare_sets(folders, gates, &sets, &judged, err);
    if (judged && json_object_update(document, judged) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the gates");
    json_decref(judged);
    return result;
}

static int compare(char *const folders[COMPARE_SIDES], const struct compare_options *chosen,
                   struct error *err)
{
    struct gate_array gates = {0};
    json_t *document = NULL;
    int result = compare_sets_gates(chosen->gates, folders[COMPARE_CANDIDATE], &gates, err);
    bool single =
        run_set_is_run(folders[COMPARE_BASE]) && run_set_is_run(folders[COMPARE_CANDIDATE]);
    if (result == 0 && !single)
        result = compare_repetitions(folders, chosen, &gates, &document, err);
    else if (result == 0)
        result = compare_two(folders, chosen, &document, err);
    if (single && result >= 0 && gates.count)
        result = judge_runs(folders, chosen, &gates, document, err);
    array_free(&gates);
    if (result < 0 || !chosen->json) {
        json_decref(document);
        return result;
    }
    int printed = print_json(document, err);
    return printed < 0 ? printed : result;
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
        result = compare(argv + 1, &chosen, &err);
    slice_options_free(&chosen.slices);
    return result < 0 ? error_report(&err) : result;
}
