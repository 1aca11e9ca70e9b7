// SPDX-License-Identifier: MIT
//
// The collector's figures for people and for scripts: whether the shim was loaded at all, what it
// could not see, and all of that as JSON.
#ifndef SHIM_MESSAGE_STATS_H
#define SHIM_MESSAGE_STATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/peer_programs.h"

struct message_thread {
    uint32_t process;
    uint32_t thread;
    uint64_t calls; // taken from its ring
};

struct message_process {
    uint32_t process;
    char name[16];
    uint64_t connections; // accepted and watched since it attached
    uint64_t dropped;     // calls lost because the memory for records was full
    bool inert;           // the shim does nothing in it, because of seccomp
    bool io_uring;        // has an io_uring: calls through it are not seen
};

struct message_stats {
    uint64_t calls;        // written to calls.tlog
    uint64_t connections;  // written to connections.tlog: accepted ones
    uint64_t outgoing;     // the same: connected ones
    uint64_t dropped;      // calls lost, all reasons below together; also in the log's header
    uint64_t dropped_full; // the memory for records was full
    uint64_t dropped_without_ring;   // a signal, or the thread's end, came between
    uint64_t dropped_unnamed;        // datagrams of which nobody said whose they are
    uint64_t dropped_memory;         // more than the collector's memory can hold
    uint64_t rejected;               // invalid entries
    uint64_t unidentified;           // calls of a connection that was never identified
    uint64_t doubtful;               // calls whose bytes' place is not known, or that were not seen
    uint64_t doubtful_connections;   // whose byte counts are not the kernel's
    uint64_t incomplete_connections; // some of whose calls are among those that were lost
    uint64_t checks, checks_agreed;  // of the two counts; those that came out even
    uint64_t behind;                 // descriptors that were closed in a way that was not seen
    uint64_t late;                   // calls that ended after their connection was closed
    uint64_t unseen_connections;     // beyond the shim's tables, or used through stdio
    uint64_t damaged;                // parts of the shared memory that made no sense
    uint64_t untold;  // calls of threads of another PID namespace whose number here is not known
    uint64_t foreign; // processes claimed by a user who has none such
    struct peer_program_array peers; // of the connected ones
    struct message_process *processes;
    size_t process_count;
    struct message_thread *threads;
    size_t thread_count;
    char warning[800]; // a warning for the user, empty when all is well
};

void message_stats_free(struct message_stats *stats);

// For capture.json. The caller owns it; NULL: out of memory.
json_t *message_stats_json(const struct message_stats *stats);

struct message_notes {
    const char *dir;
    const uint16_t *ports; // RING_PORTS of them
};

// Fills stats->warning.
void message_warning_write(struct message_stats *stats, const struct message_notes *notes);

// Whether the process has an io_uring, as far as it still lives and can be inspected: calls through
// an io_uring do not go through libc, so the shim does not see them.
bool process_has_io_uring(uint32_t process);

#endif
