// SPDX-License-Identifier: MIT
//
// Which sockets a capture of kernel events watches, by local port and network namespace, and the
// table in which its programs keep their connections: those that are older than the capture are
// entered by an iterator over the kernel's sockets (tcp4, tcp6:
// Documentation/bpf/bpf_iterators.rst), those that have ended make room for others.
#ifndef PROFILER_EVENTS_WATCHED_SOCKETS_H
#define PROFILER_EVENTS_WATCHED_SOCKETS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "profiler/bpf/event_log.h"

struct event_program_state;
struct events_bpf;

struct connection_array ARRAY_OF(struct connection);

// A zeroed one watches nothing.
struct watched_sockets {
    uint64_t ports[65536 / 64];         // one bit a TCP port
    uint32_t room;                      // how many connections the table holds
    struct events_bpf *programs;        // loaded, not owned
    struct event_program_state *states; // of theirs, EVENT_PROGRAMS; not owned
    bool processes_named;               // the namespaces are those of processes, not a guess
    struct connection_array ended;      // connections that were taken out of the table ...
    uint64_t evicted;                   // ... and how many have been since the begin
    uint64_t seen;                      // entered into it when it was last looked through ...
    uint64_t gone;                      // ... of which so many had ended ...
    int64_t looked_ns;                  // ... by the monotonic clock
};

// Adds a port, before the programs are loaded or afterwards. False: it was there already, or is
// none (0).
bool watched_sockets_add_port(struct watched_sockets *sockets, uint16_t port);

// Enters the connections of the caller's network namespace that exist already. Where the kernel
// refuses, the state of the iterator's program says so from then on.
void watched_sockets_look_up(struct watched_sockets *sockets);

// Watches the sockets of that process's network namespace, and from the first such call on only of
// such namespaces; enters its connections that exist already. port: as watched_sockets_add_port.
// Returns the namespace (an inode), 0 where it cannot be read.
uint32_t watched_sockets_add_process(struct watched_sockets *sockets, uint32_t process,
                                     uint16_t port);

// Takes connections that have ended out of the table when that is due: milliseconds now and then,
// else three loads.
void watched_sockets_evict(struct watched_sockets *sockets);

// Adds all connections that are in the table now; the whole is by id then. The caller owns it, also
// after an error (no memory).
int watched_sockets_list(struct watched_sockets *sockets, struct connection_array *out,
                         struct error *err);

// Those that were taken out of the table since the last call, by id: nobody else has them any more.
// The caller owns them.
void watched_sockets_take_ended(struct watched_sockets *sockets, struct connection_array *out);

// The ports, as numbers; the caller owns the array. NULL: no memory.
json_t *watched_sockets_ports(const struct watched_sockets *sockets);

void watched_sockets_free(struct watched_sockets *sockets);

#endif
