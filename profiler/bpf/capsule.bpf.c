// SPDX-License-Identifier: MIT
//
// A hop of Time Capsule (Suo et al., APSys '16): a program at the ingress or egress of an interface
// that stamps the packets it is asked for. Either it only looks: it writes into a ring when a
// packet passed and by what it is known again at other hops, and changes no byte. Or packets carry
// their stamps in a trailer (profiler/bpf/capsule_trailer.h), which the first hop of their way
// gives them and the last takes off and writes into the ring.
//
// It runs for every packet of the interface, so it looks at the headers and is done with what the
// filter does not want. Each hop is a copy of these programs with counts of its own; all write into
// one ring.
#include "profiler/bpf/kernel.h"

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "profiler/bpf/capsule_trailer.h"
#include "profiler/bpf/hop_log.h"
#include "profiler/bpf/packet_head.h"

// The loader sets its size and has all hops use the first one's.
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} records SEC(".maps");

struct packet_filter filter; // filled in before the programs are loaded
struct hop_counts counts;
// How long an IP packet may be with its trailer. 0, before all hops are attached and when they
// go: no packet begins to carry.
uint32_t room_bytes;
const volatile uint8_t hop;
const volatile uint32_t sample_limit; // see packet_is_sampled()
const volatile uint64_t key;          // of packet_flow(), and of trailers
// Of hops that carry.
const volatile uint64_t run;        // the trailers' number
const volatile uint16_t asked;      // hops that are to stamp, one bit each
const volatile uint8_t stamps_room; // how many stamps a trailer has room for
const volatile uint32_t link_bytes; // before the IP packet, without VLAN tags: 14, or 0

// By the low bits of a flow: its high half, and how far it has been carried. Where two flows share
// a place, one of them may be carried twice.
uint64_t carried_up_to[CAPSULE_FLOWS];

enum { LEAST_FRAME_BYTES = 60 }; // Ethernet fills shorter ones up
enum { CONTINUE = -1 }; // TCX_NEXT, and TC_ACT_UNSPEC of clsact: as if this program were not here

enum reading {
    READ_WHOLE,
    READ_FRAGMENT,
    READ_LATER_FRAGMENT,
    READ_UNREADABLE,
    READ_TAGGED,
    READ_OTHER
};

enum {
    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_IPV6 = 0x86dd,
    ETHERTYPE_FRAME = 0x6558, // a whole Ethernet frame
    VLAN_TAG = 0x8100,        // IEEE 802.1Q
    OUTER_VLAN_TAG = 0x88a8,
};

// A head, and what is only needed while it is read.
struct reading_state {
    struct packet_head head;
    uint32_t ip_at;                    // of its IP header, from the frame's; 0: it is in no tunnel
    uint32_t transport_at, payload_at; // from the frame's IP header
    bool is_fragment, is_later_fragment;
    bool opens;    // a SYN
    bool is_plain; // the IP packet begins right behind the link layer
};

static __always_inline uint8_t core_after(void)
{
    uint32_t core = bpf_get_smp_processor_id();
    return core < 255 ? (uint8_t)(core + 1) : 0;
}

static __always_inline void count(uint64_t *counter)
{
    __sync_fetch_and_add(counter, 1);
}

// Of a number of bytes that the compiler knows, at any address: by words, where it would go byte by
// byte. `out` lies at a multiple of 8.
static __always_inline void copy(void *out, const uint8_t *from, uint32_t bytes)
{
    uint32_t at = 0;
    for (; at + 8 <= bytes; at += 8)
        *(uint64_t *)(out + at) = *(const volatile uint64_t *)(from + at);
    if (at + 4 <= bytes) {
        *(uint32_t *)(out + at) = *(const volatile uint32_t *)(from + at);
        at += 4;
    }
    for (; at < bytes; at++)
        *(uint8_t *)(out + at) = from[at];
}

enum { DIRECT_MAX = 0x7fff }; // the verifier follows places in a packet up to 64 KiB

// A place in a packet that is not beyond DIRECT_MAX, so that the verifier sees it, whatever the
// compiler did with the check: older kernels forget the bounds of what is spilled.
static __always_inline uint32_t bounded(uint32_t at)
{
    if (!__builtin_constant_p(at))
        asm volatile("" : "+r"(at));
    return at & DIRECT_MAX;
}

