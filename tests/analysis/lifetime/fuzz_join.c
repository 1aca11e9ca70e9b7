// SPDX-License-Identifier: MIT
//
// Logs of a run that anyone may have written: records of the kernel, of the shim, of the load and
// of hops, each right in most of its bytes and any in the others. Every request gets one life,
// whose stages add up; spans lie within one another; no record crashes the timeline, the join or
// the hops' stays. The input: for each record which kind it is and what it says, then bytes that
// are written over it.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "analysis/hops/hop_sightings.h"
#include "analysis/hops/hop_stays.h"
#include "analysis/lifetime/join.h"
#include "analysis/timeline/timeline.h"
#include "profiler/bpf/packet_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS = 256, ENDS = 3, HOPS = 4, BEGIN = 1000000, KEY = 7 };

struct input {
    const uint8_t *at, *end;
};

struct logs {
    struct event events[RECORDS];
    struct call calls[RECORDS];
    struct sample samples[RECORDS];
    struct hop_record hops[RECORDS];
    size_t event_count, call_count, sample_count, hop_count;
    struct connection client[ENDS], server[ENDS];
    uint64_t now;
    uint32_t sent[ENDS], answered[ENDS]; // bytes
};

static uint8_t take(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

// Writes a few bytes of the input over a record.
static void damage(struct input *in, unsigned how, void *record, size_t bytes)
{
    for (unsigned i = 0; i < how; i++) {
        size_t place = take(in) % bytes;
        ((uint8_t *)record)[place] = take(in);
    }
}

static int64_t convert(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context, (void)clock;
    return (int64_t)value;
}

static const struct time_source clock_of_host = {.convert = convert, .error_ns = 10};

static void connections_make(struct logs *logs, uint8_t how)
{
    for (uint32_t i = 0; i < ENDS; i++) {
        const uint8_t protocol = how >> i & 1 ? CONNECTION_UDP : CONNECTION_TCP;
        struct connection client = {.id = i,
                                    .protocol = protocol,
                                    .outgoing = 1,
                                    .cookie = 100 + i,
                                    .local_port = (uint16_t)(4000 + i),
                                    .peer_port = 11211};
        client.local[15] = client.peer[15] = 1;
        struct connection server = client;
        server.outgoing = 0;
        server.cookie = 1 + i;
        server.local_port = client.peer_port;
        server.peer_port = client.local_port;
        logs->client[i] = client;
        logs->server[i] = server;
    }
}

static void add_event(struct logs *logs, struct input *in, unsigned how)
{
    const uint8_t kind = take(in), connection = take(in) % ENDS;
    struct event *event = &logs->events[logs->event_count++];
    *event = (struct event){.time = logs->now,
                            .kind = kind % (EVENT_KINDS + 2),
                            .flags = take(in),
                            .core = take(in) % 3,
                            .id = connection,
                            .payload = {.a = logs->sent[connection], .b = logs->now - take(in)}};
    if (kind & 128)
        event->payload.a = logs->answered[connection];
    damage(in, how, event, sizeof *event);
}

static void add_call(struct logs *logs, struct input *in, unsigned how)
{
    const uint8_t connection = take(in) % ENDS, kind = take(in);
    struct call *call = &logs->calls[logs->call_count++];
    *call = (struct call){.entry_tsc = logs->now,
                          .exit_tsc = logs->now + take(in),
                          .length = take(in) % 16u,
                          .connection = connection,
                          .process = 1,
                          .thread = 1 + (kind >> 7),
                          .batch = logs->call_count & 0xf0,
                          .kind = kind % 8};
    call->offset = call->kind == CALL_SEND ? logs->answered[connection] : logs->sent[connection];
    logs->answered[connection] += call->kind == CALL_SEND ? call->length : 0;
    damage(in, how, call, sizeof *call);
}

static void add_sample(struct logs *logs, struct input *in, unsigned how)
{
    const uint8_t connection = take(in) % ENDS, length = 1 + take(in) % 8, later = take(in);
    struct sample *sample = &logs->samples[logs->sample_count++];
    *sample = (struct sample){.intended_tsc = logs->now,
                              .send_tsc = logs->now + 1,
                              .sent_tsc = logs->now + 5,
                              .reply_tsc = logs->now + 10 + later,
                              .tx_ns = logs->now + 3,
                              .rx_ns = logs->now + 8 + later,
                              .request_begin = logs->sent[connection],
                              .reply_begin = logs->answered[connection],
                              .connection = connection,
                              .status = later % 6,
                              .tx_source = STAMP_SOFTWARE,
                              .rx_source = STAMP_SOFTWARE};
    sample->request_end = sample->request_begin + length;
    sample->reply_end = sample->reply_begin + length;
    logs->sent[connection] += length;
    damage(in, how, sample, sizeof *sample);
}

static void add_hop(struct logs *logs, struct input *in, unsigned how)
{
    const uint8_t connection = take(in) % ENDS, what = take(in);
    const struct connection *from =
        what & 1 ? &logs->client[connection] : &logs->server[connection];
    struct packet_head head = {.protocol = PACKET_TCP};
    memcpy(&head.source, from->local, sizeof head.source);
    memcpy(&head.destination, from->peer, sizeof head.destination);
    head.source_port = from->local_port;
    head.destination_port = from->peer_port;
    struct hop_record *record = &logs->hops[logs->hop_count++];
    *record = (struct hop_record){.time = logs->now,
                                  .flow = packet_flow(&head, KEY),
                                  .end = logs->sent[connection],
                                  .hop = (what >> 1) % HOPS,
                                  .protocol = PACKET_TCP,
                                  .flags = what & 128 ? HOP_OPENS : 0};
    damage(in, how, record, sizeof *record);
}

static void check_timeline(const struct host_timeline *host)
{
    for (size_t core = 0; core < host->cores.count; core++) {
        const struct span_array *spans = &host->cores.items[core].spans;
        for (size_t i = 0; i < spans->count; i++) {
            assert(spans->items[i].begin_ns <= spans->items[i].end_ns);
            assert(spans->items[i].name < host->names.count);
            assert(i == 0 || spans->items[i - 1].begin_ns <= spans->items[i].begin_ns);
        }
    }
}

static void check_lives(const struct lifetime_array *lives, const struct logs *logs)
{
    assert(lives->count == logs->sample_count);
    for (size_t i = 0; i < lives->count; i++) {
        const struct lifetime *life = &lives->items[i];
        double sum = 0;
        for (int stage = 0; stage < STAGES; stage++)
            sum += life->stage_ns[stage];
        assert(life->request == i && life->state < LIFETIME_STATES);
        if (life->state == LIFETIME_WHOLE && fabs(life->latency_ns) < 1e9)
            assert(sum == life->latency_ns);
    }
}

static void join_and_check(struct logs *logs, bool without_events)
{
    struct host_timeline host = {0};
    struct application_calls calls = {0};
    struct lifetime_array lives = {0};
    struct holdup_array holdups = {0};
    struct join_counts counts = {0};
    struct hop_sightings sightings;
    struct hop_stays stays;
    uint64_t damaged;
    struct error err;
    const struct join_input input = {.samples = logs->samples,
                                     .sample_count = logs->sample_count,
                                     .client_connections = logs->client,
                                     .client_connection_count = ENDS,
                                     .events = without_events ? NULL : logs->events,
                                     .event_count = without_events ? 0 : logs->event_count,
                                     .sockets = logs->server,
                                     .socket_count = ENDS,
                                     .calls = &calls,
                                     .shim_connections = logs->server,
                                     .shim_connection_count = ENDS,
                                     .timeout_ns = 1000,
                                     .clock = clock_of_host};
    assert(host_timeline_build(logs->events, logs->event_count, &clock_of_host, &host, &err) == 0);
    check_timeline(&host);
    assert(application_calls_build(logs->calls, logs->call_count, &clock_of_host, &calls, &damaged,
                                   &err) == 0);
    assert(join_lifetimes(&input, &lives, &holdups, &counts, &err) == 0);
    check_lives(&lives, logs);
    const struct hop_machine machine = {.records = logs->hops,
                                        .record_count = logs->hop_count,
                                        .hop_count = HOPS,
                                        .flow_key = KEY,
                                        .one_in = 1,
                                        .clock = clock_of_host};
    static const struct hop_place places[HOPS] = {{.number = 2, .peer = 1, .qdisc = "noqueue"},
                                                  {.is_ingress = true, .number = 1, .peer = 2}};
    const struct hops_input hops = {.machines = &machine,
                                    .machine_count = 1,
                                    .hop_count = HOPS,
                                    .places = places,
                                    .samples = logs->samples,
                                    .connections = logs->client,
                                    .connection_count = ENDS,
                                    .lives = lives.items,
                                    .life_count = lives.count};
    assert(hop_sightings_build(&hops, &sightings) == 0);
    assert(hop_stays_find(&sightings, &stays) == 0);
    for (size_t i = 0; i < stays.all.count; i++)
        assert(stays.all.items[i].request < lives.count && stays.all.items[i].to < HOPS);
    hop_stays_free(&stays);
    hop_sightings_free(&sightings);
    array_free(&holdups);
    array_free(&lives);
    array_free(&calls);
    host_timeline_free(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct logs logs;
    struct input in = {data, data + size};
    memset(&logs, 0, sizeof logs);
    logs.now = BEGIN;
    const uint8_t first = take(&in);
    connections_make(&logs, first);
    for (unsigned i = 0; i < RECORDS && in.at < in.end; i++) {
        const uint8_t kind = take(&in);
        const unsigned how = kind >> 2 & 32 ? kind >> 2 & 7 : 0;
        logs.now += take(&in);
        switch (kind & 3) {
        case 0:
            add_event(&logs, &in, how);
            break;
        case 1:
            add_call(&logs, &in, how);
            break;
        case 2:
            add_sample(&logs, &in, how);
            break;
        case 3:
            add_hop(&logs, &in, how);
            break;
        }
    }
    join_and_check(&logs, first & 128);
    return 0;
}
