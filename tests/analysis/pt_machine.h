// SPDX-License-Identifier: MIT
//
// The processor of a scenario (pt_scenario.h): runs the program for several tasks, writes the
// trace, and keeps the spans a perfect decoder would report, in the order it would.
#ifndef TESTS_ANALYSIS_PT_MACHINE_H
#define TESTS_ANALYSIS_PT_MACHINE_H

#include "tests/analysis/pt_scenario.h"

enum { TASKS = 3, MOST_FRAMES = 128, COMPRESSED = 64 };

struct machine_frame {
    int function; // -1: not traced
    int item;     // to execute next
    uint64_t begin;
    uint64_t untraced; // enum pt_untraced
    uint8_t kind;      // enum pt_span_kind
    bool cut;
    bool known; // to the decoder: it saw it begin, or control come back to it
};

struct machine_task {
    struct machine_frame frames[MOST_FRAMES];
    int count;
    uint64_t since; // the decoder knows the task since then
    int base;       // depth that the decoder calls level 0
    int outermost;  // level of the outermost frame it knows
    bool fresh;     // never ran
};

struct truth_spans ARRAY_OF(struct pt_span);

struct machine {
    const struct program *program;
    struct writer writer;
    struct random_source random;
    struct machine_task tasks[TASKS];
    int current;
    bool traces_kernel;
    bool tracing, blind; // blind: packets are being lost
    bool branched;       // the last instruction was a conditional branch
    uint64_t returns[COMPRESSED];
    int return_count;
    uint64_t instructions;
    uint64_t task_since, lost_since;
    struct truth_spans spans;
    struct pt_switches switches;
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

static inline uint64_t machine_ip(struct machine *machine)
{
    const struct machine_frame *top = machine_top(machine);
    return machine->program->functions[top->function].items[top->item].ip;
}

// --- truth -------------------------------------------------------------------------------------

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
                           .function_known = true};
    span.function =
        frame->function < 0 ? frame->untraced : machine->program->functions[frame->function].low;
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

// --- running -----------------------------------------------------------------------------------

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

static inline void machine_switch(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    machine->writer.now += 100 + random_below(&machine->random, 1000);
    for (int i = task->count - 1; i >= 0; i--)
        truth_report(machine, i, true);
    struct pt_span run = {.begin = machine->task_since,
                          .end = machine->writer.now,
                          .task = (uint32_t)machine->current + 1,
                          .level = INT32_MIN,
                          .kind = PT_SPAN_TASK};
    array_push(&machine->spans, run);
    machine->current =
        (machine->current + 1 + (int)random_below(&machine->random, TASKS - 1)) % TASKS;
    array_push(&machine->switches,
               (struct pt_switch){machine->writer.now, (uint32_t)machine->current + 1});
    machine->task_since = machine->writer.now;
    task = machine_task(machine);
    task->since = machine->writer.now;
    for (int i = 0; i < task->count; i++) {
        task->frames[i].begin = machine->writer.now;
        task->frames[i].cut = true;
    }
}

