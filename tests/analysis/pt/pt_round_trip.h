// SPDX-License-Identifier: MIT
//
// Decodes scenarios and compares the spans with what truly happened.
#ifndef TESTS_ANALYSIS_PT_PT_ROUND_TRIP_H
#define TESTS_ANALYSIS_PT_PT_ROUND_TRIP_H

#include <inttypes.h>
#include <stdio.h>

#include "analysis/pt/calls/pt_calls.h"
#include "analysis/pt/pt_segments.h"
#include "tests/analysis/pt/pt_machine.h"

enum { ROUND_TRIP_CPUS = 4 };

// One CPU on its way back.
struct trip {
    struct machine machine;
    struct pt_packets packets;
    struct pt_calls *calls;
    struct truth_spans found;
    uint64_t instructions, errors;
};

static inline int trip_take_span(void *context, const struct pt_span *span, struct error *err)
{
    struct truth_spans *found = context;
    (void)err;
    return array_push(found, *span) < 0 ? -ERROR_FAILED : 0;
}

static inline int trip_take_piece(void *context, size_t stream, const struct pt_piece *piece,
                                  bool contiguous, struct error *err)
{
    struct trip *trip = (struct trip *)context + stream;
    trip->instructions += piece->counts.instructions;
    trip->errors += piece->errors.count;
    for (size_t i = 0; i < piece->errors.count; i++)
        fprintf(stderr, "cpu %zu: decode error at %" PRIu64 ": %s (0x%" PRIx64 ")\n", stream,
                piece->errors.items[i].offset, piece->errors.items[i].what,
                piece->errors.items[i].ip);
    return pt_calls_take(trip->calls, piece, contiguous, err);
}

static inline bool time_agrees(uint64_t found, uint64_t truth, uint32_t error)
{
    return (found > truth ? found - truth : truth - found) <= error;
}

// Whether the decoder's span is the true one. The last spans are open when the trace ends.
static inline bool span_agrees(const struct pt_span *found, const struct pt_span *truth, bool open,
                               bool first_task)
{
    bool function =
        truth->kind == PT_SPAN_TASK || truth->kind == PT_SPAN_LOST ||
        (found->function == truth->function && found->function_known == truth->function_known);
    return function && found->kind == truth->kind && found->task == truth->task &&
           found->level == truth->level && found->cut_begin == truth->cut_begin &&
           found->cut_end == truth->cut_end &&
           (first_task || truth->kind == PT_SPAN_LOST ||
            time_agrees(found->begin, truth->begin, found->error)) &&
           (open || truth->kind == PT_SPAN_LOST ||
            time_agrees(found->end, truth->end, found->error));
}

// Whether the granularity that the decoder states is one: nine of ten times are that exact, and
// what the packets show is not much finer.
static inline bool granularity_holds(const struct trip *trip)
{
    uint64_t granularity = pt_calls_granularity(pt_calls_counts(trip->calls)), all = 0, within = 0;
    uint32_t known = granularity < UINT32_MAX ? (uint32_t)granularity : UINT32_MAX;
    for (size_t i = 0; i < trip->found.count; i++) {
        const struct pt_span *found = &trip->found.items[i], *truth = &trip->machine.spans.items[i];
        if (found->kind == PT_SPAN_LOST || found->kind == PT_SPAN_TASK)
            continue;
        if (!found->cut_begin) {
            all++;
            within += time_agrees(found->begin, truth->begin, known);
        }
        if (!found->cut_end) {
            all++;
            within += time_agrees(found->end, truth->end, known);
        }
    }
    bool bounded = trip->machine.writer.timing == TIMING_MTC && all > 100;
    return within * 10 >= all * 9 &&
           (!bounded || (granularity >= MTC_TICKS / 2 && granularity <= MTC_TICKS * 16));
}

static inline void span_show(const char *whose, const struct pt_span *span)
{
    fprintf(stderr,
            "  %s kind %d function 0x%" PRIx64 " task %" PRIu32 " level %d [%" PRIu64 ", %" PRIu64
            "] +-%" PRIu32 "%s%s\n",
            whose, span->kind, span->function, span->task, span->level, span->begin, span->end,
            span->error, span->cut_begin ? " cut-begin" : "", span->cut_end ? " cut-end" : "");
}

static inline int trip_compare(const struct trip *trip, size_t cpu)
{
    const struct truth_spans *found = &trip->found, *truth = &trip->machine.spans;
    uint64_t end = trip->machine.writer.now;
    bool first_task = true;
    for (size_t i = 0; i < found->count && i < truth->count; i++) {
        const struct pt_span *f = &found->items[i], *t = &truth->items[i];
        bool task = t->kind == PT_SPAN_TASK;
        if (!span_agrees(f, t, t->end == end, task && first_task)) {
            fprintf(stderr, "cpu %zu: span %zu of %zu differs with timing %d\n", cpu, i,
                    truth->count, trip->machine.writer.timing);
            for (size_t k = i > 3 ? i - 3 : 0; k < i + 3 && k < found->count && k < truth->count;
                 k++) {
                span_show(k == i ? "TRUTH" : "truth", &truth->items[k]);
                span_show("found", &found->items[k]);
            }
            return -1;
        }
        if (task)
            first_task = false;
    }
    if (found->count != truth->count || trip->errors) {
        fprintf(stderr, "cpu %zu: %zu spans found, %zu true, %" PRIu64 " decode errors\n", cpu,
                found->count, truth->count, trip->errors);
        return -1;
    }
    if (!granularity_holds(trip)) {
        fprintf(stderr, "cpu %zu: granularity %" PRIu64 " with timing %d\n", cpu,
                pt_calls_granularity(pt_calls_counts(trip->calls)), trip->machine.writer.timing);
        return -1;
    }
    if (trip->instructions != trip->machine.instructions) {
        fprintf(stderr, "cpu %zu: %" PRIu64 " instructions found, %" PRIu64 " true\n", cpu,
                trip->instructions, trip->machine.instructions);
        return -1;
    }
    return 0;
}

