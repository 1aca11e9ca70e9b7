// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_rings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LEAST_SLOTS = 64,           // of a core
    MOST_SLOTS = 1 << 24,       // the same
    DRAIN_SLOTS = 16384,        // of a core at a time, however fast more come
    STORE_TAIL_EVERY = 1 << 10, // slots: the tail lies where the programs look
};

static uint32_t slots_of_core(uint64_t bytes, size_t cores)
{
    const uint64_t mebibyte = 1 << 20;
    uint32_t slots = LEAST_SLOTS;
    if (bytes == 0)
        bytes = (cores > 16 ? cores : 16) * mebibyte;
    while (slots < MOST_SLOTS && slots * sizeof(struct hop_slot) * cores < bytes)
        slots *= 2;
    return slots;
}

// An array that both the kernel and this process have; its size becomes one of pages.
static void *array_make(const char *name, size_t size, size_t count, int *map, size_t *bytes)
{
    struct bpf_map_create_opts options = {.sz = sizeof options, .map_flags = BPF_F_MMAPABLE};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *map = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), (uint32_t)size,
                          (uint32_t)count, &options);
    if (*map < 0)
        return NULL;
    *bytes = (size * count + page - 1) / page * page;
    void *memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *map, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int hop_rings_open(struct hop_rings *rings, uint64_t bytes)
{
    int cores = libbpf_num_possible_cpus();
    *rings = (struct hop_rings){
        .core_count = cores > 0 ? (size_t)cores : 1, .slots_map = -1, .rings_map = -1};
    uint32_t slots = slots_of_core(bytes, rings->core_count);
    rings->rings = array_make("rings", sizeof(struct hop_ring), rings->core_count,
                              &rings->rings_map, &rings->rings_bytes);
    if (rings->rings)
        rings->slots = array_make("slots", sizeof(struct hop_slot), slots * rings->core_count,
                                  &rings->slots_map, &rings->slots_bytes);
    if (!rings->slots) {
        int result = -errno;
        hop_rings_close(rings);
        return result;
    }
    for (uint32_t core = 0; core < rings->core_count; core++) {
        rings->rings[core].base = core * slots;
        rings->rings[core].mask = slots - 1;
    }
    return 0;
}

int hop_rings_share(const struct hop_rings *rings, struct bpf_map *slots_of,
                    struct bpf_map *rings_of)
{
    int result = bpf_map__reuse_fd(slots_of, rings->slots_map);
    return result ? result : bpf_map__reuse_fd(rings_of, rings->rings_map);
}

// Takes what lies from there on. Returns how many slots that were; 0: it is not written yet.
static uint32_t take_one(const struct hop_rings *rings, const struct hop_ring *ring, uint64_t tail,
                         hop_slot_take *take, void *context)
{
    uint64_t stamps[HOP_SLOTS_BEHIND_MAX * HOP_SLOT_STAMPS];
    struct hop_slot *slots = rings->slots + ring->base;
    struct hop_slot *slot = &slots[tail & ring->mask];
    uint64_t what = __atomic_load_n(&slot->what, __ATOMIC_ACQUIRE);
    uint32_t stamp_count = (uint32_t)(what >> 8), behind = hop_slots_behind(stamp_count);
    if ((what & 255) == HOP_SLOT_EMPTY)
        return 0;
    for (uint32_t i = 0; i < behind && i < HOP_SLOTS_BEHIND_MAX; i++)
        memcpy(stamps + i * HOP_SLOT_STAMPS, slots[(tail + 1 + i) & ring->mask].stamps,
               sizeof slot->stamps);
    take(context, slot, stamps, stamp_count);
    slot->what = HOP_SLOT_EMPTY;
    return 1 + behind;
}

static bool drain_core(const struct hop_rings *rings, struct hop_ring *ring, hop_slot_take *take,
                       void *context)
{
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;
    uint64_t end = head - tail > DRAIN_SLOTS ? tail + DRAIN_SLOTS : head, stored = tail;
    uint32_t taken = 1;
    while (tail < end && taken) {
        taken = take_one(rings, ring, tail, take, context);
        tail += taken;
        if (tail - stored >= STORE_TAIL_EVERY)
            __atomic_store_n(&ring->tail, stored = tail, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
    return taken && tail < head;
}

bool hop_rings_drain(struct hop_rings *rings, hop_slot_take *take, void *context)
{
    bool more = false;
    for (size_t core = 0; core < rings->core_count; core++)
        more |= drain_core(rings, &rings->rings[core], take, context);
    return more;
}

uint64_t hop_rings_left(const struct hop_rings *rings)
{
    uint64_t left = 0;
    for (size_t core = 0; core < rings->core_count; core++)
        left += rings->rings[core].head - rings->rings[core].tail;
    return left;
}

void hop_rings_close(struct hop_rings *rings)
{
    if (rings->slots)
        munmap(rings->slots, rings->slots_bytes);
    if (rings->rings)
        munmap(rings->rings, rings->rings_bytes);
    if (rings->core_count && rings->slots_map >= 0)
        close(rings->slots_map);
    if (rings->core_count && rings->rings_map >= 0)
        close(rings->rings_map);
    *rings = (struct hop_rings){.core_count = 0};
}