// Whether the IP packet is known to begin at link_bytes of the frame: nothing, like a VLAN's tag,
// is in between.
static __always_inline bool is_plain(struct __sk_buff *skb)
{
    const uint8_t *frame = (const uint8_t *)(long)skb->data;
    return link_bytes && frame + link_bytes <= (const uint8_t *)(long)skb->data_end &&
           *(const uint16_t *)(frame + link_bytes - 2) == (uint16_t)skb->protocol;
}

// Bytes from the IP header on: from where they lie as a rule, which takes a few instructions; else,
// with something before the header or in another part of the packet, by the kernel.
static __always_inline bool load(struct __sk_buff *skb, const struct reading_state *state,
                                 uint32_t at, void *out, uint32_t bytes)
{
    const uint8_t *from = (const uint8_t *)(long)skb->data + link_bytes;
    if (state->is_plain && at <= DIRECT_MAX) {
        from += bounded(at);
        if (from + bytes <= (const uint8_t *)(long)skb->data_end) {
            copy(out, from, bytes);
            return true;
        }
    }
    return bpf_skb_load_bytes_relative(skb, at, out, bytes, BPF_HDR_START_NET) == 0;
}

static __always_inline uint16_t number16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static __always_inline uint32_t number32(const uint8_t *bytes)
{
    return (uint32_t)number16(bytes) << 16 | number16(bytes + 2);
}

static __always_inline struct packet_address mapped(const uint8_t *bytes)
{
    uint32_t address;
    __builtin_memcpy(&address, bytes, sizeof address);
    return (struct packet_address){
        .word = {0, (uint64_t)bpf_htonl(0xffff) | (uint64_t)address << 32}};
}

static __always_inline enum reading read_ipv4(struct __sk_buff *skb, struct reading_state *state)
{
    enum { MORE = 0x2000, OFFSET = 0x1fff };
    uint8_t ip[20] __attribute__((aligned(8)));
    if (!load(skb, state, state->ip_at, ip, sizeof ip) || ip[0] >> 4 != PACKET_IPV4)
        return READ_UNREADABLE;
    state->head.family = PACKET_IPV4;
    state->head.protocol = ip[9];
    state->head.ip_bytes = number16(ip + 2);
    state->head.datagram_id = number16(ip + 4);
    state->head.source = mapped(ip + 12);
    state->head.destination = mapped(ip + 16);
    state->transport_at = state->ip_at + (uint32_t)(ip[0] & 15) * 4;
    state->is_fragment = number16(ip + 6) & (MORE | OFFSET);
    state->is_later_fragment = number16(ip + 6) & OFFSET;
    return READ_WHOLE;
}

// What may stand between the IPv6 header and the transport's: RFC 8200, 4.
static __always_inline enum reading read_extensions(struct __sk_buff *skb,
                                                    struct reading_state *state)
{
    enum { HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, DESTINATION = 60, MOST = 4 };
    uint8_t extension[8] __attribute__((aligned(8)));
    for (int i = 0; i < MOST; i++) {
        uint8_t kind = state->head.protocol;
        if (kind != HOP_BY_HOP && kind != ROUTING && kind != FRAGMENT && kind != DESTINATION)
            break;
        if (!load(skb, state, state->transport_at, extension, sizeof extension))
            return READ_UNREADABLE;
        if (kind == FRAGMENT) {
            state->is_fragment = true;
            state->is_later_fragment = number16(extension + 2) & 0xfff8;
            state->head.datagram_id = number16(extension + 6);
        }
        state->head.protocol = extension[0];
        state->transport_at += kind == FRAGMENT ? 8 : 8 * ((uint32_t)extension[1] + 1);
    }
    return READ_WHOLE;
}

static __always_inline enum reading read_ipv6(struct __sk_buff *skb, struct reading_state *state)
{
    uint8_t ip[40] __attribute__((aligned(8)));
    if (!load(skb, state, state->ip_at, ip, sizeof ip) || ip[0] >> 4 != PACKET_IPV6)
        return READ_UNREADABLE;
    state->head.family = PACKET_IPV6;
    state->head.protocol = ip[6];
    state->head.ip_bytes = number16(ip + 4) ? sizeof ip + number16(ip + 4) : 0;
    __builtin_memcpy(&state->head.source, ip + 8, 16);
    __builtin_memcpy(&state->head.destination, ip + 24, 16);
    state->transport_at = state->ip_at + sizeof ip;
    return read_extensions(skb, state);
}

