// SPDX-License-Identifier: MIT
//
// Messages over UDP: datagrams of watched ports by what names them (base/datagram_key.h), as they
// arrive, are handed over, are sent and are thrown away. Beside the programs of messages.bpf.h on
// the same tracepoints, so that TCP pays for none of it; loaded only where UDP is captured. Part of
// events.bpf.c.
#ifndef PROFILER_BPF_DATAGRAMS_BPF_H
#define PROFILER_BPF_DATAGRAMS_BPF_H

#include "base/datagram_key.h"
#include "profiler/bpf/losses.bpf.h"
#include "profiler/bpf/messages.bpf.h"

struct datagram_delivery deliveries[EVENTS_MAX_CORES]; // by core

struct datagram {
    uint64_t key;        // as seen by the server of the destination's port
    uint64_t answer_key; // as seen by the server of the source's port
    uint16_t source_port, destination_port;
    uint16_t bytes; // of its payload
};

// Reads a packet from its IP header on. False: not a UDP datagram with enough of a payload, or a
// later fragment of one.
static __always_inline bool datagram_read(const unsigned char *at, struct datagram *out)
{
    enum { IPV6_HEADER = 40, UDP_HEADER = 8 };
    uint8_t ip[IPV6_HEADER], udp[UDP_HEADER + DATAGRAM_KEY_BYTES];
    uint8_t source[16] = {0}, destination[16] = {0};
    uint32_t header = IPV6_HEADER, addresses[2];
    if (bpf_probe_read_kernel(ip, sizeof ip, at) < 0)
        return false;
    if (ip[0] >> 4 == 4 && ip[9] == PROTOCOL_UDP && !(ip[6] & 0x1f) && !ip[7]) {
        header = (uint32_t)(ip[0] & 0xf) * 4;
        __builtin_memcpy(addresses, ip + 12, sizeof addresses);
        map_address(source, addresses[0]);
        map_address(destination, addresses[1]);
    } else if (ip[0] >> 4 == 6 && ip[6] == PROTOCOL_UDP) {
        __builtin_memcpy(source, ip + 8, 16);
        __builtin_memcpy(destination, ip + 24, 16);
    } else {
        return false;
    }
    if (bpf_probe_read_kernel(udp, sizeof udp, at + header) < 0)
        return false;
    out->source_port = (uint16_t)(udp[0] << 8 | udp[1]);
    out->destination_port = (uint16_t)(udp[2] << 8 | udp[3]);
    uint16_t length = (uint16_t)(udp[4] << 8 | udp[5]);
    if (length < UDP_HEADER + DATAGRAM_KEY_BYTES)
        return false;
    out->bytes = length - UDP_HEADER;
    out->key = datagram_key(datagram_client(source, out->source_port), udp + UDP_HEADER);
    out->answer_key =
        datagram_key(datagram_client(destination, out->destination_port), udp + UDP_HEADER);
    return true;
}

// A datagram to a watched port that arrives on a device; skb->data is its IP header.
static __always_inline bool arrival_read(const struct sk_buff *skb, struct datagram *out)
{
    uint32_t first = *(volatile uint32_t *)&watched_namespaces[0], namespace = 0;
    if (first && bpf_core_field_exists(skb->dev->nd_net.net))
    namespace = skb->dev->nd_net.net->ns.inum;
    return datagram_read(skb->data, out) && port_in_set(out->destination_port) &&
           (!first || namespace_in_set(first, namespace));
}