static inline void machine_start_tracing(struct machine *machine)
{
    struct machine_task *task = machine_task(machine);
    machine->writer.now += 100 + random_below(&machine->random, 1000);
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

static inline void machine_interrupt(struct machine *machine)
{
    uint64_t ip = machine_ip(machine);
    if (!machine->traces_kernel || random_chance(&machine->random, 30)) {
        machine_stop_tracing(machine, true, ip, PT_UNTRACED_INTERRUPT);
        machine_untraced_kernel(machine);
        return;
    }
    machine->return_count = 0;
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
    struct machine_task *task = machine_task(machine);
    write_tnt(&machine->writer);
    write_time(&machine->writer);
    for (int i = task->count - 1; i >= 0; i--)
        truth_report(machine, i, true);
    machine->lost_since = machine->writer.now;
    machine->blind = true;
}

static inline void machine_recover(struct machine *machine)
{
    machine->blind = false;
    machine->return_count = 0;
    write_packet(&machine->writer, (struct pt_packet){.type = ppt_ovf});
    machine->writer.last_ip = 0;
    write_tsc(&machine->writer);
    write_packet(&machine->writer, // without it, libipt cannot count cycles any more
                 (struct pt_packet){.type = ppt_cbr, .payload.cbr.ratio = NOMINAL_RATIO});
    write_address(&machine->writer, ppt_fup, machine_ip(machine));
    struct pt_span lost = {.begin = machine->lost_since,
                           .end = machine->writer.now,
                           .task = (uint32_t)machine->current + 1,
                           .level = INT32_MIN + 1,
                           .kind = PT_SPAN_LOST};
    array_push(&machine->spans, lost);
    truth_restart(machine);
}

static inline bool machine_deeper(struct machine *machine, enum item_kind kind)
{
    if (kind == ITEM_LONGJMP && (machine->blind || longjmp_target(machine) < 0))
        return false;
    if (kind == ITEM_NOP || kind == ITEM_LONGJMP)
        return random_chance(&machine->random, 50);
    unsigned percent = machine_task(machine)->count > DEEPEST ? 0 : 55;
    return random_chance(&machine->random, percent);
}

static inline void machine_step(struct machine *machine)
{
    struct machine_frame *top = machine_top(machine);
    const struct function *function = &machine->program->functions[top->function];
    const struct item *item = &function->items[top->item++];
    bool kernel = top->function >= USER_FUNCTIONS, taken;
    int callee;
    machine->writer.now += 1 + random_below(&machine->random, 20);
    machine->instructions += !machine->blind;
    machine->branched = item->kind == ITEM_SKIP || item->kind == ITEM_LOOP;
    switch ((enum item_kind)item->kind) {
    case ITEM_NOP:
        break;
    case ITEM_SKIP:
        taken = !machine_deeper(machine, function->items[top->item].kind);
        top->item += taken;
        emit_branch(machine, taken);
        break;
    case ITEM_LOOP:
        taken = random_chance(&machine->random, 40);
        if (taken)
            top->item = item->target;
        emit_branch(machine, taken);
        break;
    case ITEM_CALL:
    case ITEM_ICALL:
        callee =
            item->kind == ITEM_CALL ? item->target : (int)random_callee(&machine->random, kernel);
        return_push(machine, item->ip + item->bytes);
        machine_enter(machine, callee, PT_SPAN_FUNCTION);
        if (item->kind == ITEM_ICALL)
            emit_target(machine, machine_ip(machine));
        break;
    case ITEM_TAIL:
        machine_tail(machine, item->target);
        break;
    case ITEM_ITAIL:
        machine_tail(machine, (int)random_callee(&machine->random, kernel));
        emit_target(machine, machine_ip(machine));
        break;
    case ITEM_SYSCALL:
        machine_syscall(machine);
        break;
    case ITEM_LONGJMP:
        machine_longjmp(machine);
        break;
    case ITEM_RET:
        machine_return(machine);
        break;
    case ITEM_SYSRET:
    case ITEM_IRET:
        truth_pop(machine);
        machine->return_count = 0;
        emit_target(machine, machine_ip(machine));
        break;
    }
}

static inline void machine_finish(struct machine *machine)
{
    write_tnt(&machine->writer);
    write_tsc(&machine->writer); // nothing else would tell how late it was
    machine_stop_tracing(machine, true, machine_ip(machine), PT_UNTRACED_INTERRUPT);
    for (int i = machine_task(machine)->count - 1; i >= 0; i--)
        truth_report(machine, i, true);
    struct pt_span run = {.begin = machine->task_since,
                          .end = machine->writer.now,
                          .task = (uint32_t)machine->current + 1,
                          .level = INT32_MIN,
                          .kind = PT_SPAN_TASK};
    array_push(&machine->spans, run);
}

struct scenario {
    uint64_t seed;
    size_t bytes; // of trace, about
    unsigned psb_bytes;
    bool faults; // overflows
};

// Runs until the trace is long enough. The caller calls machine_fini.
static inline int machine_run(struct machine *machine, const struct program *program,
                              const struct scenario *scenario)
{
    memset(machine, 0, sizeof *machine);
    struct pt_config config;
    machine->program = program;
    machine->random.state = scenario->seed ^ 0x5eed;
    machine->writer.random.state = scenario->seed ^ 0xfeed;
    machine->writer.capacity = scenario->bytes + (64 << 10);
    machine->writer.data = malloc(machine->writer.capacity);
    machine->writer.timing = (enum timing)random_below(&machine->random, TIMINGS);
    machine->writer.compress_returns = random_chance(&machine->random, 50);
    machine->writer.long_tnt = random_chance(&machine->random, 30);
    machine->traces_kernel = random_chance(&machine->random, 50);
    machine->writer.now = 1000000000 + (random_next(&machine->random) >> 24);
    pt_config_init(&config);
    config.begin = machine->writer.data;
    config.end = config.begin + machine->writer.capacity;
    machine->writer.encoder = machine->writer.data ? pt_alloc_encoder(&config) : NULL;
    if (!machine->writer.encoder)
        return -1;
    for (int i = 0; i < TASKS; i++)
        machine->tasks[i].fresh = true;
    machine->task_since = machine->writer.now;
    array_push(&machine->switches, (struct pt_switch){machine->writer.now, 1});
    machine_psb(machine);
    machine_start_tracing(machine);
    unsigned blind_steps = 0;
    while (!machine->writer.failed && writer_offset(&machine->writer) < scenario->bytes) {
        machine_step(machine);
        if (machine->blind) {
            if (blind_steps-- == 0)
                machine_recover(machine);
            continue;
        }
        if (random_chance(&machine->random, 1)) {
            machine_interrupt(machine);
        } else if (scenario->faults && machine->branched &&
                   random_below(&machine->random, 500) == 0) {
            machine_overflow(machine);
            blind_steps = random_below(&machine->random, 200);
            continue;
        }
        if (writer_offset(&machine->writer) - machine->writer.last_psb > scenario->psb_bytes)
            machine_psb(machine);
    }
    if (machine->blind)
        machine_recover(machine);
    machine_finish(machine);
    return machine->writer.failed ? -1 : 0;
}

static inline void machine_fini(struct machine *machine)
{
    pt_free_encoder(machine->writer.encoder);
    free(machine->writer.data);
    array_free(&machine->spans);
    array_free(&machine->switches);
}

#endif
