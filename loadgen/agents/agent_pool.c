// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/method/logical_requests.h"
#include "base/text.h"

static bool agent_counts(const struct agent_outcome *agent)
{
    return !agent->lost[0] && agent_kind_measures(agent->spec->kind);
}

// The pool's time is from the first begin to the last end; counts are added up.
static void add_figures(struct engine_result *pool, const struct engine_result *one, bool first)
{
    if (first) {
        *pool = *one;
        pool->samples = NULL;
        pool->connections = NULL;
        pool->sample_count = pool->sample_bytes = 0;
        pool->connection_count = 0;
        pool->clock = (struct clock_knot_array){0}; // each agent's own
        return;
    }
    if (one->start_tsc < pool->start_tsc)
        pool->start_tsc = one->start_tsc;
    if (one->end_tsc > pool->end_tsc)
        pool->end_tsc = one->end_tsc;
    if (one->end > pool->end) // how the load ended: the worst of all ends
        pool->end = one->end;
    if (one->depth < pool->depth)
        pool->depth = one->depth;
    pool->depth_is_cap |= one->depth_is_cap;
    pool->kernel_stamps &= one->kernel_stamps;
    pool->hardware_stamps &= one->hardware_stamps;
    if (one->hardware_error_ns > pool->hardware_error_ns)
        pool->hardware_error_ns = one->hardware_error_ns;
    if (one->hardware_why.kind)
        pool->hardware_why = one->hardware_why;
    if (one->stamps_why.kind)
        pool->stamps_why = one->stamps_why;
    pool->thread_count += one->thread_count;
    if (one->nodes > pool->nodes)
        pool->nodes = one->nodes;
    pool->delayed_by_depth += one->delayed_by_depth;
    standstill_note(&pool->standstill, one->standstill);
    pool->cpu_ns += one->cpu_ns;
    pool->spin_tsc += one->spin_tsc;
    pool->asleep_tsc += one->asleep_tsc;
    pool->stamps_missing += one->stamps_missing;
    pool->connections_at_once += one->connections_at_once;
    connection_counts_add(&pool->counts, &one->counts);
    pool->counts.in_flight_max += one->counts.in_flight_max; // at the same time
}

// The connections of all agents in one array; agent i's ids are raised by first_id[i].
static int pool_connections(const struct fleet_outcome *outcome, struct engine_result *pool,
                            uint32_t *first_id, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < outcome->count; i++)
        count += outcome->agents[i].lost[0] ? 0 : outcome->agents[i].result.connection_count;
    pool->connections = count < UINT32_MAX ? calloc(count + 1, sizeof *pool->connections) : NULL;
    if (!pool->connections)
        return error_set(err, ERROR_FAILED, "out of memory for %s connections", TEXT_COUNT(count));
    for (size_t i = 0; i < outcome->count; i++) {
        const struct engine_result *one = &outcome->agents[i].result;
        first_id[i] = pool->connection_count;
        for (uint32_t c = 0; !outcome->agents[i].lost[0] && c < one->connection_count; c++) {
            struct connection *entry = &pool->connections[pool->connection_count++];
            *entry = one->connections[c];
            entry->id += first_id[i];
        }
    }
    return 0;
}

// The agent whose next sample was due first; count: no samples are left.
static size_t choose_next(const struct fleet_outcome *outcome, const size_t *taken)
{
    size_t best = outcome->count;
    uint64_t best_tsc = UINT64_MAX;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct engine_result *one = &outcome->agents[i].result;
        if (!agent_counts(&outcome->agents[i]) || taken[i] == one->sample_count)
            continue;
        if (one->samples[taken[i]].intended_tsc < best_tsc) {
            best = i;
            best_tsc = one->samples[taken[i]].intended_tsc;
        }
    }
    return best;
}

