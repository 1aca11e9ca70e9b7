// SPDX-License-Identifier: MIT
#include "experiments/commands.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json_numbers.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/text.h"
#include "experiments/definition/study.h"
#include "experiments/definition/output.h"
#include "experiments/definition/experiment_set.h"
#include "experiments/study/matrix.h"
#include "experiments/study/repetitions.h"
#include "experiments/run/run.h"
#include "experiments/run/divided_run.h"
#include "experiments/results/run_results.h"
#include "experiments/study/study_run.h"

struct run_options {
    const char *out, *categories;
    struct option_list assignments;
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
                  "the run folder: new, empty, or of a run that failed before its load began "
                  "(runs/NAME-TIME)"),
    OPTION_LIST("set", 0, "KEY=VALUE", struct run_options, assignments,
                "that key of the file in this run, like load.rate=50k; any number of them"),
    OPTION_STRING("categories", 0, "FILE", struct run_options, categories,
                  "categories of causes of your own, before the program's"),
    GATE_REPORT_OPTIONS(struct run_options, report),
    OPTION_FLAG("full", 0, struct run_options, full,
                "print all that the report says in words: stages, threads, queues, windows"),
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
    .details =
        "quickstart.yaml explains itself; it and the other examples are in "
        "share/taillight/experiments below where the program is installed, and in experiments/ "
        "of its source. Everything a run leaves is in its folder; what it starts or changes is "
        "ended and undone however it ends.\n"
        "Exit codes: 0 done; 1 failed; 2 something is wrong with the file or the options; 3 "
        "a gate failed; 4 no "
        "verdict (N/A), a load that cannot be trusted, an inconclusive gate, or Intel PT "
        "that was asked for "
        "and shows nothing.",
    .options = options,
};

// What a file is: a study, or an experiment with its configurations.
struct run_file {
    bool is_study;
    struct study study;
    struct experiment_set set;
};

