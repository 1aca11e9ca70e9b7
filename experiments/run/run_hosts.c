// SPDX-License-Identifier: MIT
//
// The phases in which the hosts are made, asked what they are, and tuned.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/hosts/host_kind.h"
#include "experiments/hosts/tuning.h"
#include "experiments/keeper/keeper_journal.h"
#include "experiments/remote/left_results.h"
#include "experiments/run/run_phases.h"
#include "profiler/doctor/doctor.h"
#include "base/patience.h"
#include "base/text.h"

enum { FACTS_TIMEOUT_S = 60 };

static void watch_links(struct run *run)
{
    for (size_t i = 0; i < run->hosts.count; i++) {
        struct host *host = &run->hosts.items[i];
        if (host->kind->is_elsewhere)
            supervisor_watch(&run->supervisor, &host->keeper.link, host->what, host->log_path);
    }
}

void run_unwatch_links(struct run *run)
{
    for (size_t i = 0; i < run->hosts.count; i++)
        supervisor_unwatch(&run->supervisor, &run->hosts.items[i].keeper.link);
}

// What runs that died had measured on other machines waits there.
static void name_left_results(struct run *run)
{
    for (size_t i = 0; i < run->hosts.count && !run->log.dry; i++) {
        struct host *host = &run->hosts.items[i];
        struct left_results left = {0};
        struct error ignored;
        if (host->kind->is_elsewhere &&
            left_results_find(&host->keeper, host->plan->directory, &left, &ignored) == 0 &&
            left.count)
            run_warn(run,
                     "what %s load%s or captures of earlier runs measured on host %s is still "
                     "there, in %s%s: `taillight doctor %s --restore` fetches it",
                     TEXT_COUNT(left.count), text_plural((double)left.count), host->plan->name,
                     left.items[0].path, left.count > 1 ? ", ..." : "", host->plan->address);
        array_free(&left);
    }
}

// What runs that died had changed, here and on other machines, is so still.
static void name_stale_journals(struct run *run)
{
    const unsigned here = run->log.dry ? 0 : keeper_journals_stale();
    if (here)
        run_warn(run,
                 "%s earlier run%s did not live to undo %s changes: `taillight doctor --restore` "
                 "does",
                 TEXT_COUNT(here), text_plural(here), here == 1 ? "its" : "their");
    for (size_t i = 0; i < run->hosts.count; i++) {
        const struct host *host = &run->hosts.items[i];
        if (host->stale_journals)
            run_warn(run,
                     "%s earlier run%s did not live to undo %s changes on host %s: `taillight "
                     "doctor %s --restore` does",
                     TEXT_COUNT(host->stale_journals), text_plural(host->stale_journals),
                     host->stale_journals == 1 ? "its" : "their", host->plan->name,
                     host->plan->address);
    }
}

int run_start_hosts(struct run *run, struct error *err)
{
    struct error degraded;
    progress_phase(run->progress, "making %s host%s", TEXT_COUNT(run->experiment->hosts.count),
                   run->experiment->hosts.count == 1 ? "" : "s");
    int result = hosts_start(&run->hosts, run->experiment, run->folder, &run->log, &degraded, err);
    if (result == 0 && degraded.kind != ERROR_NONE)
        run_warn(run, "%s; hosts are this machine instead, over 127.0.0.1, and share its network",
                 degraded.text);
    if (result == 0) {
        name_stale_journals(run);
        watch_links(run);
        name_left_results(run);
    }
    return result;
}

// --- facts ---------------------------------------------------------------------------------------

static int start_asking(struct run *run, struct host *host, struct process *process,
                        struct error *err)
{
    struct command_line line = {.failed = false};
    command_line_add_list(&line, (const char *const[]){"taillight", "doctor", "--facts", NULL});
    const struct run_command command = {.line = &line, .log_path = host->log_path};
    return run_start_command(run, host, &command, process, err);
}

