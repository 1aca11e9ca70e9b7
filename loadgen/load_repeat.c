// SPDX-License-Identifier: MIT

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json_numbers.h"
#include "base/process.h"
#include "base/text.h"
#include "loadgen/engine/load_signals.h"
#include "loadgen/load_dataset.h"
#include "loadgen/load_run.h"
#include "loadgen/method/between_runs.h"
#include "loadgen/method/load_reasons.h"
#include "loadgen/method/method_rounds.h"

enum { RESTART_MS = 60000, LOOK_MS = 20, LISTEN_MS = 10000, LISTEN_POLL_NS = 20000000 };

struct repeat {
    struct load_plan *plan;
    struct rounds pool; // samples of all repetitions
    struct load_summary summary;
    struct repetition *repetitions;
    json_t *documents; // one per repetition
    unsigned done;
    bool interrupted;
};

// --- the server, between two repetitions ---------------------------------------------------------
// SIGINT and SIGTERM are held meanwhile, and end it soon: what was measured is to be reported.

static int run_command(const char *command, struct error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    const struct process_place place = {.discard_output = true, .has_children = true};
    struct process process;
    bool ended;
    int status = 0;
    int result = process_start(&process, argv, &place, err);
    if (result < 0)
        return result;
    const long deadline = monotonic_ms() + RESTART_MS;
    while (!(ended = process_has_ended(process.pid)) && !process_is_interrupted() &&
           monotonic_ms() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    if (ended) { // what it leaves running is the server
        process.has_children = false;
        result = process_wait(&process, -1, &status, err);
    }
    process_stop(&process, 0);
    if (result == 0 && process_is_interrupted())
        return error_set(err, ERROR_FAILED, "--restart: `%s` was interrupted", command);
    if (result == 0)
        return error_set(err, ERROR_FAILED, "--restart: `%s` does not end within %d s", command,
                         RESTART_MS / 1000);
    if (result > 0 && status != 0)
        return error_set(err, ERROR_FAILED, "--restart: `%s` %s %d", command,
                         WIFEXITED(status) ? "ended with exit code" : "was killed by signal",
                         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return result < 0 ? result : 0;
}

static int wait_listening(const struct server_address *server, struct error *err)
{
    for (int waited_ms = 0; waited_ms < LISTEN_MS && !process_is_interrupted();
         waited_ms += LISTEN_POLL_NS / 1000000) {
        int probe = socket(server->socket_address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (probe < 0)
            return error_set_errno(err, ERROR_FAILED, "cannot open a socket");
        int failed = connect(probe, (const struct sockaddr *)(const void *)&server->socket_address,
                             server->socket_address_bytes);
        close(probe);
        if (!failed)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = LISTEN_POLL_NS}, NULL);
    }
    return error_set_errno(err, ERROR_FAILED, "--restart: %s does not listen again after %d s",
                           server->text, LISTEN_MS / 1000);
}

static bool nobody_interrupts(void *context, const char *phase, uint64_t done, uint64_t all)
{
    (void)context, (void)phase, (void)done, (void)all;
    return !process_is_interrupted();
}

// A restarted cache is empty: its dataset is stored again.
static int restart_server(struct load_plan *plan, struct error *err)
{
    struct dataset_report report;
    progress_phase(&plan->progress, "restarting the server");
    int status = run_command(plan->options.restart, err);
    if (status == 0)
        status = wait_listening(&plan->server, err);
    if (status == 0)
        status = load_dataset_prepare(plan, nobody_interrupts, NULL, &report, err);
    progress_end(&plan->progress);
    return status;
}

// --- one after the other -------------------------------------------------------------------------

static int write_one(const struct repeat *repeat, const struct engine_result *result,
                     struct error *err)
{
    char directory[4200];
    snprintf(directory, sizeof directory, "%s/repetition-%u", repeat->plan->options.samples,
             repeat->done + 1);
    int status = load_make_directory(directory, err);
    return status < 0 ? status
                      : load_write_logs(directory, result, result->connections,
                                        result->connection_count, err);
}

static int repetition_keep(struct repeat *repeat, const struct load_point *point,
                           struct load_outcome *outcome, struct error *err)
{
    json_t *document = load_outcome_json(repeat->plan, point, outcome);
    int status = repeat->plan->options.samples ? write_one(repeat, &outcome->result, err) : 0;
    if (!document || json_array_append_new(repeat->documents, document) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the repetitions");
    repeat->repetitions[repeat->done] =
        (struct repetition){outcome->method.interval.value, outcome->method.interval.interval};
    repeat->interrupted = outcome->result.end == ENGINE_INTERRUPTED;
    repeat->done++;
    return status < 0 ? status
                      : rounds_add(&repeat->pool, &outcome->result, point->duration_ns, err);
}

static int run_next(struct repeat *repeat, struct error *err)
{
    struct load_plan *plan = repeat->plan;
    const struct load_options *o = &plan->options;
    struct load_outcome outcome;
    // The first repetition has the seed of a plain load, so that it is the same.
    const struct load_point point = {
        o->rate, o->duration_ns,
        repeat->done ? hash64(o->seed + repeat->done) & 0xffffffff : o->seed, 0};
    char rate[TEXT_NUMBER_BYTES];
    load_plan_phase(plan, "repetition %u of %llu: loading %s for %s at %s/s", repeat->done + 1,
                    (unsigned long long)o->repetitions, plan->server.text,
                    TEXT_NS((double)o->duration_ns), text_rate(o->rate, rate));
    int status = load_run_once(plan, &point, &outcome, err);
    progress_end(&plan->progress);
    if (status == 0)
        status = repetition_keep(repeat, &point, &outcome, err);
    load_outcome_free(&outcome);
    return status;
}

static int run_all(struct repeat *repeat, struct error *err)
{
    const struct load_options *o = &repeat->plan->options;
    struct load_signals signals;
    int status = 0;
    load_signals_hold(&signals);
    while (status == 0 && !repeat->interrupted && repeat->done < o->repetitions) {
        if (repeat->done && o->restart)
            status = restart_server(repeat->plan, err);
        if (status == 0 && (!repeat->done || !process_is_interrupted()))
            status = run_next(repeat, err);
        repeat->interrupted |= process_is_interrupted();
    }
    load_signals_release(&signals);
    if (status < 0)
        error_prefix(err, "repetition %u", repeat->done + 1);
    return repeat->interrupted && repeat->done ? 0 : status;
}

// The pool's own reasons would repeat those of its repetitions.
static int sum_up(struct repeat *repeat, struct error *err)
{
    struct load_summary *summary = &repeat->summary;
    int status = load_summarise(&repeat->pool.pool, repeat->pool.duration_ns, summary, err);
    if (status < 0)
        return status;
    summary->ok = true;
    summary->reason_count = 0;
    for (unsigned i = 0; i < repeat->done; i++) {
        char whose[32];
        snprintf(whose, sizeof whose, "repetition %u", i + 1);
        load_summary_take_reasons(summary, json_array_get(repeat->documents, i), whose);
    }
    if (repeat->done < repeat->plan->options.repetitions)
        load_summary_add_reason(summary, DOUBT_INTERRUPTED, "%s: %s of %s repetitions were made",
                                repeat->interrupted ? "interrupted" : "it could not go on",
                                TEXT_COUNT(repeat->done),
                                TEXT_COUNT(repeat->plan->options.repetitions));
    return 0;
}

// --- the report ----------------------------------------------------------------------------------

static json_t *repeat_json(const struct repeat *repeat, const struct between_runs *found,
                           const char *percentile)
{
    const struct load_plan *plan = repeat->plan;
    const struct load_facts facts = load_plan_facts(plan);
    json_t *json = load_summary_json(&repeat->summary, &repeat->pool.pool, &facts);
    json_object_del(json, "method"); // each repetition has its own
    json_object_set_new(json, "repetitions",
                        json_pack("{s:i,s:s?,s:o,s:O}", "count", (int)repeat->done, "restart",
                                  plan->options.restart, "between",
                                  between_runs_json(found, percentile), "list", repeat->documents));
    return json;
}

static int repeat_report(const struct repeat *repeat, struct error *err)
{
    const struct load_plan *plan = repeat->plan;
    const struct load_summary *summary = &repeat->summary;
    struct between_runs found;
    char percentile[32];
    method_percentile_name(plan->quantile, percentile, sizeof percentile);
    between_runs_judge(repeat->repetitions, repeat->done, plan->options.confidence, &found);
    json_t *document = repeat_json(repeat, &found, percentile);
    int status = load_document_finish(&plan->options, document, "load.json", err);
    if (!plan->options.json) {
        const struct load_facts facts = load_plan_facts(plan);
        load_summary_print(summary, &repeat->pool.pool, &facts, stdout);
        between_runs_print(&found, repeat->repetitions, repeat->done, percentile, stdout);
    }
    return status < 0 ? status : load_verdict(summary, err);
}

int load_repeat(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    struct repeat repeat = {.plan = plan, .documents = json_array()};
    int status = load_check_memory(plan, o->rate * (double)o->repetitions, o->duration_ns,
                                   "--rate, --duration or --repetitions", err);
    repeat.repetitions = calloc(o->repetitions, sizeof *repeat.repetitions);
    if (status == 0 && (!repeat.repetitions || !repeat.documents))
        status = error_set(err, ERROR_FAILED, "out of memory");
    if (status == 0)
        status = run_all(&repeat, err);
    // Where one could not be made, those before it are reported all the same.
    struct error verdict;
    int reported = repeat.done ? sum_up(&repeat, &verdict) : status;
    if (reported == 0)
        reported = repeat_report(&repeat, &verdict);
    if (status == 0 && reported < 0)
        *err = verdict;
    status = status < 0 ? status : reported;
    rounds_free(&repeat.pool);
    free(repeat.repetitions);
    json_decref(repeat.documents);
    return status;
}