static int print_plans(const struct run_file *file, bool json, struct error *err)
{
    const struct experiment_set *set = &file->set;
    // A single experiment is printed as an object, a matrix as a list.
    bool single = !file->is_study && set->count == 1 && !set->items[0].configuration[0];
    if (!json && file->is_study)
        study_print_plan(&file->study, stdout);
    for (size_t i = 0; i < set->count && !json; i++)
        experiment_print_plan(&set->items[i], stdout);
    if (!json)
        return 0;
    if (file->is_study)
        return json_print_new(study_to_json(&file->study), JSON_INDENT(2), "the study", err);
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
        printf(", %s times", TEXT_COUNT(experiment->repetitions));
    putchar('\n');
    return run_experiment(experiment, &settings, &none, err);
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

static int dry_run_file(const struct run_file *file, const char *folder, struct error *err)
{
    int result = file->is_study ? dry_run_study(&file->study, folder, err) : 0;
    for (size_t i = 0; i < file->set.count && result == 0; i++)
        result = dry_run(&file->set.items[i], folder, "", err);
    return result;
}

static int run_one(struct experiment *experiment, const struct run_settings *settings,
                   const struct run_results_settings *results, bool *available, struct error *err)
{
    struct run_folder folder;
    struct run_set_array kept = {0};
    if (experiment->repetitions > 1)
        return repetitions_run(experiment, settings, results, available, err);
    int result = run_results_keep(experiment, NULL, &kept, err);
    if (result == 0)
        result = gate_report_want(results->gates, experiment, &kept, err);
    if (result == 0)
        result = run_experiment(experiment, settings, &folder, err);
    if (result == 0)
        result = run_results_write(&folder, results, &kept, available, err);
    if (result == 0)
        result = gate_report_runs(results->gates, experiment, &folder, &kept,
                                  experiment->configuration, err);
    run_sets_free(&kept);
    progress_end(settings->progress);
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

static int choose_categories(struct run_file *file, const char *asked, struct error *err)
{
    int result = file->is_study ? choose_study_categories(&file->study, asked, err) : 0;
    for (size_t i = 0; i < file->set.count && result == 0; i++)
        result = experiment_choose_categories(&file->set.items[i], asked, err);
    return result;
}

// Returns an exit code or a negative error.
static int run_file(struct run_file *file, const struct run_options *o,
                    const struct run_settings *settings, struct error *err)
{
    struct gate_report gates = {.waiting = 0};
    struct experiment_set *set = &file->set;
    bool available = true;
    const struct run_results_settings results = {.json = o->json,
                                                 .quiet = o->quiet,
                                                 .full = o->full,
                                                 .progress = settings->progress,
                                                 .gates = &gates};
    // The run's own folder is not there yet.
    const bool in_folder =
        o->report.junit && o->out && strncmp(o->report.junit, o->out, strlen(o->out)) == 0;
    int result = in_folder ? 0 : gate_report_try(&o->report, err);
    if (result == 0)
        result = file->is_study ? study_run(&file->study, settings, &results, &available, err)
                 : set->items[0].configuration[0]
                     ? matrix_run(set, run_one, settings, &results, &available, err)
                     : run_one(&set->items[0], settings, &results, &available, err);
    if (result == 0)
        result = gate_report_write(&gates, &o->report,
                                   file->is_study ? file->study.name : set->items[0].name, o->json,
                                   o->quiet  ? NULL
                                   : o->json ? stderr
                                             : stdout,
                                   err);
    if (result == 0)
        result = gate_results_exit_code(&gates.results);
    gate_report_free(&gates);
    return result == 0 && !available ? ERROR_INCONCLUSIVE : result;
}

// --- with the rights that it takes ---------------------------------------------------------------

static int list_study(struct study *study, struct experiment_list *list)
{
    int result = 0;
    for (size_t i = 0; i < study->steps.count && result == 0; i++) {
        struct study_step *step = &study->steps.items[i];
        result = step->study ? list_study(step->study, list) : array_push(list, &step->experiment);
    }
    return result;
}

static int list_experiments(struct run_file *file, struct experiment_list *list)
{
    int result = file->is_study ? list_study(&file->study, list) : 0;
    for (size_t i = 0; i < file->set.count && result == 0; i++)
        result = array_push(list, &file->set.items[i]);
    return result;
}

struct file_to_run {
    struct run_file *file;
    const struct run_options *options;
};

static int run_without_rights(const struct run_settings *settings, void *context)
{
    struct file_to_run *job = context;
    struct error err;
    int result = run_file(job->file, job->options, settings, &err);
    return result < 0 ? error_report(&err) : result;
}

static int run_with_rights(struct run_file *file, const struct run_options *o, struct error *err)
{
    struct progress progress;
    struct person owner;
    struct experiment_list experiments = {0};
    struct file_to_run job = {.file = file, .options = o};
    progress_init(&progress, o->quiet);
    const struct run_settings settings = {.folder = o->out, .progress = &progress};
    if (geteuid() != 0)
        return run_file(file, o, &settings, err);
    bool owned = run_find_owner(o->out, &owner);
    int result = list_experiments(file, &experiments) < 0
                     ? error_set(err, ERROR_FAILED, "out of memory")
                     : run_divided(&settings, owned ? &owner : NULL, &experiments,
                                   run_without_rights, &job, err);
    array_free(&experiments);
    return result;
}

static int do_with_file(const char *path, const struct run_options *o, struct error *err)
{
    struct run_file file = {.is_study = false};
    int result = study_load(path, document_open, &file.study, err);
    file.is_study = result > 0;
    if (result == 0)
        result = experiment_set_load(path, &o->assignments, &file.set, err);
    if (result < 0)
        return result;
    if (file.is_study && o->assignments.count > 0)
        result = error_set(err, ERROR_INPUT,
                           "--set: %s is a study; write what its steps have in common into its "
                           "`with`",
                           path);
    if (result >= 0)
        result = choose_categories(&file, o->categories, err);
    if (result == 0)
        result = o->check     ? print_plans(&file, o->json, err)
                 : o->dry_run ? dry_run_file(&file, o->out, err)
                              : run_with_rights(&file, o, err);
    if (file.is_study)
        study_free(&file.study);
    else
        experiment_set_free(&file.set);
    return result;
}

int run_command(int argc, char **argv)
{
    struct run_options values = {.out = NULL};
    struct error err = {0};
    int positional;
    bool help;
    int result = options_parse(&usage, argc, argv, &values, &positional, &help, &err);
    if (result == 0 && !help && values.schema)
        result = json_print_new(experiment_json_schema(), JSON_INDENT(2), "the schema", &err);
    else if (result == 0 && !help && values.help_keys)
        experiment_print_keys(stdout);
    else if (result == 0 && !help && positional != 1)
        result = error_set(&err, ERROR_INPUT,
                           "run takes one experiment file, not %d; see taillight run --help",
                           positional);
    else if (result == 0 && !help)
        result = do_with_file(argv[1], &values, &err);
    array_free(&values.assignments);
    return result < 0 ? error_report(&err) : result;
}
