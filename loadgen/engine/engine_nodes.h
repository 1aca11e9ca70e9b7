// SPDX-License-Identifier: MIT
//
// The nodes of a load whose keys are on several servers: who they are is asked before it, and
// watched while it lasts.
#ifndef LOADGEN_ENGINE_ENGINE_NODES_H
#define LOADGEN_ENGINE_ENGINE_NODES_H

#include "loadgen/client/node_watch.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/engine/engine_settings.h"

struct engine_nodes {
    struct node_map *map; // NULL: there is one server
    struct node_watch *watch;
};

// Does nothing where the settings ask for one server. Otherwise as node_watch_read and
// node_watch_begin; ERROR_INPUT also: the protocol has no clusters, or there are fewer connections
// than each thread needs. To be closed also after an error.
int engine_nodes_open(const struct engine_settings *settings, uint32_t threads,
                      struct engine_nodes *nodes, struct error *err);

// The load is over: ends the watch, and says in the result what there was.
void engine_nodes_close(struct engine_nodes *nodes, struct engine_result *result);

#endif
