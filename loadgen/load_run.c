// SPDX-License-Identifier: MIT
#include "loadgen/load_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json_numbers.h"
#include "base/progress.h"
#include "base/text.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/engine/live_view.h"
#include "loadgen/engine/load_signals.h"
#include "loadgen/engine/schedule.h"
#include "loadgen/load_agents.h"
#include "loadgen/method/method_rounds.h"

static const double memory_share = 0.8; // of what is available, for samples
static const double memory_default = 1 << 30;
// Of each thread of a closed loop, whose next samples take the place of finished ones: what stays
// in caches is all that it needs, and a page touched for the first time costs more than a request.
static const uint64_t memory_of_closed_loop = 48 << 20;

static int run_report(const struct load_plan *plan, const struct engine_result *result,
                      const struct load_summary *summary, const struct method *method,
                      const struct rounds *rounds, json_t *agents, struct error *err)
{
    const struct load_facts facts = load_plan_facts(plan);
    json_t *document = load_result_json(result, &facts, summary, method, rounds, agents);
    int status = load_document_finish(&plan->options, document, "load.json", err);
    if (!plan->options.json) {
        load_summary_print(summary, result, &facts, stdout);
        method_print(method, stdout);
        if (agents)
            load_agents_print(agents, stdout);
        if (rounds)
            printf("  rounds     %u measured, %u thrown away before; ended by: %s\n",
                   rounds->measured, rounds->stabilising, rounds->stop);
    }
    if (status < 0)
        return status;
    return load_verdict(summary, err);
}

// Writes the logs and reports the result, also when they cannot be written.
static int write_and_report(const struct load_plan *plan, const struct engine_result *result,
                            const struct connection *connections, uint32_t connection_count,
                            const struct load_summary *summary, const struct method *method,
                            const struct rounds *rounds, json_t *agents, struct error *err)
{
    struct error verdict;
    int written = load_write_files(&plan->options, result, connections, connection_count, err);
    int reported = run_report(plan, result, summary, method, rounds, agents, &verdict);
    if (written < 0)
        return written;
    if (reported < 0)
        *err = verdict;
    return reported;
}

// 0: /proc does not say.
static double available_bytes(void)
{
    char line[120];
    unsigned long long available_kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &available_kib) == 1)
            break;
    if (file)
        fclose(file);
    return (double)available_kib * 1024;
}

// Memory per request: its sample, a second copy while several threads' are merged, its place in the
// schedule, and five values: latencies and lateness, and room for finding percentiles. A fan-out
// adds logical requests, with a sample and two values each.
static double request_bytes(const struct load_plan *plan)
{
    const double logical =
        plan->workload.fanout > 1
            ? (sizeof(struct sample) + 2 * sizeof(double)) / (double)plan->workload.fanout
            : 0;
    return (double)(sizeof(struct sample) * (plan->options.threads > 1 ? 2 : 1) +
                    sizeof(struct scheduled_request) + 5 * sizeof(double)) +
           logical;
}

// How many requests a closed loop may put.
static size_t affordable_requests(const struct load_plan *plan)
{
    const double enough = 1e9, allowed = (double)plan->options.memory_bytes;
    const double most_bytes = allowed > 0 ? allowed : available_bytes() * memory_share;
    double requests = most_bytes > 0 ? most_bytes / request_bytes(plan) : enough;
    return (size_t)fmin(requests, enough);
}

static double requests_expected(const struct load_plan *plan, double rate, uint64_t duration_ns)
{
    return rate * plan->workload.fanout * (double)duration_ns / 1e9 *
           rate_pattern_integral(&plan->workload.pattern, 1);
}

// A connection has room for a whole request.
static int check_buffers(const struct load_plan *plan, double available, struct error *err)
{
    const double values = (double)workload_carried_bytes_max(&plan->workload);
    double buffers = values * (double)plan->options.connections;
    if (!(available > 0) || buffers <= available * memory_share)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%s connections that send values of up to %.3g MiB need %.0f MiB of memory, "
                     "and %.0f MiB are available: lower --connections or the values' sizes",
                     TEXT_COUNT(plan->options.connections), values / 1048576, buffers / 1048576,
                     available / 1048576);
}

// If /proc does not say what is available, the load is allowed.
int load_check_memory(const struct load_plan *plan, double rate, uint64_t duration_ns,
                      const char *lower, struct error *err)
{
    const double available = available_bytes(), allowed = (double)plan->options.memory_bytes;
    double requests = requests_expected(plan, rate, duration_ns);
    double wanted = requests * request_bytes(plan);
    if (check_buffers(plan, available, err) < 0)
        return -ERROR_INPUT;
    // A closed loop is bounded by memory.
    if (isinf(rate))
        return 0;
    if (allowed > 0 && wanted > allowed)
        return error_set(err, ERROR_INPUT,
                         "%.3g requests need %.3g MiB of memory for their samples, and --memory "
                         "allows %.0f MiB, which bounds only a single load with a --rate and a "
                         "--duration and without --agent, a fan-out or a recording: raise it, "
                         "or lower %s",
                         requests, wanted / 1048576, allowed / 1048576, lower);
    if (!(available > 0) || wanted < available * memory_share)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%.3g requests need %.3g MiB of memory for their samples, and %.0f MiB are "
                     "available: lower %s",
                     requests, wanted / 1048576, available / 1048576, lower);
}

