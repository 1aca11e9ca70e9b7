// SPDX-License-Identifier: MIT
#include "analysis/lifetime/passages.h"

#include <stdlib.h>

static enum passage_kind event_passage(const struct event *event)
{
    switch (event->kind) {
    case EVENT_SEGMENT:
        return SEGMENTS;
    case EVENT_HANDOFF:
        return HANDOFFS;
    case EVENT_TRANSMIT:
        return TRANSMITS;
    case EVENT_ARRIVAL:
        return ARRIVALS;
    case EVENT_STAMPED:
        return NIC_STAMPS;
    case EVENT_TAKEN:
        return TAKES;
    case EVENT_RETRANSMIT:
        return event->flags & RETRANSMIT_BY_CLIENT ? RESENDS_TO_SERVER : RESENDS_TO_CLIENT;
    case EVENT_HELD:
        return HELDS;
    case EVENT_QUEUED:
        return event->flags & QUEUED_BY_CLIENT ? CLIENT_QUEUES : QUEUES;
    case EVENT_SEGMENT_DROPPED:
        return event->flags & DROPPED_TO_CLIENT ? LOSSES_TO_CLIENT : LOSSES_TO_SERVER;
    case EVENT_DROPPED:
        return DROPS;
    default:
        return PASSAGE_KINDS;
    }
}

// Datagrams may overtake one another.
static void order_datagrams(struct piles *piles, const struct connection *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].protocol == CONNECTION_UDP)
            pile_order_by_number(piles, i);
}

static int pile_events(const struct server_records *in, const struct connection_index *sockets,
                       enum passage_kind kind, size_t wanted, struct piles *out)
{
    size_t count = 0;
    struct passage *passages = malloc((wanted ? wanted : 1) * sizeof *passages);
    if (!passages)
        return -1;
    for (size_t i = 0; count < wanted; i++) {
        const struct event *event = &in->events[i];
        if (event_passage(event) != kind)
            continue;
        passages[count++] = (struct passage){
            .time_ns = time_source_to_host(&in->clock, HOST_CLOCK_MONOTONIC, event->time),
            .end = event->payload.a,
            .record = (uint32_t)i,
            .pile = connection_index_find(sockets, event->id)};
    }
    int result = piles_build(out, passages, count, in->socket_count);
    if (result == 0)
        order_datagrams(out, in->sockets, in->socket_count);
    free(passages);
    return result;
}

static int pile_calls(const struct server_records *in, const struct connection_index *connections,
                      enum passage_kind kind, struct piles *out)
{
    const struct application_calls *calls = in->calls;
    enum call_kind wanted = kind == RECEIVES ? CALL_RECEIVE : CALL_SEND;
    struct passage *passages = malloc((calls->count ? calls->count : 1) * sizeof *passages);
    size_t count = 0;
    if (!passages)
        return -1;
    for (size_t i = 0; i < calls->count; i++) {
        const struct application_call *call = &calls->items[i];
        if (call->kind != wanted)
            continue;
        passages[count++] =
            (struct passage){.time_ns = kind == RECEIVES ? call->exit_ns : call->entry_ns,
                             .end = call->offset + call->length,
                             .record = (uint32_t)i,
                             .pile = connection_index_find(connections, call->connection)};
    }
    int result = piles_build(out, passages, count, in->connection_count);
    if (result == 0)
        order_datagrams(out, in->connections, in->connection_count);
    free(passages);
    return result;
}

int passages_build(const struct server_records *in, struct piles out[PASSAGE_KINDS],
                   bool *nic_stamps)
{
    struct connection_index sockets = {0}, connections = {0};
    size_t counts[PASSAGE_KINDS + 1] = {0};
    int result = -1;
    for (size_t i = 0; in->events && i < in->event_count; i++)
        counts[event_passage(&in->events[i])]++;
    if (connection_index_init(&sockets, in->sockets, in->events ? in->socket_count : 0) < 0 ||
        connection_index_init(&connections, in->connections, in->calls ? in->connection_count : 0) <
            0)
        goto done;
    for (int kind = 0; kind < PASSAGE_KINDS; kind++) {
        bool of_calls = kind == RECEIVES || kind == SENDS;
        if (of_calls ? !in->calls : !in->events)
            continue;
        result = of_calls
                     ? pile_calls(in, &connections, (enum passage_kind)kind, &out[kind])
                     : pile_events(in, &sockets, (enum passage_kind)kind, counts[kind], &out[kind]);
        if (result < 0)
            goto done;
    }
    *nic_stamps = counts[NIC_STAMPS] > 0;
    result = 0;
done:
    connection_index_fini(&sockets);
    connection_index_fini(&connections);
    return result;
}
