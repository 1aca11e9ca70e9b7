// SPDX-License-Identifier: MIT
//
// The shared memory between a server that has the shim loaded (producer) and the collector
// (consumer): a directory on a tmpfs with three kinds of file.
//
//   control                    written by the collector, mapped read-only by the shim
//   process-<pid>-<n>          one page a process writes as soon as the shim is in it: "I am here",
//                              and what it could not see or keep
//   ring-<pid>-<thread>-<n>    one ring per thread: a page of header, then 64-byte entries
//
// Each ring has one producer and one consumer; head and tail only grow. The producer never waits:
// a full ring drops the call and counts it. Every entry carries its position (`sequence`), so the
// consumer recognises what was overwritten or never completed. Neither side trusts what the other
// writes: the producer masks indices with a size of its own, the consumer copies with pread (no
// SIGBUS when a file shrinks under it) and checks every field. Header-only: the shim uses it.
#ifndef SHIM_RING_H
#define SHIM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/message_log.h"

#define CONTROL_MAGIC 0x31544e4f434c4154ULL // "TALCONT1" as it lies in memory
#define PROCESS_MAGIC 0x31434f52504c4154ULL // "TALPROC1"
#define RING_MAGIC    0x31474e49524c4154ULL // "TALRING1"

enum {
    RING_VERSION = 3,
    RING_PAGE_BYTES = 4096,
    RING_ENTRY_BYTES = 64,
    RING_MIN_ENTRIES = 64,
    RING_MAX_ENTRIES = 1 << 22,
    RING_DEFAULT_BYTES = 4 << 20, // 65,536 calls
    RING_PORTS = 16,              // servers of one capture
    RING_ANNOUNCEMENT = 128,      // an entry's kind beside enum call_kind: who a connection is
};

enum control_state {
    CONTROL_NONE = 0,    // no collector
    CONTROL_ARMED = 1,   // attach, make rings, count bytes; record nothing yet
    CONTROL_ENABLED = 2, // record
    CONTROL_CLOSED = 3,  // the collector has left: detach
};

struct control_page {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t state; // enum control_state
    uint64_t ring_entries;  // per ring, a power of two
    uint32_t ring_limit;    // rings one process may make
    uint32_t owner;         // the collector's pid
    // Watch only connections to these local ports, up to a 0; none: to all.
    uint16_t ports[RING_PORTS];
    uint32_t peers; // watch what the process connects to, too
};

// Whether connections to a local port are watched.
static inline bool ring_wants_port(const uint16_t ports[RING_PORTS], uint16_t port)
{
    bool wanted = ports[0] == 0;
    for (int i = 0; i < RING_PORTS && ports[i] && !wanted; i++)
        wanted = ports[i] == port;
    return wanted;
}

// Counters only grow; the process that owns the page adds to them.
struct process_page {
    uint64_t magic; // written last
    uint32_t version;
    uint32_t process;
    uint64_t instance;                // TSC at attachment: tells apart users of one pid
    char name[16];                    // the kernel's name of the process
    _Atomic uint64_t without_ring;    // calls not recorded: their thread could not make a ring
    _Atomic uint64_t late;            // calls that ended after their connection was closed
    _Atomic uint64_t unwatched;       // connections beyond what the shim's tables hold
    _Atomic uint64_t stdio;           // connections handed to stdio, whose reads cannot be seen
    _Atomic uint64_t stale;           // descriptors closed without the shim seeing it
    _Atomic uint64_t accepted;        // connections watched
    _Atomic uint64_t rings_failed;    // rings that could not be made
    _Atomic uint32_t ring_last_errno; // why, the last time
};
_Static_assert(sizeof(struct process_page) <= RING_PAGE_BYTES, "one page");

struct ring_header {
    uint64_t magic; // written last
    uint32_t version;
    uint32_t process;
    uint64_t instance;
    uint64_t epoch;   // of the producer's attachment
    uint64_t entries; // a power of two
    uint32_t thread;  // the first to use it; a retired ring serves a later thread
    uint32_t reserved;
    uint8_t padding1[16];
    _Atomic uint64_t head;    // producer: entries ever written
    _Atomic uint64_t dropped; // producer: calls a full ring had no room for
    uint8_t padding2[48];
    _Atomic uint64_t tail; // consumer: entries ever taken
    uint8_t padding3[56];
};
_Static_assert(offsetof(struct ring_header, head) == 64, "a cache line each for the two sides");
_Static_assert(offsetof(struct ring_header, tail) == 128, "a cache line each for the two sides");

// The identity of a connection, sent once before (or, after a full ring, soon after) its first
// call.
struct ring_announcement {
    uint64_t cookie;
    uint64_t opened_tsc;
    uint8_t local[16];
    uint8_t peer[16];
    uint16_t local_port;
    uint8_t kind;     // RING_ANNOUNCEMENT
    uint8_t outgoing; // as struct connection
    uint32_t sequence;
    uint16_t peer_port;
    uint8_t protocol; // the same
    uint8_t padding;
    uint32_t connection; // the process's own id, from 1
};

union ring_entry {
    struct call call; // `padding` holds the sequence
    struct ring_announcement announcement;
};
_Static_assert(sizeof(union ring_entry) == RING_ENTRY_BYTES, "entries are cache lines");
_Static_assert(offsetof(struct ring_announcement, kind) == offsetof(struct call, kind), "one tag");
_Static_assert(offsetof(struct ring_announcement, sequence) == offsetof(struct call, padding),
               "one sequence");

struct ring_producer {
    struct ring_header *shared; // NULL: no ring
    union ring_entry *entries;
    uint64_t mask;
    uint64_t head;
    uint64_t cached_tail; // cached value; reading it again touches the consumer's cache line
};

static inline uint64_t ring_file_bytes(uint64_t entries)
{
    return RING_PAGE_BYTES + entries * RING_ENTRY_BYTES;
}

// Position p is written with this sequence; never what a fresh (zero) entry holds at position 0.
static inline uint32_t ring_sequence(uint64_t position)
{
    return (uint32_t)(position + 1);
}

// Begins to produce into a mapped ring of `entries` entries, where its previous user stopped.
static inline void ring_producer_init(struct ring_producer *ring, void *mapping, uint64_t entries)
{
    ring->shared = mapping;
    ring->entries = (union ring_entry *)((char *)mapping + RING_PAGE_BYTES);
    ring->mask = entries - 1;
    ring->head = atomic_load_explicit(&ring->shared->head, memory_order_acquire);
    ring->cached_tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
}

// The entry to fill in next, or NULL (counted as a drop) when the ring is full. A tail beyond the
// head, which only a broken consumer writes, counts as full.
static inline union ring_entry *ring_reserve(struct ring_producer *ring)
{
    if (__builtin_expect(ring->head - ring->cached_tail > ring->mask, 0)) {
        ring->cached_tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
        if (ring->head - ring->cached_tail > ring->mask) {
            atomic_fetch_add_explicit(&ring->shared->dropped, 1, memory_order_relaxed);
            return NULL;
        }
    }
    return &ring->entries[ring->head & ring->mask];
}

// Makes the reserved entry visible to the consumer.
static inline void ring_commit(struct ring_producer *ring, union ring_entry *entry)
{
    entry->call.padding = ring_sequence(ring->head);
    ring->head++;
    atomic_store_explicit(&ring->shared->head, ring->head, memory_order_release);
}

#endif
