// SPDX-License-Identifier: MIT
//
// Requests and the server's records in piles by connection, and which connections are the two ends
// of one.
#include "analysis/lifetime/joiner.h"

#include <stdlib.h>

// --- one lifetime per sample, with the client's own stamps ---------------------------------------

static void init_lifetime(struct joiner *joiner, size_t index)
{
    const struct sample *sample = &joiner->in->samples[index];
    struct lifetime *life = &joiner->lives[index];
    *life = (struct lifetime){.request = index,
                              .status = sample->status,
                              .operation = sample->operation,
                              .connection = NO_CONNECTION,
                              .receive_call = NO_CALL,
                              .send_call = NO_CALL,
                              .state = LIFETIME_UNANSWERED};
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        life->stamp_core[kind] = NO_CORE;
    set_stamp(joiner, life, STAMP_INTENDED,
              client_time(joiner, HOST_CLOCK_TSC, sample->intended_tsc), NO_CORE);
    if (sample->send_tsc)
        set_stamp(joiner, life, STAMP_SEND, client_time(joiner, HOST_CLOCK_TSC, sample->send_tsc),
                  NO_CORE);
    if (sample->tx_ns && sample->tx_source != STAMP_USER)
        set_stamp(joiner, life, STAMP_CLIENT_TX,
                  client_time(joiner, HOST_CLOCK_REALTIME, sample->tx_ns), NO_CORE);
    if (!sample_is_answered(sample) || !sample->reply_tsc)
        return;
    set_stamp(joiner, life, STAMP_REPLY_READ,
              client_time(joiner, HOST_CLOCK_TSC, sample->reply_tsc), NO_CORE);
    if (sample->rx_ns && sample->rx_source != STAMP_USER) {
        set_stamp(joiner, life, STAMP_CLIENT_RX,
                  client_time(joiner, HOST_CLOCK_REALTIME, sample->rx_ns), NO_CORE);
        if (sample->flags & SAMPLE_RX_COALESCED) {
            life->fallback |= 1u << STAMP_CLIENT_RX;
            joiner->counts->coalesced_rx++;
        }
    }
}

// Piles the samples by connection. Their "time" is their place in the stream, which is the order
// they were sent in.
int join_pile_requests(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    struct connection_index index;
    struct passage *passages = malloc((in->sample_count ? in->sample_count : 1) * sizeof *passages);
    if (!passages ||
        connection_index_init(&index, in->client_connections, in->client_connection_count) < 0) {
        free(passages);
        return -1;
    }
    for (size_t i = 0; i < in->sample_count; i++) {
        init_lifetime(joiner, i);
        const struct sample *sample = &in->samples[i];
        uint32_t pile = connection_index_find(&index, sample->connection);
        if (pile == NO_CONNECTION)
            joiner->counts->unknown_connections++;
        joiner->lives[i].connection = pile;
        bool sent = sample->send_tsc && sample->request_end <= INT64_MAX;
        passages[i] = (struct passage){.time_ns = (int64_t)sample->request_end,
                                       .end = sample->request_end,
                                       .record = (uint32_t)i,
                                       .pile = sent ? pile : NO_CONNECTION};
    }
    connection_index_fini(&index);
    int result =
        piles_build(&joiner->requests, passages, in->sample_count, in->client_connection_count);
    free(passages);
    return result;
}

// --- the server's records as passages ------------------------------------------------------------

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
    case EVENT_TAKEN:
        return TAKES;
    default:
        return PASSAGE_KINDS;
    }
}

static int pile_events(struct joiner *joiner, const struct connection_index *sockets,
                       enum passage_kind kind)
{
    const struct join_input *in = joiner->in;
    size_t wanted = 0, count = 0;
    for (size_t i = 0; i < in->event_count; i++)
        wanted += event_passage(&in->events[i]) == kind;
    struct passage *passages = malloc((wanted ? wanted : 1) * sizeof *passages);
    if (!passages)
        return -1;
    for (size_t i = 0; i < in->event_count; i++) {
        const struct event *event = &in->events[i];
        if (event_passage(event) != kind)
            continue;
        passages[count++] =
            (struct passage){.time_ns = host_time(joiner, HOST_CLOCK_MONOTONIC, event->time),
                             .end = event->payload.a,
                             .record = (uint32_t)i,
                             .pile = connection_index_find(sockets, event->id)};
    }
    int result = piles_build(&joiner->passages[kind], passages, count, in->socket_count);
    free(passages);
    return result;
}

