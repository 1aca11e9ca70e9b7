// SPDX-License-Identifier: MIT
#include "profiler/capsule/packet_join.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "profiler/bpf/packet_head.h"

// A packet as its records show it.
struct packet {
    uint64_t way; // hops + 1 in order of time, four bits each, the first lowest
    size_t first; // of its records, which stand together
    size_t flow;  // the first record of its flow
};

struct packet_array ARRAY_OF(struct packet);

// How often packets were seen to go a way.
struct way {
    uint64_t hops;
    uint64_t count;
    size_t route;    // that it is, or is a part of; ROUTES_MAX: none
    bool is_partial; // of another way
};

struct way_array ARRAY_OF(struct way);

struct joining {
    const struct hop_record *records; // by flow, packet and time
    size_t count;
    struct packet_array packets;
    struct way_array ways;
    struct map way_map;
    struct packet_join *out;
};

// --- ways ----------------------------------------------------------------------------------------

enum { WAY_BITS = 4, WAY_MASK = (1 << WAY_BITS) - 1 };

static size_t way_length(uint64_t way)
{
    size_t length = 0;
    for (; way; way >>= WAY_BITS)
        length++;
    return length;
}

// Whether the hops of `part` stand in `whole` in the same order.
static bool way_within(uint64_t part, uint64_t whole)
{
    for (; part && whole; whole >>= WAY_BITS)
        if ((part & WAY_MASK) == (whole & WAY_MASK))
            part >>= WAY_BITS;
    return part == 0;
}

static int way_count(struct joining *j, uint64_t hops)
{
    uint64_t hash = hash64(hops);
    uint32_t found = map_find(&j->way_map, hash, at, j->ways.items[at].hops == hops);
    if (found == MAP_NONE) {
        struct way way = {.hops = hops, .route = ROUTES_MAX};
        if (array_push(&j->ways, way) < 0 || map_add(&j->way_map, hash, j->ways.count - 1) < 0)
            return -1;
        found = (uint32_t)j->ways.count - 1;
    }
    j->ways.items[found].count++;
    return 0;
}

static int more_often(const void *a, const void *b)
{
    const struct way *x = a, *y = b;
    return x->count != y->count ? order_of(y->count, x->count) : order_of(x->hops, y->hops);
}

static void route_begin(struct packet_join *out, uint64_t hops)
{
    struct packet_route *route = &out->routes[out->route_count++];
    for (; hops; hops >>= WAY_BITS)
        route->hops[route->hop_count++] = (uint8_t)((hops & WAY_MASK) - 1);
}

// Decides which ways are routes: those that are no part of another that enough packets went. What
// is a part belongs to the most used of those: of a packet that was lost nobody knows where it
// would have gone.
static void choose_routes(struct joining *j)
{
    enum { ENOUGH = 100, RARE = 1000, CONSIDERED = 256 };
    struct way *ways = j->ways.items;
    size_t considered = j->ways.count < CONSIDERED ? j->ways.count : CONSIDERED;
    array_sort(&j->ways, more_often);
    for (size_t i = 0; i < considered; i++)
        for (size_t k = 0; k < considered && !ways[i].is_partial; k++)
            ways[i].is_partial = ways[k].hops != ways[i].hops &&
                                 ways[k].count * ENOUGH >= ways[i].count &&
                                 way_within(ways[i].hops, ways[k].hops);
    for (size_t i = 0; i < considered && j->out->route_count < ROUTES_MAX; i++) {
        if (ways[i].is_partial || ways[i].count * RARE < j->packets.count)
            continue;
        ways[i].route = j->out->route_count;
        route_begin(j->out, ways[i].hops);
    }
    for (size_t i = 0; i < considered; i++)
        for (size_t k = 0; k < considered && ways[i].is_partial; k++)
            if (!ways[k].is_partial && ways[k].route < ROUTES_MAX &&
                way_within(ways[i].hops, ways[k].hops)) {
                ways[i].route = ways[k].route;
                break;
            }
}

// The map's positions are those from before the ways were sorted.
static size_t route_of(const struct joining *j, uint64_t hops)
{
    for (size_t i = 0; i < j->ways.count; i++)
        if (j->ways.items[i].hops == hops)
            return j->ways.items[i].route;
    return ROUTES_MAX;
}

// --- packets -------------------------------------------------------------------------------------

static int by_packet(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    if (x->flow != y->flow)
        return order_of(x->flow, y->flow);
    if (x->end != y->end)
        return order_of(x->end, y->end);
    if (x->datagram != y->datagram)
        return order_of(x->datagram, y->datagram);
    return x->time != y->time ? order_of(x->time, y->time) : order_of(x->hop, y->hop);
}

