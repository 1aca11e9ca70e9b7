// SPDX-License-Identifier: MIT
//
// What the hops of Time Capsule (profiler/bpf/capsule.bpf.c) look at in a packet, which packets are
// wanted, and by what one is known again at the next hop: nothing in it changes between two
// interfaces of one route, unless addresses are translated there.
//
// This header is read by the BPF compiler too: plain types, no libc.
#ifndef PROFILER_BPF_PACKET_HEAD_H
#define PROFILER_BPF_PACKET_HEAD_H

#ifndef __bpf__
#include <stdbool.h>
#include <stdint.h>
#endif

#include "base/hash.h"

enum { PACKET_IPV4 = 4, PACKET_IPV6 = 6, PACKET_TCP = 6, PACKET_UDP = 17 };

enum {
    PACKET_PREFIX_WORDS = 8, // of the payload, 8 bytes each, by which datagrams differ
    // Streams are sampled by blocks of so many bytes (a power of two): which packets the bytes
    // travel in differs from hop to hop.
    PACKET_BLOCK_BYTES = 4096,
    PACKET_BLOCKS_MAX = 17, // that 64 KiB, the longest packet, can lie in
};

struct packet_address {
    uint64_t word[2]; // IPv6, or IPv4 mapped (::ffff:a.b.c.d), as it lies in memory
};

struct packet_head {
    struct packet_address source, destination;
    uint16_t source_port, destination_port; // host byte order
    uint8_t family;                         // PACKET_IPV4 or PACKET_IPV6
    uint8_t protocol;                       // PACKET_TCP or PACKET_UDP
    uint16_t datagram_id;                   // IPv4's identification, 0 of IPv6
    uint32_t ip_bytes;                      // IP header and all after it
    uint32_t payload_bytes;                 // UDP: of the whole datagram, also in a fragment
    uint32_t sequence;                      // TCP: number of the payload's first byte
};

// Which packets are wanted. Zeros: all.
struct packet_filter {
    struct packet_address host, source, destination; // if the flag below is set
    uint16_t port, source_port, destination_port;    // host byte order; 0: any
    uint8_t family, protocol;                        // 0: any
    uint8_t has_host, has_source, has_destination;
    uint8_t reserved;
};

static inline bool packet_address_same(const struct packet_address *a,
                                       const struct packet_address *b)
{
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

static inline bool packet_address_is_four(const struct packet_address *address)
{
    return address->word[0] == 0 && (uint32_t)address->word[1] == 0xffff0000u;
}

// Both addresses of IPv4, the source's in the low half: what is mapped around them is always the
// same.
static inline uint64_t packet_addresses_four(const struct packet_head *head)
{
    return head->source.word[1] >> 32 | (head->destination.word[1] >> 32 << 32);
}

// `port` and `host` stand for either end. The first is all that a later fragment can be asked: it
// has no ports.
static inline bool packet_filter_matches_ends(const struct packet_filter *filter,
                                              const struct packet_head *head)
{
    if ((filter->family && filter->family != head->family) ||
        (filter->protocol && filter->protocol != head->protocol))
        return false;
    if (filter->has_source && !packet_address_same(&filter->source, &head->source))
        return false;
    if (filter->has_destination && !packet_address_same(&filter->destination, &head->destination))
        return false;
    return !filter->has_host || packet_address_same(&filter->host, &head->source) ||
           packet_address_same(&filter->host, &head->destination);
}

static inline bool packet_filter_matches(const struct packet_filter *filter,
                                         const struct packet_head *head)
{
    if ((filter->source_port && filter->source_port != head->source_port) ||
        (filter->destination_port && filter->destination_port != head->destination_port))
        return false;
    if (filter->port && filter->port != head->source_port && filter->port != head->destination_port)
        return false;
    return packet_filter_matches_ends(filter, head);
}

// One direction of a connection, or of what two ports say to one another. The key is the capture's
// own, so that nobody can send packets that are taken for one another.
static inline uint64_t packet_flow(const struct packet_head *head, uint64_t key)
{
    uint64_t ports =
        (uint64_t)head->protocol << 32 | (uint64_t)head->source_port << 16 | head->destination_port;
    const struct packet_address *source = &head->source, *destination = &head->destination;
    uint64_t hash = hash64(key ^ ports);
    if (packet_address_is_four(source) && packet_address_is_four(destination))
        return hash64(hash ^ packet_addresses_four(head));
    hash = hash64(hash ^ source->word[0]);
    hash = hash64(hash ^ source->word[1]);
    hash = hash64(hash ^ destination->word[0]);
    return hash64(hash ^ destination->word[1]);
}

// A datagram, whatever its flow: where addresses are translated on the way (NAT) that is another.
// prefix: the beginning of its payload, zeros after its end. Not the checksum, which may be filled
// in on the way. Every other word goes into a hash of its own: a processor does both at once, where
// one would wait for the other.
static inline uint64_t packet_datagram(const struct packet_head *head, uint64_t key,
                                       const uint64_t prefix[PACKET_PREFIX_WORDS])
{
    uint64_t even = hash64(key ^ ((uint64_t)head->datagram_id << 32 | head->payload_bytes));
    uint64_t odd = ~key;
    for (int i = 0; i < PACKET_PREFIX_WORDS; i += 2) {
        even = hash64(even ^ prefix[i]);
        odd = hash64(odd ^ prefix[i + 1]);
    }
    return hash_pair(odd, even);
}

// What decides whether a byte of a stream is sampled, for all bytes of its block alike. Streams
// begin at random numbers, so that they are sampled at different places; addresses may be
// translated.
static inline uint64_t packet_block(uint64_t key, uint32_t sequence)
{
    return hash64(key ^ sequence / PACKET_BLOCK_BYTES);
}

#define PACKET_SAMPLE_ALL 0xffffffffu

// One in so many is sampled; limit: PACKET_SAMPLE_ALL / n.
static inline bool packet_is_sampled(uint64_t identity, uint32_t limit)
{
    return (uint32_t)(identity >> 32) <= limit;
}

#endif
