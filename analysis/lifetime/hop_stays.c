// SPDX-License-Identifier: MIT
#include "analysis/lifetime/hop_stays.h"

#include <math.h>
#include <string.h>

#include "analysis/lifetime/streams.h"
#include "profiler/bpf/packet_head.h"
#include "profiler/capsule/packet_words.h"

// One direction of a connection, from its SYN on.
struct stream {
    uint64_t flow;
    int64_t opened_ns;
    uint32_t base; // number of the first byte
    uint32_t pile; // of its first hop: of a connection of the client's; NO_CONNECTION: of none
    uint64_t last; // how far its records went
};
struct stream_array ARRAY_OF(struct stream);
struct passage_array ARRAY_OF(struct passage);

struct finding {
    const struct hop_stays_input *in;
    struct hop_stays *out;
    struct stream_array streams; // by flow, in order of time
    struct passage_array passages;
    struct piles piles;    // by connection, way and hop; `record` is a hop record's index
    uint32_t *stream_of;   // by connection and way: of streams, or NO_CONNECTION
    uint32_t sample_limit; // of packet_is_sampled()
};

// --- streams -------------------------------------------------------------------------------------

static int by_flow(const void *a, const void *b)
{
    const struct stream *x = a, *y = b;
    return order_of(x->flow, y->flow) ?: order_of(x->opened_ns, y->opened_ns);
}

static int64_t time_of(const struct finding *f, const struct hop_record *record)
{
    return time_source_to_host(&f->in->clock, HOST_CLOCK_MONOTONIC, record->time);
}

static bool is_strange(const struct finding *f, const struct hop_record *record)
{
    return record->hop >= f->in->hop_count;
}

static int collect_streams(struct finding *f)
{
    struct stream_array *streams = &f->streams;
    for (size_t i = 0; i < f->in->record_count; i++) {
        const struct hop_record *record = &f->in->records[i];
        struct stream one = {.flow = record->flow, .base = record->end, .pile = NO_CONNECTION};
        f->out->strange += is_strange(f, record);
        if (is_strange(f, record) || !(record->flags & HOP_OPENS))
            continue;
        one.opened_ns = time_of(f, record);
        if (array_push(streams, one) < 0)
            return -1;
    }
    array_sort(streams, by_flow);
    size_t kept = 0; // each SYN was seen at several hops
    for (size_t i = 0; i < streams->count; i++) {
        const struct stream *before = kept ? &streams->items[kept - 1] : NULL;
        if (!before || before->flow != streams->items[i].flow ||
            before->base != streams->items[i].base)
            streams->items[kept++] = streams->items[i];
    }
    streams->count = kept;
    return 0;
}

// The stream of that flow that was open at a time, or NO_CONNECTION.
static uint32_t stream_at(const struct finding *f, uint64_t flow, int64_t time_ns)
{
    const struct stream *streams = f->streams.items;
    size_t after = array_bound(0, f->streams.count, i,
                               streams[i].flow < flow ||
                                   (streams[i].flow == flow && streams[i].opened_ns <= time_ns));
    return after && streams[after - 1].flow == flow ? (uint32_t)after - 1 : NO_CONNECTION;
}

static uint64_t flow_of(const struct finding *f, const struct connection *connection,
                        enum hop_way way)
{
    struct packet_head head = {.protocol = connection->protocol};
    bool out = way == WAY_TO_SERVER;
    memcpy(&head.source, out ? connection->local : connection->peer, sizeof head.source);
    memcpy(&head.destination, out ? connection->peer : connection->local, sizeof head.destination);
    head.source_port = out ? connection->local_port : connection->peer_port;
    head.destination_port = out ? connection->peer_port : connection->local_port;
    return packet_flow(&head, f->in->flow_key);
}

// A connection is the one that was open when it sent its first request.
static int match_connections_to_streams(struct finding *f)
{
    const struct hop_stays_input *in = f->in;
    f->stream_of = malloc((in->connection_count * HOP_WAYS + 1) * sizeof *f->stream_of);
    if (!f->stream_of)
        return -1;
    for (size_t i = 0; i < in->connection_count * HOP_WAYS; i++)
        f->stream_of[i] = NO_CONNECTION;
    for (size_t i = 0; i < in->life_count; i++) {
        const struct lifetime *life = &in->lives[i];
        if (!lifetime_has(life, STAMP_SEND) || life->connection >= in->connection_count ||
            in->connections[life->connection].protocol != CONNECTION_TCP)
            continue;
        for (int way = 0; way < HOP_WAYS; way++) {
            uint32_t pile = life->connection * HOP_WAYS + (uint32_t)way;
            if (f->stream_of[pile] != NO_CONNECTION)
                continue;
            const struct connection *connection = &in->connections[life->connection];
            uint32_t stream =
                stream_at(f, flow_of(f, connection, (enum hop_way)way), life->stamp_ns[STAMP_SEND]);
            if (stream == NO_CONNECTION)
                continue;
            f->stream_of[pile] = stream;
            f->streams.items[stream].pile = pile * (uint32_t)in->hop_count;
        }
    }
    return 0;
}

