// SPDX-License-Identifier: MIT
//
// The thread beside a load in bounded memory: it draws the schedule into the load threads' rings
// (sample_ring.h) as these have room, the same schedule that drawing it at once gives, and takes
// their finished samples, in the order of the schedule, into the totals (sample_totals.h). It
// sleeps a millisecond between two looks; load threads never wait for it, but find nothing to send
// when it does not keep up, which is counted (late_drawn).
#ifndef LOADGEN_ENGINE_SAMPLE_DRAIN_H
#define LOADGEN_ENGINE_SAMPLE_DRAIN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loadgen/engine/sample_ring.h"
#include "loadgen/engine/sample_totals.h"
#include "loadgen/engine/schedule.h"
#include "loadgen/engine/side_thread.h"

// A request of the schedule: number `number` of ring `ring`; they are dealt to the rings in turn.
struct ring_place {
    uint64_t number;
    uint32_t ring;
};

struct sample_drain {
    struct sample_ring *rings;
    uint32_t ring_count;
    struct schedule_drawer *drawer; // the caller's, as the totals
    struct sample_totals *totals;
    double ticks_per_ns;

    uint64_t start_tsc;             // 0: the load has not begun
    struct ring_place drawn, taken; // the first that are not
    struct scheduled_request next;  // the next to be drawn
    bool has_next;
    uint64_t last_tsc; // when the last that was drawn is due
    bool was_full;     // when last looked at: full of requests that had been due
    struct side_thread side;
};

// Makes the rings; who uses one gives it its samples. ERROR_FAILED: out of memory.
int sample_drain_open(struct sample_drain *drain, uint32_t ring_count,
                      struct schedule_drawer *drawer, struct sample_totals *totals,
                      struct error *err);
// Ends the thread, if it runs. Harmless when it is not open.
void sample_drain_close(struct sample_drain *drain);

// Draws as much as the rings hold, as offsets from a start that is not known yet.
void sample_drain_fill(struct sample_drain *drain, double ticks_per_ns);

// The load begins at start_tsc, which every sample's time now counts from: the load threads add it
// to those that were ready before. Starts the thread, on the given cores; NULL: on any.
// ERROR_FAILED: no thread.
int sample_drain_begin(struct sample_drain *drain, uint64_t start_tsc, const cpu_set_t *cores,
                       struct error *err);

// All load threads have ended. Ends the thread, takes the rest of the samples, and draws what was
// not drawn yet, as never sent; when that takes longer than drawing_ticks, the rest is counted by
// the rate (sample_totals.undrawn): a rate beyond what can be drawn leaves hundreds of millions.
// until_tsc: a person ended the load then; requests due after it were never offered, and are left
// out, and unsent ones that the rings still hold after drawing_ticks are counted, too, and no more.
// UINT64_MAX: it ended by itself.
void sample_drain_end(struct sample_drain *drain, uint64_t until_tsc, uint64_t drawing_ticks);

// One look: takes what is final, then draws what has room. For the thread, and for tests.
void sample_drain_look(struct sample_drain *drain);

#endif
