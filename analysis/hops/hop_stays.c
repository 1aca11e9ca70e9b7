// SPDX-License-Identifier: MIT
#include "analysis/hops/hop_stays.h"

#include <math.h>
#include <string.h>

struct finding {
    const struct hops_input *in;
    const struct hop_sightings *sightings;
    struct hop_stays *out;
    struct packet_exchange_array exchanges;
};

// Where a packet seems to be at a hop before it was at the one before, as another machine's clock
// may say, it is there at the same time.
static void straighten(struct finding *f, const struct lifetime *life, size_t count,
                       struct hop_sighting seen[HOPS_MAX])
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
                          const struct hop_sighting seen[HOPS_MAX], int64_t *left_ns,
                          int64_t *came_ns)
{
    for (size_t i = 1; i < count; i++)
        if (hop_machine_of(f->in, seen[i - 1].hop)->is_client !=
            hop_machine_of(f->in, seen[i].hop)->is_client) {
            *left_ns = seen[i - 1].time_ns;
            *came_ns = seen[i].time_ns;
            return true;
        }
    return false;
}

static uint16_t core_of(const struct hop_sighting *seen)
{
    return seen->record->core_after ? (uint16_t)(seen->record->core_after - 1) : HOP_NO_CORE;
}

// Between the two ends of a link where no queueing discipline is, a packet waits for nothing but
// the core that takes it in.
static void find_cores(const struct finding *f, const struct hop_sighting *a,
                       const struct hop_sighting *b, struct hop_stay *stay)
{
    const struct hop_place *from = &f->in->places[a->hop], *to = &f->in->places[b->hop];
    stay->sent_core = stay->taken_core = HOP_NO_CORE;
    if (hop_machine_of(f->in, a->hop)->is_client || hop_machine_of(f->in, b->hop)->is_client ||
        from->is_ingress || !to->is_ingress || !from->peer || from->peer != to->number ||
        to->peer != from->number || strcmp(from->qdisc, "noqueue") != 0)
        return;
    stay->sent_core = core_of(a);
    stay->taken_core = core_of(b);
}

// What is sent to a tap is taken from it by who has its other end, and what comes from it was given
// to it by them; of macvtap the other way round.
static void find_virtual_machine(const struct finding *f, const struct hop_sighting *a,
                                 const struct hop_sighting *b, struct hop_stay *stay)
{
    const struct hop_place *from = &f->in->places[a->hop], *to = &f->in->places[b->hop];
    bool enters = from->holder.process && from->is_ingress == from->holder.takes_received;
    bool leaves = to->holder.process && to->is_ingress != to->holder.takes_received;
    stay->tap = enters ? a->hop : leaves ? b->hop : HOPS_MAX;
    stay->machine_core = HOP_NO_CORE;
    if (stay->tap < HOPS_MAX && from->at_client != to->at_client)
        stay->machine_core = core_of(enters ? b : a);
}

// Adds what of it lies on the way.
static int add_stay(struct finding *f, struct hop_stay stay, const struct hop_way_time *time)
{
    stay.begin_ns = stay.begin_ns < time->from_ns ? time->from_ns : stay.begin_ns;
    stay.end_ns = stay.end_ns > time->to_ns ? time->to_ns : stay.end_ns;
    return stay.begin_ns < stay.end_ns ? array_push(&f->out->all, stay) : 0;
}

// A stay, or the two parts of it where it is known how long the packet was in the queue.
static int add_parts(struct finding *f, const struct hop_stay *stay, uint64_t queued_ns,
                     const struct hop_way_time *time)
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
                     const struct hop_sighting seen[HOPS_MAX], size_t count)
{
    const struct lifetime *life = &f->in->lives[request];
    struct hop_way_time time = hop_way_time_of(life, way);
    size_t before = f->out->all.count;
    if (way == WAY_TO_CLIENT) // before that it was on the server, where more is known of it
        time.from_ns = lifetime_stamp_ns(life, STAMP_SERVER_TX, STAMP_REPLY);
    for (size_t i = 1; i < count; i++) {
        struct hop_stay stay = {.request = request,
                                .begin_ns = seen[i - 1].time_ns,
                                .end_ns = seen[i].time_ns,
                                .from = seen[i - 1].hop,
                                .to = seen[i].hop};
        find_cores(f, &seen[i - 1], &seen[i], &stay);
        find_virtual_machine(f, &seen[i - 1], &seen[i], &stay);
        if (add_parts(f, &stay, seen[i - 1].record->queued_ns, &time) < 0)
            return -1;
    }
    f->out->divided[way] += f->out->all.count > before;
    return 0;
}

static int divide_request(struct finding *f, size_t request)
{
    const struct lifetime *life = &f->in->lives[request];
    struct packet_exchange exchange = {.request = request};
    bool crosses = true;
    for (int way = 0; way < HOP_WAYS; way++) {
        struct hop_sighting seen[HOPS_MAX];
        bool there = way == WAY_TO_SERVER;
        size_t count = hop_sightings_of(f->sightings, request, (enum hop_way)way, seen);
        for (size_t i = 1; i < count; i++)
            f->out->order.followed[way][seen[i - 1].hop][seen[i].hop]++;
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

int hop_stays_find(const struct hop_sightings *sightings, struct hop_stays *out)
{
    struct finding f = {.in = sightings->in, .sightings = sightings, .out = out};
    *out = (struct hop_stays){.whole = 0};
    int result = divide_requests(&f);
    if (result == 0)
        result = packet_clock_relate(f.in, &f.exchanges, &out->clock);
    array_free(&f.exchanges);
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
    return *count ? items + first : NULL;
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
        *begin_ns = lifetime_stamp_ns(life, STAMP_SERVER_TX, STAMP_REPLY);
        *end_ns = lifetime_stamp_ns(life, STAMP_CLIENT_RX, STAMP_REPLY_READ);
        return *begin_ns <= *end_ns;
    }
    const struct hop_stay *first = hop_stays_of(stays, request, &count);
    *begin_ns = lifetime_stamp_ns(life, STAMP_CLIENT_TX, STAMP_SEND);
    *end_ns = life->stamp_ns[STAMP_NIC];
    if (count && hop_stay_way(first, life) == WAY_TO_SERVER && first->begin_ns < *begin_ns)
        *begin_ns = first->begin_ns;
    return *begin_ns <= *end_ns;
}
