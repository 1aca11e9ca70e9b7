// SPDX-License-Identifier: MIT
#include "loadgen/engine/sample_drain.h"

#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsc.h"

enum { LOOK_NS = 1000000 };

static void pass(const struct sample_drain *drain, struct ring_place *place)
{
    if (++place->ring < drain->ring_count)
        return;
    place->ring = 0;
    place->number++;
}

// Of all rings.
static uint64_t held(const struct sample_drain *drain)
{
    return (drain->drawn.number - drain->taken.number) * drain->ring_count + drain->drawn.ring -
           drain->taken.ring;
}

// --- the schedule --------------------------------------------------------------------------------

static bool has_room(const struct sample_drain *drain)
{
    const struct ring_place *drawn = &drain->drawn, *taken = &drain->taken;
    const uint64_t own_taken = taken->number + (drawn->ring < taken->ring);
    return drawn->number - own_taken <= drain->rings[drawn->ring].mask;
}

static struct sample next_sample(const struct sample_drain *drain)
{
    const double ticks = (double)drain->next.offset_ns * drain->ticks_per_ns;
    return (struct sample){.intended_tsc = drain->start_tsc + (uint64_t)ticks,
                           .operation = drain->next.operation,
                           .key = drain->next.key,
                           .status = SAMPLE_UNSENT};
}

static void draw_next(struct sample_drain *drain)
{
    drain->has_next = schedule_drawer_next(drain->drawer, &drain->next);
    for (uint32_t i = 0; i < drain->ring_count && !drain->has_next; i++)
        atomic_store_explicit(&drain->rings[i].drawn.whole, true, memory_order_release);
}

// full: what comes so late that it is due waited for room.
static void draw(struct sample_drain *drain, uint64_t now, bool full)
{
    uint64_t *late = full ? &drain->totals->late_full : &drain->totals->late_drawn;
    while (drain->has_next && has_room(drain)) {
        struct sample_ring *ring = &drain->rings[drain->drawn.ring];
        const struct sample sample = next_sample(drain);
        drain->last_tsc = sample.intended_tsc;
        *late += sample.intended_tsc <= now && drain->start_tsc;
        *sample_ring_at(ring, drain->drawn.number) = sample;
        atomic_store_explicit(&ring->drawn.ready, drain->drawn.number + 1, memory_order_release);
        pass(drain, &drain->drawn);
        draw_next(drain);
    }
}

// --- samples -------------------------------------------------------------------------------------

// Its load thread's numbers are read anew only where those known do not suffice: each look at them
// costs that thread too.
static bool is_final(struct sample_ring *ring, uint64_t number)
{
    if (number < ring->drawn.seen_final)
        return true;
    if (number >= atomic_load_explicit(&ring->drawn.ready, memory_order_relaxed))
        return false;
    ring->drawn.seen_final = atomic_load_explicit(&ring->sent.final, memory_order_acquire);
    return number < ring->drawn.seen_final ||
           atomic_load_explicit(&ring->sent.ended, memory_order_acquire);
}

static void take(struct sample_drain *drain)
{
    struct ring_place *taken = &drain->taken;
    for (; is_final(&drain->rings[taken->ring], taken->number); pass(drain, taken))
        sample_totals_add(drain->totals, sample_ring_at(&drain->rings[taken->ring], taken->number));
}

void sample_drain_look(struct sample_drain *drain)
{
    const uint64_t now = tsc_now(), size = drain->rings[0].mask + 1;
    take(drain);
    // Not full of what is still to come, which is as it should be, but of what had been due.
    bool full = held(drain) > drain->ring_count * size / 2 && drain->last_tsc <= now;
    draw(drain, now, full || drain->was_full);
    drain->was_full = full;
}

// --- the rings -----------------------------------------------------------------------------------

int sample_drain_open(struct sample_drain *drain, uint32_t ring_count,
                      struct schedule_drawer *drawer, struct sample_totals *totals,
                      struct error *err)
{
    const size_t bytes = ring_count * sizeof *drain->rings;
    *drain = (struct sample_drain){.rings = aligned_alloc(alignof(struct sample_ring), bytes),
                                   .ring_count = ring_count,
                                   .drawer = drawer,
                                   .totals = totals};
    if (!drain->rings)
        return error_set(err, ERROR_FAILED, "out of memory for the rings of samples");
    memset(drain->rings, 0, bytes);
    return 0;
}

void sample_drain_close(struct sample_drain *drain)
{
    side_thread_end(&drain->side);
    free(drain->rings);
    drain->rings = NULL;
}

// --- the thread ----------------------------------------------------------------------------------

static void look(void *context)
{
    sample_drain_look(context);
}

void sample_drain_fill(struct sample_drain *drain, double ticks_per_ns)
{
    drain->ticks_per_ns = ticks_per_ns;
    draw_next(drain);
    draw(drain, 0, false);
}

int sample_drain_begin(struct sample_drain *drain, uint64_t start_tsc, const cpu_set_t *cores,
                       struct error *err)
{
    drain->start_tsc = start_tsc;
    drain->last_tsc += start_tsc;
    drain->side = (struct side_thread){
        .name = "load-samples", .look = look, .context = drain, .every_ns = LOOK_NS};
    return side_thread_begin(&drain->side, cores, err);
}

static uint64_t count_undrawn(const struct sample_drain *drain, uint64_t until_tsc)
{
    const double until_ns = until_tsc == UINT64_MAX
                                ? INFINITY
                                : (double)(until_tsc - drain->start_tsc) / drain->ticks_per_ns;
    return 1 + schedule_drawer_expected(drain->drawer, until_ns);
}

// What is still in the rings. After hurry_ticks unsent requests are only counted: where nobody
// answers they are millions, and who ended the load waits.
static void take_rest(struct sample_drain *drain, uint64_t until_tsc, uint64_t hurry_ticks)
{
    const uint64_t begun = tsc_now();
    uint64_t passed = 0;
    for (uint64_t left = held(drain); left; left--, pass(drain, &drain->taken)) {
        const struct sample *sample =
            sample_ring_at(&drain->rings[drain->taken.ring], drain->taken.number);
        if (sample->intended_tsc > until_tsc)
            break;
        if (sample->status == SAMPLE_UNSENT && tsc_now() - begun >= hurry_ticks)
            passed++;
        else
            sample_totals_add(drain->totals, sample);
    }
    if (passed)
        sample_totals_add_undrawn(drain->totals, passed);
}

void sample_drain_end(struct sample_drain *drain, uint64_t until_tsc, uint64_t drawing_ticks)
{
    side_thread_end(&drain->side);
    take_rest(drain, until_tsc, until_tsc == UINT64_MAX ? UINT64_MAX : drawing_ticks);
    const uint64_t begun = tsc_now();
    for (; drain->has_next; draw_next(drain)) {
        const struct sample sample = next_sample(drain);
        if (sample.intended_tsc > until_tsc)
            return;
        if (tsc_now() - begun >= drawing_ticks) {
            sample_totals_add_undrawn(drain->totals, count_undrawn(drain, until_tsc));
            return;
        }
        sample_totals_add(drain->totals, &sample);
    }
}
