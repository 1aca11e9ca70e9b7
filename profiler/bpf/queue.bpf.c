// SPDX-License-Identifier: MIT
//
// When packets that hops of Time Capsule saw on their way into a queueing discipline left it: where
// the kernel hands them to the device. Packets that no hop put there cost a look by their address.
#include "profiler/bpf/kernel.h"

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "profiler/bpf/hop_log.h"
#include "profiler/bpf/packet_head.h"
#include "profiler/bpf/queue_waiting.bpf.h"

// All hops use these (capsule.bpf.c).
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} records SEC(".maps");

uint64_t dropped; // leaves: the ring was full

static __always_inline bool is_same_packet(const struct sk_buff *skb,
                                           const struct waiting_packet *packet)
{
    const unsigned char *ip = skb->head + skb->network_header;
    uint64_t ports = 0, addresses = 0;
    return bpf_probe_read_kernel(&ports, sizeof ports, ip + packet->ports_at) == 0 &&
           bpf_probe_read_kernel(&addresses, sizeof addresses, ip + packet->addresses_at) == 0 &&
           waiting_ports(ports, packet->protocol) == packet->ports &&
           addresses == packet->addresses;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(hop_left, struct sk_buff *skb, struct net_device *device)
{
    uint64_t buffer = (uint64_t)skb;
    const struct waiting_packet *packet = bpf_map_lookup_elem(&waiting, &buffer);
    if (!packet)
        return 0;
    struct queue_leaving leaving = {.time = bpf_ktime_get_ns(),
                                    .entered = packet->entered,
                                    .flow = packet->flow,
                                    .hop = packet->hop};
    if ((uint32_t)device->ifindex == packet->interface && is_same_packet(skb, packet) &&
        bpf_ringbuf_output(&records, &leaving, sizeof leaving, BPF_RB_NO_WAKEUP) != 0)
        __sync_fetch_and_add(&dropped, 1);
    bpf_map_delete_elem(&waiting, &buffer);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