static int pool_samples(const struct fleet_outcome *outcome, struct engine_result *pool,
                        const uint32_t *first_id, struct error *err)
{
    size_t taken[AGENTS_MAX] = {0}, all = 0;
    uint32_t first_sender[AGENTS_MAX] = {0}, senders = 0;
    for (size_t i = 0; i < outcome->count; i++) {
        if (!agent_counts(&outcome->agents[i]))
            continue;
        all += outcome->agents[i].result.sample_count;
        first_sender[i] = senders;
        senders += outcome->agents[i].result.thread_count;
    }
    int status = engine_result_take_samples(pool, all, err);
    if (status < 0)
        return status;
    while (pool->sample_count < all) {
        size_t agent = choose_next(outcome, taken);
        struct sample *sample = &pool->samples[pool->sample_count++];
        *sample = outcome->agents[agent].result.samples[taken[agent]++];
        if (sample->connection)
            sample->connection += first_id[agent];
        sample_set_sender(sample, first_sender[agent] + sample_sender(sample));
    }
    return 0;
}

static int none_is_left(const struct fleet_outcome *outcome, struct error *err)
{
    size_t i = 0;
    while (i + 1 < outcome->count && !outcome->agents[i].lost[0])
        i++;
    return error_set(err, ERROR_INCONCLUSIVE,
                     "inconclusive: no agent that measures is left: agent %s was lost: %s",
                     outcome->agents[i].spec->name, outcome->agents[i].lost);
}

int agent_pool(const struct fleet_outcome *outcome, struct engine_result *pool, struct error *err)
{
    uint32_t first_id[AGENTS_MAX];
    bool any = false;
    *pool = (struct engine_result){.end = ENGINE_COMPLETE};
    for (size_t i = 0; i < outcome->count; i++)
        if (agent_counts(&outcome->agents[i])) {
            add_figures(pool, &outcome->agents[i].result, !any);
            any = true;
        }
    if (!any)
        return none_is_left(outcome, err);
    int status = pool_connections(outcome, pool, first_id, err);
    if (status == 0)
        status = pool_samples(outcome, pool, first_id, err);
    if (status < 0)
        engine_result_free(pool);
    return status;
}

// --- what each agent measured --------------------------------------------------------------------

int agents_measured_add(struct agents_measured *measured, const struct fleet_outcome *fleet,
                        bool first, struct error *err)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const struct engine_result *result = &fleet->agents[i].result;
        struct agent_latencies *latencies = &measured->agents[i];
        if (first)
            latencies->count = 0;
        if (fleet->agents[i].lost[0] || !agent_kind_measures(fleet->agents[i].spec->kind))
            continue;
        struct engine_result logical;
        int status = logical_requests_make(result, &logical, err);
        if (status < 0)
            return status;
        const bool room = array_reserve(latencies, latencies->count + logical.sample_count) == 0;
        for (size_t k = 0; room && k < logical.sample_count; k++)
            latencies->items[latencies->count++] =
                sample_latency_us(&logical.samples[k], logical.tsc_hz);
        logical_requests_free(result, &logical);
        if (!room)
            return error_set(err, ERROR_FAILED, "out of memory for the latencies of agent %s",
                             fleet->agents[i].spec->name);
    }
    return 0;
}

void agents_measured_free(struct agents_measured *measured)
{
    for (size_t i = 0; i < AGENTS_MAX; i++)
        array_free(&measured->agents[i]);
}

int agents_measured_judge(const struct agents_measured *measured, const struct fleet_outcome *fleet,
                          const struct method_settings *settings, struct agent_finding *findings,
                          size_t *count, struct error *err)
{
    *count = 0;
    if (settings->pattern.kind != PATTERN_CONSTANT || settings->recorded)
        return 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct agent_latencies *latencies = &measured->agents[i];
        struct percentile_interval found;
        size_t warm_up;
        if (latencies->count == 0)
            continue;
        int status = stationarity_warm_up(latencies->items, latencies->count, &warm_up, err);
        if (status == 0)
            status =
                percentile_interval_take(latencies->items + warm_up, latencies->count - warm_up, 1,
                                         settings->quantile, settings->confidence, &found, err);
        if (status < 0)
            return status;
        findings[(*count)++] = (struct agent_finding){fleet->agents[i].spec->name, found.value,
                                                      found.interval.low, found.interval.high};
    }
    return 0;
}

