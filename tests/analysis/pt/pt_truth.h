// SPDX-License-Identifier: MIT
//
// The processor of a scenario (pt_machine.h), and the spans that a perfect decoder of its trace
// would report, in the order it would.
#ifndef TESTS_ANALYSIS_PT_PT_TRUTH_H
#define TESTS_ANALYSIS_PT_PT_TRUTH_H

#include "analysis/pt/calls/pt_calls.h"
#include "analysis/pt/walk/pt_stream.h"
#include "tests/analysis/pt/pt_writer.h"

enum { TASKS = 3, MOST_FRAMES = 128, COMPRESSED = 64 };

struct machine_frame {
    int function; // -1: not traced
    int item;     // to execute next
    uint64_t begin;
    uint64_t untraced; // enum pt_untraced
    uint8_t kind;      // enum pt_span_kind
    bool cut;
    bool known;    // to the decoder: it saw it begin, or control come back to it
    bool nameless; // known, but not what function it is
};

struct machine_task {
    struct machine_frame frames[MOST_FRAMES];
    int count;
    uint64_t since; // the decoder knows the task since then
    int base;       // depth that the decoder calls level 0
    int outermost;  // level of the outermost frame it knows
    bool fresh;     // never ran
    int space;      // what code it has
};

struct truth_spans ARRAY_OF(struct pt_span);

// How often what a rich machine does was done.
struct machine_deeds {
    uint64_t switches, nested_interrupts, lost_in_interrupts, aborts, commits;
};

struct machine {
    const struct program *program;
    struct writer writer;
    struct random_source random;
    struct machine_task tasks[TASKS];
    int current;
    bool traces_kernel, rich;
    bool tracing, blind; // blind: packets are being lost
    bool branched;       // the last instruction was a conditional branch
    uint64_t returns[COMPRESSED];
    int return_count;
    uint64_t instructions;
    int transaction;      // depth of the frame it began in; 0: none
    int transaction_item; // where that goes on when it is aborted
    struct machine_deeds did;
    uint64_t task_since, lost_since;
    struct truth_spans spans;
    struct pt_switches switches;
    struct pt_space_changes changes;
};

static inline struct machine_task *machine_task(struct machine *machine)
{
    return &machine->tasks[machine->current];
}

static inline struct machine_frame *machine_top(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    return &task->frames[task->count - 1];
}

static inline const struct function *machine_function(struct machine *machine, int index)
{
    return program_function(machine->program, machine_task(machine)->space, index);
}

static inline uint64_t machine_ip(struct machine *machine)
{
    const struct machine_frame *top = machine_top(machine);
    return machine_function(machine, top->function)->items[top->item].ip;
}

static inline void truth_report(struct machine *machine, int index, bool cut_end)
{
    struct machine_task *task = machine_task(machine);
    struct machine_frame *frame = &task->frames[index];
    struct pt_span span = {.begin = frame->begin,
                           .end = machine->writer.now,
                           .task = (uint32_t)machine->current + 1,
                           .level = index - task->base,
                           .kind = frame->kind,
                           .cut_begin = frame->cut,
                           .cut_end = cut_end,
                           .function_known = !frame->nameless};
    if (!frame->nameless)
        span.function = frame->function < 0
                            ? frame->untraced
                            : program_key(machine->program, task->space, frame->function);
    if (frame->known && !machine->blind)
        array_push(&machine->spans, span);
}

static inline void truth_push(struct machine *machine, int function, enum pt_span_kind kind,
                              uint64_t untraced)
{
    struct machine_task *task = machine_task(machine);
    task->frames[task->count++] = (struct machine_frame){.function = function,
                                                         .begin = machine->writer.now,
                                                         .untraced = untraced,
                                                         .kind = (uint8_t)kind,
                                                         .known = !machine->blind};
}

// Control went back to the top frame: the decoder knows it from now on.
static inline void truth_reveal(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    struct machine_frame *top = machine_top(machine);
    if (top->known || machine->blind)
        return;
    top->known = top->cut = true;
    top->kind = PT_SPAN_FUNCTION;
    top->begin = task->since;
    task->outermost = task->count - 1 - task->base;
}

static inline void truth_pop(struct machine *machine)
{
    truth_report(machine, machine_task(machine)->count - 1, false);
    machine_task(machine)->count--;
    truth_reveal(machine);
}

// The decoder begins to know the current task here, in the middle of its top frame.
static inline void truth_restart(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    for (int i = 0; i < task->count; i++)
        task->frames[i].known = false;
    struct machine_frame *top = machine_top(machine);
    top->known = top->cut = true;
    top->kind = PT_SPAN_FUNCTION;
    top->begin = task->since = machine->writer.now;
    task->base = task->count - 1 - task->outermost;
}

// The task that ran is cut here and another runs.
static inline void truth_switch(struct machine *machine, int to)
{
    struct machine_task *task = machine_task(machine);
    for (int i = task->count - 1; i >= 0; i--)
        truth_report(machine, i, true);
    struct pt_span run = {.begin = machine->task_since,
                          .end = machine->writer.now,
                          .task = (uint32_t)machine->current + 1,
                          .level = INT32_MIN,
                          .kind = PT_SPAN_TASK};
    array_push(&machine->spans, run);
    machine->current = to;
    task = machine_task(machine);
    array_push(&machine->switches, (struct pt_switch){machine->writer.now, (uint32_t)to + 1});
    array_push(&machine->changes,
               (struct pt_space_change){machine->writer.now,
                                        program_space(machine->program, task->space)});
    machine->writer.cr3 = (uint64_t)(task->space + 1) << 13;
    machine->task_since = task->since = machine->writer.now;
    for (int i = 0; i < task->count; i++) {
        task->frames[i].begin = machine->writer.now;
        task->frames[i].cut = true;
    }
}

#endif
