// SPDX-License-Identifier: MIT
//
// The rings that all hops of a machine write into (profiler/bpf/hop_rings.h), from the reader's
// side.
#ifndef PROFILER_CAPSULE_HOP_RINGS_H
#define PROFILER_CAPSULE_HOP_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/bpf/hop_rings.h"

struct bpf_map;

struct hop_rings {
    struct hop_slot *slots; // NULL: not open
    struct hop_ring *rings; // one for each possible core
    size_t core_count, slots_bytes, rings_bytes;
    int slots_map, rings_map; // descriptors
};

// Takes one thing that was recorded: slot->what says which; of a carried packet with its stamps,
// else none. Neither is there any more once it returns.
typedef void hop_slot_take(void *context, const struct hop_slot *slot, const uint64_t *stamps,
                           size_t stamp_count);

// Makes them. bytes: of all rings together, rounded up to a power of two of slots for each;
// 0: 16 MiB, or 1 MiB for each core if that is more. Negative errno: the kernel refuses.
int hop_rings_open(struct hop_rings *rings, uint64_t bytes);

// Has programs that are not loaded yet use them, as the maps slots and rings of their object.
// Negative, and errno: they cannot.
int hop_rings_share(const struct hop_rings *rings, struct bpf_map *slots_of,
                    struct bpf_map *rings_of);

// Takes what is there, up to a bound for each core, in the order of the core. True: there is more.
bool hop_rings_drain(struct hop_rings *rings, hop_slot_take *take, void *context);

// How many slots were given out and not taken: once nobody writes and all is drained, what was
// never written.
uint64_t hop_rings_left(const struct hop_rings *rings);

// Harmless on ones that are not open, all zeros.
void hop_rings_close(struct hop_rings *rings);

#endif
