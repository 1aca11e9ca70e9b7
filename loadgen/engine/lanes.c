// SPDX-License-Identifier: MIT
#include "loadgen/engine/lanes.h"

#include <assert.h>
#include <stdlib.h>

#include "loadgen/client/client_connection.h"
#include "loadgen/client/client_socket.h"
#include "loadgen/client/connection_counts.h"
#include "base/text.h"

enum {
    LATER_NODES = 16,   // nodes that may appear and get connections
    SIGN_US = 10000000, // a master that changes so long after a sign has another reason
    LANE_ASKING = 0x80, // in `redirections`: ASKING is to go before it
    REDIRECTIONS_MOST = 16,
    REDIRECTIONS_AT_ONCE = 4, // those after these wait for what the nodes tell one another
};

// --- connections ---------------------------------------------------------------------------------

static uint32_t connections_a_node(uint32_t connections, uint32_t nodes)
{
    return (connections + nodes - 1) / nodes;
}

uint32_t lanes_spare_connections(uint32_t connections, uint32_t nodes)
{
    return LATER_NODES * connections_a_node(connections, nodes);
}

static int make_lane(struct lanes *lanes, uint32_t node, struct client_connection *connections,
                     uint32_t count)
{
    struct lane *lane = &lanes->items[node];
    if (connection_queue_make(&lane->room, count) < 0)
        return -1;
    lane->connections = connections;
    lane->connection_count = count;
    for (uint32_t i = 0; i < count; i++) {
        connections[i].server = &lanes->map->nodes[node];
        connections[i].room = &lane->room;
    }
    return 0;
}

int lanes_make(struct lanes *lanes, struct client_connection *connections, uint32_t count,
               struct error *err)
{
    const uint32_t nodes = node_map_count(lanes->map);
    lanes->count = nodes;
    lanes->changes = node_map_changes(lanes->map);
    lanes->failover.master = node_map_owner(lanes->map, 0);
    lanes->a_node = connections_a_node(count, nodes);
    lanes->spare = connections + count;
    lanes->spare_count = lanes_spare_connections(count, nodes);
    for (uint32_t node = 0; node < nodes; node++) {
        uint32_t first = (uint32_t)((uint64_t)node * count / nodes),
                 end = (uint32_t)((uint64_t)(node + 1) * count / nodes);
        if (make_lane(lanes, node, connections + first, end - first) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for %s connections",
                             TEXT_COUNT(count));
    }
    return 0;
}

void lanes_free(struct lanes *lanes)
{
    for (uint32_t node = 0; node < NODES_MOST; node++)
        free(lanes->items[node].room.items);
}

// Where there is no more room for connections, or no memory, the node stays out of reach.
static void open_lane(struct lanes *lanes, uint32_t node)
{
    struct error why;
    const uint32_t count = lanes->a_node;
    struct client_connection *connections = lanes->spare;
    if (lanes->spare_count < count || make_lane(lanes, node, connections, count) < 0)
        return;
    lanes->spare += count;
    lanes->spare_count -= count;
    for (uint32_t i = 0; i < count; i++)
        connection_open_later(&connections[i], lanes->context, lanes->depth, lanes->out_bytes,
                              &why);
    *lanes->connection_count += count;
}

static bool lane_is_open(const struct lane *lane)
{
    for (uint32_t i = 0; i < lane->connection_count; i++)
        if (connection_is_open(&lane->connections[i]))
            return true;
    return false;
}

// Connections that were given up.
static void revive_lane(struct lanes *lanes, struct lane *lane, uint64_t now)
{
    if (now < lane->revive_tsc)
        return;
    lane->revive_tsc = now + lanes->revive_ticks;
    for (uint32_t i = 0; i < lane->connection_count; i++) {
        if (lane->connections[i].state != CONNECTION_GONE)
            continue;
        connection_begin_later(&lane->connections[i]);
        lanes->context->counts->given_up--;
    }
}

// --- requests ------------------------------------------------------------------------------------

static unsigned slot_of(const struct lanes *lanes, const struct sample *sample)
{
    char key[WORKLOAD_KEY_BYTES_MAX];
    if (!lanes->map->by_slot)
        return 0;
    struct request request;
    workload_request_key(lanes->workload, sample->operation, sample->key, key, &request);
    return lanes->workload->protocol->slot(&request);
}

