// SPDX-License-Identifier: MIT
#include "loadgen/engine/sample_merge.h"

#include <pthread.h>
#include <stdlib.h>

// What one thread does: of a schedule the samples of its own part, of a closed loop those of all
// parts that lie in a stretch of time.
struct merger {
    const struct sample_part *parts;
    uint32_t count, index;
    bool dealt;
    struct sample *merged; // all, or from where its stretch begins
    size_t *at, *end;      // of its stretch in each part
    pthread_t thread;
    bool begun;
};

// Requests were dealt in turn.
static void place_part(const struct merger *merger)
{
    const struct sample_part *part = &merger->parts[merger->index];
    struct sample *to = &merger->merged[merger->index];
    for (size_t i = 0; i < part->count; i++, to += merger->count)
        *to = part->samples[i];
}

static void merge_stretch(const struct merger *merger)
{
    const struct sample_part *parts = merger->parts;
    for (struct sample *to = merger->merged;; to++) {
        uint32_t first = merger->count;
        for (uint32_t i = 0; i < merger->count; i++)
            if (merger->at[i] < merger->end[i] &&
                (first == merger->count ||
                 parts[i].samples[merger->at[i]].intended_tsc <
                     parts[first].samples[merger->at[first]].intended_tsc))
                first = i;
        if (first == merger->count)
            return;
        *to = parts[first].samples[merger->at[first]++];
    }
}

static void *merger_main(void *argument)
{
    const struct merger *merger = argument;
    if (merger->dealt)
        place_part(merger);
    else
        merge_stretch(merger);
    return NULL;
}

// The first sample that is intended at that time or later.
static size_t find_time(const struct sample_part *part, uint64_t tsc)
{
    size_t low = 0, high = part->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (part->samples[middle].intended_tsc < tsc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Gives each a stretch of time, all equally long: the threads of a closed loop are equally fast.
static void divide_time(struct merger *mergers, size_t *bounds, struct sample *merged)
{
    const struct sample_part *parts = mergers->parts;
    const uint32_t count = mergers->count;
    uint64_t begin = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!parts[i].count)
            continue;
        const uint64_t first = parts[i].samples[0].intended_tsc;
        const uint64_t end = parts[i].samples[parts[i].count - 1].intended_tsc;
        begin = first < begin ? first : begin;
        last = end > last ? end : last;
    }
    for (uint32_t m = 0; m <= count; m++)
        for (uint32_t i = 0; i < count; i++)
            bounds[m * count + i] =
                m == count ? parts[i].count
                           : find_time(&parts[i], m ? begin + (last - begin) / count * m : 0);
    for (uint32_t m = 0; m < count; m++) {
        mergers[m].merged = merged;
        mergers[m].end = &bounds[(m + 1) * count];
        for (uint32_t i = 0; i < count; i++)
            merged += bounds[(m + 1) * count + i] - bounds[m * count + i];
    }
    // Each moves its own bounds on, and the one before it needs them where they are.
    for (uint32_t m = 0; m < count; m++) {
        mergers[m].at = &bounds[(count + 1) * count + m * count];
        for (uint32_t i = 0; i < count; i++)
            mergers[m].at[i] = bounds[m * count + i];
    }
}

int sample_merge(const struct sample_part *parts, uint32_t count, bool dealt, struct sample *merged,
                 struct error *err)
{
    struct merger *mergers = calloc(count, sizeof *mergers);
    size_t *bounds = calloc((2 * (size_t)count + 1) * count, sizeof *bounds);
    int status = mergers && bounds ? 0 : error_set(err, ERROR_FAILED, "out of memory");
    for (uint32_t i = 0; status == 0 && i < count; i++)
        mergers[i] = (struct merger){
            .parts = parts, .count = count, .index = i, .dealt = dealt, .merged = merged};
    if (status == 0 && !dealt)
        divide_time(mergers, bounds, merged);
    for (uint32_t i = 0; status == 0 && i < count; i++)
        mergers[i].begun = pthread_create(&mergers[i].thread, NULL, merger_main, &mergers[i]) == 0;
    for (uint32_t i = 0; status == 0 && i < count; i++) {
        if (mergers[i].begun)
            pthread_join(mergers[i].thread, NULL);
        else
            merger_main(&mergers[i]);
    }
    free(mergers);
    free(bounds);
    return status;
}
