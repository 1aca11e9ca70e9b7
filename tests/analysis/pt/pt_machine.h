// SPDX-License-Identifier: MIT
//
// Runs the program of a scenario (pt_scenario.h) for several tasks, item by item: what each does
// (pt_deeds.h) writes the trace (pt_writer.h) and keeps the true spans (pt_truth.h).
#ifndef TESTS_ANALYSIS_PT_PT_MACHINE_H
#define TESTS_ANALYSIS_PT_PT_MACHINE_H

#include "tests/analysis/pt/pt_deeds.h"

static inline bool machine_deeper(struct machine *machine, const struct item *item)
{
    enum item_kind kind = (enum item_kind)item->kind;
    if (kind == ITEM_CALL && item->target == SWITCH && machine->rich)
        return !machine->blind && machine->traces_kernel &&
               machine_other_task(machine, SWITCH) >= 0;
    if (kind == ITEM_XBEGIN || kind == ITEM_XEND)
        return !machine->blind && !machine->transaction == (kind == ITEM_XBEGIN);
    if (kind == ITEM_LONGJMP && (machine->blind || longjmp_target(machine) < 0))
        return false;
    if (kind == ITEM_NOP || kind == ITEM_LONGJMP)
        return random_chance(&machine->random, 50);
    unsigned percent = machine_task(machine)->count > DEEPEST ? 0 : 55;
    return random_chance(&machine->random, percent);
}

// Transactions do not go on through what would leave their function, or make it run twice at once,
// so that an abort goes back to the only frame of it.
static inline bool machine_aborts_at(struct machine *machine, const struct item *item)
{
    int depth = machine->transaction,
        own = machine_task(machine)->frames[depth ? depth - 1 : 0].function;
    switch ((enum item_kind)item->kind) {
    case ITEM_CALL:
        return depth && item->target == own;
    case ITEM_RET:
        return depth == machine_task(machine)->count;
    case ITEM_NOP:
    case ITEM_SKIP:
    case ITEM_LOOP:
    case ITEM_XBEGIN:
    case ITEM_XEND:
        return false;
    default:
        return depth;
    }
}

static inline void machine_step(struct machine *machine)
{
    struct machine_frame *top = machine_top(machine);
    const struct function *function = machine_function(machine, top->function);
    const struct item *item = &function->items[top->item];
    if (machine_aborts_at(machine, item)) {
        machine_abort(machine);
        return;
    }
    top->item++;
    bool kernel = top->function >= USER_FUNCTIONS, taken;
    int callee;
    writer_pass(&machine->writer, 1 + random_below(&machine->random, 20));
    machine->instructions += !machine->blind;
    machine->branched = item->kind == ITEM_SKIP || item->kind == ITEM_LOOP;
    switch ((enum item_kind)item->kind) {
    case ITEM_NOP:
        break;
    case ITEM_SKIP:
        taken = !machine_deeper(machine, &function->items[top->item]);
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
        callee = item->kind == ITEM_CALL
                     ? item->target
                     : (int)random_callee(&machine->random, kernel, machine->rich);
        return_push(machine, item->ip + item->bytes);
        machine_enter(machine, callee, PT_SPAN_FUNCTION);
        if (item->kind == ITEM_ICALL)
            emit_target(machine, machine_ip(machine));
        break;
    case ITEM_TAIL:
        machine_tail(machine, item->target);
        break;
    case ITEM_ITAIL:
        machine_tail(machine, (int)random_callee(&machine->random, kernel, machine->rich));
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
    case ITEM_PAGING:
        if (!machine->blind)
            machine_paging(machine);
        break;
    case ITEM_XBEGIN:
        if (machine->blind || machine->transaction)
            break;
        machine->transaction = machine_task(machine)->count;
        machine->transaction_item = top->item;
        write_transaction(&machine->writer, true, false, item->ip);
        break;
    case ITEM_XEND:
        if (!machine->transaction)
            break;
        machine->transaction = 0;
        machine->did.commits++;
        write_transaction(&machine->writer, false, false, item->ip);
        break;
    }
}

static inline void machine_finish(struct machine *machine)
{
    write_tnt(&machine->writer);
    write_tsc(&machine->writer); // nothing else would show how late it was
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
    bool rich;   // the program must be, too
    bool timing_chosen;
    enum timing timing;
    bool uncalibrated; // how it was recorded is not known
};

static inline void machine_init(struct machine *machine, const struct program *program,
                                const struct scenario *scenario)
{
    memset(machine, 0, sizeof *machine);
    machine->program = program;
    machine->random.state = scenario->seed ^ 0x5eed;
    machine->writer.random.state = scenario->seed ^ 0xfeed;
    machine->writer.capacity = scenario->bytes + (64 << 10);
    machine->writer.data = malloc(machine->writer.capacity);
    machine->writer.timing = (enum timing)random_below(
        &machine->random, scenario->rich ? (unsigned)TIMINGS : (unsigned)TIMINGS_PLAIN);
    if (scenario->timing_chosen)
        machine->writer.timing = scenario->timing;
    machine->writer.ratio = NOMINAL_RATIO;
    if (writer_counts_cycles(&machine->writer))
        machine->writer.ratio = (uint8_t)(LOWEST_RATIO + random_below(&machine->random, RATIOS));
    if (writer_counts_cycles(&machine->writer) && random_chance(&machine->random, 70))
        machine->writer.steady = 20 + random_below(&machine->random, 1000);
    machine->writer.ticking = true;
    machine->writer.compress_returns = random_chance(&machine->random, 50);
    machine->writer.long_tnt = random_chance(&machine->random, 30);
    machine->traces_kernel = random_chance(&machine->random, 50);
    machine->rich = scenario->rich;
    machine->writer.supervisor = machine->rich && machine->traces_kernel;
    machine->writer.now = 1000000000 + (random_next(&machine->random) >> 24);
    for (int i = 0; i < TASKS; i++) {
        machine->tasks[i].fresh = true;
        machine->tasks[i].space = machine->rich ? i % SPACES : 0;
    }
    machine->writer.cr3 = 1 << 13;
    machine->task_since = machine->writer.now;
    array_push(&machine->switches, (struct pt_switch){machine->writer.now, 1});
    array_push(&machine->changes,
               (struct pt_space_change){machine->writer.now, program_space(program, 0)});
}

// Whether an interrupt comes now.
static inline bool machine_is_interrupted(struct machine *machine)
{
    const struct machine_task *task = machine_task(machine);
    bool nests = machine->rich && task->count < MOST_FRAMES / 2 && machine_in_interrupt(machine);
    return random_chance(&machine->random, nests ? 4 : 1);
}

// Runs until the trace is long enough. The caller calls machine_fini.
static inline int machine_run(struct machine *machine, const struct program *program,
                              const struct scenario *scenario)
{
    struct pt_config config;
    machine_init(machine, program, scenario);
    pt_config_init(&config);
    config.begin = machine->writer.data;
    config.end = config.begin + machine->writer.capacity;
    machine->writer.encoder = machine->writer.data ? pt_alloc_encoder(&config) : NULL;
    if (!machine->writer.encoder)
        return -1;
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
        if (machine->rich && machine_top(machine)->function == SWITCH)
            continue; // undisturbed
        if (machine_is_interrupted(machine)) {
            machine_interrupt(machine);
        } else if (scenario->faults && machine->branched &&
                   random_below(&machine->random, machine_in_interrupt(machine) ? 200 : 500) == 0) {
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
    array_free(&machine->changes);
}

#endif
