// SPDX-License-Identifier: MIT
//
// The shared memory between servers that have the shim loaded (producers) and the collector
// (consumer): a directory on a tmpfs with
//
//   control     written by the collector, mapped read-only by the shim
//   pool-<uid>  memory for the servers of one user: all of it is made by the collector, and its
//   size
//               is all that the shim's records ever take
//   hello       a socket at which a server of a user who has no pool yet makes itself known
//
// A pool has a page of header, two tables of owners, a page of counters for each process, and
// chunks of entries. A process takes a free place in the first table as soon as the shim is in it;
// a thread takes a free chunk whenever it has filled the one it had. Taking is one
// compare-and-swap, needs no system call, and says who owns it, so that the collector gets back
// what a dead process held. A full chunk is sealed: the collector takes its entries and frees it.
// So a thread's ring is as large as what it records in the time the collector needs.
//
// The producer never waits: without a free chunk it drops the call and counts it. Every entry
// carries its position among its thread's (`sequence`), so the consumer recognises what was never
// completed. Neither side trusts what the other writes: the producer indexes only by what it took
// itself, the consumer copies with pread (no SIGBUS when a file shrinks under it) and checks every
// field. Header-only: the shim uses it.
#ifndef SHIM_RING_H
#define SHIM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/message_log.h"

#define CONTROL_MAGIC 0x31544e4f434c4154ULL // "TALCONT1" as it lies in memory
#define POOL_MAGIC    0x314c4f4f504c4154ULL // "TALPOOL1"

enum {
    RING_VERSION = 6,
    RING_PAGE_BYTES = 4096,
    RING_ENTRY_BYTES = 64,
    RING_CHUNK_BYTES = 16384,
    RING_CHUNK_ENTRIES = RING_CHUNK_BYTES / RING_ENTRY_BYTES - 1,
    RING_MAX_CHUNKS = 1 << 16,     // 1 GiB
    RING_DEFAULT_BYTES = 64 << 20, // all pools of a directory together
    RING_PORTS = 16,               // servers of one capture
    RING_ANNOUNCEMENT = 128,       // an entry's kind beside enum call_kind: who a connection is
    RING_CHECK = 129,              // the same: its counts beside the kernel's
};

enum control_state {
    CONTROL_NONE = 0,    // no collector yet: map the pool, do nothing else
    CONTROL_ARMED = 1,   // attach, take chunks, count bytes; record nothing yet
    CONTROL_ENABLED = 2, // record
    CONTROL_CLOSED = 3,  // the collector has left: detach
};

struct control_page {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t state; // enum control_state
    uint32_t owner;         // the collector's pid; 0: made before its collector
    uint32_t reserved;
    // Watch only connections to these local ports, up to a 0; none: to all.
    uint16_t ports[RING_PORTS];
    uint32_t peers;            // watch what the process connects to, too
    _Atomic uint32_t commands; // say with which command begins what is received
};

// Whether connections to a local port are watched.
static inline bool ring_wants_port(const uint16_t ports[RING_PORTS], uint16_t port)
{
    bool wanted = ports[0] == 0;
    for (int i = 0; i < RING_PORTS && ports[i] && !wanted; i++)
        wanted = ports[i] == port;
    return wanted;
}

struct pool_header {
    uint64_t magic;
    uint32_t version;
    uint32_t chunks;         // and places for as many processes
    _Atomic uint32_t search; // where the next search for a free chunk begins
    uint32_t reserved;
    _Atomic uint64_t lost; // calls not recorded: their process found no place
};

// Of one process. Counters only grow, by its own hand.
struct process_page {
    _Atomic uint64_t ready;        // its instance, written last
    uint64_t pid_namespace;        // inode; 0: unknown
    char name[16];                 // the kernel's name of the process
    _Atomic uint64_t dropped_full; // calls not recorded: no chunk was free
    _Atomic uint64_t without_ring; // calls not recorded: a signal or the thread's end came between
    _Atomic uint64_t late;         // calls that ended after their connection was closed
    _Atomic uint64_t unwatched;    // connections beyond what the shim's tables hold
    _Atomic uint64_t stdio;        // connections handed to stdio, whose reads cannot be seen
    _Atomic uint64_t stale;        // descriptors closed without the shim seeing it
    _Atomic uint64_t accepted;     // connections watched
    _Atomic uint32_t inert;        // enum inert_reason: the shim stopped doing anything
    _Atomic uint32_t unnamed;      // datagrams not recorded: nobody said whose they are
    uint32_t reserved[8];
};
_Static_assert(sizeof(struct process_page) == 128, "two cache lines");

