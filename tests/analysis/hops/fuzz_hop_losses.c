// SPDX-License-Identifier: MIT
//
// Any bytes as what became of requests over UDP, and as the records of the hops that their
// datagrams passed (hops.tlog), of one machine or of two: each that has no answer is counted once,
// behind a hop that saw it or the reply, or as seen by none, and no other is. The input: a byte for
// each request, then the records.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hops/hop_losses.h"
#include "profiler/bpf/packet_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { CONNECTIONS = 3, LIVES = 24, HOPS = 5, MOST = 400, KEY = 42 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

static int64_t as_it_is(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context, (void)clock;
    return (int64_t)(value >> 1);
}

static uint64_t flow_of(const struct connection *connection, bool back)
{
    const uint16_t here = connection->local_port, there = connection->peer_port;
    const struct packet_head head = {.protocol = connection->protocol,
                                     .source_port = back ? there : here,
                                     .destination_port = back ? here : there};
    return packet_flow(&head, KEY);
}

// The last of them is over TCP, of which nothing is lost.
static void connections_make(struct connection connections[CONNECTIONS])
{
    memset(connections, 0, CONNECTIONS * sizeof *connections);
    for (uint16_t i = 0; i < CONNECTIONS; i++) {
        connections[i].protocol = i + 1 < CONNECTIONS ? CONNECTION_UDP : CONNECTION_TCP;
        connections[i].local_port = (uint16_t)(40000 + i);
        connections[i].peer_port = 11211;
    }
}

static void request_make(uint8_t fate, uint32_t number, struct sample *sample,
                         struct lifetime *life)
{
    life->connection = fate % (CONNECTIONS + 1); // one that is not there among them
    life->state = fate & 64 ? LIFETIME_UNANSWERED : LIFETIME_WHOLE;
    life->present = fate & 128 ? 0 : 1u << STAMP_SEND;
    life->stamp_ns[STAMP_SEND] = 1000 * (int64_t)number;
    life->request = number;
    sample->request_begin = number;
    sample->request_end = number + 1;
}

// Times, flows and requests that have something to do with one another in most records, and not in
// all.
static void tame(struct hop_record *record, const struct connection connections[CONNECTIONS])
{
    const uint8_t how = record->core_after;
    if (how & 1)
        record->time %= 1000 * LIVES;
    if (how & 2)
        record->flow =
            flow_of(&connections[record->flow % CONNECTIONS], record->flow / CONNECTIONS & 1);
    if (how & 4)
        record->protocol = PACKET_UDP;
    if (how & 8) {
        record->first %= LIVES;
        record->end = record->first + 1;
    }
    if (how & 16)
        record->hop %= HOPS;
    if (how & 32)
        record->flags = 0;
}

static int by_time(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    return order_of(x->time, y->time);
}

// Whether it is over UDP, was sent, and has no answer.
static bool is_lost(const struct lifetime *life, const struct connection *connections)
{
    return life->state == LIFETIME_UNANSWERED && lifetime_has(life, STAMP_SEND) &&
           life->connection < CONNECTIONS &&
           connections[life->connection].protocol == CONNECTION_UDP;
}

static void check(const struct hop_losses *losses, uint64_t lost)
{
    uint64_t counted = losses->unseen;
    for (size_t i = 0; i < losses->places.count; i++) {
        const struct hop_loss *place = &losses->places.items[i];
        must((place->way == WAY_TO_SERVER || place->way == WAY_TO_CLIENT) && place->requests > 0);
        must(place->after < HOPS && (place->before < HOPS || place->before == HOPS_MAX));
        must(i == 0 || place[-1].way < place->way ||
             (place[-1].way == place->way && place[-1].after < place->after));
        counted += place->requests;
    }
    must(counted == lost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hop_record records[MOST];
    struct connection connections[CONNECTIONS];
    struct sample samples[LIVES] = {0};
    struct lifetime lives[LIVES] = {0};
    static const struct hop_place places[HOPS] = {{.is_ingress = true}};
    struct hop_sightings sightings;
    struct hop_stays stays;
    struct hop_losses losses;
    uint64_t lost = 0;
    if (bytes < LIVES)
        return 0;
    connections_make(connections);
    for (uint32_t i = 0; i < LIVES; i++) {
        request_make(data[i], i, &samples[i], &lives[i]);
        lost += is_lost(&lives[i], connections);
    }
    bytes -= LIVES;
    const size_t count = bytes / sizeof *records < MOST ? bytes / sizeof *records : MOST;
    memcpy(records, data + LIVES, count * sizeof *records);
    for (size_t i = 0; i < count; i++)
        tame(&records[i], connections);
    qsort(records, count, sizeof *records, by_time);
    struct hop_machine server = {.records = records,
                                 .record_count = count,
                                 .hop_count = HOPS - (data[0] & 1),
                                 .flow_key = KEY,
                                 .one_in = 1,
                                 .clock = {.convert = as_it_is}};
    struct hop_machine client = server;
    client.first_hop = HOPS - 1;
    client.hop_count = 1;
    client.is_client = true;
    const struct hop_machine machines[HOP_MACHINES] = {server, client};
    const struct hops_input in = {.machines = machines,
                                  .machine_count = data[0] & 1 ? HOP_MACHINES : 1,
                                  .hop_count = HOPS,
                                  .places = places,
                                  .samples = samples,
                                  .connections = connections,
                                  .connection_count = CONNECTIONS,
                                  .lives = lives,
                                  .life_count = LIVES};
    must(hop_sightings_build(&in, &sightings) == 0);
    must(hop_stays_find(&sightings, &stays) == 0);
    must(hop_losses_find(&sightings, &stays.order, &losses) == 0);
    check(&losses, lost);
    hop_losses_free(&losses);
    hop_stays_free(&stays);
    hop_sightings_free(&sightings);
    return 0;
}
