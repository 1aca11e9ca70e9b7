// SPDX-License-Identifier: MIT
//
// Records the outcome of a connection's requests in their samples and counts it: replies, with the
// kernel's RX stamp, and TX stamps. Whatever is done per reply is inline.
#ifndef LOADGEN_CLIENT_CLIENT_SAMPLES_H
#define LOADGEN_CLIENT_CLIENT_SAMPLES_H

#include "base/hash.h"
#include "loadgen/client/slow_replies.h"
#include "loadgen/client/client_state.h"
#include "loadgen/client/connection_counts.h"
#include "workloads/multiget.h"
#include "workloads/protocols/reply_parser.h"
#include "workloads/workload.h"

static inline struct sample *connection_sample(struct client_connection *connection, uint64_t slot)
{
    return &connection->context->samples[connection->slots[slot & connection->slot_mask]];
}

// Whether a request that was put still has its sample: in bounded memory it loses it once nothing
// more is expected, and another request takes the place.
static inline bool connection_holds(const struct client_connection *connection, uint64_t slot)
{
    const struct connection_context *context = connection->context;
    const uint64_t index = connection->slots[slot & connection->slot_mask];
    if (!context->final || index > context->ring_mask) // a set that follows a miss
        return true;
    const uint64_t newest = *context->next - 1;
    const uint64_t number = newest - ((newest - index) & context->ring_mask);
    return number >= context->final && context->samples[index].connection == connection->id;
}

// Where replies come in any order: whether that one of the requests from the oldest unsettled one
// on still waits for its reply.
static inline bool connection_awaits(const struct client_connection *connection, uint64_t slot)
{
    return !connection->settled[slot & connection->slot_mask];
}

// The same: a request that was sent is answered, or lost.
static inline void connection_settle(struct client_connection *connection, uint64_t slot)
{
    connection->context->counts->in_flight--;
    connection->settled[slot & connection->slot_mask] = SLOT_SETTLED;
    connection->settled_ahead++;
    while (connection->settled_ahead && !connection_awaits(connection, connection->answered)) {
        connection->answered++;
        connection->settled_ahead--;
    }
}

// The times at which bytes of replies arrived.
struct arrival {
    uint64_t tsc, stream_end;
    struct kernel_stamp rx;
};

// The reply to that request, which is the number'th of its connection, is what comes next.
static inline void connection_expect(struct client_connection *connection,
                                     const struct sample *sample, uint64_t number)
{
    const struct connection_context *context = connection->context;
    const struct protocol_operation *asked = &context->protocol->operations[sample->operation];
    struct reply_list *list = asked->many_keys ? connection->list : NULL;
    connection->parser.parts_due = asked->parts && context->parts_of
                                       ? context->parts_of(context->owner, sample)
                                       : asked->parts;
    connection->parser.bodiless = asked->bodiless;
    connection->parser.list = list;
    if (!list)
        return;
    list->number = number;
    if (context->place_of) {
        list->place = context->place_of(context->owner, sample);
        list->due = (uint16_t)multiget_count(context->multiget, list->place);
    }
    list->told = list->count = 0;
    list->apart = asked->keys_apart;
    if (list->apart)
        connection->parser.parts_due = (uint16_t)(list->due - 1);
}

// Keeps what the first fault of all was, for people.
void connection_note_fault(struct client_connection *connection, const struct sample *sample,
                           const struct reply *reply) __attribute__((cold));

// Whether it is the value that the request asked for, as far as its size and its key's name say.
static inline bool value_is_right(const struct connection_context *context,
                                  const struct sample *sample, const struct reply *reply)
{
    char key[WORKLOAD_KEY_BYTES_MAX];
    const struct protocol_operation *asked = &context->protocol->operations[sample->operation];
    // Of a recorded transaction several commands may return something.
    if (!asked->returns_value || (asked->parts && context->parts_of))
        return true;
    if (reply->value_bytes != context->value_bytes &&
        reply->value_bytes != workload_value_bytes(context->workload, sample->key))
        return false;
    return !reply->key_hash ||
           reply->key_hash == hash_bytes(key, workload_key(context->workload, sample->key, key));
}

