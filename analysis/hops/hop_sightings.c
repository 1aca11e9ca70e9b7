// SPDX-License-Identifier: MIT
#include "analysis/hops/hop_sightings.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/bpf/packet_head.h"
#include "profiler/capsule/packet_words.h"

const struct hop_machine *hop_machine_of(const struct hops_input *in, size_t hop)
{
    const struct hop_machine *machine = in->machines;
    while (hop >= machine->first_hop + machine->hop_count)
        machine++;
    return machine;
}

static uint32_t *stream_place(const struct hop_sightings *s, const struct hop_machine *machine,
                              size_t connection, enum hop_way way)
{
    size_t number = (size_t)(machine - s->in->machines);
    return &s->stream_of[(number * s->in->connection_count + connection) * HOP_WAYS + (size_t)way];
}

// A machine's time from the server's, as a request relates them.
static int64_t moved_to(const struct hop_machine *machine, const struct lifetime *life)
{
    return machine->is_client ? -life->client_moved_ns : 0;
}

// --- streams -------------------------------------------------------------------------------------

static int by_flow(const void *a, const void *b)
{
    const struct hop_stream *x = a, *y = b;
    return order_of(x->machine, y->machine)
               ?: order_of(x->flow, y->flow) ?: order_of(x->opened_ns, y->opened_ns);
}

static int64_t time_of(const struct hop_machine *machine, const struct hop_record *record)
{
    return time_source_to_host(&machine->clock, HOST_CLOCK_MONOTONIC, record->time);
}

static bool is_strange(const struct hop_machine *machine, const struct hop_record *record)
{
    return record->hop >= machine->hop_count;
}

static int collect_openings(struct hop_sightings *s, size_t number)
{
    const struct hop_machine *machine = &s->in->machines[number];
    for (size_t i = 0; i < machine->record_count; i++) {
        const struct hop_record *record = &machine->records[i];
        struct hop_stream one = {
            .machine = number, .flow = record->flow, .base = record->end, .pile = NO_CONNECTION};
        s->strange += is_strange(machine, record);
        if (is_strange(machine, record) || !(record->flags & HOP_OPENS))
            continue;
        one.opened_ns = time_of(machine, record);
        if (array_push(&s->streams, one) < 0)
            return -1;
    }
    return 0;
}

static uint64_t flow_of(const struct hop_machine *machine, const struct connection *connection,
                        enum hop_way way)
{
    struct packet_head head = {.protocol = connection->protocol};
    bool out = way == WAY_TO_SERVER;
    memcpy(&head.source, out ? connection->local : connection->peer, sizeof head.source);
    memcpy(&head.destination, out ? connection->peer : connection->local, sizeof head.destination);
    head.source_port = out ? connection->local_port : connection->peer_port;
    head.destination_port = out ? connection->peer_port : connection->local_port;
    return packet_flow(&head, machine->flow_key);
}

// Over UDP nothing opens a stream: a client's datagrams are one from the beginning, in which
// request n is [n, n + 1) both ways (datagrams.h).
static int add_datagram_streams(struct hop_sightings *s, size_t number)
{
    for (size_t i = 0; i < s->in->connection_count; i++)
        for (int way = 0; way < HOP_WAYS; way++) {
            const struct connection *connection = &s->in->connections[i];
            struct hop_stream one = {
                .machine = number, .opened_ns = INT64_MIN, .pile = NO_CONNECTION};
            if (connection->protocol != CONNECTION_UDP)
                continue;
            one.flow = flow_of(&s->in->machines[number], connection, (enum hop_way)way);
            if (array_push(&s->streams, one) < 0)
                return -1;
        }
    return 0;
}

static int collect_streams(struct hop_sightings *s)
{
    struct hop_stream_array *streams = &s->streams;
    for (size_t i = 0; i < s->in->machine_count; i++)
        if (collect_openings(s, i) < 0 || add_datagram_streams(s, i) < 0)
            return -1;
    array_sort(streams, by_flow);
    size_t kept = 0; // each SYN was seen at several hops
    for (size_t i = 0; i < streams->count; i++) {
        const struct hop_stream *before = kept ? &streams->items[kept - 1] : NULL;
        if (!before || before->machine != streams->items[i].machine ||
            before->flow != streams->items[i].flow || before->base != streams->items[i].base)
            streams->items[kept++] = streams->items[i];
    }
    streams->count = kept;
    return 0;
}

// The stream of that flow that was open at a time of the machine's, or NO_CONNECTION.
static uint32_t stream_at(const struct hop_sightings *s, size_t machine, uint64_t flow,
                          int64_t time_ns)
{
    const struct hop_stream *streams = s->streams.items;
    const struct hop_stream wanted = {.machine = machine, .flow = flow, .opened_ns = time_ns};
    size_t after = array_bound(0, s->streams.count, i, by_flow(&streams[i], &wanted) <= 0);
    return after && streams[after - 1].machine == machine && streams[after - 1].flow == flow
               ? (uint32_t)after - 1
               : NO_CONNECTION;
}

