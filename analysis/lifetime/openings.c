// SPDX-License-Identifier: MIT
#include "analysis/lifetime/openings.h"

#include <stdlib.h>

enum { UNIT_NS = 100000 };

// A connection of a thread that begins to be opened, or is open.
struct change {
    int64_t time_ns;
    uint32_t thread;
    int by;
};
struct change_array ARRAY_OF(struct change);

static int compare_changes(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    return order_of(a->thread, b->thread) ?:
           order_of(a->time_ns, b->time_ns) ?:
           order_of(a->by, b->by);
}

// How many connections a thread has at once: those that were open as the load began.
static int connections_of(const struct openings *openings, uint32_t thread, int64_t begin_ns)
{
    int count = 0;
    for (size_t i = 0; i < openings->of.count; i++)
        count += openings->of.items[i].thread == thread && openings->of.items[i].end_ns <= begin_ns;
    return count;
}

static int take_changes(const struct openings *openings, int64_t begin_ns, struct change_array *out)
{
    for (size_t i = 0; i < openings->of.count; i++) {
        const struct opening *one = &openings->of.items[i];
        if (one->begin_ns == one->end_ns || one->end_ns <= begin_ns || !one->thread)
            continue;
        if (array_push(out, (struct change){one->begin_ns, one->thread, 1}) < 0 ||
            array_push(out, (struct change){one->end_ns, one->thread, -1}) < 0)
            return -1;
    }
    array_sort(out, compare_changes);
    return 0;
}

// When a thread has no connection that is open.
static int find_all(struct openings *openings, int64_t begin_ns)
{
    struct change_array changes = {0};
    int result = take_changes(openings, begin_ns, &changes), level = 0, most = 0;
    for (size_t i = 0; i < changes.count && result == 0; i++) {
        const struct change *change = &changes.items[i];
        if (i == 0 || changes.items[i - 1].thread != change->thread) {
            level = 0;
            most = connections_of(openings, change->thread, begin_ns);
        }
        if (change->by < 0 && level == most && most > 0)
            result = array_push(&openings->all, (struct opening){changes.items[i - 1].time_ns,
                                                                 change->time_ns, change->thread});
        level += change->by;
    }
    array_free(&changes);
    return result;
}

int openings_build(struct openings *out, const struct connection *connections, size_t count,
                   const struct time_source *clock, int64_t begin_ns)
{
    *out = (struct openings){0};
    for (size_t i = 0; i < count; i++) {
        int64_t end_ns = time_source_to_host(clock, HOST_CLOCK_TSC, connections[i].opened_time);
        int64_t length_ns = (int64_t)connections[i].opening_100us * UNIT_NS;
        const struct opening one = {end_ns - length_ns, end_ns, connections[i].process};
        if (array_push(&out->of, one) < 0)
            return -1;
    }
    return find_all(out, begin_ns);
}

void openings_free(struct openings *openings)
{
    array_free(&openings->of);
    array_free(&openings->all);
}

static int compare_spans(const struct opening *opening, uint32_t thread, int64_t begin_ns)
{
    return order_of(opening->thread, thread) ?: order_of(opening->end_ns, begin_ns + 1);
}

bool opening_within(const struct openings *openings, const struct lifetime *life, int64_t begin_ns,
                    int64_t end_ns, struct opening *out)
{
    if (!openings || life->connection >= openings->of.count)
        return false;
    const struct opening *own = &openings->of.items[life->connection];
    const struct opening *all = openings->all.items;
    const size_t count = openings->all.count;
    size_t at = array_bound(0, count, i, compare_spans(&all[i], own->thread, begin_ns) < 0);
    *out = (struct opening){.begin_ns = end_ns, .end_ns = end_ns};
    if (at < count && all[at].thread == own->thread && all[at].begin_ns < end_ns)
        *out = all[at];
    if (own->end_ns > begin_ns && own->begin_ns < out->begin_ns)
        *out = *own;
    out->begin_ns = out->begin_ns > begin_ns ? out->begin_ns : begin_ns;
    out->end_ns = out->end_ns < end_ns ? out->end_ns : end_ns;
    return out->begin_ns < out->end_ns;
}
