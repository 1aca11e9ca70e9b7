// SPDX-License-Identifier: MIT
#include "loadgen/client/client_samples.h"
#include "base/text.h"

void connection_note_fault(struct client_connection *connection, const struct sample *sample,
                           const struct reply *reply)
{
    const struct connection_context *context = connection->context;
    struct error *first = &context->counts->first_fault;
    const char *asked = sample ? context->protocol->operations[sample->operation].name : "nothing";
    if (first->kind)
        return;
    if (reply_is_fault(reply->kind) && connection->parser.said[0])
        error_set(first, ERROR_FAILED, "\"%s\"", connection->parser.said);
    else if (!sample || !reply_finds(reply->kind) ||
             !context->protocol->answers(sample->operation, reply->kind))
        error_set(first, ERROR_FAILED, "a reply \"%s\" to %s", reply_kind_names[reply->kind],
                  asked);
    else if (context->protocol->operations[sample->operation].many_keys)
        error_set(first, ERROR_FAILED,
                  "values of other keys, or of other sizes, than the %s keys that were asked for",
                  TEXT_COUNT(connection->list->due));
    else if (reply->value_bytes != workload_value_bytes(context->workload, sample->key))
        error_set(first, ERROR_FAILED, "a value of %llu bytes, and the key's has %zu",
                  (unsigned long long)reply->value_bytes,
                  workload_value_bytes(context->workload, sample->key));
    else
        error_set(first, ERROR_FAILED, "the value of another key");
}

uint8_t connection_count_values(struct client_connection *connection, const struct sample *sample,
                                const struct reply *reply)
{
    const struct connection_context *context = connection->context;
    struct multiget_counts *multigets = &context->counts->multigets;
    const struct reply_list *list = connection->list;
    unsigned missing;
    if (!multiget_is_right(context->multiget, sample->key, list, &missing)) {
        context->counts->wrong_values++;
        connection_note_fault(connection, sample, reply);
        return SAMPLE_ERROR_REPLY;
    }
    multigets->answered++;
    multigets->keys += list->due;
    multigets->missing += missing;
    return missing == list->due ? SAMPLE_MISS : SAMPLE_ANSWERED;
}

void connection_answer_fill(struct client_connection *connection, struct sample *fill,
                            const struct reply *reply, const struct arrival *arrival)
{
    const struct connection_context *context = connection->context;
    struct fill_counts *fills = &context->counts->fills;
    uint64_t ticks = arrival->tsc - fill->intended_tsc;
    if (fill == context->scrap)
        return;
    if (reply->kind == REPLY_STORED) {
        timed_count_note(&fills->stored, (uint64_t)((double)ticks / context->ticks_per_us * 1e3));
    } else if (reply->kind == REPLY_NOT_STORED) {
        fills->refused++;
    } else {
        fills->failed++;
        connection_note_fault(connection, fill, reply);
    }
    context->fill_ended(context->owner, fill);
}

// Whether the NIC's stamp may still follow the kernel's stamp of the same bytes. A NIC that accepts
// every setting but delivers no stamp is not waited for any longer.
static bool hardware_may_follow(const struct connection_context *context)
{
    enum { PATIENCE = 64 };
    return context->hardware_tx &&
           (context->counts->tx_hardware || context->counts->tx_software < PATIENCE);
}

// Gives the requests of a send call its stamp, but for those whose samples are gone.
static void take_stamp(struct client_connection *connection, const struct stamp_wait *wait,
                       const struct kernel_stamp *at)
{
    bool late = false;
    for (uint32_t k = 0; k < wait->requests; k++) {
        struct sample *sample = connection_sample(connection, wait->first_slot + k);
        if (!connection_holds(connection, wait->first_slot + k) ||
            sample->request_end > wait->last_byte + 1) {
            late = true;
            continue;
        }
        // Somebody may copy it meanwhile (loadgen/engine/sample_journal.h): with a time its source.
        __atomic_store_n(&sample->tx_source, (uint8_t)at->source, __ATOMIC_RELAXED);
        __atomic_store_n(&sample->tx_ns, at->ns, __ATOMIC_RELEASE);
    }
    connection->context->counts->stamps_late += late;
}

static void count_unmatched(struct client_connection *connection, uint32_t last_byte, bool last)
{
    struct connection_counts *counts = connection->context->counts;
    uint64_t *const fates[] = {[STAMP_UNKNOWN] = &counts->stamps_unknown,
                               [STAMP_LATE] = &counts->stamps_late,
                               [STAMP_DOUBLE] = &counts->stamps_double};
    ++*fates[stamp_waits_fate(connection->waits, last_byte, last)];
}

int connection_take_stamps(struct client_connection *connection, uint64_t now_tsc)
{
    struct connection_context *context = connection->context;
    unsigned stamps;
    if (!connection_is_open(connection) && connection->state != CONNECTION_OPENING)
        return 0;
    int taken = stamp_reader_take(context->reader, connection->socket_fd, &stamps);
    for (unsigned i = 0; i < stamps; i++) {
        const struct tx_stamp *stamp = &context->reader->stamps[i];
        bool hardware = stamp->at.source == STAMP_HARDWARE;
        uint64_t *count = hardware ? &context->counts->tx_hardware : &context->counts->tx_software;
        *count += 1;
        bool last = hardware || !hardware_may_follow(context);
        const struct stamp_wait *wait =
            stamp_waits_match(connection->waits, stamp->last_byte, last);
        if (wait)
            take_stamp(connection, wait, &stamp->at);
        else
            count_unmatched(connection, stamp->last_byte, last);
    }
    context->counts->foreign_errors += (unsigned)taken - stamps;
    connection->waits->oldest_tsc = now_tsc;
    if (taken < STAMP_BATCH)
        stamp_waits_note_empty(connection->waits, connection->put);
    return taken;
}
