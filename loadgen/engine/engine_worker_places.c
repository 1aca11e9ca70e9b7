// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_worker_places.h"

#include <stdlib.h>

#include "base/array.h"
#include "loadgen/engine/engine_worker_stamps.h"

enum {
    PLACES_LEAST = 1024,
    PLACES_A_REQUEST = 4,  // in flight: few are open when the loop comes round
    PLACES_LOOKED_AT = 64, // between two looks at the connections
};

size_t engine_places_needed(uint64_t connections, uint32_t depth)
{
    size_t places = PLACES_LEAST;
    while (places < PLACES_A_REQUEST * connections * depth)
        places *= 2;
    return places;
}

static bool was_used(const struct sample *sample)
{
    return sample->intended_tsc;
}

// Of a request that may still be answered, or be put. The kernel has stamped what is answered: that
// stamp only has to be read.
static bool is_open(struct engine_worker *worker, const struct sample *sample, uint64_t now)
{
    if (sample->status == SAMPLE_UNSENT || sample->status == SAMPLE_TIMED_OUT)
        return true;
    if (worker->context.kernel_stamps && sample_lacks_stamp(sample) &&
        worker->stamps_taken_tsc <= sample->reply_tsc)
        engine_worker_take_all_stamps(worker, now);
    return false;
}

size_t engine_worker_next_place(struct engine_worker *worker, uint64_t now)
{
    for (unsigned left = PLACES_LOOKED_AT; left; left--, worker->next++) {
        struct sample *sample = engine_worker_sample(worker, worker->next);
        if (!was_used(sample))
            return worker->next;
        if (is_open(worker, sample, now))
            continue;
        sample_totals_add(worker->totals, sample);
        *sample = (struct sample){0};
        worker->context.final = worker->next - worker->mask; // older stamps come too late
        return worker->next;
    }
    return SIZE_MAX;
}

static int by_intended_time(const void *a, const void *b)
{
    const struct sample *one = a, *other = b;
    return order_of(one->intended_tsc, other->intended_tsc);
}

// One that was open for so long that others were put behind it, and taken before it, is not in its
// place.
static void put_in_order(struct sample_totals *totals)
{
    for (size_t i = 1; i < totals->kept_count; i++)
        if (by_intended_time(&totals->kept[i - 1], &totals->kept[i]) > 0) {
            qsort(totals->kept, totals->kept_count, sizeof *totals->kept, by_intended_time);
            return;
        }
}

void engine_worker_take_places(struct engine_worker *worker)
{
    for (size_t i = 0; i <= worker->mask; i++) {
        const struct sample *sample = engine_worker_sample(worker, worker->next + i);
        if (was_used(sample))
            sample_totals_add(worker->totals, sample);
    }
    put_in_order(worker->totals);
}
