// SPDX-License-Identifier: MIT
//
// Which control group is at its limit of memory, and who is held back for it. Part of events.bpf.c.
#ifndef PROFILER_BPF_MEMORY_LIMIT_BPF_H
#define PROFILER_BPF_MEMORY_LIMIT_BPF_H

#include "profiler/bpf/record.bpf.h"

// The account of memory of the control group that is at its limit: the thread's own, or the lowest
// one above it. over_high: that has more than its memory.high, whatever its memory.max. NULL: none,
// or not known.
static __always_inline struct page_counter *limit_reached(struct task_struct *task, bool over_high)
{
    enum { MOST_LEVELS = 8, ASKED_PAGES = 512 }; // at once, for a huge page
    struct mem_cgroup *group = NULL;
    struct css_set *groups = NULL;
    struct page_counter *counter = NULL, *reached = NULL;
    if (!bpf_core_field_exists(task->cgroups) || !bpf_core_field_exists(group->memory.max) ||
        !bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
        return NULL;
    uint64_t at = bpf_core_field_offset(groups->subsys) +
                  sizeof group * bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
    groups = task->cgroups;
    bpf_probe_read_kernel(&group, sizeof group, (const char *)groups + at); // css is its first
    if (!group)
        return NULL;
    counter = (struct page_counter *)((char *)group + bpf_core_field_offset(group->memory));
    for (int level = 0; level < MOST_LEVELS; level++) {
        if (!counter)
            break;
        unsigned long used = 0, most = -1ul, high = -1ul;
        bpf_core_read(&used, sizeof used, &counter->usage.counter);
        bpf_core_read(&most, sizeof most, &counter->max);
        if (bpf_core_field_exists(counter->high))
            bpf_core_read(&high, sizeof high, &counter->high);
        if (used > high || (!over_high && used + ASKED_PAGES >= most))
            reached = counter;
        if (reached)
            break;
        bpf_core_read(&counter, sizeof counter, &counter->parent);
    }
    return reached;
}

// Records the name of the control group whose account it is.
static __attribute__((noinline)) int record_limit(struct core_ring *ring, uint32_t core,
                                                  uint32_t thread, struct page_counter *limit)
{
    struct mem_cgroup *group = NULL;
    struct cgroup *folder = NULL;
    struct kernfs_node *node = NULL;
    const char *text = NULL;
    char name[24] = {};
    group = (struct mem_cgroup *)((char *)limit - bpf_core_field_offset(group->memory));
    bpf_core_read(&folder, sizeof folder, &group->css.cgroup);
    bpf_core_read(&node, sizeof node, &folder->kn);
    bpf_core_read(&text, sizeof text, &node->name);
    bpf_probe_read_kernel_str(name, 17, text);
    const uint64_t *words = (const uint64_t *)name;
    return record_write(ring, core, EVENT_LIMIT, 0, thread, words[0], words[1]);
}

// A thread of a control group that has more memory than its memory.high is put to sleep for a time
// before it returns to its program.
static __attribute__((noinline)) int record_held_back(struct core_ring *ring, uint32_t core,
                                                      struct task_struct *task, uint64_t now)
{
    struct page_counter *limit = limit_reached(task, true);
    if (!limit)
        return 0;
    record_limit(ring, core, (uint32_t)task->pid, limit);
    return record_write_at(ring, core, EVENT_DETOUR, DETOUR_HELD_BACK, (uint32_t)task->pid, now,
                           now, 0);
}

#endif