static __always_inline enum reading read_udp(struct __sk_buff *skb, struct reading_state *state)
{
    enum { HEADER = 8 };
    uint8_t udp[HEADER] __attribute__((aligned(8)));
    if (!load(skb, state, state->transport_at, udp, sizeof udp) || number16(udp + 4) < HEADER)
        return READ_UNREADABLE;
    state->head.source_port = number16(udp);
    state->head.destination_port = number16(udp + 2);
    state->head.payload_bytes = number16(udp + 4) - HEADER;
    state->payload_at = state->transport_at + HEADER;
    return state->is_fragment ? READ_FRAGMENT : READ_WHOLE;
}

static __always_inline enum reading read_tcp(struct __sk_buff *skb, struct reading_state *state)
{
    enum { SYN = 2 };
    uint8_t tcp[20] __attribute__((aligned(8)));
    if (!load(skb, state, state->transport_at, tcp, sizeof tcp))
        return READ_UNREADABLE;
    uint32_t payload_at = state->transport_at + (uint32_t)(tcp[12] >> 4) * 4;
    uint32_t headers = payload_at - state->ip_at;
    if (headers > state->head.ip_bytes)
        return READ_UNREADABLE;
    state->head.source_port = number16(tcp);
    state->head.destination_port = number16(tcp + 2);
    state->head.sequence = number32(tcp + 4);
    state->head.payload_bytes = state->head.ip_bytes - headers;
    state->payload_at = payload_at;
    state->opens = tcp[13] & SYN;
    // What follows the first fragment of a segment is not known, and nobody sends such.
    return state->is_fragment ? READ_UNREADABLE : READ_WHOLE;
}

// Of the IP packet at state->ip_at, which an Ethernet type says to be one.
static __always_inline enum reading read_packet(struct __sk_buff *skb, uint16_t type,
                                                struct reading_state *state)
{
    enum reading reading = type == ETHERTYPE_IPV4 ? read_ipv4(skb, state) : read_ipv6(skb, state);
    if (reading != READ_WHOLE)
        return reading;
    if (state->head.protocol != PACKET_UDP && state->head.protocol != PACKET_TCP)
        return READ_OTHER;
    if (state->is_later_fragment)
        return READ_LATER_FRAGMENT;
    // A packet of more than 64 KiB ("BIG TCP") does not say its length.
    if (!state->head.ip_bytes)
        return READ_UNREADABLE;
    return state->head.protocol == PACKET_UDP ? read_udp(skb, state) : read_tcp(skb, state);
}

static __always_inline enum reading read_head(struct __sk_buff *skb, struct reading_state *state)
{
    uint16_t type = bpf_ntohs((uint16_t)skb->protocol);
    state->is_plain = is_plain(skb);
    state->ip_at = 0;
    if (type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6)
        return read_packet(skb, type, state);
    return type == VLAN_TAG || type == OUTER_VLAN_TAG ? READ_TAGGED : READ_OTHER;
}

static __always_inline void count_unread(enum reading reading)
{
    if (reading == READ_UNREADABLE)
        count(&counts.unreadable);
    if (reading == READ_TAGGED)
        count(&counts.tagged);
}

// --- tunnels -------------------------------------------------------------------------------------

// What IP packets carry that have another packet in them. VXLAN: RFC 7348, and the port that Linux
// takes unless it is told one; Geneve: RFC 8926; GRE: RFC 2784 and 2890; IP in IP: RFC 2003, 4213.
enum {
    VXLAN_PORT = 4789,
    VXLAN_LINUX_PORT = 8472,
    GENEVE_PORT = 6081,
    IPV4_IN_IP = 4,
    IPV6_IN_IP = 41,
    GRE = 47,
};

static __always_inline bool is_tunnel(enum reading reading, const struct reading_state *state)
{
    uint16_t port = state->head.destination_port;
    if (state->is_fragment)
        return false;
    if (reading == READ_WHOLE)
        return state->head.protocol == PACKET_UDP &&
               (port == VXLAN_PORT || port == VXLAN_LINUX_PORT || port == GENEVE_PORT);
    return reading == READ_OTHER && state->head.family &&
           (state->head.protocol == GRE || state->head.protocol == IPV4_IN_IP ||
            state->head.protocol == IPV6_IN_IP);
}

