// SPDX-License-Identifier: MIT
//
// What a processor does while it runs a scenario's program (pt_machine.h), each deed with the
// packets it writes and what becomes of the true spans: calls, returns, switches of task and
// address space, system calls, interrupts, aborted transactions, tracing that stops, packets that
// are lost.
#ifndef TESTS_ANALYSIS_PT_PT_DEEDS_H
#define TESTS_ANALYSIS_PT_PT_DEEDS_H

#include "tests/analysis/pt/pt_truth.h"

static inline void machine_enter(struct machine *machine, int function, enum pt_span_kind kind)
{
    truth_push(machine, function, kind, 0);
}

static inline void return_push(struct machine *machine, uint64_t address)
{
    if (machine->return_count == COMPRESSED) {
        memmove(machine->returns, machine->returns + 1,
                sizeof *machine->returns * (COMPRESSED - 1));
        machine->return_count--;
    }
    machine->returns[machine->return_count++] = address;
}

static inline void machine_psb(struct machine *machine)
{
    write_psb(&machine->writer, machine->tracing ? machine_ip(machine) : 0);
    machine->return_count = 0; // the processor does not compress returns across a PSB
}

static inline void emit_target(struct machine *machine, uint64_t ip)
{
    if (!machine->blind)
        write_address(&machine->writer, ppt_tip, ip);
}

static inline void emit_branch(struct machine *machine, bool taken)
{
    if (!machine->blind)
        write_branch(&machine->writer, taken);
}

static inline void machine_return(struct machine *machine)
{
    truth_pop(machine);
    uint64_t to = machine_ip(machine);
    bool compress = machine->writer.compress_returns && !machine->blind && machine->return_count &&
                    machine->returns[machine->return_count - 1] == to;
    if (compress) {
        machine->return_count--;
        emit_branch(machine, true);
    } else {
        machine->return_count = 0; // libipt keeps its stack; both agree on what is pushed anew
        emit_target(machine, to);
    }
}

static inline void machine_tail(struct machine *machine, int function)
{
    struct machine_task *task = machine_task(machine);
    struct machine_frame *top = machine_top(machine);
    if (top->function != function) { // into itself: a loop, as far as a trace can tell
        truth_report(machine, task->count - 1, false);
        top->begin = machine->writer.now;
        top->cut = false;
        top->known = !machine->blind;
    }
    top->function = function;
    top->item = 0;
}

// Finds the frame a longjmp goes to: the innermost one of another function, called from this side
// of the last interrupt or syscall, that the decoder knows. -1: none.
static inline int longjmp_target(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    int own = machine_top(machine)->function;
    for (int i = task->count - 2; i >= 0; i--) {
        if (task->frames[i + 1].kind != PT_SPAN_FUNCTION || !task->frames[i].known)
            return -1;
        if (task->frames[i].function != own)
            return i;
    }
    return -1;
}

static inline void machine_longjmp(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    int target = longjmp_target(machine);
    if (target < 0) // packets were lost since it was chosen
        target = task->count - 1;
    while (task->count - 1 > target) {
        truth_report(machine, task->count - 1, false);
        task->count--;
    }
    machine->return_count = 0; // what the processor has there now does not match any more
    emit_target(machine, machine_ip(machine));
}

static inline void machine_stop_tracing(struct machine *machine, bool asynchronous, uint64_t ip,
                                        enum pt_untraced why)
{
    if (asynchronous)
        write_address(&machine->writer, ppt_fup, ip);
    write_address(&machine->writer, ppt_tip_pgd, KERNEL_BASE);
    truth_push(machine, -1, PT_SPAN_UNTRACED, why);
    machine->tracing = false;
}

// A task other than the current one that is fresh, or waits in the kernel with such a frame on top:
// an untraced one, or SWITCH. -1: none. Where the core's ratio changes there is but one: whose time
// a span is near a switch could be judged only by times that are not exact enough.
static inline int machine_other_task(struct machine *machine, int top_function)
{
    if (machine->writer.steady)
        return -1;
    int first = (int)random_below(&machine->random, TASKS - 1);
    for (int i = 0; i < TASKS - 1; i++) {
        int index = (machine->current + 1 + (first + i) % (TASKS - 1)) % TASKS;
        const struct machine_task *task = &machine->tasks[index];
        if (task->fresh || task->frames[task->count - 1].function == top_function)
            return index;
    }
    return -1;
}

static inline void machine_switch(struct machine *machine)
{
    int to = machine_other_task(machine, -1);
    if (to < 0)
        return;
    writer_pass(&machine->writer, 100 + random_below(&machine->random, 1000));
    truth_switch(machine, to);
    write_paging(&machine->writer);
}

// A task that never ran comes out of the kernel.
static inline void machine_begin_in_kernel(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    static const struct machine_frame frames[] = {
        {.function = 0, .kind = PT_SPAN_FUNCTION},
        {.function = SYSCALL_ENTRY, .item = 1, .kind = PT_SPAN_SYSCALL},
        {.function = SWITCH,
         .kind = PT_SPAN_FUNCTION,
         .known = true,
         .cut = true,
         .nameless = true},
    };
    memcpy(task->frames, frames, sizeof frames);
    task->count = sizeof frames / sizeof *frames;
    task->frames[task->count - 1].begin = machine->writer.now;
    task->base = task->count - 1;
    task->fresh = false;
}