// What a closed loop's requests may take. Who wants a file of all samples has them all in memory.
static uint64_t memory_bound_of_closed_loop(const struct load_plan *plan)
{
    const struct load_options *o = &plan->options;
    const bool can = plan->stamps != STAMP_MODE_HARDWARE && !o->samples && !plan->agent_count &&
                     o->repetitions == 1 && plan->workload.fanout == 1;
    const uint64_t bytes = o->memory_bytes ? o->memory_bytes : memory_of_closed_loop * o->threads;
    return can ? bytes : 0;
}

// What the requests of a single load may take, if they need more than that and can do with it; 0:
// they are all kept.
static uint64_t memory_bound(const struct load_plan *plan)
{
    const struct load_options *o = &plan->options;
    if (isinf(o->rate))
        return memory_bound_of_closed_loop(plan);
    const double available = available_bytes() * memory_share;
    double bytes = o->memory_bytes ? (double)o->memory_bytes : memory_default;
    if (available > 0 && !o->memory_bytes)
        bytes = fmin(bytes, available);
    // The NIC's stamps are converted after the load.
    bool stamps = plan->stamps != STAMP_MODE_HARDWARE || o->memory_bytes;
    bool can = stamps && isfinite(o->rate) && !o->target && !plan->agent_count &&
               o->repetitions == 1 && plan->recording.requests.count == 0 &&
               plan->workload.fanout == 1;
    double wanted = requests_expected(plan, o->rate, o->duration_ns) * request_bytes(plan);
    return can && wanted > bytes ? (uint64_t)bytes : 0;
}

static int schedule_prepare(const struct load_plan *plan, const struct load_point *point,
                            struct schedule *schedule, struct error *err)
{
    const struct workload *workload = &plan->workload;
    if (isinf(point->rate))
        return schedule_draw_order(workload, ENGINE_CLOSED_LOOP_ORDER, point->seed, schedule, err);
    if (plan->recording.requests.count)
        return recording_draw(&plan->recording, workload, point->rate, point->duration_ns,
                              point->seed, schedule, err);
    return schedule_draw(workload, &workload->arrivals, point->rate, point->duration_ns,
                         point->seed, schedule, err);
}

// With a live view for whoever looks.
static int run_engine(const struct load_plan *plan, struct engine_settings *engine,
                      const struct schedule *schedule, struct engine_result *result,
                      struct error *err)
{
    char goal[40];
    struct live_view *view;
    struct load_signals signals;
    snprintf(goal, sizeof goal, "the end of %s", TEXT_NS((double)engine->duration_ns));
    int status = live_view_start(&plan->progress, plan->options.tell_live, engine->threads, goal,
                                 &view, err);
    if (status < 0)
        return status;
    engine->live = live_view_counters(view);
    load_signals_hold(&signals);
    status = engine_run(engine, schedule, result, err);
    load_signals_sum_up(&signals, status < 0 || result->end == ENGINE_INTERRUPTED ||
                                      plan->options.repetitions > 1);
    live_view_stop(view);
    return status;
}

// Of more requests than fit into memory: drawn while the load lasts, and only a sample is kept.
static int run_bounded(const struct load_plan *plan, const struct load_point *point,
                       struct engine_settings *engine, struct engine_result *result,
                       struct error *err)
{
    engine->memory_bytes = point->memory_bytes;
    int status = schedule_drawer_open(&plan->workload, &plan->workload.arrivals, point->rate,
                                      point->duration_ns, point->seed, &engine->drawer, err);
    if (status == 0)
        status = run_engine(plan, engine, NULL, result, err);
    schedule_drawer_close(engine->drawer);
    return status;
}

static int run_whole(const struct load_plan *plan, const struct load_point *point,
                     struct engine_settings *engine, struct engine_result *result,
                     struct error *err)
{
    struct schedule schedule = {0};
    int status = schedule_prepare(plan, point, &schedule, err);
    engine->memory_bytes = point->memory_bytes;
    if (status == 0)
        status = run_engine(plan, engine, &schedule, result, err);
    schedule_free(&schedule);
    return status;
}

