// SPDX-License-Identifier: MIT
//
// Merges the entries of many rings into the two logs of a run: gives every connection an id that is
// unique among all processes, sorts all calls by their entry, and writes both.
#ifndef SHIM_MESSAGE_MERGE_H
#define SHIM_MESSAGE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "shim/peer_programs.h"
#include "shim/ring_reader.h"

struct message_merge {
    uint64_t calls;                   // out: written
    uint64_t connections;             // out: accepted ones written
    uint64_t outgoing;                // out: connected ones written
    struct peer_program_array *peers; // in: gets the connected ones' peers; NULL: not wanted
    uint64_t unidentified;            // out: calls of connections that were never announced
};

// Writes out_dir/connections.tlog and out_dir/calls.tlog. The rings' arrays are sorted and changed
// in place. ports: RING_PORTS of them; calls on other connections are dropped without being counted
// (ring_wants_port), and so are those on connected ones unless peers. lost: number of calls known
// to be missing, for the log's header; unidentified ones are added.
int message_merge_write(struct ring_reader *const *rings, size_t count, const uint16_t *ports,
                        bool peers, uint64_t lost, const char *out_dir, struct message_merge *merge,
                        struct error *err);

#endif
