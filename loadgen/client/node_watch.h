// SPDX-License-Identifier: MIT
//
// Reads who owns which keys (loadgen/client/node_map.h) before a load, and again in a thread of
// its own whenever a load thread finds the map to be wrong: told so by a node, or because
// connections ended.
#ifndef LOADGEN_CLIENT_NODE_WATCH_H
#define LOADGEN_CLIENT_NODE_WATCH_H

#include "loadgen/client/node_map.h"
#include "loadgen/client/tls_settings.h"
#include "workloads/protocols/login.h"

struct node_watch;

// Whom to ask, and as whom. All of it outlives the watch.
struct node_source {
    const struct server_address *server; // resolved: a node of a cluster, or a sentinel
    const char *sentinel;                // the name of its master; NULL: it is a cluster
    const struct login_words *login;     // at nodes, not at sentinels; NULL: none
    const struct tls_settings *tls;      // the same; NULL: none
};

// Reads the map. ERROR_INPUT: the server is none of a cluster, no sentinel, refuses the login or
// names a node that cannot be found; ERROR_FAILED: it does not answer, or nobody owns some of the
// slots.
int node_watch_read(const struct node_source *source, struct node_map *map, struct error *err);

// Begins to watch, for a map that was read; sets map->wake. The map outlives the watch.
int node_watch_begin(const struct node_source *source, struct node_map *map,
                     struct node_watch **watch, struct error *err);

// How often the map was read while it was watched, and how often nobody could be asked.
struct node_watch_counts {
    uint64_t reads, failures;
};

// Ends it. NULL: there is none, and the counts are 0.
struct node_watch_counts node_watch_end(struct node_watch *watch);

#endif
