// SPDX-License-Identifier: MIT
//
// The collector: the consumer of the shim's rings (shim/ring.h). It makes the directory a server
// is pointed at (TAILLIGHT_SHIM_DIR), empties the rings while the capture runs, and at the end
// writes calls.tlog and connections.tlog (shim/message_log.h, base/connection.h).
//
// The server may start before or after it, may fork, and may die at any instant. Nothing in the
// directory is trusted: what is not plausible is counted as rejected, never followed.
//
// Not thread-safe: one thread polls (the caller pins it; every 20 ms is plenty for rings of the
// default size), or the caller locks.
#ifndef SHIM_MESSAGE_COLLECTOR_H
#define SHIM_MESSAGE_COLLECTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct message_collector;

struct message_thread {
    uint32_t process;
    uint32_t thread;  // the first user of the ring; threads that end leave it to later ones
    uint64_t calls;   // taken from its ring
    uint64_t dropped; // by its ring, because it was full
};

struct message_process {
    uint32_t process;
    char name[16];
    uint64_t connections; // accepted and watched since it attached
    bool io_uring;        // has an io_uring: calls through it are not seen
};

struct message_stats {
    uint64_t calls;        // written to calls.tlog
    uint64_t connections;  // written to connections.tlog
    uint64_t dropped;      // calls lost, all reasons below together; also in the log's header
    uint64_t dropped_full; // rings were full
    uint64_t dropped_without_ring; // a thread could not make a ring, or a signal came in between
    uint64_t dropped_memory;       // beyond what the collector keeps in memory
    uint64_t rejected;             // entries that made no sense
    uint64_t unidentified;         // calls of a connection whose identity was lost
    uint64_t late;                 // calls that ended after their connection was closed
    uint64_t unseen_connections;   // beyond the shim's tables, or handed to stdio
    uint64_t damaged_files;        // in the directory, that were not what their name says
    struct message_process *processes;
    size_t process_count;
    struct message_thread *threads; // one per ring
    size_t thread_count;
    char warning[800]; // what a person should know, empty when all is well
};

// Makes `dir` (whose parent exists, on a tmpfs) and arms it: servers may attach. One left behind
// by a collector that died is taken over. ring_bytes: 0 for the default, rounded up to a power of
// two entries; ports: none for every accepted connection. On success *out is the caller's to free.
int message_collector_create(const char *dir, size_t ring_bytes, const uint16_t *ports,
                             size_t port_count, struct message_collector **out, struct error *err);

// From now on calls are recorded; before, bytes were only counted. A call that is under way, such
// as a blocked receive, is counted too but not recorded.
void message_collector_enable(struct message_collector *collector);

// Looks for new rings and empties those at least half full.
int message_collector_poll(struct message_collector *collector, struct error *err);

// How many processes have the shim loaded and have attached, as of the last poll.
size_t message_collector_attached(const struct message_collector *collector);

// Ends the recording, takes what is left, writes the two logs into out_dir, removes the directory,
// and fills *stats (free with message_stats_free, on failure too). Once only.
int message_collector_finish(struct message_collector *collector, const char *out_dir,
                             struct message_stats *stats, struct error *err);

// Also ends an unfinished collection and removes its directory. NULL is harmless.
void message_collector_free(struct message_collector *collector);

void message_stats_free(struct message_stats *stats);

// For capture.json. The caller owns it; NULL: out of memory.
json_t *message_stats_json(const struct message_stats *stats);

#endif
