// SPDX-License-Identifier: MIT
#include "loadgen/method/method_rounds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/text.h"
#include "loadgen/engine/load_signals.h"
#include "loadgen/engine/schedule.h"

// --- the machine's time --------------------------------------------------------------------------

struct machine_time machine_time_read(void)
{
    struct machine_time time = {0};
    uint64_t ticks[8]; // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5))
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return time;
    if (fscanf(file,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
               &ticks[7]) == 8) {
        time.stolen = ticks[7];
        for (unsigned i = 0; i < 8; i++)
            time.all += ticks[i];
    }
    fclose(file);
    return time;
}

double machine_stolen_since(const struct machine_time *before)
{
    struct machine_time now = machine_time_read();
    if (before->all == 0 || now.all <= before->all || now.stolen < before->stolen)
        return 0;
    return (double)(now.stolen - before->stolen) / (double)(now.all - before->all);
}

enum {
    FIRST_SAMPLES = 10000, // of the first round (Lancet §4.3) ...
    STABILISING_ROUNDS = 3,
    ROUNDS_SURE = 4, // after this many rounds, a hopeless interval ends the load
};

static const double round_least_s = 1, round_most_s = 10;
static const double hopeless = 10; // times the budget

// --- the pool ------------------------------------------------------------------------------------

static int add_samples(struct rounds *rounds, const struct engine_result *round, struct error *err)
{
    struct engine_result *pool = &rounds->pool;
    size_t bytes = (pool->sample_count + round->sample_count + 1) * sizeof *pool->samples;
    void *samples = mremap(pool->samples, pool->sample_bytes, bytes, MREMAP_MAYMOVE);
    struct connection *connections =
        realloc(rounds->connections,
                (rounds->connection_count + round->connection_count) * sizeof *connections);
    if (connections)
        rounds->connections = connections;
    if (samples != MAP_FAILED) {
        pool->samples = samples;
        pool->sample_bytes = bytes;
    }
    if (samples == MAP_FAILED || !connections)
        return error_set(err, ERROR_FAILED, "out of memory for %s more samples",
                         TEXT_COUNT(round->sample_count));
    for (size_t i = 0; i < round->sample_count; i++) {
        struct sample *sample = &pool->samples[pool->sample_count + i];
        *sample = round->samples[i];
        if (sample->connection)
            sample->connection += rounds->connection_count;
    }
    pool->sample_count += round->sample_count;
    for (uint32_t i = 0; i < round->connection_count; i++) {
        connections[rounds->connection_count + i] = round->connections[i];
        connections[rounds->connection_count + i].id += rounds->connection_count;
    }
    rounds->connection_count += round->connection_count;
    return 0;
}

int rounds_add(struct rounds *rounds, struct engine_result *round, uint64_t duration_ns,
               struct error *err)
{
    struct engine_result *pool = &rounds->pool;
    if (rounds->measured == 0) {
        *pool = *round;
        memset(round, 0, sizeof *round);
        size_t bytes = pool->connection_count * sizeof *rounds->connections;
        rounds->connections = malloc(bytes);
        if (!rounds->connections)
            return error_set(err, ERROR_FAILED, "out of memory for the connections");
        memcpy(rounds->connections, pool->connections, bytes);
        rounds->connection_count = pool->connection_count;
    } else {
        uint64_t scheduled = pool->start_tsc + pool->paused_tsc +
                             (uint64_t)((double)rounds->duration_ns / 1e9 * pool->tsc_hz);
        uint64_t until = scheduled > pool->end_tsc ? scheduled : pool->end_tsc;
        int status = add_samples(rounds, round, err);
        if (status < 0)
            return status;
        pool->paused_tsc += round->start_tsc > until ? round->start_tsc - until : 0;
        pool->end_tsc = round->end_tsc;
        pool->end = round->end;
        if (round->nodes > pool->nodes)
            pool->nodes = round->nodes;
        pool->delayed_by_depth += round->delayed_by_depth;
        standstill_note(&pool->standstill, round->standstill);
        pool->cpu_ns += round->cpu_ns;
        pool->spin_tsc += round->spin_tsc;
        pool->asleep_tsc += round->asleep_tsc;
        pool->stamps_missing += round->stamps_missing;
        if (round->hardware_error_ns > pool->hardware_error_ns)
            pool->hardware_error_ns = round->hardware_error_ns;
        connection_counts_add(&pool->counts, &round->counts);
        if (round->counts.in_flight_max > pool->counts.in_flight_max)
            pool->counts.in_flight_max = round->counts.in_flight_max;
    }
    rounds->measured++;
    rounds->duration_ns += duration_ns;
    return 0;
}

void rounds_free(struct rounds *rounds)
{
    engine_result_free(&rounds->pool);
    free(rounds->connections);
    memset(rounds, 0, sizeof *rounds);
}

// --- rounds --------------------------------------------------------------------------------------

static int run_round(const struct rounds_settings *settings, unsigned number, uint64_t duration_ns,
                     struct engine_result *round, struct error *err)
{
    struct engine_settings engine = settings->engine;
    struct schedule schedule;
    // The first round has the seed of a plain load, so that it is the same.
    uint64_t seed = number ? hash64(settings->seed + number) : settings->seed;
    if (settings->source.take)
        return settings->source.take(settings->source.context, duration_ns, seed, number == 0,
                                     round, err);
    int status = schedule_draw(engine.workload, &settings->method.arrivals, settings->method.rate,
                               duration_ns, seed, &schedule, err);
    if (status < 0)
        return status;
    engine.duration_ns = duration_ns;
    if (number) {
        engine.announce = NULL; // only the beginning of the load is announced ...
        engine.agree = NULL;    // ... and agreed on
    }
    status = engine_run(&engine, &schedule, round, err);
    schedule_free(&schedule);
    return status;
}

