// SPDX-License-Identifier: MIT
//
// Any bytes as the records of hops (hops.tlog): joined to packets and their routes, and to
// requests. Whatever they say, packets are counted once, delays are those of whole packets, and a
// stay is of a request, in order, within the time it was on the network.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hops/hop_sightings.h"
#include "analysis/hops/hop_stays.h"
#include "profiler/bpf/packet_head.h"
#include "profiler/capsule/packet_join.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { CONNECTIONS = 2, LIVES = 8, HOPS = 5, MOST = 400, KEY = 42 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

// Times, flows and hops that have something to do with one another in most records, and not in all.
static void tame(struct hop_record *record, const uint64_t flows[2 * CONNECTIONS])
{
    if (record->core_after & 1)
        record->time %= 1000000;
    if (record->core_after & 2)
        record->flow = flows[record->flow % (2 * CONNECTIONS)];
    if (record->core_after & 4)
        record->protocol = record->protocol & 1 ? PACKET_TCP : PACKET_UDP;
    if (record->core_after & 8) {
        record->first %= 2000;
        record->end = record->first + record->end % 2000;
    }
    if (record->core_after & 16)
        record->hop %= HOPS;
    if (record->core_after & 32)
        record->datagram %= 16;
}

static void check_join(const struct hop_record *records, size_t count)
{
    struct hop_record own[MOST];
    struct packet_join join;
    struct error err;
    uint64_t listed = 0;
    memcpy(own, records, count * sizeof *own);
    for (size_t i = 0; i < count; i++)
        own[i].hop %= HOPS_MAX; // the ring's are the capture's own
    if (packet_join_records(own, count, 0, 1u << 30, &join, &err) < 0)
        abort();
    must(join.route_count <= ROUTES_MAX);
    for (size_t r = 0; r < join.route_count; r++) {
        const struct packet_route *route = &join.routes[r];
        must(route->hop_count >= 1 && route->hop_count <= HOPS_MAX);
        must(route->complete <= route->packets && route->merged <= route->complete);
        for (size_t i = 0; i < route->hop_count; i++) {
            must(route->delays[i].count == (route->hop_count > 1 ? route->complete : 0));
            for (size_t n = 0; n < route->delays[i].count; n++)
                must(route->delays[i].items[n] >= 0);
        }
        listed += route->packets;
    }
    must(join.packets == listed + join.rare || join.packets == listed);
    must(join.packets + join.outside <= count);
    packet_join_free(&join);
}

static int64_t as_it_is(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context, (void)clock;
    return (int64_t)(value >> 1);
}

static void check_stays(const struct hop_record *records, size_t count,
                        const struct connection *connections)
{
    struct sample samples[LIVES] = {0};
    struct lifetime lives[LIVES] = {0};
    struct hop_sightings sightings;
    struct hop_stays stays;
    for (uint32_t i = 0; i < LIVES; i++) {
        struct lifetime *life = &lives[i];
        samples[i] = (struct sample){.request_begin = 100 * i,
                                     .request_end = 100 * i + 100,
                                     .reply_begin = 200 * i,
                                     .reply_end = 200 * i + 200};
        life->connection = i % CONNECTIONS;
        life->state = LIFETIME_WHOLE;
        life->request = i;
        for (int stamp = 0; stamp < STAMP_KINDS; stamp++) {
            life->stamp_ns[stamp] = 20000 * (int64_t)i + 2000 * stamp;
            life->present |= (uint16_t)(1u << stamp);
        }
    }
    // The same records as two machines': the last hop is the client's.
    const struct hop_machine machines[HOP_MACHINES] = {{.records = records,
                                                        .record_count = count,
                                                        .hop_count = HOPS - 1,
                                                        .flow_key = KEY,
                                                        .one_in = 1,
                                                        .clock = {.convert = as_it_is}},
                                                       {.records = records,
                                                        .record_count = count,
                                                        .first_hop = HOPS - 1,
                                                        .hop_count = 1,
                                                        .flow_key = KEY,
                                                        .one_in = 1,
                                                        .clock = {.convert = as_it_is},
                                                        .is_client = true}};
    static const struct hop_place places[HOPS] = {{.number = 2, .peer = 1, .qdisc = "noqueue"},
                                                  {.is_ingress = true, .number = 1, .peer = 2}};
    const struct hops_input in = {.machines = machines,
                                  .machine_count = HOP_MACHINES,
                                  .hop_count = HOPS,
                                  .places = places,
                                  .samples = samples,
                                  .connections = connections,
                                  .connection_count = CONNECTIONS,
                                  .lives = lives,
                                  .life_count = LIVES};
    must(hop_sightings_build(&in, &sightings) == 0);
    must(hop_stays_find(&sightings, &stays) == 0);
    must(stays.whole == LIVES && sightings.strange <= HOP_MACHINES * count);
    must(stays.divided[WAY_TO_SERVER] <= LIVES && stays.divided[WAY_TO_CLIENT] <= LIVES);
    for (size_t i = 0; i < stays.all.count; i++) {
        const struct hop_stay *stay = &stays.all.items[i];
        must(stay->request < LIVES && stay->from < HOPS && stay->to < HOPS);
        must(stay->begin_ns < stay->end_ns);
        must(stay->begin_ns >= lives[stay->request].stamp_ns[0] &&
             stay->end_ns <= lives[stay->request].stamp_ns[STAMP_KINDS - 1]);
        must(i == 0 || stay[-1].request <= stay->request);
    }
    hop_stays_free(&stays);
    hop_sightings_free(&sightings);
}

static int by_time(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    return order_of(x->time, y->time);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hop_record records[MOST];
    struct connection connections[CONNECTIONS] = {0};
    uint64_t flows[2 * CONNECTIONS];
    size_t count = bytes / sizeof *records < MOST ? bytes / sizeof *records : MOST;
    for (uint16_t i = 0; i < CONNECTIONS; i++) {
        struct connection *one = &connections[i];
        one->protocol = CONNECTION_TCP;
        one->local_port = (uint16_t)(40000 + i);
        one->peer_port = 11211;
        struct packet_head there = {.protocol = PACKET_TCP,
                                    .source_port = one->local_port,
                                    .destination_port = one->peer_port};
        struct packet_head back = {.protocol = PACKET_TCP,
                                   .source_port = one->peer_port,
                                   .destination_port = one->local_port};
        flows[2 * i] = packet_flow(&there, KEY);
        flows[2 * i + 1] = packet_flow(&back, KEY);
    }
    memcpy(records, data, count * sizeof *records);
    for (size_t i = 0; i < count; i++)
        tame(&records[i], flows);
    qsort(records, count, sizeof *records, by_time);
    check_join(records, count);
    check_stays(records, count, connections);
    return 0;
}
