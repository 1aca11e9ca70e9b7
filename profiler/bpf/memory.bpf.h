// SPDX-License-Identifier: MIT
//
// What a thread does for the kernel's memory instead of its own work: reclaim, compaction, copying
// page tables in fork, swapping in, waiting for dirty pages to be written. And for its runtime's:
// garbage collection. Part of events.bpf.c.
#ifndef PROFILER_BPF_MEMORY_BPF_H
#define PROFILER_BPF_MEMORY_BPF_H

#include "profiler/bpf/memory_limit.bpf.h"
#include "profiler/bpf/record.bpf.h"

// by the low bits of the thread's number: threads in a detour
struct detour_begin detours[EVENTS_DETOURS];

static __always_inline struct detour_begin *detour_of(uint32_t thread)
{
    uint64_t slot = number_bounded(thread & (EVENTS_DETOURS - 1));
    return slot < EVENTS_DETOURS ? &detours[number_bounded(slot)] : NULL;
}

// The first of nested detours counts: reclaim compacts, too. Of two of one kind the end of the
// first was not seen.
static __always_inline int detour_begins(uint32_t kind, uint64_t child)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    uint32_t thread = (uint32_t)task->pid;
    struct detour_begin *detour = detour_of(thread);
    if (!detour || (task->flags & KERNEL_THREAD) ||
        (detour->thread == thread && detour->kind && detour->kind != DETOUR_FORK &&
         detour->kind != kind))
        return 0;
    *detour = (struct detour_begin){
        .time = bpf_ktime_get_ns(), .child = child, .thread = thread, .kind = kind};
    return 0;
}

static __always_inline int detour_ends(uint32_t kind, uint64_t child)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    struct detour_begin *detour = detour_of(thread);
    if (!ring || !detour || detour->thread != thread || detour->kind != kind ||
        detour->child != child)
        return 0;
    detour->kind = 0;
    return record_write(ring, core, EVENT_DETOUR, (uint8_t)kind, thread, detour->time, 0);
}

#define DETOUR_PROGRAMS(begin, end, kind)                                                          \
    SEC("tp_btf/" #begin)                                                                          \
    int BPF_PROG(begin)                                                                            \
    {                                                                                              \
        return detour_begins(kind, 0);                                                             \
    }                                                                                              \
    SEC("tp_btf/" #end)                                                                            \
    int BPF_PROG(end)                                                                              \
    {                                                                                              \
        return detour_ends(kind, 0);                                                               \
    }

DETOUR_PROGRAMS(mm_vmscan_direct_reclaim_begin, mm_vmscan_direct_reclaim_end, DETOUR_RECLAIM)
DETOUR_PROGRAMS(mm_compaction_begin, mm_compaction_end, DETOUR_COMPACTION)

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(mm_vmscan_memcg_reclaim_begin)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    if (!ring || (task->flags & KERNEL_THREAD))
        return 0;
    detour_begins(DETOUR_GROUP_RECLAIM, 0);
    struct page_counter *limit = limit_reached(task, false);
    return limit ? record_limit(ring, core, (uint32_t)task->pid, limit) : 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(mm_vmscan_memcg_reclaim_end)
{
    return detour_ends(DETOUR_GROUP_RECLAIM, 0);
}

// A runtime collects garbage in the thread that serves, as probes in its program say
// (profiler/events/runtime_probes.h).
SEC("uprobe")
int collection_begin(void *context)
{
    (void)context;
    return detour_begins(DETOUR_COLLECTION, 0);
}

SEC("uprobe")
int collection_end(void *context)
{
    (void)context;
    return detour_ends(DETOUR_COLLECTION, 0);
}

// A runtime lets nothing run but itself.
SEC("uprobe")
int world_stop_begin(void *context)
{
    (void)context;
    return detour_begins(DETOUR_WORLD, 0);
}

SEC("uprobe")
int world_stop_end(void *context)
{
    (void)context;
    return detour_ends(DETOUR_WORLD, 0);
}

// A server works for itself in the thread that serves. What it does for the kernel's memory
// meanwhile lies inside and counts on its own, so these have a table of their own.
struct detour_begin own_works[EVENTS_DETOURS];

SEC("uprobe")
int own_work_begin(void *context)
{
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    uint64_t slot = number_bounded(thread & (EVENTS_DETOURS - 1));
    (void)context;
    if (slot < EVENTS_DETOURS)
        own_works[number_bounded(slot)] = (struct detour_begin){
            .time = bpf_ktime_get_ns(), .thread = thread, .kind = DETOUR_OWN_WORK};
    return 0;
}

SEC("uprobe")
int own_work_end(void *context)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    uint64_t slot = number_bounded(thread & (EVENTS_DETOURS - 1));
    (void)context;
    if (!ring || slot >= EVENTS_DETOURS)
        return 0;
    struct detour_begin *work = &own_works[number_bounded(slot)];
    if (work->thread != thread || !work->kind)
        return 0;
    work->kind = 0;
    return record_write(ring, core, EVENT_DETOUR, DETOUR_OWN_WORK, thread, work->time, 0);
}

// The kernel counts pages of memory that is not the thread's own: of another process, or, in a
// fork, of the child's, once for each part that was copied. Only the end of the fork tells.
static __always_inline void note_foreign_memory(struct mm_struct *memory)
{
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    struct detour_begin *detour = detour_of(thread);
    if (detour && (detour->thread != thread || !detour->kind ||
                   (detour->kind == DETOUR_FORK && detour->child != (uint64_t)memory)))
        detour_begins(DETOUR_FORK, (uint64_t)memory);
}

// Who makes a thread wakes it for the first time, which sched_waking does not tell.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (ring)
        record_write(ring, core, EVENT_WAKING, 0, (uint32_t)child->pid, core,
                     (uint32_t)parent->pid);
    return detour_ends(DETOUR_FORK, (uint64_t)child->mm);
}

