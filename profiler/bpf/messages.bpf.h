// SPDX-License-Identifier: MIT
//
// Messages by socket and byte offset: arrivals, hand-offs, replies, and the substitutes for events
// that were not delivered. Part of events.bpf.c.
#ifndef PROFILER_BPF_MESSAGES_BPF_H
#define PROFILER_BPF_MESSAGES_BPF_H

#include "profiler/bpf/connections.bpf.h"

enum {
    QUEUED_NS = 10000, // what a buffer takes from TCP to the device where nothing holds it
    RETRANSMIT_MOST_NS = 1000000, // what one takes through the device
};
#define QUEUED_MOST_NS 100000000000ull // a time further back is none

static __always_inline int record_message_at(uint8_t kind, uint8_t flags, uint32_t id, uint64_t now,
                                             uint64_t a, uint64_t b)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    return ring ? record_write_at(ring, core, kind, flags, id, now, a, b) : 0;
}

static __always_inline int record_message(uint8_t kind, uint8_t flags, uint32_t id, uint64_t a,
                                          uint64_t b)
{
    return record_message_at(kind, flags, id, bpf_ktime_get_ns(), a, b);
}

// A message on its way in, on the core that delivers it: what else that core does matters from now
// on.
static __always_inline int record_delivery(uint8_t kind, uint8_t flags, uint32_t id, uint64_t a,
                                           uint64_t b)
{
    core_follow(bpf_get_smp_processor_id());
    return record_message(kind, flags, id, a, b);
}

// Whether TCP waits until it may send the next segment at its connection's rate
// (tcp_pacing_check()). That a connection is paced says little: with BBR each is.
static __always_inline bool paces_now(const struct sock *sk, const struct tcp_sock *tcp)
{
    enum { SK_PACING_NEEDED = 1 }; // by TCP itself, not by fq
    return sk->sk_pacing_status == SK_PACING_NEEDED && tcp->tcp_wstamp_ns > bpf_ktime_get_ns();
}

// What TCP's rules say of bytes that wait to be sent.
static __always_inline uint8_t held_reason(struct sock *sk, struct tcp_sock *tcp)
{
    uint32_t unsent = tcp->write_seq - tcp->snd_nxt;
    uint32_t wanted = unsent < tcp->mss_cache ? unsent : tcp->mss_cache;
    uint32_t in_flight = tcp->packets_out + tcp->retrans_out - tcp->sacked_out - tcp->lost_out;
    uint8_t nonagle = BPF_CORE_READ_BITFIELD(tcp, nonagle);
    if ((int32_t)(tcp->snd_una + tcp->snd_wnd - tcp->snd_nxt - wanted) < 0)
        return HELD_WINDOW;
    if (in_flight >= tcp->snd_cwnd)
        return HELD_CONGESTION;
    if (unsent < tcp->mss_cache && (nonagle & NAGLE_CORK))
        return HELD_CORK;
    if (unsent < tcp->mss_cache && !nonagle && tcp->packets_out)
        return HELD_NAGLE;
    if (sk->sk_tsq_flags & TSQ_THROTTLED)
        return HELD_BELOW;
    return paces_now(sk, tcp) ? HELD_PACING : HELD_OTHER;
}

// What comes in may let bytes go that had to wait: this is the last moment to see why they did.
static __always_inline int record_held_at(struct sock *sk, struct tcp_sock *tcp, uint32_t id,
                                          uint64_t first)
{
    uint64_t sent = tcp->bytes_acked - first + (tcp->snd_nxt - tcp->snd_una);
    return record_message(EVENT_HELD, held_reason(sk, tcp), id, sent,
                          sent + (tcp->write_seq - tcp->snd_nxt));
}

static __attribute__((noinline)) int record_held(struct sock *sk)
{
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    return tcp ? record_held_at(sk, tcp, socket_id(sk), 0) : 0;
}

