// SPDX-License-Identifier: MIT
//
// Merges the entries of many rings into the two logs of a run: gives every connection an id that is
// unique among all processes, sorts all calls by their entry, and writes both.
#ifndef SHIM_MESSAGE_MERGE_H
#define SHIM_MESSAGE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shim/message_checks.h"
#include "shim/message_identity.h"
#include "shim/peer_programs.h"
#include "shim/ring_reader.h"

// All connections of a capture so far: an id stays what it was when the capture is written in
// several segments.
struct identities {
    struct identity_array all; // in the order of identity_compare
    uint32_t last_id;
};

struct message_merge {
    // in
    struct ring_reader *const *rings;
    size_t ring_count;
    struct identities *identities;
    const uint16_t *ports; // RING_PORTS of them
    bool wants_peers;
    bool last;             // no more will come: what is not known now never will be
    uint64_t before_tsc;   // calls that returned before this have been held back once already
    uint64_t lost;         // calls known to be missing, for the log's header
    const char *out_dir;   // NULL: nothing is written, only forgotten
    const char *calls_log; // a file's name: calls.tlog
    struct peer_program_array *peers; // gets the connected ones' peers; NULL: not wanted
    // out
    uint64_t calls;               // written
    uint64_t connections;         // accepted ones written
    uint64_t outgoing;            // connected ones written
    uint64_t unidentified;        // calls of connections that were never announced
    struct message_checks checks; // the shim's byte counts beside the kernel's
    uint64_t incomplete;          // connections some of whose calls are lost
    uint64_t doubtful_calls;      // calls that are not known to stand where they say
};

// Writes out_dir/connections.tlog, of all connections so far, and the calls since the last time,
// which the rings then no longer have. Calls on connections that are not wanted are dropped without
// being counted (ring_wants_port), and so are those on connected ones unless wants_peers.
// Unidentified and doubtful ones are added to the lost ones; before the last time they are held
// back once, because what comes next may clear them up.
int message_merge_write(struct message_merge *merge, struct error *err);

#endif