static bool same_packet(const struct hop_record *a, const struct hop_record *b)
{
    return a->flow == b->flow && a->end == b->end && a->datagram == b->datagram;
}

// Takes the packet that begins at `at`: up to a hop that it has passed already, or too long after.
// Returns where the next one begins.
static size_t packet_take(const struct joining *j, size_t at, struct packet *out)
{
    const struct hop_record *first = &j->records[at];
    uint32_t seen = 0;
    unsigned shift = 0;
    *out = (struct packet){.first = at};
    for (; at < j->count; at++) {
        const struct hop_record *record = &j->records[at];
        uint32_t bit = UINT32_C(1) << record->hop % HOPS_MAX;
        if (!same_packet(record, first) || seen & bit ||
            record->time - first->time > PACKET_HORIZON_MS * UINT64_C(1000000))
            break;
        seen |= bit;
        out->way |= (uint64_t)(record->hop % HOPS_MAX + 1) << shift;
        shift += WAY_BITS;
    }
    return at;
}

static int find_packets(struct joining *j, uint64_t begin_ns, uint64_t end_ns)
{
    size_t flow = 0;
    for (size_t at = 0; at < j->count;) {
        const struct hop_record *record = &j->records[at];
        struct packet packet;
        if (record->flow != j->records[flow].flow)
            flow = at;
        at = packet_take(j, at, &packet);
        packet.flow = flow;
        if (record->flags & (HOP_ONLY_COVERS | HOP_OPENS))
            continue;
        if (record->time < begin_ns || record->time >= end_ns) {
            j->out->outside++;
            continue;
        }
        if (array_push(&j->packets, packet) < 0 || way_count(j, packet.way) < 0)
            return -1;
    }
    return 0;
}

// --- streams: one packet in another --------------------------------------------------------------

// The earliest record of a hop, from `from_ns` on, in which a packet's last byte lies beside
// others. NULL: there is none.
static const struct hop_record *find_cover(const struct joining *j, const struct packet *packet,
                                           unsigned hop, uint64_t from_ns, uint64_t to_ns)
{
    enum { REACH_BYTES = 1 << 18, MOST_LOOKED = 4096 };
    const struct hop_record *own = &j->records[packet->first], *found = NULL;
    size_t at = packet->first;
    for (int looked = 0; looked < MOST_LOOKED; looked++) {
        // Sequence numbers begin again at 0, and there the flow's records do.
        if (++at == j->count || j->records[at].flow != own->flow)
            at = packet->flow;
        const struct hop_record *record = &j->records[at];
        if (at == packet->first || record->end - own->end > REACH_BYTES)
            break;
        if (record->hop == hop && record->end != own->end &&
            (int32_t)(own->end - record->first) > 0 && record->time >= from_ns &&
            record->time <= to_ns && (!found || record->time < found->time))
            found = record;
    }
    return found;
}

enum outcome { PACKET_COMPLETE, PACKET_LOST, PACKET_GAP, PACKET_PIECE };

// Where a packet passed each hop of its route.
struct passage {
    const struct hop_record *at[HOPS_MAX]; // NULL: not seen there
    bool merged;
};

static void fill_passage(const struct joining *j, const struct packet *packet,
                         const struct packet_route *route, struct passage *out)
{
    size_t records = way_length(packet->way), next = 0;
    *out = (struct passage){.merged = false};
    for (size_t i = 0; i < route->hop_count && next < records; i++) {
        const struct hop_record *record = &j->records[packet->first + next];
        if (record->hop != route->hops[i])
            continue;
        out->at[i] = record;
        next++;
    }
}

// Looks for the hops at which the packet itself was not seen.
static enum outcome follow_stream(const struct joining *j, const struct packet *packet,
                                  const struct packet_route *route, struct passage *passage)
{
    const uint64_t horizon = PACKET_HORIZON_MS * UINT64_C(1000000);
    const struct hop_record *own = &j->records[packet->first];
    uint64_t before = own->time, earliest = before > horizon ? before - horizon : 0;
    if (own->protocol != PACKET_TCP)
        return PACKET_COMPLETE;
    if (!passage->at[0] && find_cover(j, packet, route->hops[0], earliest, own->time))
        return PACKET_PIECE;
    for (size_t i = 0; i < route->hop_count; i++) {
        const struct hop_record *cover =
            passage->at[i] || i == 0
                ? NULL
                : find_cover(j, packet, route->hops[i], before, own->time + horizon);
        if (cover) {
            passage->at[i] = cover;
            passage->merged = true;
        }
        if (passage->at[i])
            before = passage->at[i]->time;
    }
    return PACKET_COMPLETE;
}

