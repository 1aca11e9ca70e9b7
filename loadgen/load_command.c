// SPDX-License-Identifier: MIT
#include "loadgen/load_command.h"

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json_numbers.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/text.h"
#include "loadgen/load_dataset.h"
#include "loadgen/load_plan.h"
#include "loadgen/load_run.h"
#include "loadgen/load_search.h"

static const struct command_usage usage = {
    .name = "load",
    .arguments = "--server HOST:PORT --rate N|--sweep FROM:TO:STEP|--slo SLO [options]",
    .summary = "Loads a server, open-loop, and reports its latency.",
    .details =
        "Requests are sent at instants drawn ahead of time, whatever the replies do; latency "
        "counts from those "
        "instants. Requests take the connections in turn, passing over those without room; when "
        "none has room "
        "they wait, and their lateness counts. Ctrl-C ends the run early and keeps its logs.\n"
        "Exit codes: 0 done; 1 failed, or nothing was answered; 2 bad usage or input; 3 the SLO is "
        "missed even "
        "at the lowest rate; 4 the result cannot be trusted, for the reasons it names.",
    .options = load_options_table,
    .elsewhere = load_options_elsewhere,
};

static bool show_progress(void *context, const char *phase, uint64_t done, uint64_t all)
{
    const struct load_plan *plan = context;
    load_phase_say(plan->phase);
    progress_update(plan->phase->progress, "%s %s of %s keys", phase, TEXT_COUNT(done),
                    TEXT_COUNT(all));
    return true;
}

static int prepare_dataset(struct load_plan *plan, struct error *err)
{
    struct dataset_report report;
    load_plan_phase(plan, "loading the dataset into %s", plan->server.text);
    int status = load_dataset_prepare(plan, show_progress, plan, &report, err);
    progress_end(&plan->progress);
    if (status < 0)
        return status;
    if (plan->options.json)
        return json_print_new(json_pack("{s:I,s:I,s:I}", "stored", (json_int_t)report.stored,
                                        "verified", (json_int_t)report.verified, "bytes",
                                        (json_int_t)report.bytes),
                              LOAD_JSON, "the result", err);
    if (plan->workload.protocol->dataset == DATASET_NONE)
        printf("protocol %s needs no dataset\n", plan->workload.protocol->name);
    else
        printf("%s keys stored and verified, %.1f MiB\n", TEXT_COUNT(report.verified),
               (double)report.bytes / 1048576);
    return 0;
}

static int plan_run(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    if (o->prepare)
        return prepare_dataset(plan, err);
    if (load_try_files(o, err) < 0)
        return -ERROR_FAILED;
    if (o->slo)
        return load_search(plan, err);
    if (o->sweep)
        return load_sweep(plan, err);
    return o->repetitions > 1 ? load_repeat(plan, err) : load_run(plan, err);
}

int load_command(int argc, char **argv)
{
    struct error err = {0};
    struct load_plan plan;
    struct load_phase phase = {.progress = &plan.progress};
    int positional = 0;
    bool help = false;
    load_plan_init(&plan);
    int status = options_parse(&usage, argc, argv, &plan.options, &positional, &help, &err);
    if (status == 0 && !help) {
        progress_init(&plan.progress, plan.options.quiet);
        plan.phase = &phase;
        status = load_plan_make(&plan, positional, argv, &err);
        if (status == 0)
            status = plan_run(&plan, &err);
    }
    load_plan_free(&plan);
    return status < 0 ? error_report(&err) : 0;
}