static void match_connection(struct hop_sightings *s, size_t number, const struct lifetime *life)
{
    const struct hop_machine *machine = &s->in->machines[number];
    const struct connection *connection = &s->in->connections[life->connection];
    int64_t sent_ns = life->stamp_ns[STAMP_SEND] + moved_to(machine, life);
    for (int way = 0; way < HOP_WAYS; way++) {
        uint32_t *place = stream_place(s, machine, life->connection, (enum hop_way)way);
        if (*place != NO_CONNECTION)
            continue;
        *place = stream_at(s, number, flow_of(machine, connection, (enum hop_way)way), sent_ns);
        if (*place != NO_CONNECTION)
            s->streams.items[*place].pile =
                (life->connection * HOP_WAYS + (uint32_t)way) * (uint32_t)s->in->hop_count;
    }
}

// A connection is the one that was open when it sent its first request.
static int match_connections_to_streams(struct hop_sightings *s)
{
    const struct hops_input *in = s->in;
    size_t places = in->machine_count * in->connection_count * HOP_WAYS;
    s->stream_of = malloc((places + 1) * sizeof *s->stream_of);
    if (!s->stream_of)
        return -1;
    for (size_t i = 0; i < places; i++)
        s->stream_of[i] = NO_CONNECTION;
    for (size_t i = 0; i < in->life_count; i++) {
        const struct lifetime *life = &in->lives[i];
        if (!lifetime_has(life, STAMP_SEND) || life->connection >= in->connection_count ||
            (in->connections[life->connection].protocol != CONNECTION_TCP &&
             in->connections[life->connection].protocol != CONNECTION_UDP))
            continue;
        for (size_t number = 0; number < in->machine_count; number++)
            match_connection(s, number, life);
    }
    return 0;
}

// --- passages ------------------------------------------------------------------------------------

// How far a record is ahead of the last before it. Sequence numbers begin again at 0 after 4 GiB,
// those of datagrams after 65536.
static int64_t numbers_ahead(const struct hop_record *record, const struct hop_stream *stream)
{
    uint32_t ahead = record->end - (stream->base + (uint32_t)stream->last);
    return record->protocol == PACKET_TCP ? (int64_t)(int32_t)ahead
                                          : (int64_t)(int16_t)(uint16_t)ahead;
}

static int collect_machine(struct hop_sightings *s, size_t number)
{
    const struct hop_machine *machine = &s->in->machines[number];
    for (size_t i = 0; i < machine->record_count; i++) {
        const struct hop_record *record = &machine->records[i];
        if (is_strange(machine, record) || record->flags & HOP_OPENS)
            continue;
        struct passage one = {.time_ns = time_of(machine, record), .record = (uint32_t)i};
        uint32_t place = stream_at(s, number, record->flow, one.time_ns);
        struct hop_stream *stream = place == NO_CONNECTION ? NULL : &s->streams.items[place];
        if (!stream || stream->pile == NO_CONNECTION)
            continue;
        int64_t ahead = numbers_ahead(record, stream);
        one.end = stream->last + (uint64_t)ahead;
        if ((int64_t)one.end < 0)
            continue;
        if (one.end > stream->last)
            stream->last = one.end;
        one.pile = stream->pile + (uint32_t)machine->first_hop + record->hop;
        if (array_push(&s->passages, one) < 0)
            return -1;
    }
    return 0;
}

static int collect_passages(struct hop_sightings *s)
{
    for (size_t i = 0; i < s->in->machine_count; i++)
        if (collect_machine(s, i) < 0)
            return -1;
    return piles_build(&s->piles, s->passages.items, s->passages.count,
                       s->in->connection_count * HOP_WAYS * s->in->hop_count);
}

// --- sightings -----------------------------------------------------------------------------------

static bool has_byte(const struct hop_machine *machine, const struct passage *passage, uint64_t end)
{
    const struct hop_record *record = &machine->records[passage->record];
    uint64_t bytes = record->end - record->first;
    return passage->end >= end && passage->end - bytes < end;
}

static void take_sighting(const struct hop_machine *machine, const struct passage *passage,
                          struct hop_sighting *out)
{
    out->time_ns = passage->time_ns;
    out->record = &machine->records[passage->record];
}

