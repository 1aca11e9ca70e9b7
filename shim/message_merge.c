// SPDX-License-Identifier: MIT
#include "shim/message_merge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/connection.h"
#include "base/array.h"
#include "base/log_file.h"
#include "base/text.h"
#include "shim/message_checks.h"
#include "shim/message_identity.h"

// Adds what the rings announced since the last time. Sorted by process and the process's id,
// without duplicates.
static int identities_gather(const struct message_merge *merge, struct identities *out)
{
    size_t before = out->all.count;
    for (size_t r = 0; r < merge->ring_count; r++) {
        struct ring_reader *ring = merge->rings[r];
        for (size_t i = 0; i < ring->announcements.count; i++) {
            const struct ring_announcement *a = &ring->announcements.items[i];
            struct identity identity = {.instance = ring->instance,
                                        .process = ring->process,
                                        .process_here = ring->process_here,
                                        .own = a->connection,
                                        .announcement = *a};
            if (array_push(&out->all, identity) < 0)
                return -1;
        }
        ring->announcements.count = 0;
    }
    if (out->all.count == before)
        return 0;
    array_sort(&out->all, identity_compare);
    struct identity *all = out->all.items;
    size_t kept = 0;
    for (size_t i = 0; i < out->all.count; i++)
        if (i == 0 || identity_compare(&all[kept - 1], &all[i]) != 0)
            all[kept++] = all[i];
        else if (all[i].known)
            all[kept - 1] = all[i];
    out->all.count = kept;
    for (size_t i = 0; i < kept && out->last_id < UINT32_MAX; i++) {
        const struct ring_announcement *a = &all[i].announcement;
        if (!all[i].known &&
            (a->outgoing ? merge->wants_peers : ring_wants_port(merge->ports, a->local_port)))
            all[i].id = ++out->last_id;
        all[i].known = true;
    }
    return 0;
}

static int connections_write(struct message_merge *merge, struct error *err)
{
    char path[4096];
    const struct identity_array *identities = &merge->identities->all;
    snprintf(path, sizeof path, "%s/connections.tlog", merge->out_dir);
    struct log_writer writer;
    int result = log_writer_open(&writer, path, LOG_CONNECTIONS, 1, sizeof(struct connection), err);
    for (size_t i = 0; result == 0 && i < identities->count; i++) {
        const struct identity *identity = &identities->items[i];
        if (identity->id == 0)
            continue;
        struct connection connection = {
            .id = identity->id,
            .protocol = identity->announcement.protocol,
            .outgoing = identity->announcement.outgoing,
            .cookie = identity->announcement.cookie,
            .local_port = identity->announcement.local_port,
            .peer_port = identity->announcement.peer_port,
            .process = identity->process_here ? identity->process_here : identity->process,
            .opened_time = identity->announcement.opened_tsc,
        };
        memcpy(connection.local, identity->announcement.local, sizeof connection.local);
        memcpy(connection.peer, identity->announcement.peer, sizeof connection.peer);
        result = log_writer_append(&writer, &connection, 1, err);
        if (result == 0 && connection.outgoing && merge->peers &&
            peer_programs_add(merge->peers, &connection) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for the servers' peers");
        merge->connections += !connection.outgoing;
        merge->outgoing += connection.outgoing;
        if (result < 0)
            log_writer_discard(&writer);
    }
    return result < 0 ? result : log_writer_close(&writer, 0, err);
}

// Whether bytes that a connection moved while it was recorded are in no call.
static bool is_incomplete(const struct identity *identity)
{
    bool incomplete = false;
    for (unsigned d = 0; d < 2; d++) {
        if (identity->until_tsc[d] != UINT64_MAX)
            return false; // known to be in doubt
        uint64_t begin = identity->first[d] - 1, end = identity->end[d];
        end = end < identity->counted[d] ? identity->counted[d] : end;
        incomplete |= identity->first[d] && identity->moved[d] < end - begin;
    }
    return incomplete;
}

static void incomplete_count(struct message_merge *merge)
{
    const struct identity_array *identities = &merge->identities->all;
    merge->incomplete = 0;
    for (size_t i = 0; i < identities->count; i++)
        merge->incomplete += identities->items[i].id && is_incomplete(&identities->items[i]);
}

static int call_compare(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    return order_of(a->entry_tsc, b->entry_tsc) ?: order_of(a->exit_tsc, b->exit_tsc);
}

// Whether the bytes that a call says it moved stand where it says.
static bool is_believed(const struct call *call, const struct identity *identity)
{
    return call->kind == CALL_RECEIVE ? call->exit_tsc <= identity->until_tsc[0]
           : call->kind == CALL_SEND  ? call->exit_tsc <= identity->until_tsc[1]
                                      : true;
}

// Whether a call is to wait for what comes next.
static bool is_held_back(const struct message_merge *merge, const struct call *call)
{
    return !merge->last && call->exit_tsc >= merge->before_tsc;
}

// What becomes of a call on a connection: true when it is for the log, with the log's id. *held: it
// waits.
static bool call_identify(struct message_merge *merge, struct identity *identity, struct call *call,
                          bool *held)
{
    *held =
        (!identity || (identity->id && !is_believed(call, identity))) && is_held_back(merge, call);
    if (*held)
        return false;
    if (!identity || identity->id == 0) {
        merge->unidentified += !identity;
        return false;
    }
    if (!is_believed(call, identity)) {
        merge->doubtful_calls++;
        return false;
    }
    const bool has_stream = identity->announcement.protocol != CONNECTION_UDP;
    if (has_stream && (call->kind == CALL_RECEIVE || call->kind == CALL_SEND)) {
        unsigned direction = call->kind == CALL_SEND;
        uint64_t *first = &identity->first[direction], *end = &identity->end[direction];
        uint64_t call_end = call->offset + call->length;
        *first = *first && *first <= call->offset ? *first : call->offset + 1;
        *end = *end < call_end ? call_end : *end;
        identity->moved[direction] += call->length;
    }
    call->connection = identity->id;
    return true;
}

// Moves the ring's calls to *out, with the log's ids of their connections in place of the
// process's, but for those that wait.
static int ring_identify(struct message_merge *merge, struct ring_reader *ring,
                         struct call_array *out)
{
    size_t kept = 0;
    struct identity *last = NULL;
    if (array_reserve(out, ring->calls.count) < 0)
        return -1;
    for (size_t i = 0; i < ring->calls.count; i++) {
        struct call call = ring->calls.items[i];
        bool held = false;
        if (call.kind != CALL_WAIT) {
            if (!last || last->own != call.connection)
                last = identity_find(&merge->identities->all, ring, call.connection);
            if (!call_identify(merge, last, &call, &held)) {
                if (held)
                    ring->calls.items[kept++] = call;
                continue;
            }
        }
        if (ring->thread_here) {
            call.process = ring->process_here;
            call.thread = ring->thread_here;
        }
        out->items[out->count++] = call;
    }
    ring->calls.count = kept;
    return 0;
}

// A signal handler's call is recorded before the one it interrupted, so entries may lie a little
// out of order; several messages of one recvmmsg share both stamps and must keep theirs.
static void calls_sort(struct call_array *array)
{
    struct call *calls = array->items;
    uint64_t moves = 0;
    for (size_t i = 1; i < array->count; i++) {
        struct call one = calls[i];
        size_t at = i;
        while (at > 0 && calls[at - 1].entry_tsc > one.entry_tsc) {
            if (++moves > 64 * array->count) { // far out of order: the shim never writes that
                calls[at] = one;
                qsort(calls, array->count, sizeof *calls, call_compare);
                return;
            }
            calls[at] = calls[at - 1];
            at--;
        }
        calls[at] = one;
    }
}

struct cursor {
    const struct call *next, *end;
};

static bool cursor_before(const struct cursor *a, const struct cursor *b)
{
    if (a->next->entry_tsc != b->next->entry_tsc)
        return a->next->entry_tsc < b->next->entry_tsc;
    return a->next < b->next; // any fixed order
}

// Restores the heap below `at` (smallest entry on top).
static void heap_sink(struct cursor *heap, size_t count, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (cursor_before(&heap[child], &heap[least]))
                least = child;
        if (least == at)
            return;
        struct cursor swap = heap[at];
        heap[at] = heap[least];
        heap[least] = swap;
        at = least;
    }
}

