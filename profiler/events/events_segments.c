// SPDX-License-Identifier: MIT
#include "profiler/events/events_segments.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "profiler/events/events_skeleton.h"

static uint64_t own_ns(void)
{
    return (uint64_t)clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int events_segments_init(struct events_segments *segments, double share, uint64_t segment_ns,
                         struct event_drain *drain, struct error *err)
{
    *segments = (struct events_segments){.drain = drain,
                                         .budget = {.share = share, .segment_ns = segment_ns}};
    if (program_costs_init(&segments->costs, drain->core_count) < 0)
        return error_set(err, ERROR_FAILED, "no memory for a capture");
    return 0;
}

void events_segments_free(struct events_segments *segments)
{
    program_costs_free(&segments->costs);
}

void events_segments_begin(struct events_segments *segments, struct events_bpf *programs,
                           struct event_program_state states[EVENT_PROGRAMS],
                           struct payload_frames *frames, const cpu_set_t *cores, bool scheduler)
{
    segments->programs = programs;
    segments->states = states;
    segments->frames = frames;
    segments->scheduler = scheduler;
    program_costs_sample(&segments->costs, programs, states, segments->drain, cores);
    program_costs_begin(&segments->costs, segments->drain);
    segments->begun_ns = (uint64_t)monotonic_ns();
    segments->read_ns = own_ns();
}

// Has the programs say again what they say once, so that what is recorded from now on stands by
// itself: who has the cores, which threads and disks there are.
static void begin_anew(struct events_segments *segments)
{
    for (unsigned core = 0; segments->scheduler && core < segments->drain->core_count; core++) {
        uint32_t *watched = &segments->programs->bss->rings[core].watched, now = CORE_WATCHED;
        __atomic_compare_exchange_n(watched, &now, CORE_TO_BEGIN, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
    memset(segments->programs->bss->threads_recorded, 0,
           sizeof segments->programs->bss->threads_recorded);
    memset(segments->programs->bss->disks_recorded, 0,
           sizeof segments->programs->bss->disks_recorded);
}

// Says in the records of a core whether some are spared from now on.
static void say_sparing(struct events_segments *segments, bool begins)
{
    const struct event event = {.time = (uint64_t)monotonic_ns(),
                                .kind = EVENT_SPARING,
                                .flags = begins ? SPARING_BEGINS : 0};
    event_drain_add(segments->drain, &event);
}

// To attach and to detach programs patches the kernel's code, which takes its time: no reader's,
// but of the budget.
static void run_programs(struct events_segments *segments, enum events_running which)
{
    const uint64_t before = own_ns();
    cpu_set_t cores, calm;
    bool moved = false;
    CPU_ZERO(&calm);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
        CPU_SET(program_costs_calm_core(&segments->costs, segments->drain, &cores), &calm);
        moved = sched_setaffinity(0, sizeof calm, &calm) == 0;
    }
    events_programs_run(segments->programs, segments->states, which);
    if (moved)
        sched_setaffinity(0, sizeof cores, &cores);
    const uint64_t took = own_ns() - before;
    segments->read_ns += took;
    events_budget_switched(&segments->budget, took);
}

// After a rest what was recorded while programs came back is no part of the segment; else what is
// not recorded while they come and go counts as spared.
static void begin_segment(struct events_segments *segments)
{
    const bool before = segments->programs->bss->sparing;
    const bool sparing = segments->budget.sparing;
    if (sparing)
        say_sparing(segments, true);
    segments->programs->bss->sparing = sparing;
    if (sparing != before || segments->rests)
        run_programs(segments, sparing ? EVENTS_RUN_SPARING : EVENTS_RUN_ALL);
    if (before && !sparing)
        say_sparing(segments, false);
    segments->now = (struct events_segment){0};
    if (segments->rests) {
        event_drain_skip(segments->drain);
        for (unsigned core = 0; core < segments->drain->core_count; core++)
            segments->programs->bss->rings[core].current = EVENTS_NO_THREAD;
        __atomic_store_n(&segments->programs->bss->resting, 0, __ATOMIC_RELEASE);
        segments->now.from_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    }
    segments->rests = segments->wakes = false;
    begin_anew(segments);
    segments->begun_ns = (uint64_t)monotonic_ns();
    program_costs_begin(&segments->costs, segments->drain);
    segments->read_ns = own_ns();
}

static void measure(struct events_segments *segments)
{
    uint64_t records;
    const double programs_ns = program_costs_so_far(&segments->costs, segments->drain, &records);
    events_budget_measured(&segments->budget, programs_ns, records, segments->drain->received);
}

// A segment has ended, whose records are drained: decides about the next one.
static void decide(struct events_segments *segments)
{
    const uint64_t length_ns = (uint64_t)monotonic_ns() - segments->begun_ns;
    if (segments->budget.share > 0 && !segments->rests)
        measure(segments);
    events_budget_read(&segments->budget, segments->drain->all - segments->read_records,
                       own_ns() - segments->read_ns + segments->charged_ns);
    segments->read_records = segments->drain->all;
    segments->charged_ns = 0;
    events_budget_next(&segments->budget, segments->drain->received,
                       segments->rests ? segments->recorded_ns - segments->begun_ns : length_ns,
                       length_ns);
    segments->now.taken = segments->budget.taken;
}

static void drain_rings(struct events_segments *segments)
{
    for (unsigned core = 0; core < segments->drain->core_count; core++)
        event_drain_core(segments->drain, core, UINT64_MAX, false);
}

// For the rest of the segment.
static void rest(struct events_segments *segments)
{
    segments->rests = true;
    segments->recorded_ns = (uint64_t)monotonic_ns();
    segments->now.until_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    drain_rings(segments);
    payload_frames_poll(segments->frames);
    segments->programs->bss->resting = 1;
    run_programs(segments, EVENTS_RUN_RESTING);
}

void events_segments_poll(struct events_segments *segments)
{
    if (!(segments->budget.share > 0))
        return;
    if (segments->wakes)
        begin_segment(segments);
    if (segments->rests)
        return;
    measure(segments);
    drain_rings(segments); // else the cut would have much to drain before it can end the recording
    if (events_budget_is_spent(&segments->budget, (uint64_t)monotonic_ns() - segments->begun_ns))
        rest(segments);
}

void events_segments_end(struct events_segments *segments)
{
    if (segments->rests)
        event_drain_skip(segments->drain);
    drain_rings(segments);
    payload_frames_poll(segments->frames);
    decide(segments);
    // To write it may take its time.
    if (!segments->rests && events_budget_is_exceeded(&segments->budget))
        rest(segments);
}

void events_segments_next(struct events_segments *segments, struct events_segment *ended)
{
    *ended = segments->now;
    segments->wakes = segments->rests; // at the next poll, when all is written
    if (!segments->rests)
        begin_segment(segments);
}
