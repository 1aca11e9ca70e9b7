// SPDX-License-Identifier: MIT
#include "analysis/run/trace_stamps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quantile.h"

enum { AROUND_NS = 1000 * 1000, TOGETHER_NS = 10 * 1000 };

struct differences ARRAY_OF(double);

struct comparing {
    const struct host_timeline *server;
    uint32_t delivers, arrives, arrives_v6; // names of functions
    double apart_ns;                        // the trace's times from the events', about
    struct differences distances, arrivals, handoffs;
    uint64_t unseen;
};

// UINT32_MAX: no function has it.
static uint32_t find_name(const struct host_timeline *server, const char *text)
{
    for (size_t i = 0; i < server->names.count; i++)
        if (strcmp(server->names.items[i], text) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

static bool is_called(const struct span *span, uint32_t name)
{
    return span->kind == SPAN_FUNCTION && span->name == name;
}

static size_t first_from(const struct core_timeline *core, int64_t time_ns)
{
    return array_bound(0, core->spans.count, at, core->spans.items[at].begin_ns < time_ns);
}

// The first delivery from that index on that begins by `last_ns`; SIZE_MAX: none does.
static size_t next_delivery(const struct comparing *comparing, const struct core_timeline *core,
                            size_t from, int64_t last_ns)
{
    const struct span_array *spans = &core->spans;
    for (size_t i = from; i < spans->count && spans->items[i].begin_ns <= last_ns; i++)
        if (is_called(&spans->items[i], comparing->delivers))
            return i;
    return SIZE_MAX;
}

// The one that begins closest to that time; SIZE_MAX: there is none.
static size_t find_delivery(const struct comparing *comparing, const struct core_timeline *core,
                            int64_t time_ns)
{
    size_t best = SIZE_MAX, i = first_from(core, time_ns - AROUND_NS);
    int64_t least_ns = AROUND_NS + 1;
    while ((i = next_delivery(comparing, core, i, time_ns + least_ns - 1)) != SIZE_MAX) {
        int64_t apart_ns = llabs(core->spans.items[i].begin_ns - time_ns);
        if (apart_ns < least_ns) {
            best = i;
            least_ns = apart_ns;
        }
        i++;
    }
    return best;
}

static bool is_traced(const struct core_timeline *core, int64_t from_ns, int64_t to_ns)
{
    const struct time_range_array *traced = &core->traced;
    size_t i = array_bound(0, traced->count, at, traced->items[at].end_ns <= from_ns);
    return i < traced->count && traced->items[i].begin_ns <= from_ns &&
           to_ns < traced->items[i].end_ns;
}

// The core whose trace has the message's arrival and hand-off, by the events; NULL: none has.
static const struct core_timeline *traced_core(const struct comparing *comparing,
                                               const struct lifetime *life)
{
    if (!lifetime_has(life, STAMP_NIC) || !lifetime_has(life, STAMP_HANDOFF))
        return NULL;
    const struct core_timeline *core =
        host_timeline_core(comparing->server, life->stamp_core[STAMP_HANDOFF]);
    return core && is_traced(core, life->stamp_ns[STAMP_NIC], life->stamp_ns[STAMP_HANDOFF]) ? core
                                                                                             : NULL;
}

// How far the hand-off is from each delivery around it.
static int add_distances(struct comparing *comparing, const struct lifetime *life)
{
    const struct core_timeline *core = traced_core(comparing, life);
    if (!core)
        return 0;
    const int64_t handed_ns = life->stamp_ns[STAMP_HANDOFF];
    size_t i = first_from(core, handed_ns - AROUND_NS);
    while ((i = next_delivery(comparing, core, i, handed_ns + AROUND_NS)) != SIZE_MAX) {
        double apart_ns = (double)(core->spans.items[i].begin_ns - handed_ns);
        if (array_push(&comparing->distances, apart_ns) < 0)
            return -1;
        i++;
    }
    return 0;
}

// The middle of where most of them lie together: a hand-off's distance to its own delivery is much
// the same each time, those to others are not. Of equals the one closest to none at all.
static double commonest_ns(struct differences *distances)
{
    size_t most = 0, from = 0;
    double found_ns = 0;
    if (distances->count)
        quantile_sort(distances->items, distances->count);
    for (size_t to = 0; to < distances->count; to++) {
        while (distances->items[to] - distances->items[from] > TOGETHER_NS)
            from++;
        double middle_ns = distances->items[from + (to - from) / 2];
        size_t together = to + 1 - from;
        if (together > most || (together == most && fabs(middle_ns) < fabs(found_ns))) {
            most = together;
            found_ns = middle_ns;
        }
    }
    return found_ns;
}

static int compare_life(struct comparing *comparing, const struct lifetime *life)
{
    const struct core_timeline *core = traced_core(comparing, life);
    if (!core)
        return 0;
    const int64_t handed_ns = life->stamp_ns[STAMP_HANDOFF];
    size_t at = find_delivery(comparing, core, handed_ns + (int64_t)comparing->apart_ns);
    if (at == SIZE_MAX) {
        comparing->unseen++;
        return 0;
    }
    if (array_push(&comparing->handoffs, (double)(core->spans.items[at].begin_ns - handed_ns)) < 0)
        return -1;
    for (uint32_t up = core_timeline_parent(core, (uint32_t)at); up != NO_SPAN;
         up = core_timeline_parent(core, up)) {
        const struct span *span = &core->spans.items[up];
        if ((is_called(span, comparing->arrives) || is_called(span, comparing->arrives_v6)) &&
            !(span->id & SPAN_ID_CUT))
            return array_push(&comparing->arrivals,
                              (double)(span->begin_ns - life->stamp_ns[STAMP_NIC]));
    }
    return 0;
}

static struct stamp_difference summarize(struct differences *differences)
{
    struct stamp_difference out = {.compared = differences->count};
    if (differences->count) {
        quantile_sort(differences->items, differences->count);
        out.p50_ns = quantile_sorted(differences->items, differences->count, 0.5);
        out.least_ns = differences->items[0];
        out.most_ns = differences->items[differences->count - 1];
    }
    array_free(differences);
    return out;
}

int trace_stamps_compare(const struct host_timeline *server, const struct lifetime *lives,
                         size_t count, struct trace_stamps *out)
{
    struct comparing comparing = {.server = server,
                                  .delivers = find_name(server, "sock_def_readable"),
                                  .arrives = find_name(server, "tcp_v4_rcv"),
                                  .arrives_v6 = find_name(server, "tcp_v6_rcv")};
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_distances(&comparing, &lives[i]);
    comparing.apart_ns = commonest_ns(&comparing.distances);
    for (size_t i = 0; i < count && result == 0; i++)
        result = compare_life(&comparing, &lives[i]);
    array_free(&comparing.distances);
    *out = (struct trace_stamps){.arrival = summarize(&comparing.arrivals),
                                 .handoff = summarize(&comparing.handoffs),
                                 .unseen = comparing.unseen};
    return result;
}

static json_t *difference_json(const struct stamp_difference *difference)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "compared", (json_int_t)difference->compared, "p50_ns",
                     difference->p50_ns, "least_ns", difference->least_ns, "most_ns",
                     difference->most_ns);
}

json_t *trace_stamps_json(const struct trace_stamps *stamps)
{
    if (stamps->handoff.compared == 0 && stamps->unseen == 0)
        return json_null();
    return json_pack("{s:o, s:o, s:I}", "arrival", difference_json(&stamps->arrival), "handoff",
                     difference_json(&stamps->handoff), "unseen", (json_int_t)stamps->unseen);
}