static int calls_write(struct message_merge *merge, struct cursor *heap, size_t count,
                       struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", merge->out_dir, merge->calls_log);
    struct log_writer writer;
    int result =
        log_writer_open(&writer, path, LOG_CALLS, MESSAGE_LOG_VERSION, sizeof(struct call), err);
    if (result < 0)
        return result;
    for (size_t i = count; i-- > 0;)
        heap_sink(heap, count, i);
    while (count > 0) {
        result = log_writer_append(&writer, heap[0].next++, 1, err);
        if (result < 0) {
            log_writer_discard(&writer);
            return result;
        }
        merge->calls++;
        if (heap[0].next == heap[0].end)
            heap[0] = heap[--count];
        heap_sink(heap, count, 0);
    }
    return log_writer_close(&writer, merge->lost + merge->unidentified + merge->doubtful_calls,
                            err);
}

int message_merge_write(struct message_merge *merge, struct error *err)
{
    size_t count = merge->ring_count, filled = 0;
    struct cursor *heap = calloc(count + 1, sizeof *heap);
    struct call_array *calls = calloc(count + 1, sizeof *calls);
    int result = 0;
    merge->calls = merge->connections = merge->outgoing = merge->unidentified = 0;
    if (!heap || !calls || identities_gather(merge, merge->identities) < 0 ||
        message_checks_judge(merge->rings, count, &merge->identities->all, &merge->checks) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the calls of %zu threads", count);
    // Of each one call, at least, was not seen. The last time says how many there are in all.
    merge->doubtful_calls = merge->last ? merge->checks.directions : 0;
    for (size_t r = 0; r < count && result == 0; r++) {
        if (ring_identify(merge, merge->rings[r], &calls[r]) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for %s calls",
                               TEXT_COUNT(merge->rings[r]->calls.count));
        calls_sort(&calls[r]);
        if (calls[r].count > 0)
            heap[filled++] =
                (struct cursor){.next = calls[r].items, .end = calls[r].items + calls[r].count};
    }
    incomplete_count(merge);
    if (result == 0 && merge->out_dir)
        result = connections_write(merge, err);
    if (result == 0 && merge->out_dir)
        result = calls_write(merge, heap, filled, err);
    for (size_t r = 0; r < count && calls; r++)
        array_free(&calls[r]);
    free(calls);
    free(heap);
    return result;
}
