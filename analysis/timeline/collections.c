// SPDX-License-Identifier: MIT
#include "analysis/timeline/collections.h"

#include "base/array.h"
#include "profiler/bpf/event_log.h"

// A piece of marking, or that the world was stopped.
struct piece {
    uint32_t process;
    bool stops;
    int64_t begin_ns, end_ns;
};
struct piece_array ARRAY_OF(struct piece);

static int compare_pieces(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    return order_of(a->process, b->process) ?: order_of(a->begin_ns, b->begin_ns);
}

static int find_pieces(const struct host_timeline *host, struct piece_array *pieces)
{
    for (size_t i = 0; i < host->detours.count; i++) {
        const struct detour *detour = &host->detours.items[i];
        if (detour->kind != DETOUR_COLLECTION && detour->kind != DETOUR_WORLD)
            continue;
        const struct piece piece = {host_timeline_process(host, detour->thread),
                                    detour->kind == DETOUR_WORLD, detour->begin_ns, detour->end_ns};
        if (array_push(pieces, piece) < 0)
            return -1;
    }
    array_sort(pieces, compare_pieces);
    return 0;
}

// The pieces [first, after) are those of one process.
static int add_collections(struct collection_array *all, const struct piece *pieces, size_t first,
                           size_t after)
{
    bool stops = false, open = false;
    for (size_t i = first; i < after; i++)
        stops |= pieces[i].stops;
    for (size_t i = first; i < after && stops; i++) {
        if (pieces[i].stops) {
            open = false;
        } else if (open) {
            struct collection *last = &all->items[all->count - 1];
            last->end_ns = last->end_ns > pieces[i].end_ns ? last->end_ns : pieces[i].end_ns;
        } else {
            const struct collection one = {pieces[i].process, pieces[i].begin_ns, pieces[i].end_ns};
            if (array_push(all, one) < 0)
                return -1;
            open = true;
        }
    }
    return 0;
}

int collections_settle(struct host_timeline *host)
{
    struct piece_array pieces = {0};
    int result = find_pieces(host, &pieces);
    for (size_t first = 0; first < pieces.count && result == 0;) {
        size_t after = first;
        while (after < pieces.count && pieces.items[after].process == pieces.items[first].process)
            after++;
        result = add_collections(&host->collections, pieces.items, first, after);
        first = after;
    }
    array_free(&pieces);
    return result;
}

bool collector_at_work(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                       int64_t *until_ns)
{
    *until_ns = INT64_MAX;
    if (!host || host->collections.count == 0)
        return false;
    const struct collection *all = host->collections.items;
    const uint32_t process = host_timeline_process(host, thread);
    size_t at = array_bound(0, host->collections.count, i,
                            all[i].process < process ||
                                (all[i].process == process && all[i].end_ns <= time_ns));
    if (at == host->collections.count || all[at].process != process)
        return false;
    bool inside = all[at].begin_ns <= time_ns;
    *until_ns = inside ? all[at].end_ns : all[at].begin_ns;
    return inside;
}
