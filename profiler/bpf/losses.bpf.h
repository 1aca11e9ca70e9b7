// SPDX-License-Identifier: MIT
//
// Segments of watched connections that the kernel threw away, and why. Part of events.bpf.c.
#ifndef PROFILER_BPF_LOSSES_BPF_H
#define PROFILER_BPF_LOSSES_BPF_H

#include "profiler/bpf/messages.bpf.h"

// A segment by its headers.
struct segment {
    uint8_t from[16], to[16];
    uint32_t ports;    // source << 16 | destination
    uint32_t sequence; // of its first byte
    uint32_t bytes;    // of payload
};

static __always_inline bool segment_read(const unsigned char *at, struct segment *out)
{
    uint8_t ip[40] = {0};
    uint32_t tcp[4]; // ports, sequence, acknowledgement, data offset and flags
    if (bpf_probe_read_kernel(ip, 20, at) < 0)
        return false;
    uint32_t header = (uint32_t)(ip[0] & 0xf) * 4, whole = (uint32_t)ip[2] << 8 | ip[3];
    if (ip[0] >> 4 == 4 && ip[9] == PROTOCOL_TCP) {
        map_address(out->from, *(const uint32_t *)(ip + 12));
        map_address(out->to, *(const uint32_t *)(ip + 16));
    } else if (ip[0] >> 4 == 6 && ip[6] == PROTOCOL_TCP) {
        header = 40;
        whole = header + ((uint32_t)ip[4] << 8 | ip[5]);
        if (bpf_probe_read_kernel(ip, sizeof ip, at) < 0)
            return false;
        __builtin_memcpy(out->from, ip + 8, 16);
        __builtin_memcpy(out->to, ip + 24, 16);
    } else {
        return false;
    }
    if (bpf_probe_read_kernel(tcp, sizeof tcp, at + header) < 0)
        return false;
    header += (tcp[3] >> 4 & 0xf) * 4;
    out->ports = bpf_ntohl(tcp[0]);
    out->sequence = bpf_ntohl(tcp[1]);
    out->bytes = whole > header ? whole - header : 0;
    return true;
}

static __always_inline uint8_t loss_of_reason(uint32_t reason)
{
#define EVENT_LOSS(NAME, number, words)                                                            \
    if (bpf_core_enum_value_exists(enum skb_drop_reason, SKB_DROP_REASON_##NAME) &&                \
        reason == bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_##NAME))               \
        return number;
#include "profiler/bpf/events.tbl.h"
    return 0;
}

// Of a connection that is watched, and on its way: what is thrown away behind an address
// translation has no name here.
static __always_inline int record_segment_dropped(const struct segment *segment, uint8_t loss)
{
    const uint64_t what = (uint64_t)loss << 32 | segment->bytes;
    const uint32_t end = segment->sequence + segment->bytes;
    struct stream_key key = {.ports = segment->ports};
    __builtin_memcpy(key.peer, segment->from, 16);
    __builtin_memcpy(key.local, segment->to, 16);
    const struct stream *stream = bpf_map_lookup_elem(&streams, &key);
    if (stream)
        return record_message(EVENT_SEGMENT_DROPPED, 0, stream->id, (uint32_t)(end - stream->first),
                              what);
    key.ports = segment->ports << 16 | segment->ports >> 16;
    __builtin_memcpy(key.peer, segment->to, 16);
    __builtin_memcpy(key.local, segment->from, 16);
    stream = bpf_map_lookup_elem(&streams, &key);
    return stream ? record_message(EVENT_SEGMENT_DROPPED, DROPPED_TO_CLIENT, stream->id,
                                   (uint32_t)(end - stream->first_replied), what)
                  : 0;
}

// Counts those of watched ports, in either direction, by the kernel's reason: a firewall's, a full
// queue's. What is thrown away as a socket closes was not on its way.
SEC("tp_btf/kfree_skb")
int BPF_PROG(kfree_skb, struct sk_buff *skb, void *location, unsigned int reason)
{
    uint64_t slot = number_bounded(reason);
    struct segment segment = {0};
    if (slot >= EVENTS_DROP_REASONS || !segment_read(skb->head + skb->network_header, &segment) ||
        !(port_in_set((uint16_t)(segment.ports >> 16)) || port_in_set((uint16_t)segment.ports)))
        return 0;
    __sync_fetch_and_add(&segments_dropped[number_bounded(slot)], 1);
    uint8_t loss = segment.bytes > 0 ? loss_of_reason(reason) : 0;
    return loss ? record_segment_dropped(&segment, loss) : 0;
}

#endif
