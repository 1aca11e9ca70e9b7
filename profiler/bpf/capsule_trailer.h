// SPDX-License-Identifier: MIT
//
// What a packet of Time Capsule carries: a trailer behind the IP packet's own length, which whoever
// does not know of it passes on or cuts off (figure 3 of the paper; with a version, the number of
// the run and a chain of hashes besides, so that nothing else is taken for it).
//
//     | IP header ... payload | head | stamp | stamp | zeros, for the hops to come |
//
// Its length is fixed where the packet begins to carry it: a packet that grew at each hop would be
// copied at many of them, and the way's MTUs must have room for all of it anyway.
//
// Its 16-bit ones' complement sum is 0 at every time: whoever computes a TCP or UDP checksum to the
// packet's end instead of the payload's, as kernels and network cards do, gets the same checksum.
//
// This header is read by the BPF compiler too: plain types, no libc.
#ifndef PROFILER_BPF_CAPSULE_TRAILER_H
#define PROFILER_BPF_CAPSULE_TRAILER_H

#ifndef __bpf__
#include <stdbool.h>
#include <stdint.h>
#endif

#include "base/hash.h"

enum { TRAILER_MAGIC = 0x4354, TRAILER_VERSION = 3, TRAILER_STAMPS_MAX = 14 };

struct capsule_trailer {
    uint16_t magic;   // TRAILER_MAGIC
    uint8_t version;  // TRAILER_VERSION
    uint8_t counts;   // of stamps there (the low four bits), and of those there is room for
    uint16_t asked;   // one bit for each hop that is to stamp the packet
    uint16_t balance; // makes the sum 0
    uint64_t run;     // random
    uint64_t chain;   // trailer_link() of all stamps, in order
};
_Static_assert(sizeof(struct capsule_trailer) == 24, "the format is fixed");

// A stamp: the hop in the lowest four bits, above them CLOCK_MONOTONIC ns, of 36 years.
static inline uint64_t trailer_stamp(uint64_t time_ns, unsigned hop)
{
    return time_ns << 4 | hop;
}

static inline uint64_t trailer_stamp_time(uint64_t stamp)
{
    return stamp >> 4;
}

static inline unsigned trailer_stamp_hop(uint64_t stamp)
{
    return stamp & 15;
}

static inline uint32_t trailer_count(const struct capsule_trailer *head)
{
    return head->counts & 15;
}

static inline uint32_t trailer_room(const struct capsule_trailer *head)
{
    return head->counts >> 4;
}

// Of all of a trailer with room for so many stamps.
static inline uint32_t trailer_bytes(uint32_t room)
{
    return (uint32_t)sizeof(struct capsule_trailer) + 8 * room;
}

// Where a chain begins. The key is the run's own, and in no packet; with what the packet is known
// by a trailer that is copied to another one is none.
static inline uint64_t trailer_chain(uint64_t key, uint64_t run, uint16_t asked, uint64_t packet)
{
    return hash64(hash64(hash64(key ^ run) ^ asked) ^ packet);
}

static inline uint64_t trailer_link(uint64_t chain, uint64_t stamp)
{
    return hash64(chain ^ stamp);
}

// The 16-bit ones' complement sum of eight bytes, in the machine's order: the order of bytes makes
// no difference to whether it is 0 (RFC 1071).
static inline uint32_t trailer_sum(uint64_t bytes)
{
    uint64_t sum = (bytes & 0xffffffff) + (bytes >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint32_t)((sum & 0xffff) + (sum >> 16));
}

// Of a head with all its members.
static inline uint32_t trailer_head_sum(const struct capsule_trailer *head)
{
    uint64_t first = (uint64_t)head->magic | (uint64_t)head->version << 16 |
                     (uint64_t)head->counts << 24 | (uint64_t)head->asked << 32 |
                     (uint64_t)head->balance << 48;
    return trailer_sum((uint64_t)trailer_sum(first) + trailer_sum(head->run) +
                       trailer_sum(head->chain));
}

// Sets the balance of a head that stands before stamps of that sum.
static inline void trailer_balance(struct capsule_trailer *head, uint32_t stamps)
{
    head->balance = 0;
    head->balance = (uint16_t)~trailer_sum((uint64_t)trailer_head_sum(head) + stamps);
}

// The head of a packet's trailer with its first stamp. room: for how many stamps, this one too.
static inline struct capsule_trailer trailer_begin(uint64_t key, uint64_t run, uint16_t asked,
                                                   uint32_t room, uint64_t packet, uint64_t stamp)
{
    struct capsule_trailer head = {.magic = TRAILER_MAGIC,
                                   .version = TRAILER_VERSION,
                                   .counts = (uint8_t)(room << 4 | 1),
                                   .asked = asked,
                                   .run = run,
                                   .chain =
                                       trailer_link(trailer_chain(key, run, asked, packet), stamp)};
    trailer_balance(&head, trailer_sum(stamp));
    return head;
}

// Takes one more stamp in, for which there is room. The sum stays 0 if the balance loses what the
// rest gains (RFC 1624): the stamp, the new chain for the old one, and one more in the counts.
static inline void trailer_append(struct capsule_trailer *head, uint64_t stamp)
{
    uint64_t before = ~head->chain, one_more = 1u << 24;
    head->counts++;
    head->chain = trailer_link(head->chain, stamp);
    uint64_t gained = one_more + (uint32_t)stamp + (stamp >> 32) + (uint32_t)head->chain +
                      (head->chain >> 32) + (uint32_t)before + (before >> 32);
    head->balance =
        (uint16_t)trailer_sum((uint64_t)head->balance + (~trailer_sum(gained) & 0xffff));
}

// Whether it is one of this run, by what can be seen without its stamps. bytes: how many lie behind
// the IP packet.
static inline bool trailer_is_ours(const struct capsule_trailer *head, uint64_t run, uint32_t bytes)
{
    return head->magic == TRAILER_MAGIC && head->version == TRAILER_VERSION && head->run == run &&
           trailer_count(head) >= 1 && trailer_count(head) <= trailer_room(head) &&
           trailer_room(head) <= TRAILER_STAMPS_MAX && bytes >= trailer_bytes(trailer_room(head));
}

#endif