// Behind a tunnel's own header: what lies there, by its Ethernet type, and where. 0: it is none.
static __always_inline uint16_t tunnel_holds(struct __sk_buff *skb,
                                             const struct reading_state *state, uint32_t *at)
{
    enum { VNI_GIVEN = 0x08, CHECKSUM = 0x80, KEY = 0x20, NUMBER = 0x10, VERSION = 7 };
    uint8_t header[8] __attribute__((aligned(8)));
    *at = state->transport_at;
    if (state->head.protocol == IPV4_IN_IP)
        return ETHERTYPE_IPV4;
    if (state->head.protocol == IPV6_IN_IP)
        return ETHERTYPE_IPV6;
    if (state->head.protocol == PACKET_UDP)
        *at = state->payload_at;
    if (bpf_skb_load_bytes_relative(skb, *at, header, 4, BPF_HDR_START_NET) < 0)
        return 0;
    if (state->head.protocol == GRE) {
        *at += 4 + 4 * (uint32_t)(!!(header[0] & CHECKSUM) + !!(header[0] & KEY) +
                                  !!(header[0] & NUMBER));
        return header[1] & VERSION ? 0 : number16(header + 2);
    }
    *at += sizeof header;
    if (state->head.destination_port != GENEVE_PORT)
        return header[0] & VNI_GIVEN ? ETHERTYPE_FRAME : 0;
    *at += 4 * (uint32_t)(header[0] & 0x3f);
    return header[0] >> 6 ? 0 : number16(header + 2);
}

// Reads the packet in a tunnel's. A function of its own: packets that are in none pay nothing.
static __noinline enum reading read_inner(struct __sk_buff *skb, struct reading_state *state)
{
    enum { TYPE_AT = 12, TAG_BYTES = 4 };
    uint8_t type_there[2];
    uint32_t at;
    uint16_t type = tunnel_holds(skb, state, &at);
    if (type == ETHERTYPE_FRAME) {
        at += TYPE_AT;
        for (int i = 0; i < 2; i++) {
            if (bpf_skb_load_bytes_relative(skb, at, type_there, 2, BPF_HDR_START_NET) < 0)
                return READ_OTHER;
            type = number16(type_there);
            if (type != VLAN_TAG)
                break;
            at += TAG_BYTES;
        }
        at += 2;
    }
    if (type != ETHERTYPE_IPV4 && type != ETHERTYPE_IPV6)
        return READ_OTHER;
    state->head = (struct packet_head){.family = 0};
    state->ip_at = at;
    return read_packet(skb, type, state);
}

// Whether this is asked for, or else the packet in it.
static __always_inline bool is_asked(struct __sk_buff *skb, enum reading *reading,
                                     struct reading_state *state)
{
    if (*reading <= READ_FRAGMENT && packet_filter_matches(&filter, &state->head))
        return true;
    if (!is_tunnel(*reading, state))
        return false;
    *reading = read_inner(skb, state);
    count_unread(*reading);
    if (*reading == READ_LATER_FRAGMENT && packet_filter_matches_ends(&filter, &state->head))
        count(&counts.fragments);
    return *reading <= READ_FRAGMENT && packet_filter_matches(&filter, &state->head);
}

// --- hops that look ------------------------------------------------------------------------------

// The payload's first bytes, zeros after its end; of a fragment, all that it has of them.
static __always_inline void read_prefix(struct __sk_buff *skb, const struct reading_state *state,
                                        uint64_t prefix[PACKET_PREFIX_WORDS])
{
    uint32_t bytes = state->head.ip_bytes - (state->payload_at - state->ip_at);
    if (bytes > state->head.payload_bytes)
        bytes = state->head.payload_bytes;
    if (bytes >= PACKET_PREFIX_WORDS * 8) {
        load(skb, state, state->payload_at, prefix, PACKET_PREFIX_WORDS * 8);
        return;
    }
    if (bytes == 0)
        return;
    uint32_t more = bytes - 1;
    asm volatile("" : "+r"(more)); // so that the verifier, of older kernels too, sees the bounds
    more &= PACKET_PREFIX_WORDS * 8 - 1;
    bpf_skb_load_bytes_relative(skb, state->payload_at, prefix, more + 1, BPF_HDR_START_NET);
}