// The same of what a server asks others. Its connections to them are known by their cookies, which
// the shim asks for, or whoever records what is asked; whose they are is seen later.
static __attribute__((noinline)) int record_question_held(struct sock *sk)
{
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    uint32_t id = (uint32_t)sk->__sk_common.skc_cookie.counter;
    if (!tcp || tcp->write_seq == tcp->snd_nxt || !namespace_watched(&sk->__sk_common) ||
        bit_of_port(accepting_ports, sk->__sk_common.skc_num))
        return 0;
    return record_held_at(sk, tcp, id, 1); // a connecting socket's acknowledged bytes count its SYN
}

// The NIC's own stamp of a packet. Some drivers leave a place to ask for it there instead, and say
// so by a flag (SKBTX_HW_TSTAMP_NETDEV, since 6.3): theirs is as good as none.
static __attribute__((noinline)) int record_stamped(struct sk_buff *skb, uint32_t id,
                                                    uint64_t offset)
{
    const struct skb_shared_info *shared = (void *)(skb->head + skb->end);
    int64_t stamp = 0;
    uint8_t flags = 0;
    uint16_t packets = 0;
    bpf_core_read(&flags, sizeof flags, &shared->tx_flags);
    bpf_core_read(&stamp, sizeof stamp, &shared->hwtstamps.hwtstamp);
    bpf_core_read(&packets, sizeof packets, &shared->gso_segs);
    if (stamp == 0 || (flags & 1 << 5))
        return 0;
    return record_message(EVENT_STAMPED, packets > 1 ? STAMPED_MERGED : 0, id, offset,
                          (uint64_t)stamp);
}

