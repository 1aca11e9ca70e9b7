// SPDX-License-Identifier: MIT
#include "experiments/run_command.h"

#include <stdio.h>

#include "base/options.h"
#include "base/progress.h"
#include "experiments/experiment.h"
#include "experiments/repetitions.h"
#include "experiments/run.h"
#include "experiments/run_results.h"

struct run_options {
    const char *out;
    bool check, json, quiet;
};

static const struct option_spec options[] = {
    OPTION_FLAG("check", 0, struct run_options, check,
                "validate the file and print what a run would do; run nothing"),
    OPTION_STRING("out", 'o', "DIR", struct run_options, out,
                  "the run folder, new or empty (runs/NAME-TIME)"),
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
               "options; 4 no verdict (N/A).",
    .options = options,
};

static int check(const struct experiment *experiment, bool json)
{
    if (!json) {
        experiment_print_plan(experiment, stdout);
        return 0;
    }
    json_t *document = experiment_to_json(experiment);
    int written = document ? json_dumpf(document, stdout, JSON_INDENT(2)) : -1;
    json_decref(document);
    putchar('\n');
    return written < 0 ? ERROR_FAILED : 0;
}

static int run(struct experiment *experiment, const struct run_options *o, bool *available,
               struct error *err)
{
    struct progress progress;
    struct run_outcome outcome;
    progress_init(&progress, o->quiet);
    const struct run_settings settings = {.folder = o->out, .progress = &progress};
    const struct run_results_settings results = {
        .json = o->json, .quiet = o->quiet, .progress = &progress};
    if (experiment->repetitions > 1)
        return repetitions_run(experiment, &settings, &results, available, err);
    int result = run_experiment(experiment, &settings, &outcome, err);
    if (result == 0)
        result = run_results_write(&outcome.folder, &results, available, err);
    progress_end(&progress);
    run_outcome_free(&outcome);
    return result;
}

int run_command(int argc, char **argv)
{
    struct run_options values = {.out = NULL};
    struct experiment experiment;
    struct error err = {0};
    int positional;
    bool help, available = true;
    if (options_parse(&usage, argc, argv, &values, &positional, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    if (positional != 1) {
        error_set(&err, ERROR_INPUT,
                  "run takes one experiment file, not %d; see taillight run "
                  "--help",
                  positional);
        return error_report(&err);
    }
    if (experiment_load(argv[1], &experiment, &err) < 0)
        return error_report(&err);
    int code = 0;
    if (values.check)
        code = check(&experiment, values.json);
    else if (run(&experiment, &values, &available, &err) < 0)
        code = error_report(&err);
    else if (!available)
        code = ERROR_INCONCLUSIVE;
    experiment_free(&experiment);
    return code;
}
