// SPDX-License-Identifier: MIT
//
// A synthetic run (scenario.h) whose messages four hops saw: at the client, at both sides of a
// bridge, at the server. Header-only: each test binary stands alone.
#ifndef TESTS_ANALYSIS_HOPS_SEEN_H
#define TESTS_ANALYSIS_HOPS_SEEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/hops/hop_losses.h"
#include "analysis/hops/hop_sightings.h"
#include "analysis/hops/hop_stays.h"
#include "profiler/bpf/packet_head.h"
#include "tests/analysis/lifetime/joined.h"

enum { CLIENT, IN, OUT, SERVER, HOPS };
static const struct hop_place places[HOPS] = {{.name = "eth0@client"},
                                              {.name = "in", .is_ingress = true},
                                              {.name = "out"},
                                              {.name = "eth0@server", .is_ingress = true}};

#define KEY 0x1234567890abcdefULL
// Of connection 0 the sequence numbers begin again at 0 within the run.
#define FIRST_NUMBER(connection) (UINT32_MAX - 3000u + 100000u * (connection))

struct seen {
    struct joined joined;
    struct ARRAY_OF(struct hop_record) records;
    struct hop_stays stays;
    struct hop_losses losses;
    uint64_t strange;
    bool without_opening; // no SYN was recorded
    uint32_t one_in;
    const struct hop_place *places; // NULL: as above
};

static inline uint64_t flow_of(const struct connection *c, bool back)
{
    struct packet_head head = {.protocol = c->protocol};
    memcpy(&head.source, back ? c->peer : c->local, 16);
    memcpy(&head.destination, back ? c->local : c->peer, 16);
    head.source_port = back ? c->peer_port : c->local_port;
    head.destination_port = back ? c->local_port : c->peer_port;
    return packet_flow(&head, KEY);
}

static inline void pass(struct seen *s, uint32_t connection, bool back, uint8_t hop,
                        int64_t time_ns, uint64_t from, uint64_t to)
{
    struct hop_record record = {.time = (uint64_t)(time_ns + MONOTONIC_AHEAD_NS),
                                .flow = flow_of(&s->joined.scenario.client.items[connection], back),
                                .first = FIRST_NUMBER(connection) + (uint32_t)from,
                                .end = FIRST_NUMBER(connection) + (uint32_t)to,
                                .hop = hop,
                                .protocol = PACKET_TCP,
                                .flags = from == to ? HOP_OPENS : 0};
    SCENARIO_PUSH(&s->records, record);
}

static inline int by_time(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    return order_of(x->time, y->time);
}

static inline void make(struct seen *s, const struct scenario_options *options)
{
    build(&s->joined, options);
    for (uint32_t c = 0; c < options->connections && !s->without_opening; c++)
        for (uint8_t hop = 0; hop < HOPS; hop++) {
            pass(s, c, false, hop, SCENARIO_BEGIN_NS - 90000 + hop * 1000, 0, 0);
            pass(s, c, true, hop, SCENARIO_BEGIN_NS - 60000 - hop * 1000, 0, 0);
        }
    s->one_in = s->one_in ? s->one_in : 1;
}

// The same over UDP, where the datagram of request n begins with n.
static inline void pass_datagram(struct seen *s, uint32_t connection, bool back, uint8_t hop,
                                 int64_t time_ns, uint64_t number)
{
    pass(s, connection, back, hop, time_ns, number, number + 1);
    struct hop_record *record = &s->records.items[s->records.count - 1];
    record->protocol = PACKET_UDP;
    record->first = (uint16_t)number;
    record->end = record->first + 1;
}

static inline void find_among(struct seen *s, const struct hop_machine *machines,
                              size_t machine_count)
{
    struct scenario *scenario = &s->joined.scenario;
    const struct hops_input in = {.machines = machines,
                                  .machine_count = machine_count,
                                  .hop_count = HOPS,
                                  .places = s->places ? s->places : places,
                                  .samples = scenario->samples.items,
                                  .connections = scenario->client.items,
                                  .connection_count = scenario->client.count,
                                  .lives = s->joined.lives.items,
                                  .life_count = s->joined.lives.count};
    struct hop_sightings sightings;
    assert_int_equal(hop_sightings_build(&in, &sightings), 0);
    assert_int_equal(hop_stays_find(&sightings, &s->stays), 0);
    assert_int_equal(hop_losses_find(&sightings, &s->stays.order, &s->losses), 0);
    s->strange = sightings.strange;
    hop_sightings_free(&sightings);
}

static inline void find(struct seen *s)
{
    array_sort(&s->records, by_time);
    const struct hop_machine machine = {.records = s->records.items,
                                        .record_count = s->records.count,
                                        .hop_count = HOPS,
                                        .flow_key = KEY,
                                        .one_in = s->one_in,
                                        .clock = scenario_clock()};
    find_among(s, &machine, 1);
}

static inline void finish(struct seen *s)
{
    hop_stays_free(&s->stays);
    hop_losses_free(&s->losses);
    array_free(&s->records);
    release(&s->joined);
}

// A request's way there: the client's qdisc, the bridge, and the fault on one of the links, of
// which the last ends behind M(n), as it does where another core takes packets in.
static inline void pass_there(struct seen *s, size_t i, unsigned slow_link)
{
    const struct scenario_request *r = &s->joined.scenario.requests.items[i];
    const int64_t late = r->nic - r->tx > 100000 ? r->nic - r->tx - 1500 : 0;
    uint64_t end = r->begin + REQUEST_BYTES;
    pass(s, r->connection, false, CLIENT, r->tx - 500, r->begin, end);
    pass(s, r->connection, false, IN, r->tx + 200 + (slow_link == CLIENT ? late : 0), r->begin,
         end);
    pass(s, r->connection, false, OUT, r->tx + 500 + (slow_link <= IN ? late : 0), r->begin, end);
    pass(s, r->connection, false, SERVER, r->nic + 300, r->begin, end);
}

static inline void pass_back(struct seen *s, size_t i)
{
    const struct scenario_request *r = &s->joined.scenario.requests.items[i];
    uint64_t end = r->reply_begin + REPLY_BYTES;
    pass(s, r->connection, true, SERVER, r->server_tx - 200, r->reply_begin, end);
    pass(s, r->connection, true, OUT, r->server_tx + 700, r->reply_begin, end);
    pass(s, r->connection, true, IN, r->server_tx + 900, r->reply_begin, end);
    pass(s, r->connection, true, CLIENT, r->client_rx + 50, r->reply_begin, end);
}

#endif