static __always_inline void note_handed(uint32_t id, uint64_t ready)
{
    uint64_t slot = number_bounded(id & (EVENTS_SOCKETS - 1));
    if (slot < EVENTS_SOCKETS)
        handed[number_bounded(slot)] = (uint64_t)id << 32 | (uint32_t)ready;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(tcp_probe, struct sock *sk, struct sk_buff *skb)
{
    if (!port_watched(sk))
        return sk->__sk_common.skc_cookie.counter ? record_question_held(sk) : 0;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    if (!tcp)
        return 0;
    if (tcp->write_seq != tcp->snd_nxt)
        record_held(sk);
    struct tcp_skb_cb *control = (struct tcp_skb_cb *)skb->cb;
    uint32_t begin = *(uint32_t *)((char *)control + bpf_core_field_offset(control->seq));
    uint32_t end = *(uint32_t *)((char *)control + bpf_core_field_offset(control->end_seq));
    // skb->len still counts the TCP header, a multiple of 4: what is left over is the FIN.
    if ((end - begin - skb->len) & 1)
        end--;
    if (end == begin)
        return 0;
    uint64_t offset = tcp->bytes_received + (uint64_t)(int64_t)(int32_t)(end - tcp->rcv_nxt);
    uint32_t id = socket_id(sk);
    if (nic_stamps)
        record_stamped(skb, id, offset);
    if (*(volatile uint32_t *)&sparing)
        note_handed(id, offset); // this record has to do for the hand-off's
    return record_delivery(EVENT_SEGMENT, 0, id, offset, (uint64_t)skb->tstamp);
}

// Whether the hand-off of the bytes before that offset was recorded. Where another socket has the
// same place in the table, false though it was.
static __always_inline bool was_handed(uint32_t id, uint64_t taken)
{
    uint64_t slot = number_bounded(id & (EVENTS_SOCKETS - 1));
    uint64_t last = slot < EVENTS_SOCKETS ? handed[number_bounded(slot)] : 0;
    return last >> 32 == id && (int32_t)((uint32_t)last - (uint32_t)taken) >= 0;
}

// What opens its connection: where a listener has TCP_DEFER_ACCEPT, as Apache's have, the kernel
// makes the socket of the first segment that has data, and does not tell of that one by tcp_probe.
// It is in the queue by now.
static __attribute__((noinline)) int record_opening(struct sock *sk, uint64_t ready)
{
    uint32_t id = socket_id(sk), queued = 0;
    struct sk_buff *skb = NULL;
    int64_t stamp = 0;
    bpf_core_read(&queued, sizeof queued, &sk->sk_receive_queue.qlen);
    bpf_core_read(&skb, sizeof skb, &sk->sk_receive_queue.prev);
    if (queued == 0 || bpf_core_read(&stamp, sizeof stamp, &skb->tstamp) < 0)
        return 0;
    return record_delivery(EVENT_SEGMENT, 0, id, ready, (uint64_t)stamp);
}

static __always_inline int record_handoff(struct sock *sk)
{
    if (!port_watched(sk) || sk->__sk_common.skc_state == STATE_LISTEN)
        return 0;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    if (!tcp)
        return 0;
    uint64_t ready = tcp->bytes_received;
    uint64_t taken = ready - (tcp->rcv_nxt - tcp->copied_seq);
    if (sk->__sk_common.skc_flags >> bpf_core_enum_value(enum sock_flags, SOCK_DONE) & 1)
        ready--; // the FIN
    if (taken > ready)
        taken = ready;
    if (taken == 0 && ready > 0 && !socket_met(sk))
        record_opening(sk, ready);
    uint32_t id = socket_id(sk);
    note_handed(id, ready);
    return record_delivery(EVENT_HANDOFF, sk->sk_socket ? 0 : HANDOFF_UNACCEPTED, id, ready, taken);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, struct sock *sk)
{
    return record_handoff(sk);
}

// The function that contains that tracepoint since Linux 6.3, for older kernels.
SEC("fentry/sock_def_readable")
int BPF_PROG(sk_data_ready_stand_in, struct sock *sk)
{
    return record_handoff(sk);
}

// The offset of a sequence number the server sends. The socket's lock is not held when a queueing
// discipline delayed the packet: an acknowledgement processed on another core between the loads
// would shift the offset, so snd_una is looked at twice.
static __always_inline uint64_t sent_offset(const struct sock *sk, uint32_t sequence)
{
    uint32_t unacknowledged = 0, again = 0;
    uint64_t acknowledged = 0;
    for (int tries = 0; tries < 2; tries++) {
        if (can_cast) {
            const struct tcp_sock *tcp =
                bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct tcp_sock));
            unacknowledged = *(volatile uint32_t *)&tcp->snd_una;
            acknowledged = *(volatile uint64_t *)&tcp->bytes_acked;
            again = *(volatile uint32_t *)&tcp->snd_una;
        } else {
            const struct tcp_sock *tcp = (const struct tcp_sock *)sk;
            bpf_core_read(&unacknowledged, sizeof unacknowledged, &tcp->snd_una);
            bpf_core_read(&acknowledged, sizeof acknowledged, &tcp->bytes_acked);
            bpf_core_read(&again, sizeof again, &tcp->snd_una);
        }
        if (again == unacknowledged)
            break;
    }
    return acknowledged + (uint64_t)(int64_t)(int32_t)(sequence - unacknowledged);
}

// The first sequence number that TCP has not yet counted as sent.
static __always_inline uint32_t sent_next(const struct sock *sk)
{
    uint32_t next = 0;
    if (can_cast) {
        const struct tcp_sock *tcp =
            bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct tcp_sock));
        return tcp->snd_nxt;
    }
    bpf_core_read(&next, sizeof next, &((const struct tcp_sock *)sk)->snd_nxt);
    return next;
}

// The queueing discipline of the queue that a buffer leaves by. `name` is what `tc` calls it.
static __always_inline uint8_t queue_of_name(const uint64_t name[2])
{
#define EVENT_QUEUE(NAME, number, text)                                                            \
    {                                                                                              \
        const char wanted[16] __attribute__((aligned(8))) = text;                                  \
        if (name[0] == ((const uint64_t *)wanted)[0] && name[1] == ((const uint64_t *)wanted)[1])  \
            return number;                                                                         \
    }
#include "profiler/bpf/events.tbl.h"
    return QUEUE_OTHER;
}

