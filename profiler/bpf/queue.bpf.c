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
#include "profiler/bpf/hop_rings.bpf.h"
#include "profiler/bpf/packet_head.h"
#include "profiler/bpf/queue_waiting.bpf.h"

uint64_t dropped; // leaves: the ring was full
// By hop, the device behind it. The numbers of interfaces are those of their namespace: another's
// device may have the same one.
struct hop_device devices[HOPS_MAX + 1];

static __always_inline bool is_device_of(const struct net_device *device,
                                         const struct waiting_packet *packet)
{
    const struct hop_device *expected = &devices[packet->hop & HOPS_MAX];
    uint32_t namespace =
        bpf_core_field_exists(device->nd_net.net) ? device->nd_net.net->ns.inum : 0;
    return (uint32_t)device->ifindex == expected->interface && namespace == expected->namespace;
}

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

static __always_inline void write_leaving(const struct waiting_packet *packet)
{
    struct hop_slot *slot = slot_take();
    if (!slot) {
        __sync_fetch_and_add(&dropped, 1);
        return;
    }
    slot->leaving = (struct queue_leaving){.time = bpf_ktime_get_ns(),
                                           .entered = packet->entered,
                                           .flow = packet->flow,
                                           .hop = packet->hop};
    slot_finish(slot, HOP_SLOT_LEAVING);
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(hop_left, struct sk_buff *skb, struct net_device *device)
{
    uint64_t buffer = (uint64_t)skb;
    const struct waiting_packet *packet = bpf_map_lookup_elem(&waiting, &buffer);
    if (!packet)
        return 0;
    if (is_device_of(device, packet) && is_same_packet(skb, packet))
        write_leaving(packet);
    bpf_map_delete_elem(&waiting, &buffer);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
