// SPDX-License-Identifier: MIT
//
// What a packet's headers say, for the programs of a hop: of its IP packet, or, below a tunnel, of
// the one inside that is asked for. Included once, behind what the programs are loaded with
// (link_bytes, asked_for(), counts).
#ifndef PROFILER_BPF_PACKET_READING_BPF_H
#define PROFILER_BPF_PACKET_READING_BPF_H

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

enum {
    TAG_BYTES = 4,
    TAGS_MAX = 2, // in the frame, beside the one that the kernel keeps beside the packet
};

enum { UDP_HEADER = 8 };

// A head, and what is only needed while it is read.
struct reading_state {
    struct packet_head head;
    uint32_t ip_at;                    // of its IP header, from the frame's; 0: it is in no tunnel
    uint32_t transport_at, payload_at; // from the frame's IP header
    bool is_fragment, is_later_fragment;
    uint32_t tag_bytes; // of VLAN tags in the frame
    bool opens;         // a SYN
    bool is_plain;      // the IP packet begins right behind the link layer
    uint8_t hop;        // where it is
};

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

// The IP header is the network's to the kernel, but where tags lie before it: then that is a tag,
// or it, as the packet came here.
static __always_inline bool load_by_kernel(struct __sk_buff *skb, const struct reading_state *state,
                                           uint32_t at, void *out, uint32_t bytes)
{
    if (state->tag_bytes)
        return bpf_skb_load_bytes(skb, link_bytes + state->tag_bytes + at, out, bytes) == 0;
    return bpf_skb_load_bytes_relative(skb, at, out, bytes, BPF_HDR_START_NET) == 0;
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
    return load_by_kernel(skb, state, at, out, bytes);
}

// As one load each where the compiler knows that they lie at a multiple of their size.
static __always_inline uint16_t number16(const uint8_t *bytes)
{
    uint16_t number;
    __builtin_memcpy(&number, bytes, sizeof number);
    return bpf_ntohs(number);
}

static __always_inline uint32_t number32(const uint8_t *bytes)
{
    uint32_t number;
    __builtin_memcpy(&number, bytes, sizeof number);
    return bpf_ntohl(number);
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
    uint8_t udp[UDP_HEADER] __attribute__((aligned(8)));
    if (!load(skb, state, state->transport_at, udp, sizeof udp) || number16(udp + 4) < UDP_HEADER)
        return READ_UNREADABLE;
    state->head.source_port = number16(udp);
    state->head.destination_port = number16(udp + 2);
    state->head.payload_bytes = number16(udp + 4) - UDP_HEADER;
    state->payload_at = state->transport_at + UDP_HEADER;
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

// Of the IP packet at state->ip_at, which an Ethernet type says to be one: enum reading. A function
// that is not static: the verifier looks at it by itself, once, and at what follows it once too,
// and not for each way through it. state is never NULL, which it does not know.
__noinline int read_packet(struct __sk_buff *skb, uint16_t type, struct reading_state *state)
{
    if (!state)
        return READ_OTHER;
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

// A frame that a VLAN's tag begins. A function of its own: packets without pay nothing.
static __noinline enum reading read_tagged(struct __sk_buff *skb, struct reading_state *state)
{
    uint8_t there[2];
    uint16_t type = 0;
    uint32_t tags = 0;
    state->is_plain = false;
    for (; link_bytes && tags <= TAGS_MAX; tags++) {
        if (bpf_skb_load_bytes(skb, link_bytes - 2 + tags * TAG_BYTES, there, sizeof there) < 0)
            return READ_UNREADABLE;
        type = number16(there);
        if (type != VLAN_TAG && type != OUTER_VLAN_TAG)
            break;
    }
    if (tags == 0 || tags > TAGS_MAX)
        return READ_TAGGED;
    state->tag_bytes = tags * TAG_BYTES;
    return type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6 ? read_packet(skb, type, state)
                                                            : READ_OTHER;
}

static __always_inline enum reading read_head(struct __sk_buff *skb, struct reading_state *state)
{
    uint16_t type = bpf_ntohs((uint16_t)skb->protocol);
    state->is_plain = is_plain(skb);
    state->ip_at = 0;
    if (type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6)
        return read_packet(skb, type, state);
    return type == VLAN_TAG || type == OUTER_VLAN_TAG ? read_tagged(skb, state) : READ_OTHER;
}

static __always_inline void count_unread(const struct reading_state *state, enum reading reading)
{
    if (reading == READ_UNREADABLE)
        count(&counts_of(state->hop)->unreadable);
    if (reading == READ_TAGGED)
        count(&counts_of(state->hop)->tagged);
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
    if (!load_by_kernel(skb, state, *at, header, 4))
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
    enum { TYPE_AT = 12 };
    uint8_t type_there[2];
    uint32_t at;
    uint16_t type = tunnel_holds(skb, state, &at);
    if (type == ETHERTYPE_FRAME) {
        at += TYPE_AT;
        for (int i = 0; i < 2; i++) {
            if (!load_by_kernel(skb, state, at, type_there, 2))
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
    if (*reading <= READ_FRAGMENT && packet_filter_matches(asked_for(), &state->head))
        return true;
    if (!is_tunnel(*reading, state))
        return false;
    *reading = read_inner(skb, state);
    count_unread(state, *reading);
    if (*reading == READ_LATER_FRAGMENT && packet_filter_matches_ends(asked_for(), &state->head))
        count(&counts_of(state->hop)->fragments);
    return *reading <= READ_FRAGMENT && packet_filter_matches(asked_for(), &state->head);
}

#endif
