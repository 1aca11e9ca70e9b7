// SPDX-License-Identifier: MIT
//
// Each kind of record is turned into passages ("at this time the stream of that connection had come
// to this offset"), piled by connection in order of time; one way along a connection's requests and
// passages finds each request's stamps.
#include "analysis/lifetime/join.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/lifetime/join_connections.h"
#include "analysis/lifetime/join_settle.h"
#include "analysis/lifetime/join_stamps.h"
#include "analysis/lifetime/joiner.h"
#include "base/text.h"

// --- one lifetime per sample, with the client's own stamps ---------------------------------------

static int64_t client_time(const struct joiner *joiner, enum host_clock clock, uint64_t value)
{
    const struct join_input *in = joiner->in;
    return time_source_to_host(in->client_clock ? in->client_clock : &in->clock, clock, value);
}

static void init_lifetime(struct joiner *joiner, size_t index)
{
    const struct sample *sample = &joiner->in->samples[index];
    struct lifetime *life = &joiner->lives[index];
    *life = (struct lifetime){.request = index,
                              .status = sample->status,
                              .operation = sample->operation,
                              .key = sample->key,
                              .in_flight = sample->in_flight,
                              .connection = NO_CONNECTION,
                              .receive_call = NO_CALL,
                              .send_call = NO_CALL,
                              .state = LIFETIME_UNANSWERED};
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        life->stamp_core[kind] = NO_CORE;
    set_stamp(joiner, life, STAMP_INTENDED,
              client_time(joiner, joiner->in->sample_clock, sample->intended_tsc), NO_CORE);
    if (sample->send_tsc)
        set_stamp(joiner, life, STAMP_SEND,
                  client_time(joiner, joiner->in->sample_clock, sample->send_tsc), NO_CORE);
    if (sample->tx_ns && sample->tx_source != STAMP_USER)
        set_stamp(joiner, life, STAMP_CLIENT_TX,
                  client_time(joiner, HOST_CLOCK_REALTIME, sample->tx_ns), NO_CORE);
    if (!sample_is_answered(sample) || !sample->reply_tsc)
        return;
    set_stamp(joiner, life, STAMP_REPLY_READ,
              client_time(joiner, joiner->in->sample_clock, sample->reply_tsc), NO_CORE);
    if (sample->rx_ns && sample->rx_source != STAMP_USER) {
        set_stamp(joiner, life, STAMP_CLIENT_RX,
                  client_time(joiner, HOST_CLOCK_REALTIME, sample->rx_ns), NO_CORE);
        if (sample->flags & SAMPLE_RX_COALESCED) {
            life->fallback |= 1u << STAMP_CLIENT_RX;
            joiner->counts->coalesced_rx++;
        }
    }
}

// Moves the passages of requests to where the replies end, for those that have one.
static int pile_replies(struct joiner *joiner, struct passage *passages)
{
    const struct join_input *in = joiner->in;
    for (size_t i = 0; i < in->sample_count; i++) {
        const struct sample *sample = &in->samples[i];
        passages[i].time_ns = (int64_t)sample->reply_end;
        passages[i].end = sample->reply_end;
        if (sample->reply_end == 0 || sample->reply_end > INT64_MAX || !sample_is_answered(sample))
            passages[i].pile = NO_CONNECTION;
    }
    return piles_build(&joiner->replies, passages, in->sample_count, in->client_connection_count);
}

// Piles the samples by connection. Their "time" is their place in the stream, which is the order
// they were sent in; HTTP/2 may answer them in another.
static int pile_requests(struct joiner *joiner)
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
    if (result == 0)
        result = pile_replies(joiner, passages);
    free(passages);
    return result;
}

static int pile_server(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    const struct server_records records = {
        .events = in->events,
        .event_count = in->event_count,
        .sockets = in->sockets,
        .socket_count = in->socket_count,
        .calls = in->calls,
        .connections = in->shim_connections,
        .connection_count = in->shim_connection_count,
        .clock = in->clock,
    };
    int result = passages_build(&records, joiner->passages, &joiner->nic_stamps);
    return result == 0 && in->events
               ? spared_times_find(in->events, in->event_count, &in->clock, &joiner->spared)
               : result;
}

// --- all of it -----------------------------------------------------------------------------------

unsigned join_undivided(const struct join_counts *counts)
{
    return (counts->hosts.both_ways ? UNDIVIDED_NETWORK : 0u) |
           (counts->without_arrivals ? UNDIVIDED_WAY_IN : 0u) |
           (counts->without_departures ? UNDIVIDED_WAY_BACK : 0u);
}

static uint16_t *make_cores(size_t count)
{
    uint16_t *cores = malloc((count + 1) * sizeof *cores);
    for (size_t i = 0; cores && i < count; i++)
        cores[i] = NO_CORE;
    return cores;
}

