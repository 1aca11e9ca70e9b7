// SPDX-License-Identifier: MIT
#include "analysis/lifetime/peer_pools.h"

// A connection is taken if it is the peer's turn in this share of a time, all of them together in
// that: between two requests their owners have work of their own.
#define TAKEN_EACH 0.3
#define TAKEN_ALL  0.6

// For how long of [begin_ns, end_ns) it was the peer's turn on a connection. exclusive: while the
// thread that had it did nothing else. *last is the last such wait.
static int64_t taken_ns(const struct peers *peers, uint32_t connection, bool exclusive,
                        int64_t begin_ns, int64_t end_ns, const struct peer_wait **last)
{
    const struct peer_wait *waits = peers->waits.items;
    const uint32_t *order = peers->by_connection.items;
    size_t count = peers->by_connection.count;
    size_t at = array_bound(
        0, count, i,
        waits[order[i]].connection < connection ||
            (waits[order[i]].connection == connection && waits[order[i]].end_ns <= begin_ns));
    int64_t sum = 0, until_ns = begin_ns;
    for (; at < count && waits[order[at]].connection == connection &&
           waits[order[at]].begin_ns < end_ns;
         at++) {
        const struct peer_wait *wait = &waits[order[at]];
        int64_t from = wait->begin_ns > until_ns ? wait->begin_ns : until_ns;
        int64_t to = wait->end_ns < end_ns ? wait->end_ns : end_ns;
        if (wait->again || (exclusive && !wait->exclusive))
            continue;
        *last = wait;
        if (to <= from) // of another request, at the same time
            continue;
        sum += to - from;
        until_ns = to;
    }
    return sum;
}

static unsigned all_taken(const struct peers *peers, uint32_t process, uint32_t peer,
                          bool exclusive, int64_t begin_ns, int64_t end_ns,
                          const struct peer_wait **last)
{
    double length = (double)(end_ns - begin_ns), sum = 0;
    unsigned count = 0;
    for (size_t i = 0; i < peers->connections.count && length > 0; i++) {
        const struct peer_connection *one = &peers->connections.items[i];
        if (one->process != process || one->peer != peer || one->open_ns > begin_ns ||
            one->close_ns < end_ns)
            continue;
        double share =
            (double)taken_ns(peers, (uint32_t)i, exclusive, begin_ns, end_ns, last) / length;
        if (share < TAKEN_EACH)
            return 0;
        sum += share;
        count++;
    }
    return sum >= TAKEN_ALL * count ? count : 0;
}

unsigned peers_all_taken(const struct peers *peers, uint32_t process, uint32_t peer,
                         int64_t begin_ns, int64_t end_ns)
{
    const struct peer_wait *last = NULL;
    return all_taken(peers, process, peer, false, begin_ns, end_ns, &last);
}

unsigned peers_pool_taken(const struct peers *peers, uint32_t process, int64_t begin_ns,
                          int64_t end_ns, const struct peer_wait **wait)
{
    unsigned count = 0;
    *wait = NULL;
    for (uint32_t peer = 0; peer < peers->items.count; peer++) {
        const struct peer_wait *last = NULL;
        unsigned taken = all_taken(peers, process, peer, true, begin_ns, end_ns, &last);
        if (taken && count)
            return 0;
        if (taken) {
            count = taken;
            *wait = last;
        }
    }
    return count;
}