// The kernel changes the address space, and perhaps the task. What is traced right before and after
// is told apart by time.
static inline void machine_paging(struct machine *machine)
{
    int to = machine_other_task(machine, SWITCH);
    write_tnt(&machine->writer);
    writer_pass(&machine->writer, 1 + random_below(&machine->random, 20));
    write_tsc(&machine->writer);
    writer_pass(&machine->writer, 100 + random_below(&machine->random, 1000));
    if (to >= 0) {
        machine->did.switches++;
        truth_switch(machine, to);
        if (machine_task(machine)->fresh)
            machine_begin_in_kernel(machine);
    }
    machine->return_count = 0; // they are another stack's
    machine_top(machine)->item = BEHIND_PAGING;
    write_paging(&machine->writer);
    writer_pass(&machine->writer, 1 + random_below(&machine->random, 100));
    write_tsc(&machine->writer);
}

static inline void machine_start_tracing(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    writer_pass(&machine->writer, 100 + random_below(&machine->random, 1000));
    if (!task->fresh) {
        truth_pop(machine);
    } else {
        truth_push(machine, 0, PT_SPAN_FUNCTION, 0);
        machine_top(machine)->cut = true;
        task->since = machine->writer.now;
        task->fresh = false;
    }
    if (random_chance(&machine->random, 30))
        machine_psb(machine);
    write_mode(&machine->writer);
    write_tsc(&machine->writer); // as Linux restarts PT for every task it switches in
    machine->tracing = true;
    write_address(&machine->writer, ppt_tip_pge, machine_ip(machine));
}

static inline void machine_untraced_kernel(struct machine *machine)
{
    if (random_chance(&machine->random, 40))
        machine_switch(machine);
    machine_start_tracing(machine);
}

static inline bool machine_in_interrupt(struct machine *machine)
{
    const struct machine_task *task = machine_task(machine);
    for (int i = 0; i < task->count; i++)
        if (task->frames[i].kind == PT_SPAN_INTERRUPT)
            return true;
    return false;
}

// Whatever it did since it began is undone. Control goes on behind the XBEGIN, as after a longjmp.
static inline void machine_abort(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    uint64_t ip = machine_ip(machine);
    int target = machine->transaction - 1;
    while (task->count - 1 > target) {
        truth_report(machine, task->count - 1, false);
        task->count--;
    }
    machine_top(machine)->item = machine->transaction_item;
    machine->transaction = 0;
    machine->return_count = 0;
    if (machine->blind)
        return;
    machine->did.aborts++;
    write_transaction(&machine->writer, false, true, ip);
    emit_target(machine, machine_ip(machine));
}

static inline void machine_interrupt(struct machine *machine)
{
    if (machine->transaction)
        machine_abort(machine);
    uint64_t ip = machine_ip(machine);
    if (!machine->traces_kernel || random_chance(&machine->random, 30)) {
        machine_stop_tracing(machine, true, ip, PT_UNTRACED_INTERRUPT);
        machine_untraced_kernel(machine);
        return;
    }
    machine->return_count = 0;
    machine->did.nested_interrupts += machine_in_interrupt(machine);
    write_address(&machine->writer, ppt_fup, ip);
    machine_enter(machine, INTERRUPT_ENTRY, PT_SPAN_INTERRUPT);
    write_address(&machine->writer, ppt_tip, machine_ip(machine));
}

static inline void machine_syscall(struct machine *machine)
{
    if (machine->traces_kernel || machine->blind) {
        machine_enter(machine, SYSCALL_ENTRY, PT_SPAN_SYSCALL);
        emit_target(machine, machine_ip(machine));
        return;
    }
    machine_stop_tracing(machine, false, 0, PT_UNTRACED_SYSCALL);
    machine_untraced_kernel(machine);
}

// The processor loses packets for a while.
static inline void machine_overflow(struct machine *machine)
{
    machine->did.lost_in_interrupts += machine_in_interrupt(machine);
    struct machine_task *task = machine_task(machine);
    write_tnt(&machine->writer);
    write_time(&machine->writer);
    for (int i = task->count - 1; i >= 0; i--)
        truth_report(machine, i, true);
    machine->lost_since = machine->writer.now;
    machine->blind = true;
    machine->writer.ticking = false;
    machine->transaction = 0; // how it ended is lost too
}

static inline void machine_recover(struct machine *machine)
{
    machine->blind = false;
    machine->return_count = 0;
    write_packet(&machine->writer, (struct pt_packet){.type = ppt_ovf});
    machine->writer.last_ip = 0;
    write_tsc(&machine->writer);
    write_ratio(&machine->writer); // without it, libipt cannot count cycles any more
    machine->writer.ticking = true;
    write_address(&machine->writer, ppt_fup, machine_ip(machine));
    struct pt_span lost = {.begin = machine->lost_since,
                           .end = machine->writer.now,
                           .task = (uint32_t)machine->current + 1,
                           .level = INT32_MIN + 1,
                           .kind = PT_SPAN_LOST};
    array_push(&machine->spans, lost);
    truth_restart(machine);
}

#endif