static enum outcome outcome_of(const struct packet_route *route, const struct passage *passage,
                               size_t *last)
{
    bool missing = false, gap = false;
    *last = 0;
    for (size_t i = 0; i < route->hop_count; i++) {
        if (!passage->at[i]) {
            missing = true;
            continue;
        }
        gap |= missing;
        *last = i;
    }
    return gap ? PACKET_GAP : missing ? PACKET_LOST : PACKET_COMPLETE;
}

static void take_unseen_leavings(const struct joining *j, const struct packet *packet,
                                 const struct passage *passage, size_t last,
                                 struct packet_route *route)
{
    for (size_t i = 0; i < last; i++) {
        const struct hop_record *record = passage->at[i];
        if (!record || record->queued_ns || !(record->flags & HOP_FOLLOWED) ||
            !same_packet(record, &j->records[packet->first]))
            continue;
        if (record->flags & HOP_DIVISIBLE)
            route->divided[i]++;
        else
            route->unwatched[i]++;
    }
}

static int take_delays(struct packet_route *route, const struct passage *passage)
{
    const struct hop_record *const *at = passage->at;
    size_t last = route->hop_count - 1;
    for (size_t i = 0; i <= last; i++)
        if ((i > 0 && array_push(&route->delays[i], (double)(at[i]->time - at[i - 1]->time)) < 0) ||
            (at[i]->queued_ns && array_push(&route->queued[i], (double)at[i]->queued_ns) < 0))
            return -1;
    return last ? array_push(&route->delays[0], (double)(at[last]->time - at[0]->time)) : 0;
}

// Whether the next packet is one like this, which begins before it could have been forgotten.
static bool is_repeated(const struct joining *j, const struct packet *packet)
{
    size_t next = packet->first + way_length(packet->way);
    const struct hop_record *first = &j->records[packet->first];
    return next < j->count && same_packet(first, &j->records[next]) &&
           j->records[next].time - first->time <= PACKET_HORIZON_MS * UINT64_C(1000000);
}

static int packet_count(struct joining *j, const struct packet *packet)
{
    size_t number = route_of(j, packet->way), last;
    struct passage passage;
    if (number == ROUTES_MAX) {
        j->out->rare++;
        return 0;
    }
    struct packet_route *route = &j->out->routes[number];
    fill_passage(j, packet, route, &passage);
    enum outcome outcome = outcome_of(route, &passage, &last);
    if (outcome != PACKET_COMPLETE && follow_stream(j, packet, route, &passage) == PACKET_PIECE) {
        j->out->pieces++;
        return 0;
    }
    outcome = outcome_of(route, &passage, &last);
    j->out->packets++;
    route->packets++;
    if (outcome != PACKET_COMPLETE && is_repeated(j, packet))
        j->out->repeated++;
    take_unseen_leavings(j, packet, &passage, last, route);
    if (outcome == PACKET_GAP)
        route->gaps++;
    else if (outcome == PACKET_LOST)
        route->lost_after[last]++;
    if (outcome != PACKET_COMPLETE)
        return 0;
    route->complete++;
    route->merged += passage.merged;
    return take_delays(route, &passage);
}

static int by_packets(const void *a, const void *b)
{
    const struct packet_route *x = a, *y = b;
    return order_of(y->packets, x->packets) ?: memcmp(x->hops, y->hops, sizeof x->hops);
}

int packet_join_records(struct hop_record *records, size_t count, uint64_t begin_ns,
                        uint64_t end_ns, struct packet_join *out, struct error *err)
{
    struct joining j = {.records = records, .count = count, .out = out};
    *out = (struct packet_join){.route_count = 0};
    if (count > 1)
        qsort(records, count, sizeof *records, by_packet);
    int result = find_packets(&j, begin_ns, end_ns);
    if (result == 0)
        choose_routes(&j);
    for (size_t i = 0; i < j.packets.count && result == 0; i++)
        result = packet_count(&j, &j.packets.items[i]);
    // With the packets that were not seen at all of its hops another may be the most used.
    qsort(out->routes, out->route_count, sizeof *out->routes, by_packets);
    array_free(&j.packets);
    array_free(&j.ways);
    map_free(&j.way_map);
    return result < 0
               ? error_set(err, ERROR_FAILED, "no memory to join %s records", TEXT_COUNT(count))
               : 0;
}

void packet_join_free(struct packet_join *join)
{
    for (size_t i = 0; i < join->route_count; i++)
        for (size_t k = 0; k < HOPS_MAX; k++) {
            array_free(&join->routes[i].delays[k]);
            array_free(&join->routes[i].queued[k]);
        }
    *join = (struct packet_join){.route_count = 0};
}
