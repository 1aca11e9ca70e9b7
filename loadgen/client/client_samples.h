// SPDX-License-Identifier: MIT
//
// Records the outcome of a connection's requests in their samples and counts it: replies, with the
// kernel's RX stamp, and TX stamps. Whatever is done per reply is inline.
#ifndef LOADGEN_CLIENT_CLIENT_SAMPLES_H
#define LOADGEN_CLIENT_CLIENT_SAMPLES_H

#include "loadgen/client/slow_replies.h"
#include "loadgen/client/client_state.h"
#include "loadgen/client/connection_counts.h"

static inline struct sample *connection_sample(struct client_connection *connection, uint64_t slot)
{
    return &connection->context->samples[connection->slots[slot & connection->slot_mask]];
}

// The times at which bytes of replies arrived.
struct arrival {
    uint64_t tsc, stream_end;
    struct kernel_stamp rx;
};

// Counts a reply of that kind and returns its request's status (enum sample_status).
static inline uint8_t connection_count_reply(struct connection_counts *counts,
                                             const struct protocol *protocol, uint16_t operation,
                                             enum reply_kind kind)
{
    counts->replies[kind]++;
    if (!protocol->answers(operation, kind)) {
        counts->mismatched++;
        return SAMPLE_ERROR_REPLY;
    }
    if (kind == REPLY_VALUE || kind == REPLY_STORED)
        return SAMPLE_ANSWERED;
    return kind == REPLY_MISS ? SAMPLE_MISS : SAMPLE_ERROR_REPLY;
}

// Completes the sample of a request with its reply.
static inline void connection_answer(struct client_connection *connection, struct sample *sample,
                                     const struct reply *reply, const struct arrival *arrival)
{
    struct connection_context *context = connection->context;
    struct connection_counts *counts = context->counts;
    sample->status =
        connection_count_reply(counts, context->protocol, sample->operation, reply->kind);
    sample->reply_tsc = arrival->tsc;
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

// Reads up to one batch of TX stamps. Returns how many messages the error queue held (at most
// STAMP_BATCH).
int connection_take_stamps(struct client_connection *connection, uint64_t now_tsc);

#endif