// Of what kind of hold-up: sent again to the server, to the client, in the send queue, below it,
// and below the client's.
static unsigned holdup_group(const struct holdup *holdup)
{
    if (holdup->kind >= HOLDUP_QUEUE)
        return holdup->kind == HOLDUP_QUEUE ? 3 : 4;
    if (holdup->kind >= HOLDUP_WINDOW)
        return 2;
    return holdup->kind >= HOLDUP_TIMEOUT_TO_CLIENT ? 1 : 0;
}

static int find_holdups(struct joiner *joiner, struct holdup_array *out)
{
    const struct join_input *in = joiner->in;
    struct join_counts *counts = joiner->counts;
    uint64_t *const groups[] = {&counts->resent_to_server, &counts->resent_to_client,
                                &counts->held_back, &counts->queued, &counts->queued_at_client};
    const struct holdup_sources from = {
        .samples = in->samples,
        .lives = joiner->lives,
        .calls = in->calls,
        .events = in->events,
        .clock = in->clock,
        .socket_of = joiner->socket_of,
        .requests = &joiner->requests,
        .replies = &joiner->replies,
        .segments = &joiner->passages[SEGMENTS],
        .arrivals = &joiner->passages[ARRIVALS],
        .handoffs = &joiner->passages[HANDOFFS],
        .resends_to_server = &joiner->passages[RESENDS_TO_SERVER],
        .resends_to_client = &joiner->passages[RESENDS_TO_CLIENT],
        .helds = &joiner->passages[HELDS],
        .queues = &joiner->passages[QUEUES],
        .client_queues = &joiner->passages[CLIENT_QUEUES],
        .losses_to_server = &joiner->passages[LOSSES_TO_SERVER],
        .losses_to_client = &joiner->passages[LOSSES_TO_CLIENT],
    };
    int result = holdups_find(&from, out);
    for (size_t i = 0; i < out->count; i++) {
        const struct holdup *one = &out->items[i], *before = one - 1;
        if (i == 0 || before->request != one->request || holdup_group(before) != holdup_group(one))
            ++*groups[holdup_group(one)];
    }
    return result;
}

static int64_t *make_times(size_t count)
{
    int64_t *times = malloc((count + 1) * sizeof *times);
    for (size_t i = 0; times && i < count; i++)
        times[i] = NO_TIME;
    return times;
}

int join_lifetimes(const struct join_input *input, struct lifetime_array *out,
                   struct holdup_array *holdups, struct join_counts *counts, struct error *err)
{
    *out = (struct lifetime_array){0};
    *holdups = (struct holdup_array){0};
    *counts = (struct join_counts){0};
    // A stage is the difference of two conversions, each as wrong as the clock map says.
    double worst_ns = input->client_clock
                          ? fmax(input->clock.error_ns, input->client_clock->error_ns)
                          : input->clock.error_ns;
    struct joiner joiner = {.in = input, .counts = counts, .error_ns = 2 * worst_ns};
    bool fits = input->sample_count < NO_CONNECTION && input->event_count < NO_CONNECTION;
    int result = fits ? array_reserve(out, input->sample_count) : -1;
    if (result == 0) {
        joiner.lives = out->items;
        out->count = input->sample_count;
        joiner.segment_ns = make_times(input->sample_count);
        joiner.arrival_ns = make_times(input->sample_count);
        joiner.stamped_ns = make_times(input->sample_count);
        joiner.processed_ns = make_times(input->sample_count);
        joiner.dropped = calloc(input->sample_count + 1, sizeof *joiner.dropped);
        joiner.received_on = make_cores(input->client_connection_count);
        result = joiner.segment_ns && joiner.arrival_ns && joiner.stamped_ns &&
                         joiner.processed_ns && joiner.received_on && joiner.dropped
                     ? pile_requests(&joiner)
                     : -1;
    }
    if (result == 0)
        result = pile_server(&joiner);
    if (result == 0)
        result = join_connections(&joiner);
    if (result == 0) {
        for (size_t c = 0; c < input->client_connection_count; c++)
            join_stamp_connection(&joiner, c);
        for (size_t i = 0; i < out->count; i++)
            join_settle_server(&joiner, &out->items[i]);
        if (input->client_clock)
            result = two_hosts_relate(out->items, out->count, joiner.error_ns, &counts->hosts, err);
        if (result == 0)
            result = find_holdups(&joiner, holdups);
        for (size_t i = 0; i < out->count; i++)
            join_finish_lifetime(&joiner, &out->items[i]);
    }
    piles_free(&joiner.requests);
    piles_free(&joiner.replies);
    for (int kind = 0; kind < PASSAGE_KINDS; kind++)
        piles_free(&joiner.passages[kind]);
    array_free(&joiner.spared);
    free(joiner.segment_ns);
    free(joiner.arrival_ns);
    free(joiner.stamped_ns);
    free(joiner.processed_ns);
    free(joiner.received_on);
    free(joiner.dropped);
    free(joiner.socket_of);
    free(joiner.calls_of);
    if (result < 0) {
        array_free(out);
        return error_set(err, ERROR_FAILED,
                         "no memory to join %s requests with %s events: analyze a shorter run",
                         TEXT_COUNT(input->sample_count), TEXT_COUNT(input->event_count));
    }
    return 0;
}
