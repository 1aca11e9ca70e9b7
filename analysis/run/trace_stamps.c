// SPDX-License-Identifier: MIT
#include "analysis/run/trace_stamps.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quantile.h"

enum { AROUND_NS = 1000 * 1000 };

struct differences ARRAY_OF(double);

static bool is_called(const struct host_timeline *server, const struct span *span, const char *name)
{
    return span->kind == SPAN_FUNCTION && strcmp(server->names.items[span->name], name) == 0;
}

// The call of sock_def_readable that begins closest to that time, SIZE_MAX: there is none.
static size_t find_delivery(const struct host_timeline *server, const struct core_timeline *core,
                            int64_t time_ns)
{
    const struct span_array *spans = &core->spans;
    size_t best = SIZE_MAX;
    int64_t least_ns = AROUND_NS + 1;
    size_t i = array_bound(0, spans->count, at, spans->items[at].begin_ns < time_ns - AROUND_NS);
    for (; i < spans->count && spans->items[i].begin_ns - time_ns < least_ns; i++) {
        int64_t apart_ns = llabs(spans->items[i].begin_ns - time_ns);
        if (apart_ns >= least_ns || !is_called(server, &spans->items[i], "sock_def_readable"))
            continue;
        best = i;
        least_ns = apart_ns;
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

static int compare_life(const struct host_timeline *server, const struct lifetime *life,
                        struct differences *arrivals, struct differences *handoffs,
                        uint64_t *unseen)
{
    const int64_t handed_ns = life->stamp_ns[STAMP_HANDOFF];
    const struct core_timeline *core = host_timeline_core(server, life->stamp_core[STAMP_HANDOFF]);
    if (!core || !is_traced(core, life->stamp_ns[STAMP_NIC], handed_ns))
        return 0;
    size_t at = find_delivery(server, core, handed_ns);
    if (at == SIZE_MAX) {
        ++*unseen;
        return 0;
    }
    if (array_push(handoffs, (double)(core->spans.items[at].begin_ns - handed_ns)) < 0)
        return -1;
    for (uint32_t up = core_timeline_parent(core, (uint32_t)at); up != NO_SPAN;
         up = core_timeline_parent(core, up)) {
        const struct span *span = &core->spans.items[up];
        if ((is_called(server, span, "tcp_v4_rcv") || is_called(server, span, "tcp_v6_rcv")) &&
            !(span->id & SPAN_ID_CUT))
            return array_push(arrivals, (double)(span->begin_ns - life->stamp_ns[STAMP_NIC]));
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
    struct differences arrivals = {0}, handoffs = {0};
    int result = 0;
    *out = (struct trace_stamps){0};
    for (size_t i = 0; i < count && result == 0; i++)
        if (lifetime_has(&lives[i], STAMP_NIC) && lifetime_has(&lives[i], STAMP_HANDOFF))
            result = compare_life(server, &lives[i], &arrivals, &handoffs, &out->unseen);
    out->arrival = summarize(&arrivals);
    out->handoff = summarize(&handoffs);
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
