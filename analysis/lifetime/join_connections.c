// SPDX-License-Identifier: MIT
#include "analysis/lifetime/join_connections.h"

#include <stdlib.h>

#include "analysis/lifetime/joiner.h"

// When each connection of a table first did anything, by passages from one kind to another.
static int64_t *first_times(const struct joiner *joiner, enum passage_kind from,
                            enum passage_kind to, size_t count)
{
    int64_t *first = malloc((count ? count : 1) * sizeof *first);
    for (size_t i = 0; first && i < count; i++) {
        first[i] = INT64_MAX;
        for (enum passage_kind kind = from; kind <= to; kind++) {
            const struct piles *piles = &joiner->passages[kind];
            size_t at = piles->starts[i];
            if (at < piles->starts[i + 1] && piles->items[at].time_ns < first[i])
                first[i] = piles->items[at].time_ns;
        }
    }
    return first;
}

static uint32_t *match_table(const struct joiner *joiner, const int64_t *client_first,
                             const struct connection *table, size_t count, enum passage_kind from,
                             enum passage_kind to, match_function *related)
{
    const struct join_input *in = joiner->in;
    size_t clients = in->client_connection_count;
    uint32_t *other_end = malloc((clients ? clients : 1) * sizeof *other_end);
    for (size_t i = 0; other_end && i < clients; i++)
        other_end[i] = NO_CONNECTION;
    if (!other_end || !table)
        return other_end;
    int64_t *first = first_times(joiner, from, to, count);
    match_function *match = in->client_clock ? match_unrelated_connections : related;
    if (!first ||
        match(in->client_connections, clients, client_first, table, count, first, other_end) < 0) {
        free(other_end);
        other_end = NULL;
    }
    free(first);
    return other_end;
}

// Which of the shim's connections the calls on each socket are of, by the cookie that both sides
// know the socket by: NO_CONNECTION where they have none in common. Where processes share a socket,
// of the first of them to receive from it.
static uint32_t *find_calls_of_sockets(const struct joiner *joiner, uint32_t *socket_of_calls,
                                       const struct connection_index *sockets)
{
    const struct join_input *in = joiner->in;
    int64_t *first = first_times(joiner, RECEIVES, SENDS, in->shim_connection_count);
    uint32_t *calls_of = malloc((in->socket_count + 1) * sizeof *calls_of);
    for (size_t i = 0; calls_of && i < in->socket_count; i++)
        calls_of[i] = NO_CONNECTION;
    for (size_t i = 0; calls_of && first && i < in->shim_connection_count; i++) {
        const struct connection *shim = &in->shim_connections[i];
        uint32_t socket = connection_index_of_cookie(sockets, shim->cookie);
        socket_of_calls[i] = socket;
        if (socket != NO_CONNECTION &&
            (calls_of[socket] == NO_CONNECTION || first[i] < first[calls_of[socket]]))
            calls_of[socket] = (uint32_t)i;
    }
    if (!first) {
        free(calls_of);
        calls_of = NULL;
    }
    free(first);
    return calls_of;
}

// Where a port is used again and again, an application that is late reads one connection while the
// next one of the same ends is open already: then times do not tell them apart, but the socket's
// cookie does.
static int match_calls_by_cookie(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    if (!in->events || !in->calls)
        return 0;
    struct connection_index sockets = {0};
    uint32_t *socket_of_calls = malloc((in->shim_connection_count + 1) * sizeof *socket_of_calls);
    uint32_t *calls_of = NULL;
    if (socket_of_calls && connection_index_init(&sockets, in->sockets, in->socket_count) == 0)
        calls_of = find_calls_of_sockets(joiner, socket_of_calls, &sockets);
    for (size_t c = 0; calls_of && c < in->client_connection_count; c++) {
        uint32_t socket = joiner->socket_of[c], calls = joiner->calls_of[c];
        if (socket == NO_CONNECTION || is_over_udp(joiner, (uint32_t)c))
            continue;
        if (calls_of[socket] != NO_CONNECTION)
            joiner->calls_of[c] = calls_of[socket];
        else if (calls != NO_CONNECTION && socket_of_calls[calls] != NO_CONNECTION)
            joiner->calls_of[c] = NO_CONNECTION; // of another connection of the same ends
    }
    connection_index_fini(&sockets);
    free(socket_of_calls);
    int result = calls_of ? 0 : -1;
    free(calls_of);
    return result;
}

int join_connections(struct joiner *joiner)
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
        match_table(joiner, first, in->events ? in->sockets : NULL, in->socket_count, SEGMENTS,
                    ARRIVALS, match_nearest_connections);
    joiner->calls_of = match_table(joiner, first, in->calls ? in->shim_connections : NULL,
                                   in->shim_connection_count, RECEIVES, SENDS, match_connections);
    free(first);
    return joiner->socket_of && joiner->calls_of ? match_calls_by_cookie(joiner) : -1;
}
