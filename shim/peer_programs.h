// SPDX-License-Identifier: MIT
//
// Which program of this machine listens where a server has connected to: asked of /proc, in the
// network namespace of the process that connected.
#ifndef SHIM_PEER_PROGRAMS_H
#define SHIM_PEER_PROGRAMS_H

#include "base/array.h"
#include "base/connection_text.h"

struct peer_program {
    struct connection connection; // one of those to that peer
    char address[CONNECTION_TEXT_BYTES];
    char program[16]; // the kernel's name of the process that listens there; "": not known
    uint32_t process; // its pid, 0: not known
    uint64_t socket;  // its listening socket, 0: none on this machine
};
struct peer_program_array ARRAY_OF(struct peer_program);

// Adds an outgoing connection's peer, unless it is there already or there are very many.
// -1: no memory.
int peer_programs_add(struct peer_program_array *peers, const struct connection *connection);

// Fills in what is known of the programs.
void peer_programs_find(struct peer_program_array *peers);

#endif
