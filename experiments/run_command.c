// SPDX-License-Identifier: MIT
#include "experiments/commands.h"

#include <stdio.h>

#include "base/json_numbers.h"
#include "base/options.h"
#include "base/progress.h"
#include "experiments/definition/study.h"
#include "experiments/definition/output.h"
#include "experiments/definition/experiment_set.h"
#include "experiments/study/matrix.h"
#include "experiments/study/repetitions.h"
#include "experiments/run/run.h"
#include "experiments/results/run_results.h"
#include "experiments/study/study_run.h"

enum { NO_STUDY = 1000 };

struct run_options {
    const char *out, *categories;
    struct gate_report_options report;
    bool check, dry_run, schema, help_keys, full, json, quiet;
};

static const struct option_spec options[] = {
    OPTION_FLAG("check", 0, struct run_options, check,
                "validate the file and print what a run would do; run nothing"),
    OPTION_FLAG("dry-run", 0, struct run_options, dry_run,
                "print every command and every setting of every host, in order; do nothing"),
    OPTION_FLAG("schema", 0, struct run_options, schema,
                "print the keys of an experiment file as a JSON Schema, for editors"),
    OPTION_FLAG("help-keys", 0, struct run_options, help_keys,
                "print the keys of an experiment file with their help, and exit"),
    OPTION_STRING("out", 'o', "DIR", struct run_options, out,
                  "the run folder, new or empty (runs/NAME-TIME)"),
    OPTION_STRING("categories", 0, "FILE", struct run_options, categories,
                  "categories of causes of your own, before the program's"),
    GATE_REPORT_OPTIONS(struct run_options, report),
    OPTION_FLAG("full", 0, struct run_options, full,
                "print more than a screen: queues, windows, all stages, tuning"),
    OPTION_FLAG("json", 0, struct run_options, json,
                "print the summary as one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct run_options, quiet,
                "no progress and no summary, only the report's path"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "run",
    .arguments = "EXPERIMENT.yaml [options]",
    .summary = "Runs one experiment: starts its server, loads it, watches it, explains it.",
    .details = "experiments/quickstart.yaml is an example that explains itself. Everything a run "
               "leaves is in its\nfolder; what it starts or changes is ended and undone however it "
               "ends.\nExit codes: 0 done; 1 failed; 2 something is wrong with the file or the "
               "options; 3 a gate failed;\n4 no verdict (N/A), or a gate is inconclusive.",
    .options = options,
};

static int print_plans(const struct experiment_set *set, bool json, struct error *err)
{
    for (size_t i = 0; i < set->count && !json; i++)
        experiment_print_plan(&set->items[i], stdout);
    if (!json)
        return 0;
    // A single experiment is printed as an object, a matrix as a list.
    bool single = set->count == 1 && !set->items[0].configuration[0];
    json_t *document = single ? experiment_to_json(&set->items[0]) : json_array();
    for (size_t i = 0; i < set->count && !single; i++)
        json_array_append_new(document, experiment_to_json(&set->items[i]));
    return json_print_new(document, JSON_INDENT(2), "the experiment", err);
}

static int dry_run(const struct experiment *experiment, const char *folder, const char *step,
                   struct error *err)
{
    struct progress silent;
    struct run_folder none;
    progress_init(&silent, true);
    const struct run_settings settings = {.folder = folder, .progress = &silent, .dry = stdout};
    const char *which = *step ? step : experiment->configuration;
    printf("# %s%s%s", experiment->name, *which ? ": " : "", which);
    if (experiment->repetitions > 1)
        printf(", %llu times", (unsigned long long)experiment->repetitions);
    putchar('\n');
    return run_experiment(experiment, &settings, &none, err);
}

static int dry_run_set(const struct experiment_set *set, const char *folder, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < set->count && result == 0; i++)
        result = dry_run(&set->items[i], folder, "", err);
    return result;
}

static int dry_run_study(const struct study *study, const char *folder, struct error *err)
{
    int result = 0;
    if (study->rounds > 1)
        printf("# all of these steps of %s, %llu times\n", study->name,
               (unsigned long long)study->rounds);
    for (size_t i = 0; i < study->steps.count && result == 0; i++) {
        const struct study_step *step = &study->steps.items[i];
        result = step->study ? dry_run_study(step->study, folder, err)
                             : dry_run(&step->experiment, folder, step->name, err);
    }
    return result;
}

static int run_one(struct experiment *experiment, const struct run_settings *settings,
                   const struct run_results_settings *results, bool *available, struct error *err)
{
    struct run_folder folder;
    struct run_set kept = {.path = ""};
    if (experiment->repetitions > 1)
        return repetitions_run(experiment, settings, results, available, err);
    int result = gate_report_want(results->gates, experiment, &kept, err);
    if (result == 0)
        result = run_experiment(experiment, settings, &folder, err);
    if (result == 0)
        result = run_results_write(&folder, results, &kept, available, err);
    if (result == 0)
        result = gate_report_runs(results->gates, experiment, &folder, &kept,
                                  experiment->configuration, err);
    run_set_free(&kept);
    progress_end(settings->progress);
    return result;
}

