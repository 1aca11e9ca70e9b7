// SPDX-License-Identifier: MIT
//
// Who talks to whom: one side's view of a transport connection. Client samples, shim messages and
// kernel events each keep such a table beside their records (`connections.tlog` format, one
// table per log); the join matches a client's entry with the server's by the mirrored 5-tuple.
//
// This header is read by the BPF compiler too: the struct needs no libc.
#ifndef BASE_CONNECTION_H
#define BASE_CONNECTION_H

#ifndef __bpf__
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#endif

// IANA protocol numbers; a UNIX stream socket has none, and no addresses: of one that the shim saw
// connected, local and peer together hold the end of the path (CONNECTION_PATH_BYTES; an abstract
// name begins with '@').
enum connection_protocol { CONNECTION_UNIX = 0, CONNECTION_TCP = 6, CONNECTION_UDP = 17 };

enum { CONNECTION_PATH_BYTES = 32 };

struct connection {
    uint32_t id;      // what the records of the same log call it; unique within that log
    uint8_t protocol; // enum connection_protocol
    uint8_t outgoing; // 1: this side called connect(); 0: it accepted, or the log does not say
    union {
        // Of the kernel's: its network namespace, the low 16 bits of the inode, which namespaces
        // have of their own while the machine has fewer than 65,536 of them; 0: not known.
        uint16_t namespace;
        // Of the load's: for how long it tried to open it after the one before had ended, in units
        // of 100 us, at most UINT16_MAX.
        uint16_t opening_100us;
    };
    uint64_t cookie;      // SO_COOKIE, 0 where unknown; unique within a boot and network namespace
    uint8_t local[16];    // IPv6, or IPv4 mapped (::ffff:a.b.c.d), network byte order
    uint8_t peer[16];     // the same
    uint16_t local_port;  // host byte order
    uint16_t peer_port;   // host byte order
    uint32_t process;     // owner's pid, of the load's its thread's; 0 where unknown
    uint64_t opened_time; // when this side saw it open, in the log's own clock; 0: before the log
};
_Static_assert(sizeof(struct connection) == 64, "the log format is fixed");
_Static_assert(__builtin_offsetof(struct connection, peer) ==
                   __builtin_offsetof(struct connection, local) + 16,
               "a path goes through both");

#ifndef __bpf__
// True when both are the same side's view of the same addresses and ports.
static inline bool connection_same_ends(const struct connection *a, const struct connection *b)
{
    return a->protocol == b->protocol && a->local_port == b->local_port &&
           a->peer_port == b->peer_port && memcmp(a->local, b->local, 16) == 0 &&
           memcmp(a->peer, b->peer, 16) == 0;
}

// True when b is the other end of a.
static inline bool connection_mirrors(const struct connection *a, const struct connection *b)
{
    return a->protocol != CONNECTION_UNIX && a->protocol == b->protocol &&
           a->local_port == b->peer_port && a->peer_port == b->local_port &&
           memcmp(a->local, b->peer, 16) == 0 && memcmp(a->peer, b->local, 16) == 0;
}
#endif

#endif
