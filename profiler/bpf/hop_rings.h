// SPDX-License-Identifier: MIT
//
// Where hops write what they record, and their reader (profiler/capsule/hop_rings.h) takes it from:
// a ring for each core, in memory that both have. Programs on one core follow one another, so a
// record costs one atomic instruction, and is written where it stays.
//
// This header is read by the BPF compiler too: plain types, no libc.
#ifndef PROFILER_BPF_HOP_RINGS_H
#define PROFILER_BPF_HOP_RINGS_H

#include "profiler/bpf/hop_log.h"

enum hop_slot_kind {
    HOP_SLOT_EMPTY, // not written yet, or taken
    HOP_SLOT_RECORD,
    HOP_SLOT_CARRIED, // its stamps are in the slots behind it
    HOP_SLOT_LEAVING,
};

enum {
    HOP_SLOT_STAMPS = 6,
    HOP_SLOTS_BEHIND_MAX = (HOPS_MAX + HOP_SLOT_STAMPS - 1) / HOP_SLOT_STAMPS,
};

struct hop_slot {
    // enum hop_slot_kind, above it 256 times the number of stamps: written after all others, of all
    // its slots. In those behind it 0.
    uint64_t what;
    union {
        struct hop_record record;
        struct queue_leaving leaving;
        uint64_t stamps[HOP_SLOT_STAMPS];
    };
};
_Static_assert(sizeof(struct hop_slot) == 56, "as many stamps as fit beside a record");

// A core's ring: slots [base, base + mask] of them all. Positions count up for ever; the slot of
// one is `position & mask`. Only programs on that core move head, only the reader tail.
struct hop_ring {
    uint64_t head; // positions given out
    uint64_t tail; // positions read
    uint32_t base;
    uint32_t mask;        // slots - 1; slots are a power of two
    uint64_t reserved[5]; // a cache line, so that cores do not share one
};
_Static_assert(sizeof(struct hop_ring) == 64, "a cache line");

// A carried packet, as the hop at its end records it: what it is, and all of its stamps
// (trailer_stamp() of profiler/bpf/capsule_trailer.h), the end's own last; zeros behind them.
struct carried_record {
    struct hop_record packet;
    uint64_t stamps[HOP_SLOTS_BEHIND_MAX * HOP_SLOT_STAMPS];
};

static inline uint32_t hop_slots_behind(uint32_t stamps)
{
    return (stamps + HOP_SLOT_STAMPS - 1) / HOP_SLOT_STAMPS;
}

#endif
