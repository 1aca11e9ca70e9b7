// SPDX-License-Identifier: MIT
#include "analysis/lifetime/hop_stays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/clock_relation.h"
#include "analysis/lifetime/streams.h"
#include "base/quantile.h"
#include "profiler/bpf/packet_head.h"
#include "profiler/capsule/packet_words.h"

// One direction of a connection, from its SYN on, as a machine saw it.
struct stream {
    size_t machine;
    uint64_t flow;
    int64_t opened_ns; // in that machine's time
    uint32_t base;     // number of the first byte
    uint32_t pile;     // of its first hop: of a connection of the client's; NO_CONNECTION: of none
    uint64_t last;     // how far its records went
};
struct stream_array ARRAY_OF(struct stream);
struct passage_array ARRAY_OF(struct passage);

// A request's packets at the hops next to the wire between the machines, each in its own time.
struct packet_exchange {
    struct exchange stamps;
    size_t request;
};
struct packet_exchange_array ARRAY_OF(struct packet_exchange);

struct finding {
    const struct hop_stays_input *in;
    struct hop_stays *out;
    struct stream_array streams; // by machine and flow, in order of time
    struct passage_array passages;
    struct piles piles;  // by connection, way and hop; `record` is a hop record's index
    uint32_t *stream_of; // by machine, connection and way: of streams, or NO_CONNECTION
    struct packet_exchange_array exchanges;
    // By way: how many packets were at a hop next after another one.
    uint64_t followed[HOP_WAYS][HOPS_MAX][HOPS_MAX];
};

static const struct hop_machine *machine_of(const struct finding *f, size_t hop)
{
    const struct hop_machine *machine = f->in->machines;
    while (hop >= machine->first_hop + machine->hop_count)
        machine++;
    return machine;
}

static uint32_t *stream_place(const struct finding *f, const struct hop_machine *machine,
                              size_t connection, enum hop_way way)
{
    size_t number = (size_t)(machine - f->in->machines);
    return &f->stream_of[(number * f->in->connection_count + connection) * HOP_WAYS + (size_t)way];
}

// A machine's time from the server's, as a request relates them.
static int64_t moved_to(const struct hop_machine *machine, const struct lifetime *life)
{
    return machine->is_client ? -life->client_moved_ns : 0;
}

// --- streams -------------------------------------------------------------------------------------