// True if any byte of a stream's packet is sampled.
static __always_inline bool stream_is_sampled(const struct hop_record *record)
{
    uint32_t block = record->first / PACKET_BLOCK_BYTES * PACKET_BLOCK_BYTES;
    for (int i = 0; i < PACKET_BLOCKS_MAX; i++, block += PACKET_BLOCK_BYTES) {
        if ((int32_t)(record->end - block) <= 0)
            break;
        if (packet_is_sampled(packet_block(record->flow, block), sample_limit))
            return true;
    }
    return false;
}

// Fills in by what the packet is known. False: it is not to be recorded, and counted.
static __always_inline bool identify(struct __sk_buff *skb, const struct reading_state *state,
                                     struct hop_record *record)
{
    uint64_t prefix[PACKET_PREFIX_WORDS] = {0};
    const struct packet_head *head = &state->head;
    record->flow = packet_flow(head, key);
    record->ip_bytes = head->ip_bytes;
    record->protocol = head->protocol;
    record->hop = hop;
    if (head->protocol == PACKET_TCP) {
        if (state->opens && !head->payload_bytes) {
            record->first = record->end = head->sequence + 1;
            record->flags |= HOP_OPENS;
            return true;
        }
        if (!head->payload_bytes) {
            count(&counts.bare);
            return false;
        }
        record->first = head->sequence;
        record->end = head->sequence + head->payload_bytes;
        if (!packet_is_sampled(packet_block(record->flow, record->end - 1), sample_limit))
            record->flags |= HOP_ONLY_COVERS;
        if (stream_is_sampled(record))
            return true;
    } else {
        read_prefix(skb, state, prefix);
        record->datagram = packet_datagram(head, record->flow, prefix);
        record->first = number16((const uint8_t *)prefix);
        record->end = record->first + 1;
        record->flags |= state->is_fragment ? HOP_FRAGMENT : 0;
        record->flags |= skb->gso_size ? HOP_BUNDLE : 0;
        if (packet_is_sampled(record->datagram, sample_limit))
            return true;
    }
    count(&counts.unsampled);
    return false;
}

// Nobody is woken: the reader looks by itself, every few milliseconds.
static __always_inline void write_record(void *record, uint32_t bytes, uint64_t *counter)
{
    if (bpf_ringbuf_output(&records, record, bytes, BPF_RB_NO_WAKEUP) == 0)
        count(counter);
    else
        count(&counts.dropped);
}

SEC("tc")
int hop_look(struct __sk_buff *skb)
{
    struct reading_state state = {.is_fragment = false};
    enum reading reading = read_head(skb, &state);
    count_unread(reading);
    if (reading == READ_LATER_FRAGMENT && packet_filter_matches_ends(&filter, &state.head))
        count(&counts.fragments);
    if (!is_asked(skb, &reading, &state))
        return CONTINUE;
    struct hop_record record = {.time = bpf_ktime_get_ns(), .core_after = core_after()};
    count(&counts.matched);
    if (identify(skb, &state, &record))
        write_record(&record, sizeof record, &counts.recorded);
    return CONTINUE;
}

// --- hops that carry -----------------------------------------------------------------------------

// Where the IP packet begins. Negative: not where it should.
static __always_inline int packet_begin(struct __sk_buff *skb, const struct reading_state *state)
{
    uint8_t type[2];
    uint8_t here[6], there[6];
    uint32_t at = link_bytes;
    if (at == 0 || state->is_plain)
        return (int)at;
    if (bpf_skb_load_bytes(skb, at - 2, type, sizeof type) < 0)
        return -1;
    if (number16(type) == VLAN_TAG || number16(type) == OUTER_VLAN_TAG)
        at += 4;
    if (bpf_skb_load_bytes(skb, at, here, sizeof here) < 0 ||
        bpf_skb_load_bytes_relative(skb, 0, there, sizeof there, BPF_HDR_START_NET) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof here; i++)
        if (here[i] != there[i])
            return -1;
    return (int)at;
}

// A packet that is asked for, and where its trailer is or would be.
struct carried {
    struct reading_state state;
    uint64_t now;
    uint32_t trailer_at;   // from the frame's first byte
    uint32_t behind_bytes; // that lie there
};

