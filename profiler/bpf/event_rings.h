// SPDX-License-Identifier: MIT
//
// What events.bpf.c and its loader (profiler/events/events_capture.c) share: where each core's
// records go. Read by the BPF compiler too: plain types, no libc.
#ifndef PROFILER_BPF_EVENT_RINGS_H
#define PROFILER_BPF_EVENT_RINGS_H

#include "profiler/bpf/event_log.h"

enum {
    EVENTS_MAX_CORES = 1024,
    // Positions kept free when the fill is checked, for programs that interrupt one another between
    // that check and the reservation.
    EVENTS_SLACK = 64,
    EVENTS_THREADS = 4096,     // table of threads whose process has been recorded; a power of two
    EVENTS_SERVERS = 4096,     // tables of threads that have watched sockets; a power of two
    EVENTS_REFUSED = 1 << 20,  // sockets that found no room, told apart
    EVENTS_SOCKETS = 8192,     // tables of sockets: known, and handed last; a power of two
    EVENTS_DETOURS = 1024,     // table of threads in a detour; a power of two
    EVENTS_NAMESPACES = 16,    // network namespaces that are watched at most
    EVENTS_NAMESAKES = 16384,  // threads of other PID namespaces that are known
    EVENTS_RUNTIMES = 256,     // processes with a runtime whose waits are known
    EVENTS_DROP_REASONS = 256, // of the kernel's enum skb_drop_reason that are counted
};

// The first bytes of what a socket call moved, where they may be looked at: for the reader's eyes
// only, which takes from them where messages end. A client that asks far ahead has many messages in
// one call, which is seen whole up to what servers read at once (memcached 16 KiB, Redis up to
// twice that); of what is longer, and so most likely one long message, the beginning. So it is of
// any long call while the reader lags: calls that are long because their messages are would fill
// the ring.
enum {
    PAYLOAD_SHORT = 96,
    PAYLOAD_BEGINNING = 2048,
    PAYLOAD_WHOLE = 32768,
    PAYLOAD_UNREAD_MOST = 4 << 20, // of the ring, for a long call to be seen whole
    PAYLOAD_STEP = 2048,           // of a call's vector at a time
    PAYLOAD_STEPS = 256,
};

struct payload_head {
    uint64_t time;
    uint64_t offset; // of the first byte in that direction's stream
    uint32_t id;
    uint32_t bytes; // that the call moved
    uint16_t seen;  // of these, behind the head
    uint16_t core;
    uint8_t is_reply;
    uint8_t reserved[3];
};

// What the programs note as the process of a connection in their table, who do not know its own.
enum { SOCKET_ENDED = 1 };

// What waits in futex at these addresses are of in a process.
struct runtime_waits {
    uint64_t begin, end;
    uint64_t flag; // BLOCKED_INTERPRETER, BLOCKED_PARKED
};

// A thread began to do something for the kernel's memory.
struct detour_begin {
    uint64_t time;
    uint64_t child; // FORK: the memory that is being copied to
    uint32_t thread;
    uint32_t kind; // enum event_detour; 0: none
};

// Where the streams of a watched connection begin, for segments seen below TCP. A connection has
// three entries. Who sees its packets arrive knows both addresses and the network namespace, in
// which no other connection has these ends. Who sees its client, which may be in another namespace,
// or before an address translation, knows the client's address, and the number of the first byte.
// Who sees a packet anywhere on its way knows both addresses.
struct stream_key {
    uint8_t local[16]; // of the server; zeros: the key of the client's
    uint8_t peer[16];
    uint32_t ports;     // peer's port << 16 | local port
    uint32_t namespace; // inode; of the client's key: the first sequence number; 0: on its way
};

struct stream {
    uint32_t first; // sequence number of the requests' offset 0
    uint32_t id;
    uint64_t reached;       // the latest offset
    uint32_t namespace;     // of the connection
    uint32_t first_replied; // sequence number of the replies' offset 0
    uint8_t local[16];      // of the other entries' keys
};

// The datagram that a core delivers right now: from its arrival at IP to its hand-off it stays on
// that core, and no other one comes in between.
struct datagram_delivery {
    uint64_t key;  // base/datagram_key.h
    uint32_t port; // local; 0: none
    uint32_t reserved;
};

// Whether a core's scheduler, interrupt and page-fault events are recorded. In the last two states
// the first program to write a record on the core writes EVENT_WATCHED before it.
enum core_watch {
    CORE_UNWATCHED,
    CORE_WATCHED,
    CORE_TO_BEGIN,  // asked for
    CORE_TO_FOLLOW, // it delivers or serves, though nobody asked for it
};

#define EVENTS_NO_THREAD 0xffffffffu

// A core's ring: records [base, base + mask] of the events array. Positions count up for ever; the
// slot of one is `position & mask`. Only programs on that core move head, only the reader tail.
struct core_ring {
    uint64_t head;    // positions reserved
    uint64_t tail;    // positions read
    uint64_t dropped; // events that found the ring full
    uint32_t base;
    uint32_t mask;    // records - 1; records are a power of two
    uint32_t watched; // enum core_watch
    uint32_t current; // the thread last recorded as switched in, or EVENTS_NO_THREAD
    uint32_t reserved[2];
    // address of the account that this virtual machine's host keeps of the core, or 0
    uint64_t steal_time;
    uint64_t stolen; // that account at the latest record: ns that the host gave to others
    uint64_t reserved_too[8];
};
_Static_assert(sizeof(struct core_ring) == 128,
               "whole cache lines, so that cores do not share one");

#endif
