// SPDX-License-Identifier: MIT
//
// Which protocols there are (protocols.tbl.h), by name.
#ifndef WORKLOADS_PROTOCOLS_PROTOCOLS_H
#define WORKLOADS_PROTOCOLS_PROTOCOLS_H

#include "workloads/protocols/protocol.h"

enum {
    PROTOCOLS = 0
#define PROTOCOL(symbol, name) +1
#include "workloads/protocols/protocols.tbl.h"
};
extern const struct protocol *const protocols[PROTOCOLS];

// "memcached, memcached-binary, ...": for error messages; a constant, for tables of options.
extern const char protocol_names_text[];
#define PROTOCOL_NAMES (protocol_names_text + 2) // behind the first comma

// The name of one, by number from 0; NULL behind the last.
const char *protocol_name(unsigned index);

// NULL when there is none of that name.
const struct protocol *protocol_find(const char *name);

// "memcached, memcached-binary, ...": those that go over UDP, or whose requests say how long the
// server is to work. Returns out.
char *protocol_names_over_udp(char *out, size_t out_bytes);
char *protocol_names_with_service(char *out, size_t out_bytes);

#endif
