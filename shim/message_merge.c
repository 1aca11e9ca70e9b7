// SPDX-License-Identifier: MIT
#include "shim/message_merge.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/connection.h"
#include "base/log_file.h"
#include "base/array.h"

// The log's id for a process's connection.
struct identity {
    uint64_t instance;
    uint32_t process;
    uint32_t own; // the process's id for it
    uint32_t id;  // the log's; 0: left out
    struct ring_announcement announcement;
};
struct identity_array ARRAY_OF(struct identity);

static int identity_compare(const void *left, const void *right)
{
    const struct identity *a = left, *b = right;
    return order_of(a->process, b->process) ?:
           order_of(a->instance, b->instance) ?:
           order_of(a->own, b->own);
}

// All connections, sorted by process and the process's id, without duplicates.
static int identities_gather(struct ring_reader *const *rings, size_t count, const uint16_t *ports,
                             bool peers, struct identity_array *out)
{
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < rings[r]->announcements.count; i++) {
            const struct ring_announcement *a = &rings[r]->announcements.items[i];
            struct identity identity = {.instance = rings[r]->instance,
                                        .process = rings[r]->process,
                                        .own = a->connection,
                                        .announcement = *a};
            if (array_push(out, identity) < 0)
                return -1;
        }
    }
    if (out->count == 0)
        return 0;
    array_sort(out, identity_compare);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (i == 0 || identity_compare(&out->items[kept - 1], &out->items[i]) != 0)
            out->items[kept++] = out->items[i];
    out->count = kept;
    uint32_t id = 0;
    for (size_t i = 0; i < kept && id < UINT32_MAX; i++) {
        const struct ring_announcement *a = &out->items[i].announcement;
        if (a->outgoing ? peers : ring_wants_port(ports, a->local_port))
            out->items[i].id = ++id;
    }
    return 0;
}

static int connections_write(const struct identity_array *identities, const char *out_dir,
                             struct message_merge *merge, struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/connections.tlog", out_dir);
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
            .process = identity->process,
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

static int call_compare(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    return order_of(a->entry_tsc, b->entry_tsc) ?: order_of(a->exit_tsc, b->exit_tsc);
}

// Replaces the process's connection ids by the log's and drops calls whose connection is unknown.
static uint64_t ring_identify(struct ring_reader *ring, const struct identity_array *identities)
{
    uint64_t unidentified = 0;
    size_t kept = 0;
    const struct identity *last = NULL;
    for (size_t i = 0; i < ring->calls.count; i++) {
        struct call *call = &ring->calls.items[i];
        if (call->kind != CALL_WAIT) {
            if (!last || last->own != call->connection) {
                struct identity key = {
                    .instance = ring->instance, .process = ring->process, .own = call->connection};
                last = identities->count == 0 ? NULL
                                              : bsearch(&key, identities->items, identities->count,
                                                        sizeof key, identity_compare);
            }
            if (!last) {
                unidentified++;
                continue;
            }
            if (last->id == 0)
                continue;
            call->connection = last->id;
        }
        ring->calls.items[kept++] = *call;
    }
    ring->calls.count = kept;
    return unidentified;
}

// A signal handler's call is recorded before the one it interrupted, so entries may lie a little
// out of order; several messages of one recvmmsg share both stamps and must keep theirs.
static void ring_sort(struct ring_reader *ring)
{
    struct call *calls = ring->calls.items;
    uint64_t moves = 0;
    for (size_t i = 1; i < ring->calls.count; i++) {
        struct call one = calls[i];
        size_t at = i;
        while (at > 0 && calls[at - 1].entry_tsc > one.entry_tsc) {
            if (++moves > 64 * ring->calls.count) { // far out of order: the shim never writes that
                calls[at] = one;
                qsort(calls, ring->calls.count, sizeof *calls, call_compare);
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

static int calls_write(struct cursor *heap, size_t count, const char *out_dir, uint64_t lost,
                       uint64_t *written, struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/calls.tlog", out_dir);
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
        ++*written;
        if (heap[0].next == heap[0].end)
            heap[0] = heap[--count];
        heap_sink(heap, count, 0);
    }
    return log_writer_close(&writer, lost, err);
}

int message_merge_write(struct ring_reader *const *rings, size_t count, const uint16_t *ports,
                        bool peers, uint64_t lost, const char *out_dir, struct message_merge *merge,
                        struct error *err)
{
    *merge = (struct message_merge){.peers = merge->peers};
    struct identity_array identities = {0};
    struct cursor *heap = calloc(count + 1, sizeof *heap);
    int result = 0;
    if (!heap || identities_gather(rings, count, ports, peers, &identities) < 0) {
        result = error_set(err, ERROR_FAILED, "out of memory for the calls of %zu threads", count);
        goto out;
    }
    size_t filled = 0;
    for (size_t r = 0; r < count; r++) {
        merge->unidentified += ring_identify(rings[r], &identities);
        ring_sort(rings[r]);
        if (rings[r]->calls.count > 0)
            heap[filled++] = (struct cursor){
                .next = rings[r]->calls.items,
                .end = rings[r]->calls.items + rings[r]->calls.count,
            };
    }
    result = connections_write(&identities, out_dir, merge, err);
    if (result == 0)
        result = calls_write(heap, filled, out_dir, lost + merge->unidentified, &merge->calls, err);
out:
    free(heap);
    array_free(&identities);
    return result;
}
