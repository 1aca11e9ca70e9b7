// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_merge.h"

#include <stdlib.h>

// The thread whose sample is next: requests of a schedule were dealt to the threads in turn; in a
// closed loop the sample that was put first is next.
static uint32_t next_thread(const struct engine_shared *shared,
                            struct engine_worker *const *workers, size_t merged,
                            const size_t *taken)
{
    uint32_t threads = shared->thread_count, first = threads;
    if (!shared->settings->closed_loop)
        return (uint32_t)(merged % threads);
    for (uint32_t i = 0; i < threads; i++) {
        const struct engine_worker *worker = workers[i];
        if (taken[i] < worker->sample_count &&
            (first == threads || worker->samples[taken[i]].intended_tsc <
                                     workers[first]->samples[taken[first]].intended_tsc))
            first = i;
    }
    return first;
}

// Puts the threads' samples into the order of their intended times. A single thread's already are.
static int merge_samples(const struct engine_shared *shared, struct engine_worker *const *workers,
                         struct engine_result *result, struct error *err)
{
    struct engine_worker *first = workers[0];
    uint32_t threads = shared->thread_count;
    for (uint32_t i = 0; i < threads; i++)
        result->sample_count += workers[i]->sample_count;
    if (threads == 1) {
        result->samples = first->samples;
        result->sample_bytes = first->sample_bytes;
        first->samples = NULL;
        return 0;
    }
    size_t *taken = calloc(threads, sizeof *taken);
    int status = taken ? engine_result_take_samples(result, result->sample_count, err)
                       : error_set(err, ERROR_FAILED, "out of memory");
    if (status < 0) {
        free(taken);
        return status;
    }
    for (size_t i = 0; i < result->sample_count; i++) {
        uint32_t thread = next_thread(shared, workers, i, taken);
        result->samples[i] = workers[thread]->samples[taken[thread]++];
    }
    free(taken);
    return 0;
}

// How the load as a whole ended: the first of these that any thread reported.
static void merge_end(struct engine_result *result, const struct engine_worker *worker)
{
    static const enum engine_end order[] = {ENGINE_INTERRUPTED, ENGINE_BROKEN, ENGINE_TIMED_OUT,
                                            ENGINE_COMPLETE};
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++) {
        if (result->end == order[i])
            return;
        if (worker->end == order[i]) {
            result->end = order[i];
            return;
        }
    }
}

// Puts the threads' logs into the order of the ids: 1, 2, ... without gaps.
static int merge_connections(const struct engine_shared *shared,
                             struct engine_worker *const *workers, struct engine_result *result,
                             struct error *err)
{
    for (uint32_t i = 0; i < shared->thread_count; i++)
        result->connection_count += (uint32_t)workers[i]->context.log.count;
    result->connections = calloc(result->connection_count, sizeof *result->connections);
    if (!result->connections)
        return error_set(err, ERROR_FAILED, "out of memory for %u connections",
                         result->connection_count);
    for (uint32_t i = 0; i < shared->thread_count; i++) {
        const struct connection_log *log = &workers[i]->context.log;
        for (size_t c = 0; c < log->count; c++)
            result->connections[log->items[c].id - 1] = log->items[c];
    }
    return 0;
}

int engine_merge(const struct engine_shared *shared, struct engine_worker *const *workers,
                 struct engine_result *result, struct error *err)
{
    int status = merge_samples(shared, workers, result, err);
    if (status == 0)
        status = merge_connections(shared, workers, result, err);
    if (status < 0)
        return status;
    result->end = ENGINE_COMPLETE;
    for (uint32_t i = 0; i < shared->thread_count; i++) {
        const struct engine_worker *worker = workers[i];
        merge_end(result, worker);
        result->end_tsc = worker->end_tsc > result->end_tsc ? worker->end_tsc : result->end_tsc;
        result->late_tsc =
            worker->late_tsc > result->late_tsc ? worker->late_tsc : result->late_tsc;
        result->cpu_ns += worker->cpu_ns;
        result->spin_tsc += worker->spin_tsc;
        result->delayed_by_depth += worker->delayed_by_depth;
        result->requests_spent |= worker->requests_spent;
        result->stamps_unknown += worker->stamps_unknown;
        connection_counts_add(&result->counts, &worker->counts);
        result->counts.in_flight_max += worker->counts.in_flight_max;
        if (worker->context.busy_poll_why.kind)
            result->busy_poll_why = worker->context.busy_poll_why;
    }
    // When a person ended the load, requests not yet due were never offered.
    while (result->end == ENGINE_INTERRUPTED && result->sample_count &&
           result->samples[result->sample_count - 1].intended_tsc > result->end_tsc)
        result->sample_count--;
    for (size_t i = 0; result->kernel_stamps && i < result->sample_count; i++)
        result->stamps_missing += result->samples[i].sent_tsc && !result->samples[i].tx_ns;
    return 0;
}