// A thread is about to sleep because too many pages that it or others wrote to are not yet on disk.
SEC("tp_btf/balance_dirty_pages")
int BPF_PROG(balance_dirty_pages)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    uint64_t now = bpf_ktime_get_ns();
    return ring ? record_write(ring, core, EVENT_DETOUR, DETOUR_DIRTY, thread, now, 0) : 0;
}

// Threads in a page fault, by the low bits of their numbers: the thread, and above it whether its
// page is there already.
uint64_t faulting[EVENTS_THREADS];
#define HAS_ITS_PAGE (1ull << 32)

static __always_inline uint64_t *fault_of(uint32_t thread)
{
    uint64_t slot = number_bounded(thread & (EVENTS_THREADS - 1));
    return slot < EVENTS_THREADS ? &faulting[number_bounded(slot)] : NULL;
}

static __always_inline int record_fault(uint8_t flags, unsigned long address, struct pt_regs *regs)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    uint64_t *fault = fault_of(thread);
    if (fault)
        *fault = thread;
    return record_write(ring, core, EVENT_PAGE_FAULT, flags, thread, address, regs->ip);
}

// It writes to a page that is there: as a rule one that is shared since a fork.
static __always_inline uint8_t fault_flags(unsigned long error)
{
    enum { PRESENT = 1, WRITE = 2 }; // arch/x86/include/asm/trap_pf.h
    return (error & (PRESENT | WRITE)) == (PRESENT | WRITE) ? FAULT_COPIES : 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error)
{
    return record_fault(FAULT_USER | fault_flags(error), address, regs);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(page_fault_kernel, unsigned long address, struct pt_regs *regs, unsigned long error)
{
    return record_fault(fault_flags(error), address, regs);
}

// The kernel counts a fault that brings a page when the fault is done but for the return; what was
// swapped in it then takes off the pages in swap as well.
SEC("tp_btf/rss_stat")
int BPF_PROG(rss_stat, struct mm_struct *memory, int member)
{
    enum { PAGES_IN_SWAP = 2 }; // MM_SWAPENTS
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    uint32_t thread = (uint32_t)task->pid;
    if (memory != task->mm) {
        note_foreign_memory(memory);
        return 0;
    }
    uint64_t *fault = fault_of(thread);
    if (!fault || (uint32_t)*fault != thread)
        return 0;
    bool first = *fault == thread, swapped = !first && member == PAGES_IN_SWAP;
    *fault = first ? thread | HAS_ITS_PAGE : 0;
    if (!first && !swapped)
        return 0;
    return record_write(ring, core, EVENT_FAULT_END, swapped ? FAULT_SWAPPED_IN : 0, thread, 0, 0);
}

#endif