// A buffer leaves later than TCP handed it down, which TCP notes in it (since 4.20).
static __attribute__((noinline)) int record_queued(struct sk_buff *skb, struct net_device *device,
                                                   uint32_t id, uint64_t now, uint64_t offset)
{
    static const char none[16] __attribute__((aligned(8))) = "noqueue";
    uint64_t name[2] = {0, 0};
    const struct Qdisc_ops *ops = NULL;
    struct Qdisc *discipline = NULL;
    // A number, not a pointer of the verifier's: up to 6.1 it takes no index into those.
    uint64_t queue = 0;
    bpf_core_read(&queue, sizeof queue, &device->_tx);
    queue += (uint64_t)skb->queue_mapping * bpf_core_type_size(struct netdev_queue);
    bpf_core_read(&discipline, sizeof discipline, &((const struct netdev_queue *)queue)->qdisc);
    bpf_core_read(&ops, sizeof ops, &discipline->ops);
    bpf_core_read(name, sizeof name, &ops->id);
    if (name[0] == 0 || name[0] == *(const uint64_t *)none)
        return 0; // what takes long here is no queue
    struct sock *sk = skb->sk;
    uint8_t flags = sk && port_watched(sk) ? 0 : QUEUED_BY_CLIENT;
    return record_message_at(EVENT_QUEUED, queue_of_name(name) | flags, id, now, offset,
                             (uint64_t)skb->tstamp);
}

// How many bytes of an outgoing packet there are from skb->data to the IP packet's end, behind
// which a trailer of Time Capsule's (capsule_trailer.h) may lie.
static __always_inline uint32_t packet_bytes(const struct sk_buff *skb)
{
    enum { IPV6_HEADER = 40 };
    uint64_t first; // IPv4: its length is the second half-word; IPv6: the payload's is the third
    unsigned char *header = skb->head + skb->network_header;
    if (!words_read(&first, header, 1))
        return skb->len;
    bool is_six = (first >> 4 & 0xf) == 6;
    uint32_t length = bpf_ntohs((uint16_t)(first >> (is_six ? 32 : 16)));
    if (length == 0)
        return skb->len; // more than 64 KiB ("BIG TCP")
    length += (uint32_t)(header - skb->data) + (is_six ? IPV6_HEADER : 0);
    return length < skb->len ? length : skb->len;
}

// The payload of an outgoing segment, and the sequence number after it. Below TCP the control block
// is IP's, so that comes from the header. 0: it has none.
static __always_inline uint32_t segment_payload(const struct sk_buff *skb, uint32_t *end)
{
    uint64_t words[2]; // TCP header: ports, sequence, acknowledgement, data offset and flags
    unsigned char *header = skb->head + skb->transport_header;
    if (!words_read(words, header, 2))
        return 0;
    uint32_t before = (uint32_t)(header - skb->data);
    uint32_t payload = packet_bytes(skb) - before - (words[1] >> 36 & 0xf) * 4;
    *end = bpf_ntohl((uint32_t)(words[0] >> 32)) + payload;
    return payload > skb->len ? 0 : payload;
}

static __always_inline bool was_queued(const struct sk_buff *skb, uint64_t now)
{
    uint64_t queued = now - (uint64_t)skb->tstamp;
    return queued > QUEUED_NS && queued < QUEUED_MOST_NS;
}