static void push(struct lanes *lanes, uint32_t node, size_t index)
{
    request_list_push(&lanes->items[node].requests, lanes->samples, index);
    lanes->waiting++;
    if (node >= lanes->count)
        lanes->count = node + 1;
}

static void pause_request(struct lanes *lanes, size_t index, uint64_t now)
{
    request_list_push(&lanes->later, lanes->samples, index);
    lanes->samples[index].reply_tsc = now + lanes->pause_ticks;
    lanes->waiting++;
}

void lanes_deal(struct lanes *lanes, size_t index, bool fresh)
{
    lanes->redirections[index] &= fresh ? 0 : (uint8_t)~LANE_ASKING;
    const uint32_t node = node_map_owner(lanes->map, slot_of(lanes, &lanes->samples[index]));
    assert(node < NODES_MOST); // a load begins when all slots have owners, and they keep them
    push(lanes, node, index);
}

size_t lane_take(struct lanes *lanes, struct lane *lane, bool *asking)
{
    size_t index = request_list_take(&lane->requests, lanes->samples);
    lanes->waiting--;
    *asking = lanes->redirections[index] & LANE_ASKING;
    lanes->redirections[index] &= (uint8_t)~LANE_ASKING;
    return index;
}

static bool is_ready(const struct lane *lane)
{
    return lane->requests.count && lane->room.count;
}

struct lane *lanes_next_ready(struct lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        lanes->turn = lanes->turn + 1 < lanes->count ? lanes->turn + 1 : 0;
        if (is_ready(&lanes->items[lanes->turn]))
            return &lanes->items[lanes->turn];
    }
    return NULL;
}

bool lanes_are_ready(const struct lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        if (is_ready(&lanes->items[i]))
            return true;
    return false;
}

void lanes_note_full(struct lanes *lanes, uint64_t now)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->items[i];
        // While no connection is open the delay is not due to the depth.
        if (lane->requests.count && !lane->room.count && lane_is_open(lane))
            lane->full_tsc = now;
    }
}

// --- failovers -----------------------------------------------------------------------------------

static void note_sign(struct lanes *lanes, uint64_t now)
{
    if (!lanes->failover.sign_tsc)
        lanes->failover.sign_tsc = now;
}

// Whether one of its connections has had an answer.
static bool lane_has_answered(const struct lane *lane)
{
    for (uint32_t i = 0; i < lane->connection_count; i++)
        if (lane->connections[i].answered)
            return true;
    return false;
}

// Of a sentinel's master; all threads see the same, and the first one counts.
static void look_for_failover(struct lanes *lanes, uint64_t now)
{
    const double ticks_per_us = lanes->context->ticks_per_us;
    struct redirection_counts *counts = &lanes->context->counts->redirections;
    const uint32_t master = node_map_owner(lanes->map, 0);
    const struct lane *lane = &lanes->items[master];
    if (master != lanes->failover.master) {
        note_sign(lanes, now);
        lanes->failover.master = master;
        lanes->failover.under_way = true;
    }
    const uint64_t since = now - lanes->failover.sign_tsc;
    if (lanes->failover.under_way && lane_has_answered(lane)) {
        timed_count_note(&counts->failovers, (uint64_t)((double)since / ticks_per_us * 1e3));
        if (!counts->first_failover_tsc)
            counts->first_failover_tsc = lanes->failover.sign_tsc;
        lanes->failover.under_way = false;
        lanes->failover.sign_tsc = 0;
    } else if (!lanes->failover.under_way && lanes->failover.sign_tsc && lane_is_open(lane) &&
               (double)since / ticks_per_us > SIGN_US) {
        lanes->failover.sign_tsc = 0; // nothing came of it
    }
}

// --- sent elsewhere ------------------------------------------------------------------------------

// What may be otherwise in a moment is tried again until the request's time is over.
static bool try_later(struct lanes *lanes, size_t index, uint64_t now)
{
    struct sample *sample = &lanes->samples[index];
    node_map_want(lanes->map);
    if (now - sample->intended_tsc > lanes->patience_ticks) {
        lanes->context->counts->redirections.given_up++;
        return false;
    }
    request_reset(sample);
    pause_request(lanes, index, now);
    return true;
}

