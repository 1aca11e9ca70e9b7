// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_merge.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "loadgen/engine/sample_merge.h"
#include "base/text.h"

// Of a closed loop in bounded memory: what its threads keep becomes one array in the order of time.
static int merge_kept(struct engine_worker *const *workers, uint32_t threads,
                      struct engine_result *result, struct error *err)
{
    struct sample_totals *first = workers[0]->totals;
    if (threads == 1) {
        result->samples = first->kept;
        result->sample_count = first->kept_count;
        result->sample_bytes = first->kept_size * sizeof *first->kept;
        first->kept = NULL;
        return 0;
    }
    struct sample_part *parts = calloc(threads, sizeof *parts);
    for (uint32_t i = 0; parts && i < threads; i++) {
        parts[i] = (struct sample_part){workers[i]->totals->kept, workers[i]->totals->kept_count};
        result->sample_count += parts[i].count;
    }
    int status = parts ? engine_result_take_samples(result, result->sample_count, err)
                       : error_set(err, ERROR_FAILED, "out of memory");
    if (status == 0)
        status = sample_merge(parts, threads, false, result->samples, err);
    free(parts);
    return status;
}

// The same of all that it kept, of which one stretch in equally many stays. If that is all of them,
// memory has sufficed, and the result is as any other.
static int merge_totals(struct engine_worker *const *workers, uint32_t threads,
                        struct engine_result *result, struct error *err)
{
    struct sample_totals *totals = workers[0]->totals;
    uint64_t every = 1;
    for (uint32_t i = 0; i < threads; i++)
        every = workers[i]->totals->every > every ? workers[i]->totals->every : every;
    for (uint32_t i = 0; i < threads; i++) {
        sample_totals_thin(workers[i]->totals, every);
        if (i)
            sample_totals_merge(totals, workers[i]->totals);
    }
    if (merge_kept(workers, threads, result, err) < 0)
        return -ERROR_FAILED;
    if (every == 1)
        return 0;
    sample_totals_finish(totals);
    result->totals = totals;
    workers[0]->totals = NULL;
    return 0;
}

// Puts the threads' samples into the order of their intended times, and gives the memory of each
// back. A single thread's already are in order.
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
    struct sample_part *parts = calloc(threads, sizeof *parts);
    int status = parts ? engine_result_take_samples(result, result->sample_count, err)
                       : error_set(err, ERROR_FAILED, "out of memory");
    for (uint32_t i = 0; status == 0 && i < threads; i++)
        parts[i] = (struct sample_part){workers[i]->samples, workers[i]->sample_count};
    if (status == 0)
        status = sample_merge(parts, threads, !shared->settings->closed_loop, result->samples, err);
    free(parts);
    for (uint32_t i = 0; status == 0 && i < threads; i++) {
        munmap(workers[i]->samples, workers[i]->sample_bytes);
        workers[i]->samples = NULL;
    }
    return status;
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
        return error_set(err, ERROR_FAILED, "out of memory for %s connections",
                         TEXT_COUNT(result->connection_count));
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
    int status = shared->closed_bounded ? merge_totals(workers, shared->thread_count, result, err)
                 : shared->schedule     ? merge_samples(shared, workers, result, err)
                                        : 0;
    if (status == 0)
        status = merge_connections(shared, workers, result, err);
    if (status < 0)
        return status;
    result->thinned_tsc = atomic_load(&shared->thinned_tsc);
    if (result->thinned_tsc)
        result->stamps_every = ENGINE_STAMPS_THINNED;
    result->end = ENGINE_COMPLETE;
    for (uint32_t i = 0; i < shared->thread_count; i++) {
        const struct engine_worker *worker = workers[i];
        merge_end(result, worker);
        result->end_tsc = worker->end_tsc > result->end_tsc ? worker->end_tsc : result->end_tsc;
        result->late_tsc =
            worker->late_tsc > result->late_tsc ? worker->late_tsc : result->late_tsc;
        result->cpu_ns += worker->cpu_ns;
        result->spin_tsc += worker->spin_tsc;
        result->asleep_tsc += worker->asleep_tsc;
        result->delayed_by_depth += worker->delayed_by_depth;
        standstill_note(&result->standstill, worker->standstill);
        result->requests_spent |= worker->requests_spent;
        connection_counts_add(&result->counts, &worker->counts);
        result->counts.in_flight_max += worker->counts.in_flight_max;
        if (worker->context.busy_poll_why.kind)
            result->busy_poll_why = worker->context.busy_poll_why;
    }
    // When a person ended the load, requests not yet due were never offered.
    while (result->end == ENGINE_INTERRUPTED && result->sample_count &&
           result->samples[result->sample_count - 1].intended_tsc > result->end_tsc)
        result->sample_count--;
    if (!result->kernel_stamps)
        return 0;
    for (size_t i = 0; i < result->sample_count && !result->totals; i++)
        result->stamps_missing += sample_lacks_stamp(&result->samples[i]) != 0;
    if (result->totals)
        result->stamps_missing = result->totals->counts.tx_missing;
    return 0;
}