static json_t *ask_facts(struct run *run, struct host *host, struct error *err)
{
    struct process process;
    struct text_buffer output = {0};
    int status = 0;
    int result = start_asking(run, host, &process, err);
    if (result < 0)
        return NULL;
    result = supervisor_wait(&run->supervisor, &process, &output, false,
                             supervisor_now_ns() + FACTS_TIMEOUT_S * SECOND_NS, &status, err);
    json_t *facts = result > 0 ? json_loadb(output.items, output.count, 0, NULL) : NULL;
    if (result > 0 && status != 0)
        supervisor_end_error(err, "the doctor", status, host->log_path);
    else if (result >= 0 && !facts)
        error_set(err, ERROR_FAILED, "host %s does not say what it is", host->plan->name);
    process_stop(&process, 0);
    array_free(&output);
    return facts;
}

static int collect_other_facts(struct run *run, struct error *err)
{
    for (size_t i = 0; i < run->hosts.count; i++) {
        struct host *host = &run->hosts.items[i];
        char name[64];
        if (!host->kind->is_elsewhere || host == run_server_host(run))
            continue;
        json_t *facts = ask_facts(run, host, err);
        if (!facts)
            return -ERROR_FAILED;
        snprintf(name, sizeof name, "facts-%s.json", host->plan->name);
        int result = run_folder_write_json(run->folder, name, facts, err);
        json_decref(facts);
        if (result < 0)
            return result;
    }
    return 0;
}

// In a dry run: logs the command that would ask a host behind ssh.
static int ask_host(struct run *run, struct host *host, struct error *err)
{
    struct process none;
    return host->kind->is_elsewhere ? start_asking(run, host, &none, err) : 0;
}

int run_log_fact_questions(struct run *run, struct error *err)
{
    struct host *first = run_server_host(run);
    int result = ask_host(run, first, err);
    for (size_t i = 0; i < run->hosts.count && result == 0; i++)
        if (&run->hosts.items[i] != first)
            result = ask_host(run, &run->hosts.items[i], err);
    return result;
}

static int collect_here(void *facts)
{
    *(json_t **)facts = doctor_facts_json();
    return 0;
}

// Tries a namespace and asks programs for their versions, which may take seconds.
static json_t *look_here(struct error *err)
{
    int ignored;
    json_t *facts = NULL, **place = calloc(1, sizeof *place);
    if (place && !patience_call(collect_here, place, &ignored)) {
        error_set(err, ERROR_FAILED, "interrupted"); // and the place stays: it is still at work
        return NULL;
    }
    if (place)
        facts = *place;
    free(place);
    return facts;
}

// facts.json: what the server's machine is.
int run_collect_facts(struct run *run, struct error *err)
{
    bool far = run_server_host(run)->kind->is_elsewhere;
    progress_phase(run->progress, "looking at what %s machine is", far ? "the server's" : "this");
    err->kind = ERROR_NONE;
    json_t *facts = far ? ask_facts(run, run_server_host(run), err) : look_here(err);
    if (!facts)
        return err->kind ? -(int)err->kind : error_set(err, ERROR_FAILED, "out of memory");
    int result = run_folder_write_json(run->folder, "facts.json", facts, err);
    json_decref(facts);
    return result == 0 ? collect_other_facts(run, err) : result;
}

// --- tuning --------------------------------------------------------------------------------------

int run_tune(struct run *run, struct error *err)
{
    size_t i;
    json_t *one;
    if (run->experiment->settings.count)
        progress_phase(run->progress, "tuning");
    int result = tuning_apply(&run->hosts, run->experiment, "", &run->log, run->tuned, err);
    json_array_foreach(run->tuned, i, one) if (!json_is_true(json_object_get(one, "applied")))
        run_warn(run, "tuning: %s %s is not set on host %s: %s",
                 json_string_value(json_object_get(one, "setting")),
                 json_string_value(json_object_get(one, "path")),
                 json_string_value(json_object_get(one, "host")),
                 json_string_value(json_object_get(one, "reason")));
    return result;
}