// --- passages ------------------------------------------------------------------------------------

static int collect_passages(struct finding *f)
{
    const struct hop_stays_input *in = f->in;
    for (size_t i = 0; i < in->record_count; i++) {
        const struct hop_record *record = &in->records[i];
        if (is_strange(f, record) || record->protocol != PACKET_TCP || record->flags & HOP_OPENS)
            continue;
        struct passage one = {.time_ns = time_of(f, record), .record = (uint32_t)i};
        uint32_t number = stream_at(f, record->flow, one.time_ns);
        struct stream *stream = number == NO_CONNECTION ? NULL : &f->streams.items[number];
        if (!stream || stream->pile == NO_CONNECTION)
            continue;
        // Sequence numbers begin again at 0, after 4 GiB.
        int32_t ahead = (int32_t)(record->end - (stream->base + (uint32_t)stream->last));
        one.end = stream->last + (uint64_t)(int64_t)ahead;
        if ((int64_t)one.end < 0)
            continue;
        if (one.end > stream->last)
            stream->last = one.end;
        one.pile = stream->pile + record->hop;
        if (array_push(&f->passages, one) < 0)
            return -1;
    }
    return piles_build(&f->piles, f->passages.items, f->passages.count,
                       in->connection_count * HOP_WAYS * in->hop_count);
}

// --- messages ------------------------------------------------------------------------------------

struct sighting {
    int64_t time_ns;
    uint8_t hop;
};

// Within what time a message was on a way: from its begin, to its end, and until then the hop at
// the receiver may have seen it, which comes behind the stamp there.
struct way_time {
    int64_t from_ns, to_ns, until_ns;
};

static bool has_byte(const struct finding *f, const struct passage *passage, uint64_t end)
{
    const struct hop_record *record = &f->in->records[passage->record];
    uint64_t bytes = record->end - record->first;
    return passage->end >= end && passage->end - bytes < end;
}

// When a hop saw the byte before `end`: the last time up to the end of its way, since what was sent
// again before then is what got through; else the first time after it.
static bool find_sighting(const struct finding *f, size_t pile, uint64_t end,
                          const struct way_time *way, struct sighting *out)
{
    const struct passage *items = f->piles.items;
    size_t first = f->piles.starts[pile], after = f->piles.starts[pile + 1], at, split;
    split = array_bound(first, after, i, items[i].time_ns <= way->to_ns);
    for (at = split; at > first && items[at - 1].time_ns >= way->from_ns; at--)
        if (has_byte(f, &items[at - 1], end)) {
            out->time_ns = items[at - 1].time_ns;
            return true;
        }
    for (at = split; at < after && items[at].time_ns <= way->until_ns; at++)
        if (has_byte(f, &items[at], end)) {
            out->time_ns = items[at].time_ns;
            return true;
        }
    return false;
}

static size_t find_sightings(const struct finding *f, size_t pile, uint64_t end,
                             const struct way_time *way, struct sighting out[HOPS_MAX])
{
    size_t count = 0;
    for (size_t hop = 0; hop < f->in->hop_count; hop++) {
        struct sighting one = {.hop = (uint8_t)hop};
        if (!find_sighting(f, pile + hop, end, way, &one))
            continue;
        size_t at = count++;
        for (; at > 0 && out[at - 1].time_ns > one.time_ns; at--)
            out[at] = out[at - 1];
        out[at] = one;
    }
    return count;
}

static enum stamp_kind had(const struct lifetime *life, enum stamp_kind wanted,
                           enum stamp_kind otherwise)
{
    return lifetime_has(life, wanted) ? wanted : otherwise;
}

// Where hops only look, a packet that is not sampled may be seen where it travels in another.
static bool is_sampled(const struct finding *f, const struct stream *stream, uint64_t end)
{
    uint32_t last = stream->base + (uint32_t)end - 1;
    return packet_is_sampled(packet_block(stream->flow, last), f->sample_limit);
}

static struct way_time way_time_of(const struct lifetime *life, enum hop_way way)
{
    const int64_t *at = life->stamp_ns;
    if (way == WAY_TO_SERVER)
        return (struct way_time){at[STAMP_SEND], at[STAMP_NIC], at[STAMP_APPLICATION]};
    return (struct way_time){at[STAMP_REPLY], at[had(life, STAMP_CLIENT_RX, STAMP_REPLY_READ)],
                             at[STAMP_REPLY_READ]};
}