// With the files that grow meanwhile, where samples are asked for.
static int run_spooled(const struct load_plan *plan, const struct load_point *point,
                       struct engine_settings *engine, struct engine_result *result,
                       struct error *err)
{
    char spool[4200], connections[4200];
    // Of several repetitions each has files of its own, once it has ended.
    if (plan->options.samples && plan->options.repetitions == 1) {
        snprintf(spool, sizeof spool, "%s/samples.tlog", plan->options.samples);
        snprintf(connections, sizeof connections, "%s/connections.tlog", plan->options.samples);
        engine->spool = spool;
        engine->spool_connections = connections;
    }
    int status = point->memory_bytes && !engine->closed_loop
                     ? run_bounded(plan, point, engine, result, err)
                     : run_whole(plan, point, engine, result, err);
    if (status < 0 && engine->spool)
        unlink(connections);
    engine->spool = engine->spool_connections = NULL;
    return status;
}

int load_run_once(const struct load_plan *plan, const struct load_point *point,
                  struct load_outcome *outcome, struct error *err)
{
    struct engine_settings engine = load_plan_engine(plan);
    struct method_settings settings = load_plan_method(plan);
    *outcome = (struct load_outcome){0};
    if (plan->agent_count)
        return load_agents_once(plan, point, outcome, err);
    const struct machine_time began = machine_time_read();
    engine.duration_ns = point->duration_ns;
    // Who keeps the samples, for a diagnosis or to look into them, wants the stamps of each.
    engine.stamps_may_thin = plan->stamps == STAMP_MODE_AUTO && !plan->options.samples &&
                             plan->options.repetitions == 1 &&
                             (!point->memory_bytes || isinf(point->rate));
    settings.rate = point->rate;
    settings.duration_s = (double)point->duration_ns / 1e9;
    engine.closed_loop = isinf(point->rate);
    engine.requests_max = engine.closed_loop ? affordable_requests(plan) : 0;
    int status = run_spooled(plan, point, &engine, &outcome->result, err);
    settings.stolen = machine_stolen_since(&began);
    return status < 0 ? status
                      : load_judge(&outcome->result, point->duration_ns, &settings,
                                   &outcome->summary, &outcome->method, err);
}

// Loads for a given time, then decides whether the result can be trusted.
static int run_duration(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    const struct load_point point = {o->rate, o->duration_ns, o->seed, memory_bound(plan)};
    struct load_outcome outcome;
    char rate[60] = "as fast as replies come", number[TEXT_NUMBER_BYTES];
    if (isfinite(o->rate))
        snprintf(rate, sizeof rate, "at %s request%s/s", text_rate(o->rate, number),
                 text_plural(o->rate));
    load_plan_phase(plan, "loading %s for %s %s on %s connection%s", plan->server.text,
                    TEXT_NS((double)o->duration_ns), rate, TEXT_COUNT(o->connections),
                    text_plural((double)o->connections));
    int status = load_run_once(plan, &point, &outcome, err);
    const struct engine_result *result = &outcome.result;
    progress_end(&plan->progress);
    if (status == 0)
        status = write_and_report(plan, result, result->connections, result->connection_count,
                                  &outcome.summary, &outcome.method, NULL, outcome.agents, err);
    load_outcome_free(&outcome);
    return status;
}

// Loads until the result can be trusted.
static int run_target(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    struct rounds_settings settings = {
        .engine = load_plan_engine(plan), .method = load_plan_method(plan), .seed = o->seed};
    struct rounds rounds;
    json_t *agents = NULL;
    load_plan_phase(plan, "loading %s at %s request%s/s on %s connection%s until %s is known to %s",
                    plan->server.text, TEXT_COUNT(round(o->rate)), text_plural(o->rate),
                    TEXT_COUNT(o->connections), text_plural((double)o->connections), o->target,
                    TEXT_US(settings.method.width_us));
    int status = plan->agent_count
                     ? 0
                     : live_view_start(&plan->progress, o->tell_live, settings.engine.threads,
                                       "the load to be as asked for", &settings.view, err);
    if (status < 0)
        return status;
    settings.engine.live = live_view_counters(settings.view);
    status = plan->agent_count ? load_agents_rounds(plan, &rounds, &agents, err)
                               : rounds_run(&settings, &rounds, err);
    live_view_stop(settings.view);
    progress_end(&plan->progress);
    if (status == 0)
        status = write_and_report(plan, &rounds.pool, rounds.connections, rounds.connection_count,
                                  &rounds.summary, &rounds.method, &rounds, agents, err);
    json_decref(agents);
    rounds_free(&rounds);
    return status;
}

int load_run(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    int status = memory_bound(plan)
                     ? check_buffers(plan, available_bytes(), err)
                     : load_check_memory(
                           plan, o->rate, o->target ? o->max_duration_ns : o->duration_ns,
                           o->target ? "--rate or --max-duration" : "--rate or --duration", err);
    if (status < 0)
        return status;
    return o->target ? run_target(plan, err) : run_duration(plan, err);
}
