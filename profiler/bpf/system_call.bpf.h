// SPDX-License-Identifier: MIT
//
// Which system call a thread is in. Part of events.bpf.c.
#ifndef PROFILER_BPF_SYSTEM_CALL_BPF_H
#define PROFILER_BPF_SYSTEM_CALL_BPF_H

#include "profiler/bpf/record.bpf.h"

static __always_inline uint64_t mixed(uint64_t sum, uint64_t word)
{
    return (sum ^ word) * 0x9e3779b97f4a7c15ull; // 2^64 by the golden ratio: each bit moves others
}

// By which a call is known again: what the program had in its registers when it entered, which the
// kernel keeps until it returns. Two calls hardly have the same in all of them, but for a loop that
// changes nothing between one and the next. Never 0.
static __always_inline uint64_t call_instance(const struct pt_regs *regs)
{
    uint64_t sum = mixed(regs->orig_ax, regs->ip);
    sum = mixed(sum, regs->sp);
    sum = mixed(sum, regs->di);
    sum = mixed(sum, regs->si);
    sum = mixed(sum, regs->dx);
    sum = mixed(sum, regs->r10);
    sum = mixed(sum, regs->r8);
    sum = mixed(sum, regs->r9);
    sum = mixed(sum, regs->bx);
    sum = mixed(sum, regs->bp);
    sum = mixed(sum, regs->r12);
    sum = mixed(sum, regs->r13);
    sum = mixed(sum, regs->r14);
    sum = mixed(sum, regs->r15);
    return sum >> 32 | 1;
}

// The number of the call, and in the upper half its instance. 0: it is in none.
static __always_inline uint64_t call_of_registers(const struct pt_regs *regs)
{
    enum { MOST_CALLS = 1024 }; // an interrupt or exception has a number far above
    uint64_t call = regs->orig_ax;
    return call < MOST_CALLS ? call | call_instance(regs) << 32 : 0;
}

// The same of the thread that has this core.
static __always_inline uint64_t current_call(struct task_struct *task)
{
    struct pt_regs *regs = NULL;
    if (!bpf_core_field_exists(regs->orig_ax) ||
        !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) ||
        task->flags & (KERNEL_THREAD | KERNEL_WORKER))
        return 0;
    return call_of_registers((struct pt_regs *)bpf_task_pt_regs(task));
}

#endif
