// SPDX-License-Identifier: MIT
//
// The hop log of Time Capsule: one record for each packet that passed a hop, written by BPF
// (profiler/bpf/capsule.bpf.c), in order of time: hops.tlog (LOG_HOPS).
//
// This header is read by the BPF compiler too: plain types, no libc.
#ifndef PROFILER_BPF_HOP_LOG_H
#define PROFILER_BPF_HOP_LOG_H

#ifndef __bpf__
#include <stdint.h>
#endif

enum { HOP_LOG_VERSION = 4 };

enum {
    // A packet's way is kept in 64 bits, four a hop (profiler/capsule/packet_join.h).
    HOPS_MAX = 15,
    CAPSULE_FLOWS = 16384, // of streams that are carried; a power of two
};

enum hop_flags {
    // The packet's last byte is not sampled. It is there for packets of other hops, whose last byte
    // is and lies in it.
    HOP_ONLY_COVERS = 1 << 0,
    HOP_FRAGMENT = 1 << 1, // the first of a datagram's fragments: it stands for all of them
    // Of UDP: the kernel carries several datagrams in it, which it divides at the end of their way.
    HOP_BUNDLE = 1 << 2,
    // A SYN, which every hop that looks, begins or ends records, sampled or not: `first` and `end`
    // are the number of the stream's first byte. It is followed nowhere.
    HOP_OPENS = 1 << 3,
    // An egress hop follows it into a queueing discipline (queued_ns), which may divide it (GSO).
    HOP_FOLLOWED = 1 << 4,
    HOP_DIVISIBLE = 1 << 5,
};

struct hop_record {
    uint64_t time; // CLOCK_MONOTONIC ns
    // packet_flow() of profiler/bpf/packet_head.h; in the log, where addresses were translated on
    // the way, that of the flow as whoever opened the connection knows it.
    uint64_t flow;
    // packet_datagram(); TCP: 0. Of packets that carry their stamps: which one it is of all of
    // them.
    uint64_t datagram;
    // TCP: sequence number of the first byte, and the one after the last. UDP: the payload's first
    // two bytes, which number memcached's requests and their replies (base/datagram_key.h), and one
    // more.
    uint32_t first, end;
    uint32_t ip_bytes;  // IP header and all after it
    uint8_t hop;        // its place in the command's list
    uint8_t protocol;   // 6 or 17
    uint8_t flags;      // enum hop_flags
    uint8_t core_after; // 1 more than the number of the core that had it there; 0: not known
    // Of an egress hop that looks: how long it then was in the interface's queueing discipline,
    // until the kernel handed it to the device; 0: not known, or there is none.
    uint64_t queued_ns;
};
_Static_assert(sizeof(struct hop_record) == 48, "the log format is fixed");

// A packet on its way from an egress hop to the device behind it
// (profiler/bpf/queue_waiting.bpf.h).
struct waiting_packet {
    uint64_t entered, flow; // of its hop record
    // What of it stays as it is on its way through the queue: waiting_words().
    uint64_t ports, addresses;
    uint16_t ports_at, addresses_at; // from what is the network's header to the kernel
    uint8_t hop, protocol;
};

// A packet at the device behind an egress hop (profiler/bpf/queue.bpf.c), in the rings with
// the records; it becomes their queued_ns.
struct queue_leaving {
    uint64_t time;          // CLOCK_MONOTONIC ns
    uint64_t entered, flow; // the record's time and flow
    uint64_t hop;
};

// A network device, on its machine.
struct hop_device {
    uint32_t interface;
    uint32_t namespace; // the inode of its network namespace; 0: the kernel has none
};

enum {
    HOP_PLACES = 64, // of a copy of the programs; a power of two, as the next
    HOP_COUNTS = 16, // HOPS_MAX and one
};

// By what a copy of the programs tells its hops apart: their interfaces, which differ in their
// place.
struct hop_at {
    struct hop_device device; // interface 0: none is in this place
    uint32_t hop;
};
static inline uint32_t hop_place(uint32_t interface, uint32_t namespace)
{
    return (interface ^ namespace) & (HOP_PLACES - 1);
}

// What a hop does with the packets that are asked for.
enum hop_role {
    HOP_LOOKS,   // records each; changes nothing
    HOP_BEGINS,  // gives them a trailer with a stamp
    HOP_CARRIES, // stamps those that have one
    HOP_ENDS,    // takes it off, and records it
};

// What a hop saw. Only what the filter takes is counted. What a hop that looks writes into a ring
// is counted by whoever takes it from there: a counter of the program's own, behind the record,
// would wait until the caches have the record's place.
struct hop_counts {
    // Hops on different cores share no cache line.
    _Alignas(64) uint64_t matched; // packets. Of hops that look, all of the next four
    uint64_t recorded;             // of them; counted where they are taken from the rings
    uint64_t unsampled;            // of them: left out by the sampling
    // Of them: TCP packets without payload, which nothing tells apart. SYNs are among them where
    // packets begin to carry and where they end, else they are recorded.
    uint64_t bare;
    uint64_t dropped; // of them: the ring was full
    // Of the recorded, where the interface has a queueing discipline: followed into it, and of
    // these seen as they left it, which those are not that it dropped or divided (GSO).
    uint64_t queued, left;
    // Fragments that are not the first: they have no ports, so they are counted by all else that
    // the filter asks, and the first stands for them.
    uint64_t fragments;
    uint64_t unreadable; // packets whose headers end too early or say no length; of any protocol
    // Packets with more than two VLAN tags in the frame, beside the one that the kernel keeps
    // beside it. Of any protocol; left alone.
    uint64_t tagged;
    // Of hops that carry.
    uint64_t begun;       // got a trailer
    uint64_t stamped;     // had one, and got a stamp
    uint64_t ended;       // had one, which was taken off
    uint64_t no_room;     // left alone: with the trailer too long for an interface of the way
    uint64_t bundled;     // left alone: the kernel divides them later (GSO), or has merged them
    uint64_t sent_again;  // left alone: of a stream, and bytes that were carried before
    uint64_t foreign;     // left alone: something else lies behind the IP packet
    uint64_t damaged;     // of the ended: a trailer of this run that was changed on the way
    uint64_t not_stamped; // the kernel refused to change the packet, which went on as it was
    uint64_t reserved[5]; // to the end of a cache line
};
_Static_assert(sizeof(struct hop_counts) == 192, "no bytes between them, and whole cache lines");

#endif