SEC("tp_btf/netif_rx")
int BPF_PROG(udp_netif_rx, struct sk_buff *skb)
{
    struct datagram datagram;
    if (!arrival_read(skb, &datagram))
        return 0;
    return record_message(EVENT_ARRIVAL, EVENT_OF_DATAGRAM, datagram.destination_port, datagram.key,
                          0);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(udp_netif_receive_skb, struct sk_buff *skb)
{
    struct datagram datagram;
    uint32_t core = bpf_get_smp_processor_id();
    uint64_t slot = number_bounded(core);
    if (slot >= EVENTS_MAX_CORES || !arrival_read(skb, &datagram))
        return 0;
    struct datagram_delivery *delivery = &deliveries[number_bounded(slot)];
    delivery->key = datagram.key;
    delivery->port = datagram.destination_port;
    core_follow(core);
    return record_message(EVENT_SEGMENT, EVENT_OF_DATAGRAM, datagram.destination_port, datagram.key,
                          (uint64_t)skb->tstamp);
}

static __always_inline int record_datagram_handoff(struct sock *sk)
{
    uint32_t core = bpf_get_smp_processor_id();
    uint64_t slot = number_bounded(core);
    if (sk->sk_protocol != PROTOCOL_UDP || slot >= EVENTS_MAX_CORES)
        return 0;
    struct datagram_delivery *delivery = &deliveries[number_bounded(slot)];
    uint32_t port = delivery->port;
    uint64_t key = delivery->key;
    if (port != sk->__sk_common.skc_num || !port_watched(sk))
        return 0;
    delivery->port = 0;
    core_follow(core);
    return record_message(EVENT_HANDOFF, EVENT_OF_DATAGRAM, port, key, 0);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(udp_sk_data_ready, struct sock *sk)
{
    return record_datagram_handoff(sk);
}

SEC("fentry/sock_def_readable")
int BPF_PROG(udp_sk_data_ready_stand_in, struct sock *sk)
{
    return record_datagram_handoff(sk);
}

// A bridge in another namespace sends the datagram once more, and it still is the socket's: that is
// the network's part of its way. Without namespaces each device is the socket's own.
static __always_inline bool is_own_device(const struct sock *sk, const struct net_device *device)
{
    return !bpf_core_field_exists(device->nd_net.net) ||
           device->nd_net.net == sk->__sk_common.skc_net.net;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(udp_net_dev_start_xmit, struct sk_buff *skb, struct net_device *device)
{
    struct datagram datagram;
    struct sock *sk = skb->sk;
    if (!sk || !port_watched(sk) || !is_own_device(sk, device))
        return 0;
    unsigned char state = sk->__sk_common.skc_state;
    if (state == STATE_NEW_SYN_RECEIVED || state == STATE_TIME_WAIT ||
        sk->sk_protocol != PROTOCOL_UDP ||
        !datagram_read(skb->head + skb->network_header, &datagram))
        return 0;
    return record_message(EVENT_TRANSMIT, EVENT_OF_DATAGRAM, datagram.source_port,
                          datagram.answer_key, datagram.bytes);
}

// Whether a socket had no room for it. A kernel before 5.17 gives no reasons, and one of these a
// location in the argument's place.
static __always_inline bool is_full_socket(uint32_t reason)
{
    return (bpf_core_enum_value_exists(enum skb_drop_reason, SKB_DROP_REASON_SOCKET_RCVBUFF) &&
            reason == bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_SOCKET_RCVBUFF)) ||
           (bpf_core_enum_value_exists(enum skb_drop_reason, SKB_DROP_REASON_PROTO_MEM) &&
            reason == bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_PROTO_MEM));
}

// On whatever core, and in whatever namespace of this machine: the client's socket may be here,
// too.
SEC("tp_btf/kfree_skb")
int BPF_PROG(udp_kfree_skb, struct sk_buff *skb, void *location, unsigned int reason)
{
    struct datagram datagram;
    uint8_t flags = EVENT_OF_DATAGRAM | (is_full_socket(reason) ? DROPPED_BY_SOCKET : 0);
    const uint64_t why = (uint64_t)loss_of_reason(reason) << 32 | reason;
    if (!datagram_read(skb->head + skb->network_header, &datagram))
        return 0;
    if (port_in_set(datagram.destination_port))
        return record_message(EVENT_DROPPED, flags, datagram.destination_port, datagram.key, why);
    if (port_in_set(datagram.source_port))
        return record_message(EVENT_DROPPED, flags | DROPPED_TO_CLIENT, datagram.source_port,
                              datagram.answer_key, why);
    return 0;
}

#endif