// Counts the values of a reply to a request of many keys, and returns its request's status.
uint8_t connection_count_values(struct client_connection *connection, const struct sample *sample,
                                const struct reply *reply);

// Counts a reply and returns its request's status (enum sample_status).
static inline uint8_t connection_count_reply(struct client_connection *connection,
                                             const struct sample *sample, const struct reply *reply)
{
    const struct connection_context *context = connection->context;
    struct connection_counts *counts = context->counts;
    const struct protocol_operation *asked = &context->protocol->operations[sample->operation];
    const bool nothing_there = reply->kind == REPLY_NOT_STORED && asked->removes;
    const enum reply_kind kind = nothing_there ? REPLY_STORED : reply->kind;
    counts->replies[kind]++;
    if (!context->protocol->answers(sample->operation, kind))
        counts->mismatched++;
    else if (reply_finds(kind) && asked->many_keys)
        return connection_count_values(connection, sample, reply);
    else if (kind == REPLY_MISS)
        return SAMPLE_MISS;
    else if (kind == REPLY_VALUE && !value_is_right(context, sample, reply))
        counts->wrong_values++;
    else if (kind == REPLY_VALUE || kind == REPLY_STORED)
        return SAMPLE_ANSWERED;
    connection_note_fault(connection, sample, reply);
    return SAMPLE_ERROR_REPLY;
}

// Counts the reply to a set that followed a miss.
void connection_answer_fill(struct client_connection *connection, struct sample *fill,
                            const struct reply *reply, const struct arrival *arrival);

// Completes the sample of a request with its reply, which is not broken (reply_is_broken).
static inline void connection_answer(struct client_connection *connection, struct sample *sample,
                                     const struct reply *reply, const struct arrival *arrival)
{
    struct connection_context *context = connection->context;
    struct connection_counts *counts = context->counts;
    connection->replies++;
    if (sample >= context->fills) {
        connection_answer_fill(connection, sample, reply, arrival);
        return;
    }
    sample->status = connection_count_reply(connection, sample, reply);
    sample->reply_tsc = arrival->tsc;
    if (sample->status == SAMPLE_MISS && context->fill && sample->operation == WORKLOAD_GET)
        context->fill(context->owner, sample);
    sample->reply_begin = reply->begin;
    sample->reply_end = reply->end;
    if (context->live)
        live_note_reply(context->live, arrival->tsc - sample->intended_tsc,
                        sample->status == SAMPLE_ERROR_REPLY, counts->in_flight);
    if (context->slow)
        slow_replies_note(context->slow, arrival->tsc - sample->intended_tsc);
    if (!context->kernel_stamps)
        return;
    if (!arrival->rx.ns) {
        counts->rx_missing++;
        return;
    }
    sample->rx_ns = arrival->rx.ns;
    sample->rx_source = (uint8_t)arrival->rx.source;
    // The stamp is that of the last segment; a reply that ends before the last byte may have come
    // with an earlier one.
    if (reply->end < arrival->stream_end) {
        sample->flags |= SAMPLE_RX_COALESCED;
        counts->rx_coalesced++;
    }
}

// The same where replies come in any order, also of one that is broken: its request is lost, and
// the connection goes on.
static inline void connection_take_reply(struct client_connection *connection, uint64_t slot,
                                         const struct reply *reply, const struct arrival *arrival)
{
    struct connection_counts *counts = connection->context->counts;
    struct sample *sample = connection_sample(connection, slot);
    if (reply_is_broken(reply->kind)) {
        counts->replies[reply->kind]++;
        connection_note_fault(connection, sample, reply);
        sample->status = SAMPLE_LOST;
        counts->lost[LOSS_MALFORMED]++;
    } else {
        connection_answer(connection, sample, reply, arrival);
    }
    connection_settle(connection, slot);
}

// Reads up to one batch of TX stamps. Returns how many messages the error queue held (at most
// STAMP_BATCH).
int connection_take_stamps(struct client_connection *connection, uint64_t now_tsc);

#endif