// When a hop saw the byte before `end`, in its machine's time, as is the way's: the last time up to
// the end of the way, since what was sent again before then is what got through; else the first
// time after it.
static bool find_sighting(const struct hop_sightings *s, const struct hop_machine *machine,
                          size_t pile, uint64_t end, const struct hop_way_time *way,
                          struct hop_sighting *out)
{
    const struct passage *items = s->piles.items;
    size_t first = s->piles.starts[pile], after = s->piles.starts[pile + 1], at, split;
    split = array_bound(first, after, i, items[i].time_ns <= way->to_ns);
    for (at = split; at > first && items[at - 1].time_ns >= way->from_ns; at--)
        if (has_byte(machine, &items[at - 1], end)) {
            take_sighting(machine, &items[at - 1], out);
            return true;
        }
    for (at = split; at < after && items[at].time_ns <= way->until_ns; at++)
        if (has_byte(machine, &items[at], end)) {
            take_sighting(machine, &items[at], out);
            return true;
        }
    return false;
}

// Where hops only look, a packet that is not sampled may be seen where it travels in another.
static bool is_sampled(const struct hop_machine *machine, const struct hop_stream *stream,
                       uint64_t end)
{
    uint32_t last = stream->base + (uint32_t)end - 1;
    if (stream->opened_ns ==
        INT64_MIN) // datagrams are sampled by their bytes, which are not known here
        return true;
    return packet_is_sampled(packet_block(machine->flow_key, last),
                             packet_sample_limit(machine->one_in));
}

bool hop_sighted_later(const struct hops_input *in, enum hop_way way, const struct hop_sighting *a,
                       const struct hop_sighting *b)
{
    bool on_client = hop_machine_of(in, a->hop)->is_client;
    if (on_client == hop_machine_of(in, b->hop)->is_client)
        return a->time_ns < b->time_ns;
    return on_client == (way == WAY_TO_SERVER);
}

struct hop_way_time hop_way_time_of(const struct lifetime *life, enum hop_way way)
{
    const int64_t *at = life->stamp_ns;
    if (way == WAY_TO_SERVER)
        return (struct hop_way_time){at[STAMP_SEND], at[STAMP_NIC], at[STAMP_APPLICATION]};
    return (struct hop_way_time){at[STAMP_REPLY],
                                 lifetime_stamp_ns(life, STAMP_CLIENT_RX, STAMP_REPLY_READ),
                                 at[STAMP_REPLY_READ]};
}

// Where in its stream the last byte of a request, or of its reply, is followed. Of a datagram the
// client counts replies as they come; the hops have the request's number.
static uint64_t end_of(const struct hops_input *in, size_t request, enum hop_way way)
{
    const struct sample *sample = &in->samples[request];
    bool over_udp = in->connections[in->lives[request].connection].protocol == CONNECTION_UDP;
    return way == WAY_TO_SERVER || over_udp ? sample->request_end : sample->reply_end;
}

size_t hop_sightings_of(const struct hop_sightings *s, size_t request, enum hop_way way,
                        struct hop_sighting out[HOPS_MAX])
{
    const struct lifetime *life = &s->in->lives[request];
    const struct hop_way_time time = hop_way_time_of(life, way);
    const uint64_t end = end_of(s->in, request, way);
    size_t count = 0;
    for (size_t hop = 0; hop < s->in->hop_count; hop++) {
        const struct hop_machine *machine = hop_machine_of(s->in, hop);
        uint32_t number = *stream_place(s, machine, life->connection, way);
        const struct hop_stream *stream =
            number == NO_CONNECTION ? NULL : &s->streams.items[number];
        int64_t moved = moved_to(machine, life);
        struct hop_way_time there = {time.from_ns + moved, time.to_ns + moved,
                                     time.until_ns + moved};
        struct hop_sighting one = {.hop = (uint8_t)hop};
        if (!stream || !is_sampled(machine, stream, end) ||
            !find_sighting(s, machine, stream->pile + hop, end, &there, &one))
            continue;
        one.time_ns -= moved;
        size_t at = count++;
        for (; at > 0 && hop_sighted_later(s->in, way, &one, &out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = one;
    }
    return count;
}

struct hop_passage hop_passage_at(const struct hop_sightings *s, size_t i)
{
    const struct passage *passage = &s->passages.items[i];
    size_t place = passage->pile / s->in->hop_count;
    struct hop_passage out = {.connection = (uint32_t)(place / HOP_WAYS),
                              .way = (enum hop_way)(place % HOP_WAYS),
                              .end = passage->end,
                              .seen.hop = (uint8_t)(passage->pile % s->in->hop_count)};
    take_sighting(hop_machine_of(s->in, out.seen.hop), passage, &out.seen);
    return out;
}

int hop_sightings_build(const struct hops_input *in, struct hop_sightings *out)
{
    *out = (struct hop_sightings){.in = in};
    return collect_streams(out) < 0 || match_connections_to_streams(out) < 0 ||
                   collect_passages(out) < 0
               ? -1
               : 0;
}

void hop_sightings_free(struct hop_sightings *s)
{
    array_free(&s->streams);
    array_free(&s->passages);
    piles_free(&s->piles);
    free(s->stream_of);
}
