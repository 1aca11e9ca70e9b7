// SPDX-License-Identifier: MIT
//
// Packets between an egress hop and the device behind it: in its queueing discipline. The hop puts
// them here by where their buffer lies (capsule.bpf.c), and whoever sees that buffer at the device
// takes them out (queue.bpf.c). A buffer that never comes there, since what was in it was dropped
// or divided (GSO), is used again: the next packet in it takes its place here, and what did not
// pass the hop shows that it is another one.
#ifndef PROFILER_BPF_QUEUE_WAITING_BPF_H
#define PROFILER_BPF_QUEUE_WAITING_BPF_H

// By the buffer's address. The loader gives it room where there is something to wait in. Of those
// that never left, the oldest make room.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1);
    __type(key, uint64_t);
    __type(value, struct waiting_packet);
} waiting SEC(".maps");

// Of the first eight bytes of a transport's header, those that nobody fills in on the way: ports
// and TCP's sequence number, or UDP's length without the checksum behind it.
static __always_inline uint64_t waiting_ports(uint64_t first, uint8_t protocol)
{
    return protocol == PACKET_TCP ? first : first & 0xffffffffffffull;
}

#endif