static int write_gates(const struct gate_report *gates, const struct run_options *o,
                       const char *suite, struct error *err)
{
    FILE *words = o->quiet ? NULL : o->json ? stderr : stdout;
    return gate_report_write(gates, &o->report, suite, o->json, words, err);
}

static int exit_code(const struct gate_report *gates, bool available)
{
    int code = gate_results_exit_code(&gates->results);
    return code == 0 && !available ? ERROR_INCONCLUSIVE : code;
}

static int run_set(struct experiment_set *set, const struct run_options *o, bool *available,
                   struct gate_report *gates, struct error *err)
{
    struct progress progress;
    progress_init(&progress, o->quiet);
    const struct run_settings settings = {.folder = o->out, .progress = &progress};
    const struct run_results_settings results = {
        .json = o->json, .quiet = o->quiet, .full = o->full, .progress = &progress, .gates = gates};
    int result = set->items[0].configuration[0]
                     ? matrix_run(set, run_one, &settings, &results, available, err)
                     : run_one(&set->items[0], &settings, &results, available, err);
    if (result < 0)
        return result;
    return write_gates(gates, o, set->items[0].name, err);
}

static int choose_categories(struct experiment_set *set, const char *asked, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < set->count && result == 0; i++)
        result = experiment_choose_categories(&set->items[i], asked, err);
    return result;
}

static int choose_study_categories(struct study *study, const char *asked, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < study->steps.count && result == 0; i++) {
        struct study_step *step = &study->steps.items[i];
        result = step->study ? choose_study_categories(step->study, asked, err)
                             : experiment_choose_categories(&step->experiment, asked, err);
    }
    return result;
}

// Runs a file that is a study. Returns an exit code, a negative error, or NO_STUDY: the file is an
// experiment.
static int run_study(const char *path, const struct run_options *o, struct gate_report *gates,
                     struct error *err)
{
    struct study study;
    struct progress progress;
    bool available = true;
    int result = study_load(path, document_open, &study, err);
    if (result <= 0)
        return result < 0 ? result : NO_STUDY;
    result = choose_study_categories(&study, o->categories, err);
    if (result < 0) {
        study_free(&study);
        return result;
    }
    if (o->check) {
        if (o->json)
            result = json_print_new(study_to_json(&study), JSON_INDENT(2), "the study", err);
        else
            study_print_plan(&study, stdout);
        study_free(&study);
        return result;
    }
    if (o->dry_run) {
        result = dry_run_study(&study, o->out, err);
        study_free(&study);
        return result;
    }
    progress_init(&progress, o->quiet);
    const struct run_settings settings = {.folder = o->out, .progress = &progress};
    const struct run_results_settings results = {
        .json = o->json, .quiet = o->quiet, .full = o->full, .progress = &progress, .gates = gates};
    result = study_run(&study, &settings, &results, &available, err);
    if (result == 0)
        result = write_gates(gates, o, study.name, err);
    study_free(&study);
    return result < 0 ? result : exit_code(gates, available);
}

int run_command(int argc, char **argv)
{
    struct run_options values = {.out = NULL};
    struct experiment_set set;
    struct error err = {0};
    int positional;
    bool help, available = true;
    struct gate_report gates = {.waiting = 0};
    if (options_parse(&usage, argc, argv, &values, &positional, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    if (values.schema)
        return json_print_new(experiment_json_schema(), JSON_INDENT(2), "the schema", &err) < 0
                   ? error_report(&err)
                   : 0;
    if (values.help_keys) {
        experiment_print_keys(stdout);
        return 0;
    }
    if (positional != 1) {
        error_set(&err, ERROR_INPUT,
                  "run takes one experiment file, not %d; see taillight run "
                  "--help",
                  positional);
        return error_report(&err);
    }
    int code = run_study(argv[1], &values, &gates, &err);
    if (code != NO_STUDY) {
        gate_report_free(&gates);
        return code < 0 ? error_report(&err) : code;
    }
    if (experiment_set_load(argv[1], &set, &err) < 0)
        return error_report(&err);
    if (choose_categories(&set, values.categories, &err) < 0)
        code = error_report(&err);
    else if (values.check)
        code = print_plans(&set, values.json, &err) < 0 ? error_report(&err) : 0;
    else if (values.dry_run)
        code = dry_run_set(&set, values.out, &err) < 0 ? error_report(&err) : 0;
    else if (run_set(&set, &values, &available, &gates, &err) < 0)
        code = error_report(&err);
    else
        code = exit_code(&gates, available);
    gate_report_free(&gates);
    experiment_set_free(&set);
    return code;
}
