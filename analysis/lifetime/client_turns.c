// SPDX-License-Identifier: MIT
#include "analysis/lifetime/client_turns.h"

#include <stdlib.h>

uint32_t client_turns_thread(const struct client_turns *turns, const struct lifetime *life)
{
    return life->connection < turns->connection_count ? turns->threads[life->connection] : 0;
}

bool client_turns_has(const struct client_turns *turns, uint32_t thread)
{
    const uint32_t *distinct = turns->distinct.items;
    const size_t place = array_bound(0, turns->distinct.count, at, distinct[at] < thread);
    return place < turns->distinct.count && distinct[place] == thread;
}

static int compare_bare(const struct bare_time *bare, uint32_t thread, int64_t time_ns)
{
    return order_of(bare->thread, thread) ?: order_of(bare->end_ns, time_ns + 1);
}

bool client_turns_bare(const struct client_turns *turns, uint32_t thread, int64_t time_ns,
                       int64_t *until)
{
    const struct bare_time *bare = turns->bare.items;
    const size_t count = turns->bare.count;
    const size_t at = array_bound(0, count, i, compare_bare(&bare[i], thread, time_ns) < 0);
    const bool known = at < count && bare[at].thread == thread;
    const bool within = known && bare[at].begin_ns <= time_ns;
    *until = within ? bare[at].end_ns : known ? bare[at].begin_ns : INT64_MAX;
    return within;
}

static bool opens_again(const struct connection *connections, size_t count, uint32_t thread)
{
    for (size_t i = 0; i < count; i++)
        if (connections[i].process == thread && connections[i].opening_100us)
            return true;
    return false;
}

// Of one thread's moments. A request that was never answered may be in flight for good.
static int find_bare(struct client_turns *out, const struct lifetime *lives, size_t first,
                     size_t end)
{
    enum { LEAST_NS = 1000000 }; // less, and it was about to send
    const struct thread_moment *moments = out->moments.items;
    uint64_t in_flight = 0;
    for (size_t i = first; i + 1 < end; i++) {
        const bool sends = moments[i].time_ns != lives[moments[i].value].stamp_ns[STAMP_REPLY_READ];
        if (sends || in_flight == 0)
            in_flight += sends;
        else
            in_flight--;
        const struct bare_time bare = {moments[i].thread, moments[i].time_ns,
                                       moments[i + 1].time_ns};
        if (in_flight == 0 && bare.end_ns - bare.begin_ns >= LEAST_NS &&
            array_push(&out->bare, bare) < 0)
            return -1;
    }
    return 0;
}

static int find_all_bare(struct client_turns *out, const struct lifetime *lives,
                         const struct connection *connections)
{
    const struct thread_moment *moments = out->moments.items;
    int result = 0;
    for (size_t first = 0, end; first < out->moments.count && result == 0; first = end) {
        for (end = first; end < out->moments.count && moments[end].thread == moments[first].thread;)
            end++;
        if (opens_again(connections, out->connection_count, moments[first].thread))
            result = find_bare(out, lives, first, end);
    }
    return result;
}

static int compare_moments(const void *left, const void *right)
{
    const struct thread_moment *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

int client_turns_build(struct client_turns *out, const struct lifetime *lives, size_t count,
                       const struct connection *connections, size_t connection_count,
                       uint64_t depth)
{
    static const enum stamp_kind kinds[] = {STAMP_SEND, STAMP_REPLY_READ};
    *out = (struct client_turns){.connection_count = connection_count, .depth = depth};
    out->threads = calloc(connection_count + 1, sizeof *out->threads);
    if (!out->threads)
        return -1;
    for (size_t i = 0; i < connection_count; i++)
        out->threads[i] = connections[i].process;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            uint32_t thread = client_turns_thread(out, &lives[i]);
            const struct thread_moment moment = {
                .time_ns = lives[i].stamp_ns[kinds[k]], .thread = thread, .value = (uint32_t)i};
            if (thread && lifetime_has(&lives[i], kinds[k]) &&
                array_push(&out->moments, moment) < 0)
                return -1;
        }
    array_sort(&out->moments, compare_moments);
    for (size_t i = 0; i < out->moments.count; i++)
        if ((i == 0 || out->moments.items[i].thread != out->moments.items[i - 1].thread) &&
            array_push(&out->distinct, out->moments.items[i].thread) < 0)
            return -1;
    return find_all_bare(out, lives, connections);
}

void client_turns_free(struct client_turns *turns)
{
    free(turns->threads);
    array_free(&turns->moments);
    array_free(&turns->distinct);
    array_free(&turns->bare);
    *turns = (struct client_turns){0};
}
