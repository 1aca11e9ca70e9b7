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
    return 0;
}

void client_turns_free(struct client_turns *turns)
{
    free(turns->threads);
    array_free(&turns->moments);
    array_free(&turns->distinct);
    *turns = (struct client_turns){0};
}