static int by_flow(const void *a, const void *b)
{
    const struct stream *x = a, *y = b;
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

static int collect_openings(struct finding *f, size_t number)
{
    const struct hop_machine *machine = &f->in->machines[number];
    for (size_t i = 0; i < machine->record_count; i++) {
        const struct hop_record *record = &machine->records[i];
        struct stream one = {
            .machine = number, .flow = record->flow, .base = record->end, .pile = NO_CONNECTION};
        f->out->strange += is_strange(machine, record);
        if (is_strange(machine, record) || !(record->flags & HOP_OPENS))
            continue;
        one.opened_ns = time_of(machine, record);
        if (array_push(&f->streams, one) < 0)
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
static int add_datagram_streams(struct finding *f, size_t number)
{
    for (size_t i = 0; i < f->in->connection_count; i++)
        for (int way = 0; way < HOP_WAYS; way++) {
            const struct connection *connection = &f->in->connections[i];
            struct stream one = {.machine = number, .opened_ns = INT64_MIN, .pile = NO_CONNECTION};
            if (connection->protocol != CONNECTION_UDP)
                continue;
            one.flow = flow_of(&f->in->machines[number], connection, (enum hop_way)way);
            if (array_push(&f->streams, one) < 0)
                return -1;
        }
    return 0;
}

static int collect_streams(struct finding *f)
{
    struct stream_array *streams = &f->streams;
    for (size_t i = 0; i < f->in->machine_count; i++)
        if (collect_openings(f, i) < 0 || add_datagram_streams(f, i) < 0)
            return -1;
    array_sort(streams, by_flow);
    size_t kept = 0; // each SYN was seen at several hops
    for (size_t i = 0; i < streams->count; i++) {
        const struct stream *before = kept ? &streams->items[kept - 1] : NULL;
        if (!before || before->machine != streams->items[i].machine ||
            before->flow != streams->items[i].flow || before->base != streams->items[i].base)
            streams->items[kept++] = streams->items[i];
    }
    streams->count = kept;
    return 0;
}

// The stream of that flow that was open at a time of the machine's, or NO_CONNECTION.
static uint32_t stream_at(const struct finding *f, size_t machine, uint64_t flow, int64_t time_ns)
{
    const struct stream *streams = f->streams.items;
    const struct stream wanted = {.machine = machine, .flow = flow, .opened_ns = time_ns};
    size_t after = array_bound(0, f->streams.count, i, by_flow(&streams[i], &wanted) <= 0);
    return after && streams[after - 1].machine == machine && streams[after - 1].flow == flow
               ? (uint32_t)after - 1
               : NO_CONNECTION;
}

static void match_connection(struct finding *f, size_t number, const struct lifetime *life)
{
    const struct hop_machine *machine = &f->in->machines[number];
    const struct connection *connection = &f->in->connections[life->connection];
    int64_t sent_ns = life->stamp_ns[STAMP_SEND] + moved_to(machine, life);
    for (int way = 0; way < HOP_WAYS; way++) {
        uint32_t *place = stream_place(f, machine, life->connection, (enum hop_way)way);
        if (*place != NO_CONNECTION)
            continue;
        *place = stream_at(f, number, flow_of(machine, connection, (enum hop_way)way), sent_ns);
        if (*place != NO_CONNECTION)
            f->streams.items[*place].pile =
                (life->connection * HOP_WAYS + (uint32_t)way) * (uint32_t)f->in->hop_count;
    }
}

// A connection is the one that was open when it sent its first request.
static int match_connections_to_streams(struct finding *f)
{
    const struct hop_stays_input *in = f->in;
    size_t places = in->machine_count * in->connection_count * HOP_WAYS;
    f->stream_of = malloc((places + 1) * sizeof *f->stream_of);
    if (!f->stream_of)
        return -1;
    for (size_t i = 0; i < places; i++)
        f->stream_of[i] = NO_CONNECTION;
    for (size_t i = 0; i < in->life_count; i++) {
        const struct lifetime *life = &in->lives[i];
        if (!lifetime_has(life, STAMP_SEND) || life->connection >= in->connection_count ||
            (in->connections[life->connection].protocol != CONNECTION_TCP &&
             in->connections[life->connection].protocol != CONNECTION_UDP))
            continue;
        for (size_t number = 0; number < in->machine_count; number++)
            match_connection(f, number, life);
    }
    return 0;
}

// --- passages ------------------------------------------------------------------------------------

// How far a record is ahead of the last before it. Sequence numbers begin again at 0 after 4 GiB,
// those of datagrams after 65536.
static int64_t numbers_ahead(const struct hop_record *record, const struct stream *stream)
{
    uint32_t ahead = record->end - (stream->base + (uint32_t)stream->last);
    return record->protocol == PACKET_TCP ? (int64_t)(int32_t)ahead
                                          : (int64_t)(int16_t)(uint16_t)ahead;
}

static int collect_machine(struct finding *f, size_t number)
{
    const struct hop_machine *machine = &f->in->machines[number];
    for (size_t i = 0; i < machine->record_count; i++) {
        const struct hop_record *record = &machine->records[i];
        if (is_strange(machine, record) || record->flags & HOP_OPENS)
            continue;
        struct passage one = {.time_ns = time_of(machine, record), .record = (uint32_t)i};
        uint32_t place = stream_at(f, number, record->flow, one.time_ns);
        struct stream *stream = place == NO_CONNECTION ? NULL : &f->streams.items[place];
        if (!stream || stream->pile == NO_CONNECTION)
            continue;
        int64_t ahead = numbers_ahead(record, stream);
        one.end = stream->last + (uint64_t)ahead;
        if ((int64_t)one.end < 0)
            continue;
        if (one.end > stream->last)
            stream->last = one.end;
        one.pile = stream->pile + (uint32_t)machine->first_hop + record->hop;
        if (array_push(&f->passages, one) < 0)
            return -1;
    }
    return 0;
}

static int collect_passages(struct finding *f)
{
    for (size_t i = 0; i < f->in->machine_count; i++)
        if (collect_machine(f, i) < 0)
            return -1;
    return piles_build(&f->piles, f->passages.items, f->passages.count,
                       f->in->connection_count * HOP_WAYS * f->in->hop_count);
}

// --- messages ------------------------------------------------------------------------------------

struct sighting {
    int64_t time_ns;
    const struct hop_record *record;
    uint8_t hop;
};

// Within what time a message was on a way: from its begin, to its end, and until then the hop at
// the receiver may have seen it, which comes behind the stamp there.
struct way_time {
    int64_t from_ns, to_ns, until_ns;
};

static bool has_byte(const struct hop_machine *machine, const struct passage *passage, uint64_t end)
{
    const struct hop_record *record = &machine->records[passage->record];
    uint64_t bytes = record->end - record->first;
    return passage->end >= end && passage->end - bytes < end;
}

static void take_sighting(const struct hop_machine *machine, const struct passage *passage,
                          struct sighting *out)
{
    out->time_ns = passage->time_ns;
    out->record = &machine->records[passage->record];
}

// When a hop saw the byte before `end`, in its machine's time, as is the way's: the last time up to
// the end of the way, since what was sent again before then is what got through; else the first
// time after it.
static bool find_sighting(const struct finding *f, const struct hop_machine *machine, size_t pile,
                          uint64_t end, const struct way_time *way, struct sighting *out)
{
    const struct passage *items = f->piles.items;
    size_t first = f->piles.starts[pile], after = f->piles.starts[pile + 1], at, split;
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
static bool is_sampled(const struct hop_machine *machine, const struct stream *stream, uint64_t end)
{
    uint32_t last = stream->base + (uint32_t)end - 1;
    if (stream->opened_ns ==
        INT64_MIN) // datagrams are sampled by their bytes, which are not known here
        return true;
    return packet_is_sampled(packet_block(stream->flow, last),
                             packet_sample_limit(machine->one_in));
}

// Whether b is passed after a. Between machines it is the way that says so, not their clocks.
static bool is_later(const struct finding *f, enum hop_way way, const struct sighting *a,
                     const struct sighting *b)
{
    bool on_client = machine_of(f, a->hop)->is_client;
    if (on_client == machine_of(f, b->hop)->is_client)
        return a->time_ns < b->time_ns;
    return on_client == (way == WAY_TO_SERVER);
}

// In the server's time, in the order of the way.
static size_t find_sightings(const struct finding *f, const struct lifetime *life, enum hop_way way,
                             uint64_t end, const struct way_time *time,
                             struct sighting out[HOPS_MAX])
{
    size_t count = 0;
    for (size_t hop = 0; hop < f->in->hop_count; hop++) {
        const struct hop_machine *machine = machine_of(f, hop);
        uint32_t number = *stream_place(f, machine, life->connection, way);
        const struct stream *stream = number == NO_CONNECTION ? NULL : &f->streams.items[number];
        int64_t moved = moved_to(machine, life);
        struct way_time there = {time->from_ns + moved, time->to_ns + moved,
                                 time->until_ns + moved};
        struct sighting one = {.hop = (uint8_t)hop};
        if (!stream || !is_sampled(machine, stream, end) ||
            !find_sighting(f, machine, stream->pile + hop, end, &there, &one))
            continue;
        one.time_ns -= moved;
        size_t at = count++;
        for (; at > 0 && is_later(f, way, &one, &out[at - 1]); at--)
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

static struct way_time way_time_of(const struct lifetime *life, enum hop_way way)
{
    const int64_t *at = life->stamp_ns;
    if (way == WAY_TO_SERVER)
        return (struct way_time){at[STAMP_SEND], at[STAMP_NIC], at[STAMP_APPLICATION]};
    return (struct way_time){at[STAMP_REPLY], at[had(life, STAMP_CLIENT_RX, STAMP_REPLY_READ)],
                             at[STAMP_REPLY_READ]};
}

// Where a packet seems to be at a hop before it was at the one before, as another machine's clock
// may say, it is there at the same time.
static void straighten(struct finding *f, const struct lifetime *life, size_t count,
                       struct sighting seen[HOPS_MAX])
{
    bool backwards = false;
    for (size_t i = 1; i < count; i++) {
        int64_t back_ns = seen[i - 1].time_ns - seen[i].time_ns;
        if (back_ns <= 0)
            continue;
        backwards |= (double)back_ns > life->hosts_error_ns;
        seen[i].time_ns = seen[i - 1].time_ns;
    }
    f->out->backwards += backwards;
}

// The two hops between which a packet went from one machine to the other; false: none such.
static bool find_crossing(const struct finding *f, size_t count,
                          const struct sighting seen[HOPS_MAX], int64_t *left_ns, int64_t *came_ns)
{
    for (size_t i = 1; i < count; i++)
        if (machine_of(f, seen[i - 1].hop)->is_client != machine_of(f, seen[i].hop)->is_client) {
            *left_ns = seen[i - 1].time_ns;
            *came_ns = seen[i].time_ns;
            return true;
        }
    return false;
}

static uint16_t core_of(const struct sighting *seen)
{
    return seen->record->core_after ? (uint16_t)(seen->record->core_after - 1) : HOP_NO_CORE;
}

// Between the two ends of a link where no queueing discipline is, a packet waits for nothing but
// the core that takes it in.
static void find_cores(const struct finding *f, const struct sighting *a, const struct sighting *b,
                       struct hop_stay *stay)
{
    const struct hop_place *from = &f->in->places[a->hop], *to = &f->in->places[b->hop];
    stay->sent_core = stay->taken_core = HOP_NO_CORE;
    if (machine_of(f, a->hop)->is_client || machine_of(f, b->hop)->is_client || from->is_ingress ||
        !to->is_ingress || !from->peer || from->peer != to->number || to->peer != from->number ||
        strcmp(from->qdisc, "noqueue") != 0)
        return;
    stay->sent_core = core_of(a);
    stay->taken_core = core_of(b);
}

// Adds what of it lies on the way.
static int add_stay(struct finding *f, struct hop_stay stay, const struct way_time *time)
{
    stay.begin_ns = stay.begin_ns < time->from_ns ? time->from_ns : stay.begin_ns;
    stay.end_ns = stay.end_ns > time->to_ns ? time->to_ns : stay.end_ns;
    return stay.begin_ns < stay.end_ns ? array_push(&f->out->all, stay) : 0;
}

// A stay, or the two parts of it where it is known how long the packet was in the queue.
static int add_parts(struct finding *f, const struct hop_stay *stay, uint64_t queued_ns,
                     const struct way_time *time)
{
    struct hop_stay queue = *stay, behind = *stay;
    if (!queued_ns)
        return add_stay(f, *stay, time);
    queue.part = STAY_IN_QUEUE;
    behind.part = STAY_BEHIND_QUEUE;
    // By another machine's clock it may come to the next hop before it left.
    if (queued_ns < (uint64_t)(stay->end_ns - stay->begin_ns))
        queue.end_ns = stay->begin_ns + (int64_t)queued_ns;
    behind.begin_ns = queue.end_ns;
    return add_stay(f, queue, time) ?: add_stay(f, behind, time);
}

static int add_stays(struct finding *f, size_t request, enum hop_way way,
                     const struct sighting seen[HOPS_MAX], size_t count)
{
    const struct lifetime *life = &f->in->lives[request];
    struct way_time time = way_time_of(life, way);
    size_t before = f->out->all.count;
    if (way == WAY_TO_CLIENT) // before that it was on the server, where more is known of it
        time.from_ns = life->stamp_ns[had(life, STAMP_SERVER_TX, STAMP_REPLY)];
    for (size_t i = 1; i < count; i++) {
        struct hop_stay stay = {.request = request,
                                .begin_ns = seen[i - 1].time_ns,
                                .end_ns = seen[i].time_ns,
                                .from = seen[i - 1].hop,
                                .to = seen[i].hop};
        find_cores(f, &seen[i - 1], &seen[i], &stay);
        if (add_parts(f, &stay, seen[i - 1].record->queued_ns, &time) < 0)
            return -1;
    }
    f->out->divided[way] += f->out->all.count > before;
    return 0;
}

static int divide_request(struct finding *f, size_t request)
{
    const struct lifetime *life = &f->in->lives[request];
    const struct sample *sample = &f->in->samples[request];
    struct packet_exchange exchange = {.request = request};
    // Of a datagram the client counts replies as they come; the hops have the request's number.
    bool over_udp = f->in->connections[life->connection].protocol == CONNECTION_UDP;
    bool crosses = true;
    for (int way = 0; way < HOP_WAYS; way++) {
        struct sighting seen[HOPS_MAX];
        struct way_time time = way_time_of(life, (enum hop_way)way);
        bool there = way == WAY_TO_SERVER;
        size_t count = find_sightings(f, life, (enum hop_way)way,
                                      there || over_udp ? sample->request_end : sample->reply_end,
                                      &time, seen);
        for (size_t i = 1; i < count; i++)
            f->followed[way][seen[i - 1].hop][seen[i].hop]++;
        crosses &= find_crossing(f, count, seen,
                                 there ? &exchange.stamps.left_ns : &exchange.stamps.replied_ns,
                                 there ? &exchange.stamps.came_ns : &exchange.stamps.back_ns);
        if (!isfinite(life->hosts_error_ns))
            continue;
        straighten(f, life, count, seen);
        if (add_stays(f, request, (enum hop_way)way, seen, count) < 0)
            return -1;
    }
    if (!crosses)
        return 0;
    exchange.stamps.left_ns -= life->client_moved_ns;
    exchange.stamps.back_ns -= life->client_moved_ns;
    return array_push(&f->exchanges, exchange);
}

static int divide_requests(struct finding *f)
{
    for (size_t i = 0; i < f->in->life_count; i++) {
        const struct lifetime *life = &f->in->lives[i];
        if (life->state != LIFETIME_WHOLE)
            continue;
        f->out->whole++;
        if (life->connection < f->in->connection_count && divide_request(f, i) < 0)
            return -1;
    }
    return 0;
}

// --- requests without an answer ------------------------------------------------------------------
// Of a stream what was lost is sent again, and over UDP it is not: the hop that saw a request's
// datagram last is the one behind which it was lost.

struct lost_request {
    uint32_t connection;
    uint64_t end; // as of passages
    struct sighting last[HOP_WAYS];
    bool seen[HOP_WAYS];
};
struct lost_request_array ARRAY_OF(struct lost_request);

static int by_datagram(const void *a, const void *b)
{
    const struct lost_request *x = a, *y = b;
    return order_of(x->connection, y->connection) ?: order_of(x->end, y->end);
}

static int collect_lost(const struct finding *f, struct lost_request_array *out)
{
    for (size_t i = 0; i < f->in->life_count; i++) {
        const struct lifetime *life = &f->in->lives[i];
        struct lost_request one = {.connection = life->connection,
                                   .end = f->in->samples[i].request_end};
        if (life->state != LIFETIME_UNANSWERED || !lifetime_has(life, STAMP_SEND) ||
            life->connection >= f->in->connection_count ||
            f->in->connections[life->connection].protocol != CONNECTION_UDP)
            continue;
        if (array_push(out, one) < 0)
            return -1;
    }
    array_sort(out, by_datagram);
    return 0;
}

static void see_lost(const struct finding *f, const struct lost_request_array *lost,
                     const struct passage *passage)
{
    size_t place = passage->pile / f->in->hop_count;
    enum hop_way way = (enum hop_way)(place % HOP_WAYS);
    const struct lost_request wanted = {.connection = (uint32_t)(place / HOP_WAYS),
                                        .end = passage->end};
    struct sighting here = {.hop = (uint8_t)(passage->pile % f->in->hop_count)};
    size_t at = array_bound(0, lost->count, i, by_datagram(&lost->items[i], &wanted) < 0);
    if (at == lost->count || by_datagram(&lost->items[at], &wanted) != 0)
        return;
    struct lost_request *one = &lost->items[at];
    take_sighting(machine_of(f, here.hop), passage, &here);
    if (!one->seen[way] || is_later(f, way, &one->last[way], &here))
        one->last[way] = here;
    one->seen[way] = true;
}

static uint8_t usual_next(const struct finding *f, enum hop_way way, uint8_t hop)
{
    const uint64_t *followed = f->followed[way][hop];
    uint8_t next = HOPS_MAX;
    for (uint8_t i = 0; i < HOPS_MAX; i++)
        if (followed[i] > (next < HOPS_MAX ? followed[next] : 0))
            next = i;
    return next;
}

static int place_lost(struct finding *f, const struct lost_request_array *lost)
{
    uint64_t requests[HOP_WAYS][HOPS_MAX] = {{0}};
    for (size_t i = 0; i < lost->count; i++) {
        const struct lost_request *one = &lost->items[i];
        enum hop_way way = one->seen[WAY_TO_CLIENT] ? WAY_TO_CLIENT : WAY_TO_SERVER;
        if (one->seen[way])
            requests[way][one->last[way].hop]++;
        else
            f->out->losses_unseen++;
    }
    for (int way = 0; way < HOP_WAYS; way++)
        for (uint8_t hop = 0; hop < HOPS_MAX; hop++) {
            const struct hop_loss loss = {
                (enum hop_way)way, hop, usual_next(f, (enum hop_way)way, hop), requests[way][hop]};
            if (loss.requests && array_push(&f->out->losses, loss) < 0)
                return -1;
        }
    return 0;
}

static int find_losses(struct finding *f)
{
    struct lost_request_array lost = {0};
    int result = collect_lost(f, &lost);
    for (size_t i = 0; result == 0 && lost.count && i < f->passages.count; i++)
        see_lost(f, &lost, &f->passages.items[i]);
    if (result == 0)
        result = place_lost(f, &lost);
    array_free(&lost);
    return result;
}

// --- the machines' clocks ------------------------------------------------------------------------

static void compare_clocks(const struct finding *f, const struct clock_relation *relation,
                           double *bounds, double *differences)
{
    struct packet_clock *out = &f->out->clock;
    for (size_t i = 0; i < f->exchanges.count; i++) {
        const struct packet_exchange *one = &f->exchanges.items[i];
        const struct lifetime *life = &f->in->lives[one->request];
        int64_t length = one->stamps.back_ns - one->stamps.left_ns;
        struct clock_offset at = clock_relation_at(relation, one->stamps.left_ns + length / 2);
        bounds[i] = at.bound_ns;
        if (!isfinite(at.bound_ns) || !isfinite(life->hosts_error_ns))
            continue;
        double difference = fabs((double)(at.ns - life->client_moved_ns));
        out->disagreeing += difference > at.bound_ns + life->hosts_error_ns;
        differences[out->compared++] = difference;
    }
    quantile_sort(bounds, f->exchanges.count);
    quantile_sort(differences, out->compared);
    out->bound_p99_ns = quantile_sorted(bounds, f->exchanges.count, 0.99);
    out->difference_p50_ns = out->compared ? quantile_sorted(differences, out->compared, 0.5) : 0;
    out->difference_max_ns = out->compared ? differences[out->compared - 1] : 0;
}

static int relate_clocks(struct finding *f)
{
    size_t count = f->exchanges.count;
    struct clock_relation *relation = NULL;
    struct error ignored; // no memory is all that can be wrong
    double stamp_error_ns = 0;
    if (count == 0)
        return 0;
    for (size_t i = 0; i < f->in->machine_count; i++)
        stamp_error_ns += f->in->machines[i].clock.error_ns;
    struct exchange *stamps = malloc(count * sizeof *stamps);
    double *values = malloc(2 * count * sizeof *values);
    int result = stamps && values ? 0 : -1;
    for (size_t i = 0; i < count && result == 0; i++)
        stamps[i] = f->exchanges.items[i].stamps;
    if (result == 0)
        result = clock_relation_build(stamps, count, stamp_error_ns, &relation, &ignored);
    if (result == 0) {
        f->out->clock = (struct packet_clock){
            .exchanges = count,
            .offset_ns = clock_relation_at(relation, stamps->left_ns).ns,
            .rate = clock_relation_rate(relation),
        };
        compare_clocks(f, relation, values, values + count);
    }
    clock_relation_free(relation);
    free(values);
    free(stamps);
    return result < 0 ? -1 : 0;
}

int hop_stays_find(const struct hop_stays_input *in, struct hop_stays *out)
{
    struct finding f = {.in = in, .out = out};
    *out = (struct hop_stays){.whole = 0};
    int result = collect_streams(&f);
    if (result == 0)
        result = match_connections_to_streams(&f);
    if (result == 0)
        result = collect_passages(&f);
    if (result == 0)
        result = divide_requests(&f);
    if (result == 0)
        result = find_losses(&f);
    if (result == 0)
        result = relate_clocks(&f);
    array_free(&f.exchanges);
    array_free(&f.streams);
    array_free(&f.passages);
    piles_free(&f.piles);
    free(f.stream_of);
    return result;
}

void hop_stays_free(struct hop_stays *stays)
{
    array_free(&stays->all);
    array_free(&stays->losses);
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

const char *hop_stay_qdisc(const struct hop_stay *stay, const struct hop_place *places)
{
    const struct hop_place *from = &places[stay->from];
    return from->is_ingress || stay->part == STAY_BEHIND_QUEUE ||
                   strcmp(from->qdisc, "noqueue") == 0
               ? ""
               : from->qdisc;
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