static int judge_pool(const struct rounds_settings *settings, struct rounds *rounds,
                      struct error *err)
{
    struct method_settings method = settings->method;
    if (settings->source.judge)
        return settings->source.judge(settings->source.context, rounds, err);
    method.stolen = machine_stolen_since(&rounds->began);
    return load_judge(&rounds->pool, rounds->duration_ns, &method, &rounds->summary,
                      &rounds->method, err);
}

// True when the load is as asked for: the method may begin to measure.
static bool is_stable(const struct method *method)
{
    return method->findings[METHOD_LOAD] == METHOD_PASSED &&
           method->findings[METHOD_CLIENT] != METHOD_FAILED &&
           method->findings[METHOD_ARRIVALS] != METHOD_FAILED;
}

// How long the next round shall be, when `spent_s` of the budget are used. 0: the budget is used
// up, or would not be enough.
static double next_round_s(const struct rounds_settings *settings, const struct rounds *rounds,
                           double spent_s)
{
    const struct method *method = &rounds->method;
    double left = settings->method.budget_s - spent_s;
    double measured = (double)rounds->duration_ns / 1e9;
    // Too little is left to change anything.
    if (left < round_least_s / 2)
        return 0;
    if (rounds->measured >= ROUNDS_SURE && is_stable(method) &&
        method->findings[METHOD_INTERVAL] == METHOD_FAILED &&
        method->needed_s > hopeless * settings->method.budget_s)
        return 0;
    double wanted = fmax(method->needed_s - measured, round_least_s);
    return fmin(fmin(wanted, round_most_s), left);
}

static void show_state(const struct rounds_settings *settings, const struct rounds *rounds)
{
    const struct percentile_interval *found = &rounds->method.interval;
    char percentile[32];
    method_percentile_name(settings->method.quantile, percentile, sizeof percentile);
    char goal[300];
    snprintf(goal, sizeof goal, "the interval of %s, %s wide, to be %s%s%.200s", percentile,
             TEXT_US(found->width), TEXT_US(settings->method.width_us),
             rounds->summary.reason_count ? "; " : "",
             rounds->summary.reason_count ? rounds->summary.reasons[0] : "");
    if (settings->view)
        live_view_wait_for(settings->view, goal);
}

static const char *why_stop(const struct rounds *rounds, unsigned unstable)
{
    if (rounds->pool.end == ENGINE_INTERRUPTED)
        return "interrupted";
    if (rounds->pool.end == ENGINE_BROKEN || unstable >= STABILISING_ROUNDS)
        return "load";
    return method_is_satisfied(&rounds->method) ? "interval" : NULL;
}

static void throw_away(struct rounds *rounds)
{
    engine_result_free(&rounds->pool);
    free(rounds->connections);
    rounds->connections = NULL;
    rounds->connection_count = 0;
    rounds->measured = 0;
    rounds->duration_ns = 0;
    rounds->stabilising++;
}

// One more round, pooled and judged. unstable: how many rounds in a row were not as asked for.
static int take_round(const struct rounds_settings *settings, struct rounds *rounds, double round_s,
                      unsigned unstable, struct error *err)
{
    struct engine_result round;
    uint64_t duration_ns = (uint64_t)(round_s * 1e9);
    int status =
        run_round(settings, rounds->stabilising + rounds->measured, duration_ns, &round, err);
    if (status < 0 && rounds->measured) { // what was measured is kept nevertheless
        load_summary_add_reason(&rounds->summary, DOUBT_DISCONNECTED,
                                "the next round could not begin: %s", err->text);
        rounds->stop = "load";
        return 0;
    }
    if (status < 0)
        return status;
    if (unstable && rounds->measured == 1)
        throw_away(rounds);
    status = rounds_add(rounds, &round, duration_ns, err);
    engine_result_free(&round);
    return status < 0 ? status : judge_pool(settings, rounds, err);
}

// Every end but a satisfied method has a reason, even when there was too little to judge.
static void explain_end(const struct rounds_settings *settings, struct rounds *rounds)
{
    if (rounds->summary.reason_count == 0 && !method_is_satisfied(&rounds->method))
        load_summary_add_reason(&rounds->summary, DOUBT_TOO_SHORT,
                                "budget spent: %s requests in %s are too few for the method to "
                                "judge; a longer --max-duration brings more",
                                TEXT_COUNT(rounds->summary.scheduled),
                                TEXT_NS(1e9 * settings->method.budget_s));
}

static int run_rounds(const struct rounds_settings *settings, struct rounds *rounds,
                      struct error *err)
{
    const struct method_settings *method = &settings->method;
    double round_s = fmin(fmax(FIRST_SAMPLES / method->rate, round_least_s), round_most_s);
    double spent_s = 0;
    unsigned unstable = 0;
    round_s = fmin(round_s, method->budget_s);
    while (!rounds->stop) {
        int status = take_round(settings, rounds, round_s, unstable, err);
        if (status < 0)
            return status;
        spent_s += round_s;
        unstable = is_stable(&rounds->method) ? 0 : unstable + 1;
        show_state(settings, rounds);
        if (!rounds->stop)
            rounds->stop = why_stop(rounds, unstable);
        round_s = next_round_s(settings, rounds, spent_s);
        if (!rounds->stop && round_s == 0)
            rounds->stop = "budget";
    }
    return 0;
}

int rounds_run(const struct rounds_settings *settings, struct rounds *rounds, struct error *err)
{
    struct load_signals signals;
    memset(rounds, 0, sizeof *rounds);
    rounds->began = machine_time_read();
    load_signals_hold(&signals);
    int status = run_rounds(settings, rounds, err);
    if (status == 0)
        explain_end(settings, rounds);
    load_signals_release(&signals);
    return status;
}
