// SPDX-License-Identifier: MIT
//
// Interrupts, softirqs and system vectors. Part of events.bpf.c.
#ifndef PROFILER_BPF_INTERRUPTS_BPF_H
#define PROFILER_BPF_INTERRUPTS_BPF_H

#include "profiler/bpf/record.bpf.h"

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

#define VECTOR_PROGRAMS(name, id)                                                                  \
    SEC("tp_btf/" #name "_entry")                                                                  \
    int BPF_PROG(name##_entry)                                                                     \
    {                                                                                              \
        return record_here(EVENT_VECTOR_ENTRY, id);                                                \
    }                                                                                              \
    SEC("tp_btf/" #name "_exit")                                                                   \
    int BPF_PROG(name##_exit)                                                                      \
    {                                                                                              \
        return record_here(EVENT_VECTOR_EXIT, id);                                                 \
    }

VECTOR_PROGRAMS(local_timer, VECTOR_LOCAL_TIMER)
VECTOR_PROGRAMS(reschedule, VECTOR_RESCHEDULE)
VECTOR_PROGRAMS(call_function, VECTOR_CALL_FUNCTION)
VECTOR_PROGRAMS(call_function_single, VECTOR_CALL_FUNCTION_SINGLE)
VECTOR_PROGRAMS(irq_work, VECTOR_IRQ_WORK)

#endif