static int add_stays(struct finding *f, size_t request, enum hop_way way)
{
    const struct lifetime *life = &f->in->lives[request];
    const struct sample *sample = &f->in->samples[request];
    uint64_t end = way == WAY_TO_SERVER ? sample->request_end : sample->reply_end;
    uint32_t number = f->stream_of[life->connection * HOP_WAYS + (uint32_t)way];
    struct way_time time = way_time_of(life, way);
    struct sighting seen[HOPS_MAX];
    bool any = false;
    if (number == NO_CONNECTION || !is_sampled(f, &f->streams.items[number], end))
        return 0;
    size_t count = find_sightings(f, f->streams.items[number].pile, end, &time, seen);
    if (way == WAY_TO_CLIENT) // before that it was on the server, where more is known of it
        time.from_ns = life->stamp_ns[had(life, STAMP_SERVER_TX, STAMP_REPLY)];
    for (size_t i = 1; i < count; i++) {
        struct hop_stay stay = {.request = request,
                                .begin_ns = seen[i - 1].time_ns,
                                .end_ns = seen[i].time_ns,
                                .from = seen[i - 1].hop,
                                .to = seen[i].hop};
        stay.begin_ns = stay.begin_ns < time.from_ns ? time.from_ns : stay.begin_ns;
        stay.end_ns = stay.end_ns > time.to_ns ? time.to_ns : stay.end_ns;
        if (stay.begin_ns >= stay.end_ns)
            continue;
        if (array_push(&f->out->all, stay) < 0)
            return -1;
        any = true;
    }
    f->out->divided[way] += any;
    return 0;
}

static int divide_requests(struct finding *f)
{
    for (size_t i = 0; i < f->in->life_count; i++) {
        const struct lifetime *life = &f->in->lives[i];
        if (life->state != LIFETIME_WHOLE)
            continue;
        f->out->whole++;
        if (life->connection >= f->in->connection_count || !isfinite(life->hosts_error_ns))
            continue;
        for (int way = 0; way < HOP_WAYS; way++)
            if (add_stays(f, i, (enum hop_way)way) < 0)
                return -1;
    }
    return 0;
}

int hop_stays_find(const struct hop_stays_input *in, struct hop_stays *out)
{
    struct finding f = {.in = in, .out = out, .sample_limit = packet_sample_limit(in->one_in)};
    *out = (struct hop_stays){.whole = 0};
    int result = collect_streams(&f);
    if (result == 0)
        result = match_connections_to_streams(&f);
    if (result == 0)
        result = collect_passages(&f);
    if (result == 0)
        result = divide_requests(&f);
    array_free(&f.streams);
    array_free(&f.passages);
    piles_free(&f.piles);
    free(f.stream_of);
    return result;
}

void hop_stays_free(struct hop_stays *stays)
{
    array_free(&stays->all);
}

// --- what others ask -----------------------------------------------------------------------------

const struct hop_stay *hop_stays_of(const struct hop_stays *stays, uint64_t request, size_t *count)
{
    const struct hop_stay *items = stays->all.items;
    size_t first = array_bound(0, stays->all.count, at, items[at].request < request);
    size_t after = first;
    while (after < stays->all.count && items[after].request == request)
        after++;
    *count = after - first;
    return items + first;
}

enum hop_way hop_stay_way(const struct hop_stay *stay, const struct lifetime *life)
{
    return stay->begin_ns < life->stamp_ns[STAMP_NIC] ? WAY_TO_SERVER : WAY_TO_CLIENT;
}

bool hop_way_of(const struct hop_stays *stays, const struct lifetime *lives, uint64_t request,
                enum hop_way way, int64_t *begin_ns, int64_t *end_ns)
{
    const struct lifetime *life = &lives[request];
    size_t count;
    if (life->state != LIFETIME_WHOLE || !isfinite(life->hosts_error_ns))
        return false;
    if (way == WAY_TO_CLIENT) {
        *begin_ns = life->stamp_ns[had(life, STAMP_SERVER_TX, STAMP_REPLY)];
        *end_ns = life->stamp_ns[had(life, STAMP_CLIENT_RX, STAMP_REPLY_READ)];
        return *begin_ns <= *end_ns;
    }
    const struct hop_stay *first = hop_stays_of(stays, request, &count);
    *begin_ns = life->stamp_ns[had(life, STAMP_CLIENT_TX, STAMP_SEND)];
    *end_ns = life->stamp_ns[STAMP_NIC];
    if (count && hop_stay_way(first, life) == WAY_TO_SERVER && first->begin_ns < *begin_ns)
        *begin_ns = first->begin_ns;
    return *begin_ns <= *end_ns;
}