// False: there is nothing to do with this packet.
static __always_inline bool find_carried(struct __sk_buff *skb, struct carried *it)
{
    enum reading reading = read_head(skb, &it->state);
    count_unread(reading);
    if (!is_asked(skb, &reading, &it->state))
        return false;
    it->now = bpf_ktime_get_ns();
    count(&counts.matched);
    if (reading == READ_FRAGMENT) {
        count(&counts.fragments); // each of its parts would be as long as may be
        return false;
    }
    int at = packet_begin(skb, &it->state);
    it->trailer_at = (uint32_t)at + it->state.ip_at + it->state.head.ip_bytes;
    if (at < 0 || skb->len < it->trailer_at) {
        count(&counts.unreadable);
        return false;
    }
    it->behind_bytes = skb->len - it->trailer_at;
    return true;
}

// Of a stream, whether these bytes have not been carried before. What is sent again is left alone,
// so that a stream goes on where packets with trailers do not get through.
static __always_inline bool stream_goes_on(const struct hop_record *record)
{
    uint64_t *place = &carried_up_to[record->flow & (CAPSULE_FLOWS - 1)];
    uint64_t before = *(volatile uint64_t *)place;
    if (before >> 32 == record->flow >> 32 && (int32_t)(record->end - (uint32_t)before) <= 0)
        return false;
    *(volatile uint64_t *)place = record->flow >> 32 << 32 | record->end;
    return true;
}

// Whether a packet gets a trailer; if not, why is counted.
static __always_inline bool may_begin(struct __sk_buff *skb, const struct carried *it,
                                      struct hop_record *record)
{
    uint32_t most = it->state.head.ip_bytes + trailer_bytes(stamps_room);
    if (!identify(skb, &it->state, record))
        return false;
    if (record->flags & HOP_OPENS) {
        record->time = it->now;
        write_record(record, sizeof *record, &counts.bare); // it is left alone
        return false;
    }
    if (record->flags & HOP_ONLY_COVERS) {
        count(&counts.unsampled);
        return false;
    }
    if (skb->gso_size) {
        count(&counts.bundled);
        return false;
    }
    if (it->behind_bytes && skb->len > LEAST_FRAME_BYTES) {
        count(&counts.foreign);
        return false;
    }
    if (most > room_bytes) {
        count(&counts.no_room);
        return false;
    }
    if (record->protocol == PACKET_TCP && !stream_goes_on(record)) {
        count(&counts.sent_again);
        return false;
    }
    return true;
}

SEC("tc")
int hop_begin(struct __sk_buff *skb)
{
    struct {
        struct capsule_trailer head;
        uint64_t stamp;
    } trailer;
    struct carried it = {.now = 0};
    struct hop_record record = {.time = 0};
    if (!*(volatile uint32_t *)&room_bytes || !find_carried(skb, &it) ||
        !may_begin(skb, &it, &record))
        return CONTINUE;
    uint32_t before = skb->len;
    trailer.stamp = trailer_stamp(it.now, hop);
    trailer.head = trailer_begin(key, run, asked, stamps_room, record.flow, trailer.stamp);
    // In a tunnel it would have to grow with all that is around it.
    if (it.state.ip_at ||
        bpf_skb_change_tail(skb, it.trailer_at + trailer_bytes(stamps_room), 0) < 0) {
        count(&counts.not_stamped);
    } else if (bpf_skb_store_bytes(skb, it.trailer_at, &trailer, sizeof trailer, 0) < 0) {
        bpf_skb_change_tail(skb, before, 0);
        count(&counts.not_stamped);
    } else {
        count(&counts.begun);
    }
    return CONTINUE;
}

// Reads the head of this run's trailer. False: there is none, and what there is, is counted.
static __always_inline bool read_trailer(struct __sk_buff *skb, const struct carried *it,
                                         struct capsule_trailer *head)
{
    if (it->behind_bytes >= sizeof *head + 8 &&
        load(skb, &it->state, it->state.ip_at + it->state.head.ip_bytes, head, sizeof *head) &&
        trailer_is_ours(head, run, it->behind_bytes))
        return true;
    if (it->behind_bytes && skb->len > LEAST_FRAME_BYTES)
        count(&counts.foreign);
    else
        count(&counts.unsampled);
    return false;
}

