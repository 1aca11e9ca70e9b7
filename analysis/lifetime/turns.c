// SPDX-License-Identifier: MIT
#include "analysis/lifetime/turns.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/streams.h"

struct call_of_connection {
    uint32_t connection; // position in the table
    uint32_t call;
    int64_t time_ns; // when it received, or began to send
};

struct finder {
    const struct application_calls *calls;
    const struct connection *table;
    struct turns *out;
};

static int by_connection(const void *left, const void *right)
{
    const struct call_of_connection *a = left, *b = right;
    return order_of(a->connection, b->connection) ?:
           order_of(a->time_ns, b->time_ns) ?:
           order_of(a->call, b->call);
}

static int by_receipt(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return order_of(a->intended_tsc, b->intended_tsc) ?:
           order_of(a->connection, b->connection) ?:
           order_of(a->request_end, b->request_end);
}

static int end_turn(struct finder *finder, const struct sample *turn)
{
    if (turn->reply_end)
        return array_push(&finder->out->samples, *turn);
    finder->out->unanswered += turn->request_end != 0;
    return 0;
}

static void receive(struct sample *turn, uint32_t connection, const struct application_call *call)
{
    if (turn->request_end == 0)
        *turn = (struct sample){.connection = connection, .request_begin = call->offset};
    turn->request_end = call->offset + call->length;
    turn->intended_tsc = turn->send_tsc = turn->sent_tsc = (uint64_t)call->exit_ns;
}

static void answer(struct sample *turn, const struct application_call *call)
{
    if (turn->reply_end == 0)
        turn->reply_begin = call->offset;
    turn->reply_end = call->offset + call->length;
    turn->reply_tsc = (uint64_t)call->exit_ns;
}

// Along the calls of one connection.
static int take_turns(struct finder *finder, const struct call_of_connection *at, size_t count)
{
    const struct connection *connection = &finder->table[at->connection];
    struct sample turn = {0};
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const struct application_call *call = &finder->calls->items[at[i].call];
        if (call->kind == CALL_RECEIVE) {
            if (turn.reply_end) {
                result = end_turn(finder, &turn);
                turn = (struct sample){0};
            }
            receive(&turn, connection->id, call);
        } else if (turn.request_end) {
            answer(&turn, call);
        } else {
            // What is older than the capture may well have been asked before it.
            finder->out->unasked += connection->opened_time != 0;
        }
    }
    return result < 0 ? result : end_turn(finder, &turn);
}

static struct connection seen_by_client(const struct connection *server)
{
    struct connection client = *server;
    memcpy(client.local, server->peer, sizeof client.local);
    memcpy(client.peer, server->local, sizeof client.peer);
    client.local_port = server->peer_port;
    client.peer_port = server->local_port;
    client.outgoing = 1;
    client.process = 0;
    return client;
}

int turns_find(const struct application_calls *calls, const struct connection *connections,
               size_t connection_count, struct turns *out)
{
    struct ARRAY_OF(struct call_of_connection) order = {0};
    struct connection_index index = {0};
    struct finder finder = {calls, connections, out};
    *out = (struct turns){0};
    int result = connection_index_init(&index, connections, connection_count);
    for (size_t i = 0; i < calls->count && result == 0; i++) {
        const struct application_call *call = &calls->items[i];
        bool moves = (call->kind == CALL_RECEIVE || call->kind == CALL_SEND) && call->length;
        uint32_t at = moves ? connection_index_find(&index, call->connection) : NO_CONNECTION;
        int64_t time_ns = call->kind == CALL_RECEIVE ? call->exit_ns : call->entry_ns;
        if (at != NO_CONNECTION && connections[at].protocol == CONNECTION_TCP)
            result = array_push(&order, (struct call_of_connection){at, (uint32_t)i, time_ns});
    }
    array_sort(&order, by_connection);
    for (size_t first = 0, after; first < order.count && result == 0; first = after) {
        const struct call_of_connection *at = &order.items[first];
        for (after = first; after < order.count; after++)
            if (order.items[after].connection != at->connection)
                break;
        result = array_push(&out->connections, seen_by_client(&connections[at->connection]));
        if (result == 0)
            result = take_turns(&finder, at, after - first);
    }
    array_sort(&out->samples, by_receipt);
    connection_index_fini(&index);
    array_free(&order);
    return result;
}

void turns_keep(struct turns *turns, int64_t after_ns, int64_t until_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < turns->samples.count; i++) {
        int64_t answered_ns = (int64_t)turns->samples.items[i].reply_tsc;
        if (answered_ns > after_ns && answered_ns <= until_ns)
            turns->samples.items[kept++] = turns->samples.items[i];
    }
    turns->samples.count = kept;
}

void turns_free(struct turns *turns)
{
    array_free(&turns->samples);
    array_free(&turns->connections);
}

// --- the order of arrival ------------------------------------------------------------------------

static int by_arrival(const void *left, const void *right)
{
    const struct lifetime *a = left, *b = right;
    return order_of(a->stamp_ns[STAMP_INTENDED], b->stamp_ns[STAMP_INTENDED])
               ?: order_of(a->request, b->request);
}

static int by_request(const void *left, const void *right)
{
    const struct holdup *a = left, *b = right;
    return order_of(a->request, b->request) ?: order_of(a->begin_ns, b->begin_ns);
}

int turns_order(struct turns *turns, struct lifetime_array *lives, struct holdup_array *holdups)
{
    size_t count = turns->samples.count;
    struct sample *before = malloc((count + 1) * sizeof *before);
    uint32_t *place = malloc((count + 1) * sizeof *place); // by what was its number
    if (!before || !place || lives->count != count) {
        free(before);
        free(place);
        return -1;
    }
    memcpy(before, turns->samples.items, count * sizeof *before);
    array_sort(lives, by_arrival);
    for (size_t i = 0; i < count; i++) {
        turns->samples.items[i] = before[lives->items[i].request];
        place[lives->items[i].request] = (uint32_t)i;
        lives->items[i].request = i;
    }
    for (size_t i = 0; i < holdups->count; i++)
        holdups->items[i].request = place[holdups->items[i].request];
    array_sort(holdups, by_request);
    free(before);
    free(place);
    return 0;
}
