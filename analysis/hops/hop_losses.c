// SPDX-License-Identifier: MIT
#include "analysis/hops/hop_losses.h"

struct lost_request {
    uint32_t connection;
    uint64_t end; // as of passages
    struct hop_sighting last[HOP_WAYS];
    bool seen[HOP_WAYS];
};
struct lost_request_array ARRAY_OF(struct lost_request);

static int by_datagram(const void *a, const void *b)
{
    const struct lost_request *x = a, *y = b;
    return order_of(x->connection, y->connection) ?: order_of(x->end, y->end);
}

static int collect_lost(const struct hops_input *in, struct lost_request_array *out)
{
    for (size_t i = 0; i < in->life_count; i++) {
        const struct lifetime *life = &in->lives[i];
        struct lost_request one = {.connection = life->connection,
                                   .end = in->samples[i].request_end};
        if (life->state != LIFETIME_UNANSWERED || !lifetime_has(life, STAMP_SEND) ||
            life->connection >= in->connection_count ||
            in->connections[life->connection].protocol != CONNECTION_UDP)
            continue;
        if (array_push(out, one) < 0)
            return -1;
    }
    array_sort(out, by_datagram);
    return 0;
}

static void see_lost(const struct hops_input *in, const struct lost_request_array *lost,
                     const struct hop_passage *passage)
{
    const struct lost_request wanted = {.connection = passage->connection, .end = passage->end};
    enum hop_way way = passage->way;
    size_t at = array_bound(0, lost->count, i, by_datagram(&lost->items[i], &wanted) < 0);
    if (at == lost->count || by_datagram(&lost->items[at], &wanted) != 0)
        return;
    struct lost_request *one = &lost->items[at];
    if (!one->seen[way] || hop_sighted_later(in, way, &one->last[way], &passage->seen))
        one->last[way] = passage->seen;
    one->seen[way] = true;
}

static uint8_t usual_next(const struct hop_order *order, enum hop_way way, uint8_t hop)
{
    const uint64_t *followed = order->followed[way][hop];
    uint8_t next = HOPS_MAX;
    for (uint8_t i = 0; i < HOPS_MAX; i++)
        if (followed[i] > (next < HOPS_MAX ? followed[next] : 0))
            next = i;
    return next;
}

static int place_lost(const struct hop_order *order, const struct lost_request_array *lost,
                      struct hop_losses *out)
{
    uint64_t requests[HOP_WAYS][HOPS_MAX] = {{0}};
    for (size_t i = 0; i < lost->count; i++) {
        const struct lost_request *one = &lost->items[i];
        enum hop_way way = one->seen[WAY_TO_CLIENT] ? WAY_TO_CLIENT : WAY_TO_SERVER;
        if (one->seen[way])
            requests[way][one->last[way].hop]++;
        else
            out->unseen++;
    }
    for (int way = 0; way < HOP_WAYS; way++)
        for (uint8_t hop = 0; hop < HOPS_MAX; hop++) {
            const struct hop_loss loss = {(enum hop_way)way, hop,
                                          usual_next(order, (enum hop_way)way, hop),
                                          requests[way][hop]};
            if (loss.requests && array_push(&out->places, loss) < 0)
                return -1;
        }
    return 0;
}

int hop_losses_find(const struct hop_sightings *sightings, const struct hop_order *order,
                    struct hop_losses *out)
{
    struct lost_request_array lost = {0};
    *out = (struct hop_losses){.unseen = 0};
    int result = collect_lost(sightings->in, &lost);
    for (size_t i = 0; result == 0 && lost.count && i < sightings->passages.count; i++) {
        const struct hop_passage passage = hop_passage_at(sightings, i);
        see_lost(sightings->in, &lost, &passage);
    }
    if (result == 0)
        result = place_lost(order, &lost, out);
    array_free(&lost);
    return result;
}

void hop_losses_free(struct hop_losses *losses)
{
    array_free(&losses->places);
}
