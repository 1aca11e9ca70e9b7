// SPDX-License-Identifier: MIT
//
// Decodes scenarios and compares the spans with what truly happened.
#ifndef TESTS_ANALYSIS_PT_ROUND_TRIP_H
#define TESTS_ANALYSIS_PT_ROUND_TRIP_H

#include <inttypes.h>
#include <stdio.h>

#include "analysis/pt/pt_segments.h"
#include "tests/analysis/pt_machine.h"

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
    bool function = truth->kind == PT_SPAN_TASK || truth->kind == PT_SPAN_LOST ||
                    (found->function == truth->function && found->function_known);
    return function && found->kind == truth->kind && found->task == truth->task &&
           found->level == truth->level && found->cut_begin == truth->cut_begin &&
           found->cut_end == truth->cut_end &&
           (first_task || truth->kind == PT_SPAN_LOST ||
            time_agrees(found->begin, truth->begin, found->error)) &&
           (open || truth->kind == PT_SPAN_LOST ||
            time_agrees(found->end, truth->end, found->error));
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
            fprintf(stderr, "cpu %zu: span %zu of %zu differs\n", cpu, i, truth->count);
            for (size_t k = i > 3 ? i - 3 : 0; k < i + 3 && k < found->count && k < truth->count;
                 k++) {
                span_show("truth", &truth->items[k]);
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
    int result = pt_memory_add_bytes(memory, program->user, program->user_bytes, USER_BASE,
                                     PT_SPACE_ALL, err);
    if (result == 0)
        result = pt_memory_add_bytes(memory, program->kernel, program->kernel_bytes, KERNEL_BASE,
                                     PT_SPACE_ALL, err);
    return result;
}

// Makes the scenario for each CPU, decodes them together and compares. 0: equal.
static inline int round_trip(const struct scenario *scenario,
                             const struct pt_decode_options *options, uint64_t *spans)
{
    static struct program program;
    struct trip *trips = calloc(ROUND_TRIP_CPUS, sizeof *trips);
    struct pt_stream streams[ROUND_TRIP_CPUS] = {0};
    struct pt_symbols symbols = {.context = &program, .find = program_find};
    struct pt_memory memory;
    struct error err = {0};
    int result = 0;
    program_make(&program, scenario->seed, 0);
    if (!trips || memory_of(&program, &memory, &err) < 0)
        return -1;
    for (size_t i = 0; result == 0 && i < ROUND_TRIP_CPUS; i++) {
        struct scenario one = *scenario;
        one.seed = scenario->seed * ROUND_TRIP_CPUS + i;
        result = machine_run(&trips[i].machine, &program, &one);
        streams[i].bytes = (struct pt_bytes){.bytes = writer_offset(&trips[i].machine.writer),
                                             .data = trips[i].machine.writer.data};
        streams[i].packets = &trips[i].packets;
        streams[i].recorder.nominal_ratio = NOMINAL_RATIO;
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
        *spans += trips[i].found.count;
        pt_calls_free(trips[i].calls);
        pt_packets_free(&trips[i].packets);
        array_free(&trips[i].found);
        machine_fini(&trips[i].machine);
    }
    pt_memory_free(&memory);
    free(trips);
    return result;
}

#endif