// The watched connection whose other end a client's socket on this machine is, by the sequence
// number of the first byte that it sent.
static __always_inline struct stream *stream_of_client(const struct sock_common *common,
                                                       uint32_t first)
{
    struct stream_key key = {.ports =
                                 (uint32_t)common->skc_num << 16 | bpf_ntohs(common->skc_dport),
                             .namespace = first};
    if (common->skc_family == FAMILY_INET)
        map_address(key.peer, common->skc_rcv_saddr);
    else if (bpf_core_field_exists(common->skc_v6_rcv_saddr))
        bpf_core_read(key.peer, 16, &common->skc_v6_rcv_saddr);
    struct stream *stream = bpf_map_lookup_elem(&streams, &key);
    if (!stream)
        return NULL;
    key.namespace = stream->namespace;
    __builtin_memcpy(key.local, stream->local, 16);
    return bpf_map_lookup_elem(&streams, &key);
}

// The place in a stream to the server that a sequence number is.
static __always_inline uint64_t stream_offset(const struct stream *stream, uint32_t sequence)
{
    uint64_t reached = stream->reached;
    return reached + (uint64_t)(int64_t)(int32_t)(sequence - stream->first - (uint32_t)reached);
}

// The same of a request, where its client is on this machine. Not part of the programs' straight
// way.
static __attribute__((noinline)) int
record_queued_by_client(struct sk_buff *skb, struct net_device *device, uint64_t now)
{
    struct sock *sk = skb->sk;
    uint32_t end;
    if (!sk || segment_payload(skb, &end) == 0)
        return 0;
    // Bridges and veth leave it its socket: what queues there is not the client's.
    if (bpf_core_field_exists(device->nd_net.net) &&
        device->nd_net.net->ns.inum != namespace_of(&sk->__sk_common))
        return 0;
    // A connecting socket's acknowledged bytes count its SYN.
    uint32_t first = end - (uint32_t)sent_offset(sk, end) + 1;
    struct stream *stream = stream_of_client(&sk->__sk_common, first);
    return stream ? record_queued(skb, device, stream->id, now, stream_offset(stream, end)) : 0;
}

// A reply's bytes on their way to the device. skb->sk may be a request or a time-wait socket, which
// are smaller.
SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, struct sk_buff *skb, struct net_device *device)
{
    struct sock *sk = skb->sk;
    if (!sk)
        return 0;
    bool by_client = !port_watched(sk);
    if (by_client && !port_in_set(bpf_ntohs(sk->__sk_common.skc_dport)))
        return 0;
    unsigned char state = sk->__sk_common.skc_state;
    if (state == STATE_NEW_SYN_RECEIVED || state == STATE_TIME_WAIT ||
        sk->sk_protocol != PROTOCOL_TCP)
        return 0;
    uint64_t now = bpf_ktime_get_ns();
    if (by_client)
        return was_queued(skb, now) ? record_queued_by_client(skb, device, now) : 0;
    uint32_t end, payload = segment_payload(skb, &end);
    if (payload == 0)
        return 0;
    uint64_t offset = sent_offset(sk, end);
    // TCP moves snd_nxt past new bytes only after it has handed them down.
    uint8_t flags = (int32_t)(end - sent_next(sk)) <= 0 ? TRANSMIT_AGAIN : 0;
    // A socket that has received a request has its cookie.
    uint32_t id = (uint32_t)sk->__sk_common.skc_cookie.counter;
    if (was_queued(skb, now))
        record_queued(skb, device, id, now, offset);
    return record_message_at(EVENT_TRANSMIT, flags, id, now, offset, payload);
}

