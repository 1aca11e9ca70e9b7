// SPDX-License-Identifier: MIT
#include "analysis/lifetime/question_holds.h"

#include <stdbool.h>

struct asking_socket {
    uint32_t id; // its cookie's low half
    uint32_t connection;
};
struct asking_sockets ARRAY_OF(struct asking_socket);

static int by_id(const void *left, const void *right)
{
    const struct asking_socket *a = left, *b = right;
    return order_of(a->id, b->id) ?: order_of(a->connection, b->connection);
}

static int by_time(const void *left, const void *right)
{
    const struct question_hold *a = left, *b = right;
    return order_of(a->connection, b->connection) ?: order_of(a->end_ns, b->end_ns);
}

static int find_sockets(const struct question_holds_input *in, struct asking_sockets *out)
{
    int result = array_reserve(out, in->connection_count + 1);
    for (size_t i = 0; result == 0 && i < in->connection_count; i++)
        if (in->connections[i].cookie)
            out->items[out->count++] =
                (struct asking_socket){(uint32_t)in->connections[i].cookie, (uint32_t)i};
    if (result == 0 && out->count)
        array_sort(out, by_id);
    return result;
}

// What lies on [*at, after) of a connection's calls up to the one that wrote the first byte that is
// not sent: when that returned. Holds ask in order of time, and so of bytes.
static int64_t written_ns(const struct question_holds_input *in, const struct question_hold *hold,
                          size_t *at)
{
    const struct numbered_call *items = in->order->items;
    for (; *at < in->order->count && items[*at].connection <= hold->connection; ++*at) {
        const struct application_call *call = &in->calls->items[items[*at].call];
        if (items[*at].connection == hold->connection && call->kind == CALL_SEND &&
            call->offset + call->length > hold->sent)
            return call->exit_ns;
    }
    return hold->end_ns;
}

// A window is the other end's: it does not read. What lies below TCP is told by who has it there.
static bool is_own(const struct question_hold *hold)
{
    return hold->why == HELD_NAGLE || hold->why == HELD_CORK || hold->why == HELD_CONGESTION ||
           hold->why == HELD_PACING;
}

// Each begins where the one before it ended, whatever that was, or as the bytes were written.
static void find_begins(const struct question_holds_input *in, struct question_hold_array *all)
{
    size_t kept = 0, call = 0;
    uint32_t connection = UINT32_MAX;
    int64_t before_ns = INT64_MIN;
    for (size_t i = 0; i < all->count; i++) {
        struct question_hold one = all->items[i];
        if (one.connection != connection)
            before_ns = INT64_MIN;
        connection = one.connection;
        one.begin_ns = written_ns(in, &one, &call);
        if (before_ns > one.begin_ns)
            one.begin_ns = before_ns;
        before_ns = one.end_ns;
        if (is_own(&one) && one.begin_ns < one.end_ns)
            all->items[kept++] = one;
    }
    all->count = kept;
}

static int add_holds(const struct question_holds_input *in, const struct asking_sockets *sockets,
                     const struct event *event, struct question_hold_array *out)
{
    size_t at = array_bound(0, sockets->count, i, sockets->items[i].id < event->id);
    for (; at < sockets->count && sockets->items[at].id == event->id; at++) {
        const struct question_hold one = {
            .connection = sockets->items[at].connection,
            .why = event->flags,
            .end_ns = time_source_to_host(&in->clock, HOST_CLOCK_MONOTONIC, event->time),
            .sent = event->payload.a};
        if (array_push(out, one) < 0)
            return -1;
    }
    return 0;
}

int question_holds_find(const struct question_holds_input *in, struct question_hold_array *out)
{
    struct asking_sockets sockets = {0};
    int result = in->events ? find_sockets(in, &sockets) : 0;
    for (size_t i = 0; result == 0 && sockets.count && i < in->event_count; i++)
        if (in->events[i].kind == EVENT_HELD)
            result = add_holds(in, &sockets, &in->events[i], out);
    array_free(&sockets);
    if (result == 0 && out->count) {
        array_sort(out, by_time);
        find_begins(in, out);
    }
    return result;
}

const struct question_hold *question_held(const struct question_hold_array *all,
                                          uint32_t connection, uint64_t request_end,
                                          int64_t begin_ns, int64_t end_ns)
{
    size_t at = array_bound(
        0, all->count, i,
        all->items[i].connection < connection ||
            (all->items[i].connection == connection && all->items[i].end_ns <= begin_ns));
    if (at == all->count || all->items[at].connection != connection ||
        all->items[at].begin_ns >= end_ns || all->items[at].sent >= request_end)
        return NULL; // later ones have sent more
    return &all->items[at];
}