enum inert_reason { INERT_NOT = 0, INERT_SECCOMP = 1 };

// The identity of a connection, sent once before (or, after calls were dropped, soon after) its
// first call.
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

// How many bytes a program has taken out of a connection (0) and put into it (1): by the shim's
// count, from which the offsets of its calls are, and by the kernel's.
struct ring_check {
    uint64_t tsc;
    uint64_t counted[2];
    uint64_t kernel[2];
    uint32_t connection;
    uint32_t reserved;
    uint8_t directions; // set of 1 << direction: which of them were looked at
    uint8_t other;      // 1: the descriptor is something else by now, and nobody knows since when
    uint8_t kind;       // RING_CHECK
    uint8_t padding;
    uint32_t sequence;
    uint64_t unused;
};

union ring_entry {
    struct call call; // `padding` holds the sequence
    struct ring_announcement announcement;
    struct ring_check check;
};
_Static_assert(sizeof(union ring_entry) == RING_ENTRY_BYTES, "entries are cache lines");
_Static_assert(offsetof(struct ring_announcement, kind) == offsetof(struct call, kind), "one tag");
_Static_assert(offsetof(struct ring_check, kind) == offsetof(struct call, kind), "one tag");
_Static_assert(offsetof(struct ring_check, sequence) == offsetof(struct call, padding),
               "one sequence");
_Static_assert(offsetof(struct ring_announcement, sequence) == offsetof(struct call, padding),
               "one sequence");

struct ring_chunk {
    _Atomic uint32_t used; // entries that are complete
    uint32_t process, thread;
    uint32_t reserved;
    uint64_t instance; // TSC when the process attached: tells apart users of one pid
    uint64_t first;    // position of its first entry among the thread's
    uint64_t began;    // TSC when the thread began to record: tells apart users of one thread id
    uint8_t padding[24];
    union ring_entry entries[RING_CHUNK_ENTRIES];
};
_Static_assert(sizeof(struct ring_chunk) == RING_CHUNK_BYTES, "no gaps");

// An owner of a chunk is the number of its process's place, from 1; 0: free.
#define CHUNK_SEALED 0x80000000U // full, or its thread has ended: nobody writes to it any more

// A process's place: low half its pid, high half bits of its instance; 0: free.
static inline uint64_t ring_place_owner(uint32_t process, uint64_t instance)
{
    return (instance | 1) << 32 | process;
}

// Where the parts of a pool of so many chunks begin, in bytes.
struct pool_layout {
    size_t places, owners, pages, chunks, bytes;
};

static inline struct pool_layout pool_layout_of(uint32_t chunks)
{
    struct pool_layout layout = {.places = RING_PAGE_BYTES};
    size_t mask = RING_PAGE_BYTES - 1;
    layout.owners = layout.places + chunks * sizeof(uint64_t);
    layout.pages = (layout.owners + chunks * sizeof(uint32_t) + mask) & ~mask;
    layout.chunks = (layout.pages + chunks * sizeof(struct process_page) + mask) & ~mask;
    layout.bytes = layout.chunks + (size_t)chunks * RING_CHUNK_BYTES;
    return layout;
}

// A mapped pool.
struct ring_pool {
    struct pool_header *header; // NULL: none
    _Atomic uint64_t *places;
    _Atomic uint32_t *owners;
    struct process_page *pages;
    struct ring_chunk *chunks;
    uint32_t count; // of chunks, and of places
};

