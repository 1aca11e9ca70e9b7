// SPDX-License-Identifier: MIT
//
// What disks were asked for and how long it took: a record for each request that a block device has
// completed, on whatever core. Part of events.bpf.c.
#ifndef PROFILER_BPF_STORAGE_BPF_H
#define PROFILER_BPF_STORAGE_BPF_H

#include "profiler/bpf/record.bpf.h"

enum { REQUESTS_UNDER_WAY = 4096, DISKS_KNOWN = 64 };

// When a request was given to its device's driver, CLOCK_MONOTONIC.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, REQUESTS_UNDER_WAY);
    __type(key, uint64_t); // the request's address
    __type(value, uint64_t);
} requests_issued SEC(".maps");

// by the low bits of the disk's number: disks whose name is recorded
uint32_t disks_recorded[DISKS_KNOWN];

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue, struct request *request)
{
    uint64_t key = (uint64_t)request, now = bpf_ktime_get_ns();
    bpf_map_update_elem(&requests_issued, &key, &now, BPF_ANY);
    return 0;
}

// Records what a disk is called once (rarely twice).
static __always_inline void record_disk(struct core_ring *ring, uint32_t core, struct gendisk *disk,
                                        uint32_t number)
{
    uint64_t slot = number_bounded(number & (DISKS_KNOWN - 1));
    if (slot >= DISKS_KNOWN || disks_recorded[number_bounded(slot)] == number)
        return;
    disks_recorded[number_bounded(slot)] = number;
    char name[24] = {};
    bpf_probe_read_kernel_str(name, 17, disk->disk_name);
    const uint64_t *words = (const uint64_t *)name;
    record_write(ring, core, EVENT_DISK, 0, number, words[0], words[1]);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *request)
{
    uint64_t key = (uint64_t)request;
    uint64_t *issued = bpf_map_lookup_elem(&requests_issued, &key);
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    struct gendisk *disk = request->q->disk;
    if (!ring || !disk)
        return 0;
    uint64_t issued_ns = issued ? *issued : 0;
    uint32_t number = (uint32_t)disk->major << 20 | (uint32_t)disk->first_minor;
    record_disk(ring, core, disk, number);
    record_write(ring, core, EVENT_DISK_DONE, (uint8_t)request->cmd_flags, number, issued_ns,
                 request->start_time_ns);
    if (issued)
        bpf_map_delete_elem(&requests_issued, &key);
    return 0;
}

#endif
