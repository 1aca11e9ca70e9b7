// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent_pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
    pool->delayed_by_depth += one->delayed_by_depth;
    pool->cpu_ns += one->cpu_ns;
    pool->spin_tsc += one->spin_tsc;
    pool->stamps_missing += one->stamps_missing;
    pool->stamps_unknown += one->stamps_unknown;
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
        return error_set(err, ERROR_FAILED, "out of memory for %zu connections", count);
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
    pool->sample_bytes = (all + 1) * sizeof *pool->samples;
    void *memory =
        mmap(NULL, pool->sample_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "no memory for %zu samples", all);
    pool->samples = memory;
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
