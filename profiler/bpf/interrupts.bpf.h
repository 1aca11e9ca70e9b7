// SPDX-License-Identifier: MIT
//
// Interrupts, softirqs and system vectors; the timer's says what it interrupted. Part of
// events.bpf.c.
#ifndef PROFILER_BPF_INTERRUPTS_BPF_H
#define PROFILER_BPF_INTERRUPTS_BPF_H

#include "profiler/bpf/record.bpf.h"
#include "profiler/bpf/system_call.bpf.h"

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq, struct irqaction *action)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    char name[16] = {};
    bpf_probe_read_kernel_str(name, sizeof name, action->name);
    const uint64_t *words = (const uint64_t *)name;
    return record_write(ring, core, EVENT_IRQ_ENTRY, 0, (uint32_t)irq, words[0], words[1]);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int irq)
{
    return record_here(EVENT_IRQ_EXIT, (uint32_t)irq);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int vector)
{
    return record_here(EVENT_SOFTIRQ_ENTRY, vector);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
    return record_here(EVENT_SOFTIRQ_EXIT, vector);
}

#define VECTOR_PROGRAM(name, kind, id)                                                             \
    SEC("tp_btf/" #name)                                                                           \
    int BPF_PROG(name)                                                                             \
    {                                                                                              \
        return record_here(kind, id);                                                              \
    }
#define VECTOR_PROGRAMS(name, id)                                                                  \
    VECTOR_PROGRAM(name##_entry, EVENT_VECTOR_ENTRY, id)                                           \
    VECTOR_PROGRAM(name##_exit, EVENT_VECTOR_EXIT, id)

SEC("tp_btf/local_timer_entry")
int BPF_PROG(local_timer_entry)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    struct task_struct *task = bpf_get_current_task_btf();
    return record_write(ring, core, EVENT_VECTOR_ENTRY, 0, VECTOR_LOCAL_TIMER, current_call(task),
                        (uint32_t)task->pid);
}

VECTOR_PROGRAM(local_timer_exit, EVENT_VECTOR_EXIT, VECTOR_LOCAL_TIMER)
VECTOR_PROGRAMS(reschedule, VECTOR_RESCHEDULE)
VECTOR_PROGRAMS(call_function, VECTOR_CALL_FUNCTION)
VECTOR_PROGRAMS(call_function_single, VECTOR_CALL_FUNCTION_SINGLE)
VECTOR_PROGRAMS(irq_work, VECTOR_IRQ_WORK)

#endif