static int pile_calls(struct joiner *joiner, const struct connection_index *connections,
                      enum passage_kind kind)
{
    const struct application_calls *calls = joiner->in->calls;
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
    int result =
        piles_build(&joiner->passages[kind], passages, count, joiner->in->shim_connection_count);
    free(passages);
    return result;
}

int join_pile_server(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    struct connection_index sockets = {0}, connections = {0};
    int result = -1;
    if (connection_index_init(&sockets, in->sockets, in->events ? in->socket_count : 0) < 0 ||
        connection_index_init(&connections, in->shim_connections,
                              in->calls ? in->shim_connection_count : 0) < 0)
        goto done;
    for (int kind = 0; kind < PASSAGE_KINDS; kind++) {
        bool of_calls = kind == RECEIVES || kind == SENDS;
        if (of_calls ? !in->calls : !in->events)
            continue;
        result = of_calls ? pile_calls(joiner, &connections, (enum passage_kind)kind)
                          : pile_events(joiner, &sockets, (enum passage_kind)kind);
        if (result < 0)
            goto done;
    }
    result = 0;
done:
    connection_index_fini(&sockets);
    connection_index_fini(&connections);
    return result;
}

// --- which connection is which -------------------------------------------------------------------

// When each connection of a table first did anything, by two kinds of passages.
static int64_t *first_times(const struct piles *one, const struct piles *other, size_t count)
{
    int64_t *first = malloc((count ? count : 1) * sizeof *first);
    for (size_t i = 0; first && i < count; i++) {
        first[i] = INT64_MAX;
        const struct piles *piles[] = {one, other};
        for (int k = 0; k < 2; k++)
            if (piles[k]->starts[i] < piles[k]->starts[i + 1] &&
                piles[k]->items[piles[k]->starts[i]].time_ns < first[i])
                first[i] = piles[k]->items[piles[k]->starts[i]].time_ns;
    }
    return first;
}

static uint32_t *match_table(const struct joiner *joiner, const int64_t *client_first,
                             const struct connection *table, size_t count, const struct piles *one,
                             const struct piles *other)
{
    const struct join_input *in = joiner->in;
    size_t clients = in->client_connection_count;
    uint32_t *other_end = malloc((clients ? clients : 1) * sizeof *other_end);
    for (size_t i = 0; other_end && i < clients; i++)
        other_end[i] = NO_CONNECTION;
    if (!other_end || !table)
        return other_end;
    int64_t *first = first_times(one, other, count);
    match_function *match = in->client_clock ? match_unrelated_connections : match_connections;
    if (!first ||
        match(in->client_connections, clients, client_first, table, count, first, other_end) < 0) {
        free(other_end);
        other_end = NULL;
    }
    free(first);
    return other_end;
}

int join_match_tables(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    size_t clients = in->client_connection_count;
    int64_t *first = malloc((clients ? clients : 1) * sizeof *first);
    if (!first)
        return -1;
    for (size_t i = 0; i < clients; i++) {
        const struct piles *requests = &joiner->requests;
        first[i] = INT64_MAX;
        if (requests->starts[i] < requests->starts[i + 1]) {
            uint32_t sample = requests->items[requests->starts[i]].record;
            first[i] = joiner->lives[sample].stamp_ns[STAMP_SEND];
        }
    }
    joiner->socket_of =
        match_table(joiner, first, in->events ? in->sockets : NULL, in->socket_count,
                    &joiner->passages[SEGMENTS], &joiner->passages[HANDOFFS]);
    joiner->calls_of = match_table(joiner, first, in->calls ? in->shim_connections : NULL,
                                   in->shim_connection_count, &joiner->passages[RECEIVES],
                                   &joiner->passages[SENDS]);
    free(first);
    return joiner->socket_of && joiner->calls_of ? 0 : -1;
}