// Writes one more stamp behind a trailer's head, and what changes of that. False: they do not lie
// in the packet's first part, where programs may write.
static __always_inline bool write_stamp(struct __sk_buff *skb, const struct carried *it,
                                        struct capsule_trailer head)
{
    uint8_t *end = (uint8_t *)(long)skb->data_end;
    uint64_t stamp = trailer_stamp(it->now, hop);
    if (it->trailer_at > DIRECT_MAX)
        return false;
    uint8_t *at = (uint8_t *)(long)skb->data + bounded(it->trailer_at);
    uint8_t *stamp_at = at + sizeof head + 8 * trailer_count(&head);
    if (at + sizeof head > end || stamp_at + sizeof stamp > end)
        return false;
    trailer_append(&head, stamp);
    *(volatile uint64_t *)stamp_at = stamp;
    *(volatile uint64_t *)at = *(uint64_t *)&head;
    *(volatile uint64_t *)(at + offsetof(struct capsule_trailer, chain)) = head.chain;
    return true;
}

SEC("tc")
int hop_carry(struct __sk_buff *skb)
{
    struct carried it = {.now = 0};
    struct capsule_trailer head;
    if (!find_carried(skb, &it) || !read_trailer(skb, &it, &head))
        return CONTINUE;
    if (!(head.asked >> hop & 1)) {
        count(&counts.unsampled);
        return CONTINUE;
    }
    uint32_t trailer_end = it.trailer_at + trailer_bytes(trailer_room(&head));
    if (trailer_count(&head) < trailer_room(&head) &&
        (write_stamp(skb, &it, head) ||
         (bpf_skb_pull_data(skb, trailer_end) == 0 && write_stamp(skb, &it, head))))
        count(&counts.stamped);
    else
        count(&counts.not_stamped);
    return CONTINUE;
}

// Reads the stamps. False: they are not those that the hops wrote.
static __always_inline bool read_stamps(struct __sk_buff *skb, const struct carried *it,
                                        const struct capsule_trailer *head,
                                        struct carried_record *record)
{
    uint64_t chain = trailer_chain(key, run, head->asked, record->packet.flow);
    uint32_t at = it->state.ip_at + it->state.head.ip_bytes + sizeof *head;
    for (uint32_t i = 0; i < TRAILER_STAMPS_MAX && i < trailer_count(head); i++) {
        if (!load(skb, &it->state, at + 8 * i, &record->stamps[i], sizeof record->stamps[i]))
            return false;
        chain = trailer_link(chain, record->stamps[i]);
    }
    return chain == head->chain;
}

// A stream that opens, where its packets will end: on another machine than where they begin, that
// is all that its clock's stamps can be counted from.
static __always_inline bool record_opening(const struct carried *it)
{
    const struct packet_head *head = &it->state.head;
    if (!it->state.opens || head->payload_bytes)
        return false;
    struct hop_record record = {.time = it->now,
                                .flow = packet_flow(head, key),
                                .first = head->sequence + 1,
                                .end = head->sequence + 1,
                                .ip_bytes = head->ip_bytes,
                                .hop = hop,
                                .protocol = head->protocol,
                                .flags = HOP_OPENS};
    write_record(&record, sizeof record, &counts.bare);
    return true;
}

SEC("tc")
int hop_end(struct __sk_buff *skb)
{
    struct carried it = {.now = 0};
    struct carried_record record = {.packet = {.time = 0}};
    struct capsule_trailer head;
    if (!find_carried(skb, &it) || record_opening(&it) || !read_trailer(skb, &it, &head))
        return CONTINUE;
    identify(skb, &it.state, &record.packet);
    bool whole = read_stamps(skb, &it, &head, &record);
    if (it.state.ip_at || bpf_skb_change_tail(skb, it.trailer_at, 0) < 0)
        count(&counts.not_stamped); // IP cuts it off
    count(&counts.ended);
    if (!whole) {
        count(&counts.damaged);
        return CONTINUE;
    }
    uint64_t stamps = trailer_count(&head);
    asm volatile("" : "+r"(stamps)); // so that the verifier sees the bounds of what is passed on
    if (stamps >= HOPS_MAX)
        return CONTINUE;
    record.packet.time = it.now;
    record.stamps[stamps] = trailer_stamp(it.now, hop);
    write_record(&record, sizeof record.packet + 8 * (stamps + 1), &counts.recorded);
    return CONTINUE;
}

char LICENSE[] SEC("license") = "GPL";