size_t agent_disagreements(const struct agent_finding *findings, size_t count,
                           struct agent_disagreement *pairs, size_t room)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            if (findings[i].high < findings[j].low) { // false for NaN
                if (found < room)
                    pairs[found] = (struct agent_disagreement){i, j};
                found++;
            }
    return found;
}

// --- the agents' own word ------------------------------------------------------------------------

static const char *check_of(const json_t *report, const char *name)
{
    const char *found = json_string_value(
        json_object_get(json_object_get(json_object_get(report, "method"), "checks"), name));
    return found ? found : "unknown";
}

// Whether an agent was late or short of CPU weakens its own percentiles only. An agent that only
// loads has none, and whether its requests arrived as scheduled is covered by another check.
static bool is_asked(const struct agent_outcome *agent, const char *check)
{
    return strcmp(check, "client") != 0 || agent_kind_measures(agent->spec->kind);
}

// How well an agent sent is judged by itself; what it measured is judged in the pool.
static bool sent_wrong(const struct agent_outcome *agent)
{
    static const char *const checks[] = {"load", "client", "arrivals"};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (is_asked(agent, checks[i]) && strcmp(check_of(agent->report, checks[i]), "failed") == 0)
            return true;
    return false;
}

static void add_reasons(const struct fleet_outcome *fleet, struct load_summary *summary)
{
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->agents[i].lost[0])
            load_summary_add_reason(summary, DOUBT_AGENT_LOST, "agent %s was lost: %s",
                                    fleet->agents[i].spec->name, fleet->agents[i].lost);
    for (size_t i = 0; i < fleet->count; i++) {
        char whose[AGENT_NAME_BYTES + 10];
        if (!fleet->agents[i].report || !sent_wrong(&fleet->agents[i]))
            continue;
        snprintf(whose, sizeof whose, "agent %s", fleet->agents[i].spec->name);
        load_summary_take_reasons(summary, fleet->agents[i].report, whose);
    }
}

// Passed if all agents passed, failed if one failed, unknown if it is unknown of one.
static enum method_finding check_of_all(const struct fleet_outcome *fleet, const char *name)
{
    enum method_finding worst = METHOD_PASSED;
    for (size_t i = 0; i < fleet->count; i++) {
        const char *found = check_of(fleet->agents[i].report, name);
        if (!is_asked(&fleet->agents[i], name))
            continue;
        if (strcmp(found, "failed") == 0)
            return METHOD_FAILED;
        if (strcmp(found, "passed") != 0)
            worst = METHOD_UNKNOWN;
    }
    return worst;
}

// Over several rounds: failed if one failed, passed if one passed; a short round may leave it
// unknown.
static enum method_finding check_of_both(enum method_finding one, enum method_finding other)
{
    if (one == METHOD_FAILED || other == METHOD_FAILED)
        return METHOD_FAILED;
    return one == METHOD_PASSED || other == METHOD_PASSED ? METHOD_PASSED : METHOD_UNKNOWN;
}

void agents_hear(struct agents_word *word, const struct fleet_outcome *fleet, bool first)
{
    struct load_summary troubles = {.ok = true};
    enum method_finding client = check_of_all(fleet, "client");
    enum method_finding arrivals = check_of_all(fleet, "arrivals");
    add_reasons(fleet, &troubles);
    if (first || !troubles.ok)
        word->troubles = troubles;
    word->client = first ? client : check_of_both(word->client, client);
    word->arrivals = first ? arrivals : check_of_both(word->arrivals, arrivals);
}