static inline int memory_of(const struct program *program, struct pt_memory *memory,
                            struct error *err)
{
    *memory = (struct pt_memory){0};
    int result = 0;
    for (int space = 0; result == 0 && space < (program->rich ? SPACES : 1); space++)
        result = pt_memory_add_bytes(memory, program->user[space], program->user_bytes[space],
                                     USER_BASE, program_space(program, space), err);
    if (result == 0)
        result = pt_memory_add_bytes(memory, program->kernel, program->kernel_bytes, KERNEL_BASE,
                                     PT_SPACE_ALL, err);
    return result;
}

static inline struct pt_recorder scenario_recorder(void)
{
    return (struct pt_recorder){.nominal_ratio = NOMINAL_RATIO,
                                .tsc_ctc_ebx = TSC_OF_CRYSTAL,
                                .tsc_ctc_eax = 1,
                                .mtc_frequency = MTC_FREQUENCY};
}

static inline void deeds_add(struct machine_deeds *to, const struct machine_deeds *from)
{
    to->switches += from->switches;
    to->nested_interrupts += from->nested_interrupts;
    to->lost_in_interrupts += from->lost_in_interrupts;
    to->aborts += from->aborts;
    to->commits += from->commits;
}

struct round_trips {
    uint64_t spans, ratio_changes;
    struct machine_deeds did;
};

// Makes the scenario for each CPU, decodes them together and compares. 0: equal.
static inline int round_trip(const struct scenario *scenario,
                             const struct pt_decode_options *options, struct round_trips *sum)
{
    static struct program program;
    struct trip *trips = calloc(ROUND_TRIP_CPUS, sizeof *trips);
    struct pt_stream streams[ROUND_TRIP_CPUS] = {0};
    struct pt_symbols symbols = {.context = &program, .find = program_find};
    struct pt_memory memory;
    struct error err = {0};
    int result = 0;
    program_build(&program, scenario->seed, 0, scenario->rich);
    if (!trips || memory_of(&program, &memory, &err) < 0)
        return -1;
    for (size_t i = 0; result == 0 && i < ROUND_TRIP_CPUS; i++) {
        struct scenario one = *scenario;
        one.seed = scenario->seed * ROUND_TRIP_CPUS + i;
        result = machine_run(&trips[i].machine, &program, &one);
        streams[i].bytes = (struct pt_bytes){.bytes = writer_offset(&trips[i].machine.writer),
                                             .data = trips[i].machine.writer.data};
        streams[i].packets = &trips[i].packets;
        if (!scenario->uncalibrated)
            streams[i].recorder = scenario_recorder();
        streams[i].changes = &trips[i].machine.changes;
        if (result == 0)
            result = pt_packets_scan(&streams[i].bytes, &trips[i].packets, &err);
        trips[i].calls =
            pt_calls_alloc(&trips[i].machine.switches, true, trip_take_span, &trips[i].found, &err);
    }
    if (result == 0)
        result = pt_decode(&memory, &symbols, streams, ROUND_TRIP_CPUS, options, trip_take_piece,
                           trips, &err);
    if (result < 0)
        fprintf(stderr, "%s\n", err.text);
    for (size_t i = 0; i < ROUND_TRIP_CPUS; i++) {
        if (result == 0)
            result = pt_calls_finish(trips[i].calls, &err);
        if (result == 0)
            result = trip_compare(&trips[i], i);
        sum->spans += trips[i].found.count;
        sum->ratio_changes += trips[i].machine.writer.changes;
        deeds_add(&sum->did, &trips[i].machine.did);
        pt_calls_free(trips[i].calls);
        pt_packets_free(&trips[i].packets);
        array_free(&trips[i].found);
        machine_fini(&trips[i].machine);
    }
    pt_memory_free(&memory);
    free(trips);
    return result;
}

// One scenario for each seed, every other one rich, every other pair without the fast way.
static inline int round_trips(uint64_t first, uint64_t count, size_t most_bytes,
                              struct round_trips *sum)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct scenario scenario = {.seed = seed,
                                    .bytes = 2000 + seed * 37 % most_bytes,
                                    .psb_bytes = 200 + (unsigned)(seed * 211 % 3000),
                                    .faults = seed % 3 == 0,
                                    .rich = seed % 2};
        struct pt_decode_options options = {.threads = 1 + (unsigned)seed % 3,
                                            .piece_bytes = 1 + seed % 7 * 500,
                                            .careful = seed % 4 > 1};
        if (round_trip(&scenario, &options, sum) < 0) {
            fprintf(stderr, "seed %" PRIu64 "\n", seed);
            return -1;
        }
    }
    return 0;
}

// Whether everything that a rich machine can do was done about so often, at least.
static inline bool deeds_are_many(const struct machine_deeds *did, uint64_t least)
{
    fprintf(stderr,
            "switches %" PRIu64 ", interrupts in interrupts %" PRIu64 ", losses in them %" PRIu64
            ", transactions aborted %" PRIu64 ", committed %" PRIu64 "\n",
            did->switches, did->nested_interrupts, did->lost_in_interrupts, did->aborts,
            did->commits);
    return did->switches > least && did->nested_interrupts > least &&
           did->lost_in_interrupts > least && did->aborts > least && did->commits > least;
}

#endif
