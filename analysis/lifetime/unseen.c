// SPDX-License-Identifier: MIT
#include "analysis/lifetime/unseen.h"

#include <stdlib.h>

// A time of which a core tells nothing.
struct hole {
    int64_t begin_ns, end_ns;
    bool unrecorded;
};
struct hole_array ARRAY_OF(struct hole);

// Part of a hole in which a message was there.
struct visit {
    int64_t begin_ns, end_ns;
    uint16_t core;
    bool unrecorded, received;
};
struct visit_array ARRAY_OF(struct visit);

struct search {
    const struct host_timeline *server;
    struct hole_array *holes; // of each core of the server
    struct hole_array absent; // of a core that the timeline lacks
    struct visit_array visits;
    bool unrecorded; // some visit of the message at hand
};

// The holes of a core, ascending and disjoint.
static int find_holes(const struct core_timeline *core, struct hole_array *out)
{
    const struct span_array *spans = &core->spans;
    if (core->recorded_ns != 0 &&
        array_push(out, (struct hole){INT64_MIN, core->recorded_ns, true}) < 0)
        return -1;
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        struct hole *last = out->count ? &out->items[out->count - 1] : NULL;
        if (span->kind != SPAN_UNKNOWN || (last && span->end_ns <= last->end_ns))
            continue;
        int64_t begin = last && span->begin_ns < last->end_ns ? last->end_ns : span->begin_ns;
        if (array_push(out, (struct hole){begin, span->end_ns, false}) < 0)
            return -1;
    }
    return 0;
}

static const struct hole_array *holes_of(const struct search *search, uint16_t core)
{
    const struct core_timeline *timeline = host_timeline_core(search->server, core);
    return timeline ? &search->holes[timeline - search->server->cores.items] : &search->absent;
}

// The message was on that core from begin_ns to end_ns.
static int visit_core(struct search *search, uint16_t core, bool received, int64_t begin_ns,
                      int64_t end_ns)
{
    if (core == NO_CORE)
        return 0;
    const struct hole_array *holes = holes_of(search, core);
    size_t at = array_bound(0, holes->count, i, holes->items[i].end_ns <= begin_ns);
    for (; at < holes->count && holes->items[at].begin_ns < end_ns; at++) {
        const struct hole *hole = &holes->items[at];
        struct visit visit = {.begin_ns = hole->begin_ns > begin_ns ? hole->begin_ns : begin_ns,
                              .end_ns = hole->end_ns < end_ns ? hole->end_ns : end_ns,
                              .core = core,
                              .unrecorded = hole->unrecorded,
                              .received = received};
        if (array_push(&search->visits, visit) < 0)
            return -1;
        search->unrecorded |= hole->unrecorded;
    }
    return 0;
}

static int compare_visits(const void *left, const void *right)
{
    const struct visit *a = left, *b = right;
    return order_of(a->core, b->core) ?: order_of(a->unrecorded, b->unrecorded)
                                      ?: order_of(a->begin_ns, b->begin_ns);
}

static int compare_cores(const void *left, const void *right)
{
    const struct unseen_core *a = left, *b = right;
    return order_of(b->unrecorded_ns, a->unrecorded_ns) ?: order_of(b->lost_ns, a->lost_ns)
                                                        ?: order_of(a->core, b->core);
}

// Adds the visits of each core up, each moment once.
static int add_up(struct search *search, struct unseen_time *out)
{
    struct visit_array *visits = &search->visits;
    int64_t reached = INT64_MIN;
    array_sort(visits, compare_visits);
    for (size_t i = 0; i < visits->count; i++) {
        const struct visit *visit = &visits->items[i], *before = i ? visit - 1 : NULL;
        if ((!before || before->core != visit->core) &&
            array_push(&out->cores, (struct unseen_core){.core = visit->core}) < 0)
            return -1;
        if (!before || before->core != visit->core || before->unrecorded != visit->unrecorded)
            reached = INT64_MIN;
        struct unseen_core *core = &out->cores.items[out->cores.count - 1];
        int64_t from = visit->begin_ns > reached ? visit->begin_ns : reached;
        uint64_t ns = visit->end_ns > from ? (uint64_t)(visit->end_ns - from) : 0;
        *(visit->unrecorded ? &core->unrecorded_ns : &core->lost_ns) += ns;
        core->received |= visit->received;
        reached = visit->end_ns > reached ? visit->end_ns : reached;
    }
    array_sort(&out->cores, compare_cores);
    for (size_t i = 0; i < out->cores.count; i++) {
        out->unrecorded_ns += out->cores.items[i].unrecorded_ns;
        out->lost_ns += out->cores.items[i].lost_ns;
    }
    return 0;
}

static int search_all(struct search *search, const struct lifetime *lives, size_t count,
                      struct unseen_time *out)
{
    const struct host_timeline *server = search->server;
    search->holes = calloc(server->cores.count + 1, sizeof *search->holes);
    if (!search->holes ||
        array_push(&search->absent, (struct hole){INT64_MIN, INT64_MAX, true}) < 0)
        return -1;
    for (size_t i = 0; i < server->cores.count; i++)
        if (find_holes(&server->cores.items[i], &search->holes[i]) < 0)
            return -1;
    for (size_t i = 0; i < count; i++) {
        const struct lifetime *life = &lives[i];
        const int64_t *at = life->stamp_ns;
        if (life->state != LIFETIME_WHOLE)
            continue;
        if (visit_core(search, life->stamp_core[STAMP_HANDOFF], true, at[STAMP_NIC],
                       at[STAMP_HANDOFF]) < 0 ||
            visit_core(search, life->stamp_core[STAMP_APPLICATION], false, at[STAMP_HANDOFF],
                       at[STAMP_REPLY]) < 0)
            return -1;
        out->unrecorded += search->unrecorded;
        search->unrecorded = false;
    }
    return 0;
}

int unseen_time_build(struct unseen_time *out, const struct lifetime *lives, size_t count,
                      const struct host_timeline *server)
{
    struct search search = {.server = server};
    *out = (struct unseen_time){0};
    int result = search_all(&search, lives, count, out);
    if (result == 0)
        result = add_up(&search, out);
    for (size_t i = 0; search.holes && i < server->cores.count; i++)
        array_free(&search.holes[i]);
    free(search.holes);
    array_free(&search.absent);
    array_free(&search.visits);
    return result;
}

void unseen_time_free(struct unseen_time *unseen)
{
    array_free(&unseen->cores);
}