// After the transmission, whose time the buffer holds.
SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(tcp_retransmit_skb, struct sock *sk, struct sk_buff *skb)
{
    bool by_client = !port_watched(sk);
    if (by_client && !port_in_set(bpf_ntohs(sk->__sk_common.skc_dport)))
        return 0;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    if (!tcp || skb->len == 0)
        return 0; // SYN or FIN
    struct tcp_skb_cb *control = (struct tcp_skb_cb *)skb->cb;
    uint32_t end = *(uint32_t *)((char *)control + bpf_core_field_offset(control->seq)) + skb->len;
    uint8_t state = BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)tcp, icsk_ca_state);
    uint8_t flags = state == RECOVERY_TIMEOUT ? RETRANSMIT_TIMEOUT
                    : state == RECOVERY_FAST  ? RETRANSMIT_FAST
                                              : 0;
    uint64_t now = bpf_ktime_get_ns(), sent = (uint64_t)skb->tstamp;
    if (now - sent < RETRANSMIT_MOST_NS)
        now = sent;
    if (!by_client)
        return record_message_at(EVENT_RETRANSMIT, flags, socket_id(sk), now, sent_offset(sk, end),
                                 skb->len);
    uint32_t first = tcp->snd_una - (uint32_t)tcp->bytes_acked + 1; // these count its SYN
    struct stream *stream = stream_of_client(&sk->__sk_common, first);
    if (!stream)
        return 0;
    return record_message_at(EVENT_RETRANSMIT, flags | RETRANSMIT_BY_CLIENT, stream->id, now,
                             stream_offset(stream, end), skb->len);
}

// --- what stands in for messages that came unseen ------------------------------------------------

// veth and loopback hand a segment over in its sender's context, stamp included. The Ethernet
// header is off already.
SEC("tp_btf/netif_rx")
int BPF_PROG(netif_rx, struct sk_buff *skb)
{
    uint64_t words[5]; // as a rule, both headers
    const uint8_t *bytes = (const uint8_t *)words;
    if (!words_read(words, skb->data, 5))
        return 0;
    uint32_t tcp[4]; // ports, sequence, acknowledgement, data offset and flags
    uint32_t header, whole;
    bool version_6 = false;
    if (bytes[0] == 0x45 && bytes[9] == PROTOCOL_TCP) {
        header = 20;
        whole = (uint32_t)bytes[2] << 8 | bytes[3];
        __builtin_memcpy(tcp, bytes + 20, sizeof tcp);
    } else if (bytes[0] >> 4 == 4 && bytes[9] == PROTOCOL_TCP) {
        header = (uint32_t)(bytes[0] & 0xf) * 4;
        whole = (uint32_t)bytes[2] << 8 | bytes[3];
        if (bpf_probe_read_kernel(tcp, sizeof tcp, skb->data + header) < 0)
            return 0;
    } else if (bytes[0] >> 4 == 6 && bytes[6] == PROTOCOL_TCP) {
        header = 40;
        version_6 = true;
        whole = header + ((uint32_t)bytes[4] << 8 | bytes[5]);
        if (bpf_probe_read_kernel(tcp, sizeof tcp, skb->data + header) < 0)
            return 0;
    } else {
        return 0;
    }
    uint32_t ports = bpf_ntohl(tcp[0]); // source, destination
    uint16_t local = (uint16_t)ports;
    uint32_t payload = whole - header - (tcp[3] >> 4 & 0xf) * 4;
    if (!port_in_set(local) || payload == 0 || payload > whole)
        return 0;
    struct stream_key key = {.ports = ports};
    if (version_6) {
        __builtin_memcpy(key.peer, bytes + 8, 16);
        __builtin_memcpy(key.local, bytes + 24, 16);
    } else {
        uint32_t addresses[2];
        __builtin_memcpy(addresses, bytes + 12, sizeof addresses);
        map_address(key.peer, addresses[0]);
        map_address(key.local, addresses[1]);
    }
    if (bpf_core_field_exists(skb->dev->nd_net.net))
        key.namespace = skb->dev->nd_net.net->ns.inum;
    struct stream *stream = bpf_map_lookup_elem(&streams, &key);
    if (!stream)
        return 0;
    uint32_t end = bpf_ntohl(tcp[1]) + payload - stream->first;
    stream->reached += (uint64_t)(int64_t)(int32_t)(end - (uint32_t)stream->reached);
    return record_message(EVENT_ARRIVAL, 0, stream->id, stream->reached, 0);
}

#endif