// Another node is named. False: not one that this key can be at, or too often.
static bool follow(struct lanes *lanes, size_t index, const struct server_address *from,
                   const struct redirection *to, uint64_t now)
{
    struct redirection_counts *counts = &lanes->context->counts->redirections;
    uint8_t *redirections = &lanes->redirections[index];
    if (!lanes->map->by_slot || to->slot != slot_of(lanes, &lanes->samples[index]))
        return false;
    if (*redirections == REDIRECTIONS_MOST) {
        counts->given_up++;
        return false;
    }
    *(to->kind == REDIRECTION_MOVED ? &counts->moved : &counts->asked) += 1;
    uint32_t node = node_map_find(lanes->map, to->host[0] ? to->host : from->host, to->port);
    if (node == NODE_NONE) { // it may be new: the map has it when it owns something
        counts->unknown++;
        return try_later(lanes, index, now);
    }
    ++*redirections;
    request_reset(&lanes->samples[index]);
    if (to->kind == REDIRECTION_MOVED)
        node_map_move(lanes->map, to->slot, node);
    if (*redirections > REDIRECTIONS_AT_ONCE) {
        pause_request(lanes, index, now);
        return true;
    }
    if (to->kind == REDIRECTION_ASK)
        *redirections |= LANE_ASKING;
    push(lanes, node, index);
    return true;
}

bool lanes_redirect(struct lanes *lanes, size_t index, const struct server_address *from,
                    const char *said, uint64_t now)
{
    const struct redirection to = redirection_parse(said);
    if (to.kind == REDIRECTION_NONE)
        return false;
    if (to.kind != REDIRECTION_LATER)
        return follow(lanes, index, from, &to, now);
    note_sign(lanes, now);
    if (!try_later(lanes, index, now))
        return false;
    lanes->context->counts->redirections.retried++;
    return true;
}

// --- now and then --------------------------------------------------------------------------------

static void end_pauses(struct lanes *lanes, uint64_t now)
{
    while (lanes->later.count && lanes->samples[lanes->later.first - 1].reply_tsc <= now) {
        size_t index = request_list_take(&lanes->later, lanes->samples);
        lanes->samples[index].reply_tsc = 0;
        lanes->waiting--;
        lanes_deal(lanes, index, false);
    }
}

static void deal_again(struct lanes *lanes)
{
    bool asking;
    for (uint32_t i = 0; i < lanes->count; i++)
        for (uint64_t left = lanes->items[i].requests.count; left; left--)
            lanes_deal(lanes, lane_take(lanes, &lanes->items[i], &asking), false);
}

void lanes_look(struct lanes *lanes, uint64_t now)
{
    const struct connection_counts *counts = lanes->context->counts;
    if (now < lanes->look_tsc)
        return;
    lanes->look_tsc = now + lanes->look_ticks;
    end_pauses(lanes, now);
    const uint32_t changes = node_map_changes(lanes->map);
    if (changes != lanes->changes)
        deal_again(lanes);
    lanes->changes = changes;
    for (uint32_t node = 0; node < lanes->count; node++) {
        struct lane *lane = &lanes->items[node];
        if (!lane->requests.count || lane_is_open(lane))
            continue;
        if (!lane->connection_count)
            open_lane(lanes, node);
        else
            revive_lane(lanes, lane, now);
        node_map_want(lanes->map);
    }
    if (lanes->ended != counts->ended + counts->reconnects_failed) {
        node_map_want(lanes->map);
        note_sign(lanes, now);
    }
    lanes->ended = counts->ended + counts->reconnects_failed;
    if (!lanes->map->by_slot && lanes->context->sender == 0)
        look_for_failover(lanes, now);
}

void lanes_end(struct lanes *lanes, size_t fills)
{
    uint64_t *unreachable = &lanes->context->counts->redirections.unreachable;
    bool asking;
    for (uint32_t i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->items[i];
        const bool open = lane_is_open(lane);
        while (lane->requests.count)
            *unreachable += lane_take(lanes, lane, &asking) < fills && !open;
    }
    while (lanes->later.count)
        lanes->samples[request_list_take(&lanes->later, lanes->samples)].reply_tsc = 0;
    lanes->waiting = 0;
}