static inline struct ring_pool ring_pool_at(void *mapping, uint32_t chunks)
{
    struct pool_layout layout = pool_layout_of(chunks);
    char *base = mapping;
    return (struct ring_pool){.header = mapping,
                              .places = (_Atomic uint64_t *)(base + layout.places),
                              .owners = (_Atomic uint32_t *)(base + layout.owners),
                              .pages = (struct process_page *)(base + layout.pages),
                              .chunks = (struct ring_chunk *)(base + layout.chunks),
                              .count = chunks};
}

// Takes a place for a process. Returns its number from 1, or 0 when all are taken.
static inline uint32_t ring_pool_take_place(struct ring_pool *pool, uint32_t process,
                                            uint64_t instance)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        uint64_t nobody = 0;
        if (atomic_load_explicit(&pool->places[i], memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&pool->places[i], &nobody,
                                           ring_place_owner(process, instance)))
            return i + 1;
    }
    return 0;
}

// Takes a chunk for a process's place. NULL: none is free.
static inline struct ring_chunk *ring_pool_take_chunk(struct ring_pool *pool, uint32_t place)
{
    uint32_t from = atomic_load_explicit(&pool->header->search, memory_order_relaxed);
    for (uint32_t i = 0, at = from % pool->count; i < pool->count; i++) {
        uint32_t nobody = 0;
        if (atomic_load_explicit(&pool->owners[at], memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&pool->owners[at], &nobody, place)) {
            atomic_store_explicit(&pool->header->search, at + 1, memory_order_relaxed);
            return &pool->chunks[at];
        }
        at = at + 1 < pool->count ? at + 1 : 0;
    }
    return NULL;
}

struct ring_producer {
    struct ring_chunk *chunk; // NULL: none
    uint32_t used;            // of the chunk's entries; all of them where there is none
    uint32_t place, process, thread;
    uint64_t instance, began;
    uint64_t position;  // entries ever written
    uint64_t retry_tsc; // when to look for a free chunk again
    struct ring_pool pool;
};

enum { RING_RETRY_CYCLES = 1 << 18 }; // about 0.1 ms

// Gives back the chunk, full or not: its entries are the collector's now.
static inline void ring_seal(struct ring_producer *ring)
{
    if (ring->chunk)
        atomic_store_explicit(&ring->pool.owners[ring->chunk - ring->pool.chunks],
                              ring->place | CHUNK_SEALED, memory_order_release);
    ring->chunk = NULL;
    ring->used = RING_CHUNK_ENTRIES;
}

// Goes on to another chunk. False: none is free.
static inline bool ring_advance(struct ring_producer *ring, uint64_t now_tsc)
{
    ring_seal(ring);
    if (now_tsc < ring->retry_tsc)
        return false;
    ring->chunk = ring_pool_take_chunk(&ring->pool, ring->place);
    if (!ring->chunk) {
        ring->retry_tsc = now_tsc + RING_RETRY_CYCLES;
        return false;
    }
    atomic_store_explicit(&ring->chunk->used, 0, memory_order_relaxed);
    ring->chunk->process = ring->process;
    ring->chunk->thread = ring->thread;
    ring->chunk->instance = ring->instance;
    ring->chunk->first = ring->position;
    ring->chunk->began = ring->began;
    ring->used = 0;
    return true;
}

// A thread's position p is written with this sequence; never what a fresh (zero) entry holds at
// position 0.
static inline uint32_t ring_sequence(uint64_t position)
{
    return (uint32_t)(position + 1);
}

// The entry to fill in next, or NULL when there is no room for it.
static inline union ring_entry *ring_reserve(struct ring_producer *ring, uint64_t now_tsc)
{
    if (__builtin_expect(ring->used >= RING_CHUNK_ENTRIES, 0) && !ring_advance(ring, now_tsc))
        return NULL;
    return &ring->chunk->entries[ring->used];
}

// Makes the reserved entry visible to the consumer.
static inline void ring_commit(struct ring_producer *ring, union ring_entry *entry)
{
    entry->call.padding = ring_sequence(ring->position++);
    atomic_store_explicit(&ring->chunk->used, ++ring->used, memory_order_release);
}

#endif
