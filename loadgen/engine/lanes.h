// SPDX-License-Identifier: MIT
//
// The lanes of a load thread whose keys are on several servers (loadgen/client/node_map.h): one for
// each node, with the thread's connections to it and the requests that wait for one of them. A
// request is dealt to its node's lane when it is due and leaves it in that order; its intended time
// stays what it was, wherever it has to go. Nodes that appear during the load get connections when
// a request is dealt to them.
//
// A node that sends a request elsewhere (MOVED, ASK) has it put again there; one that cannot answer
// now (TRYAGAIN, CLUSTERDOWN, ...) has it put again after a pause. Both are bounded: a request that
// was sent around too often, or tried for longer than it is allowed, keeps the error as its reply.
#ifndef LOADGEN_ENGINE_LANES_H
#define LOADGEN_ENGINE_LANES_H

#include "loadgen/client/client_state.h"
#include "loadgen/client/node_map.h"
#include "loadgen/engine/connection_queue.h"
#include "loadgen/engine/request_list.h"
#include "workloads/workload.h"

struct lane {
    struct connection_queue room;          // its connections that may take a request, in turn
    struct request_list requests;          // that wait for one
    struct client_connection *connections; // all to this node
    uint32_t connection_count;
    uint64_t full_tsc;   // when there was last none with room, although one was open
    uint64_t revive_tsc; // when connections that were given up are tried again
};

struct lanes {
    struct node_map *map;
    struct connection_context *context;
    const struct workload *workload;
    struct sample *samples;
    uint8_t *redirections; // of each sample: how often it was sent elsewhere, and LANE_ASKING
    struct lane items[NODES_MOST];
    uint32_t count;            // lanes that have connections
    uint32_t turn;             // the one that had the last turn
    struct request_list later; // that are to be put after a pause; due at their reply_tsc
    uint64_t waiting;          // in all of these lists together
    uint32_t changes;          // of the map, when what waits was dealt
    uint64_t ended;            // connections that had ended when the map was last asked for
    uint64_t look_tsc;         // when to look again at all this
    uint64_t look_ticks, pause_ticks, patience_ticks, revive_ticks;
    struct {
        uint32_t master;   // the one that was loaded last
        uint64_t sign_tsc; // when it first seemed to be none any more; 0: it does not
        bool under_way;    // there is a new one, which has not answered yet
    } failover;            // of a sentinel's master

    // For connections to nodes that appear: the thread's that are not in use yet.
    struct client_connection *spare;
    uint32_t spare_count, a_node; // so many are made for each
    uint32_t depth;
    size_t out_bytes;
    uint32_t *connection_count; // the thread's, which grows with them
};

// How many connections a thread needs room for beyond those that it begins with.
uint32_t lanes_spare_connections(uint32_t connections, uint32_t nodes);

// Deals the thread's connections, not yet opened, to the nodes that the map has now, at most as
// many as there are connections: sets their server and room. ERROR_FAILED: out of memory.
int lanes_make(struct lanes *lanes, struct client_connection *connections, uint32_t count,
               struct error *err);
void lanes_free(struct lanes *lanes);

// Has a request wait for its node. fresh: it comes from the schedule.
void lanes_deal(struct lanes *lanes, size_t index, bool fresh);

// The next lane in turn with requests and perhaps with room; NULL: there is none.
struct lane *lanes_next_ready(struct lanes *lanes);
bool lanes_are_ready(const struct lanes *lanes);

// Takes the next request of a lane that has one. *asking: ASKING is to go before it.
size_t lane_take(struct lanes *lanes, struct lane *lane, bool *asking);

// Notes which lanes are full.
void lanes_note_full(struct lanes *lanes, uint64_t now);

// A reply that is an error, with the server's words: true if its request is put again instead.
bool lanes_redirect(struct lanes *lanes, size_t index, const struct server_address *from,
                    const char *said, uint64_t now);

// Now and then: what waits is dealt anew when owners have changed or its pause is over, nodes that
// nobody is connected to get connections, those that were given up are tried again as long as
// requests wait for them, and the map is asked for where it seems to be wrong.
void lanes_look(struct lanes *lanes, uint64_t now);

// The load is over: empties the lists, and counts what waited for a node without a connection.
// Samples from `fills` on are not requests of the schedule.
void lanes_end(struct lanes *lanes, size_t fills);

#endif
