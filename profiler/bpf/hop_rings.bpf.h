// SPDX-License-Identifier: MIT
//
// How a program of a hop writes what it records (profiler/bpf/hop_rings.h). Part of the files that
// include it.
#ifndef PROFILER_BPF_HOP_RINGS_BPF_H
#define PROFILER_BPF_HOP_RINGS_BPF_H

#include "profiler/bpf/hop_rings.h"

// The loader makes both, of their true sizes, and all programs use them.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct hop_slot);
} slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct hop_ring);
} rings SEC(".maps");

// Takes that many slots in a row of this core's ring, from *position on. NULL: there are not as
// many. Where a program is interrupted by another one just here (with PREEMPT_RT), it tries again.
static __always_inline struct hop_ring *slots_take(uint32_t count, uint64_t *position)
{
    enum { TRIES = 4 };
    uint32_t core = bpf_get_smp_processor_id();
    struct hop_ring *ring = bpf_map_lookup_elem(&rings, &core);
    for (int i = 0; ring && i < TRIES; i++) {
        uint64_t head = *(volatile uint64_t *)&ring->head;
        if (head + count - *(volatile uint64_t *)&ring->tail > (uint64_t)ring->mask + 1)
            break;
        if (__sync_val_compare_and_swap(&ring->head, head, head + count) != head)
            continue;
        *position = head;
        return ring;
    }
    return NULL;
}

static __always_inline struct hop_slot *slot_at(const struct hop_ring *ring, uint64_t position)
{
    uint32_t index = ring->base + ((uint32_t)position & ring->mask);
    return bpf_map_lookup_elem(&slots, &index);
}

static __always_inline void slot_finish(struct hop_slot *slot, uint64_t what)
{
    barrier();
    *(volatile uint64_t *)&slot->what = what;
}

// A slot for what needs one. NULL: the ring is full.
static __always_inline struct hop_slot *slot_take(void)
{
    uint64_t position = 0;
    const struct hop_ring *ring = slots_take(1, &position);
    return ring ? slot_at(ring, position) : NULL;
}

#endif
