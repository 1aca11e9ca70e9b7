// SPDX-License-Identifier: MIT
//
// Redis Cluster as its clients see it: the slot of a key, what a node's redirections say, and which
// node owns which slots; and Sentinel, which knows one owner of all. The Redis Cluster
// specification; "Guidelines for Redis clients with support for Redis Sentinel".
#ifndef WORKLOADS_PROTOCOLS_REDIS_CLUSTER_H
#define WORKLOADS_PROTOCOLS_REDIS_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

struct redisContext;

enum { CLUSTER_SLOTS = 16384, CLUSTER_HOST_BYTES = 128, SENTINEL_NAME_BYTES = 256 };

// CRC-16/XMODEM of the key, or of what stands between its first "{" and the next "}" where that is
// not nothing; modulo CLUSTER_SLOTS.
unsigned cluster_slot(const char *key, size_t bytes);

enum redirection_kind {
    REDIRECTION_NONE,  // it is an error like any other
    REDIRECTION_MOVED, // that node owns the slot from now on
    REDIRECTION_ASK,   // this once, behind ASKING: the slot is on its way to that node
    REDIRECTION_LATER, // nobody can answer it now: TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, ...
};

struct redirection {
    enum redirection_kind kind;
    unsigned slot;
    char host[CLUSTER_HOST_BYTES]; // empty: that of the node which said so
    uint16_t port;                 // 0: its name did not fit into what was kept
};

// Takes the words of an error reply apart, at most REPLY_SAID_BYTES of them
// (workloads/protocols/protocol.h). What does not follow the specification is REDIRECTION_NONE.
struct redirection redirection_parse(const char *said);

// Slots first ... last, and the node that owns them.
struct cluster_range {
    unsigned first, last;
    char host[CLUSTER_HOST_BYTES];
    uint16_t port;
};
struct cluster_ranges ARRAY_OF(struct cluster_range);

// Asks a node for the owners of all slots. host: how the caller reached that node, for what the
// node says of itself. ranges->items are the caller's to free, also after an error. ERROR_INPUT: it
// is no node of a cluster; ERROR_FAILED: it does not answer as one does.
int cluster_read(struct redisContext *redis, const char *host, struct cluster_ranges *ranges,
                 struct error *err);

// Asks a sentinel for the master of that name: one range. Otherwise as cluster_read; ERROR_INPUT:
// it knows no such master.
int sentinel_read(struct redisContext *redis, const char *name, struct cluster_ranges *ranges,
                  struct error *err);

// Asks a sentinel for the others that watch that master: a range for each, whose slots say nothing.
// What it says of one that cannot be is passed over.
int sentinels_read(struct redisContext *redis, const char *name, struct cluster_ranges *sentinels,
                   struct error *err);

#endif
