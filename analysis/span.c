// SPDX-License-Identifier: MIT
#include "analysis/span.h"

#include <stdlib.h>

const struct core_timeline *host_timeline_core(const struct host_timeline *host, uint16_t core)
{
    for (size_t i = 0; i < host->cores.count; i++)
        if (host->cores.items[i].core == core)
            return &host->cores.items[i];
    return NULL;
}

void host_timeline_free(struct host_timeline *host)
{
    for (size_t i = 0; i < host->cores.count; i++) {
        array_free(&host->cores.items[i].spans);
        array_free(&host->cores.items[i].outermost);
        array_free(&host->cores.items[i].handoffs);
        array_free(&host->cores.items[i].handoff_sockets);
        array_free(&host->cores.items[i].handoff_applications);
        array_free(&host->cores.items[i].traced);
    }
    array_free(&host->cores);
    for (size_t i = 0; i < host->names.count; i++)
        free(host->names.items[i]);
    array_free(&host->names);
    array_free(&host->wakings);
    array_free(&host->runs);
    array_free(&host->pauses);
    array_free(&host->moves);
    array_free(&host->faults);
}

// The first index in [0, count) whose key (a leading uint32_t member at `offset`) is not below
// `key`, among items of `size` bytes ordered by it.
static size_t first_not_below(const void *items, size_t count, size_t size, size_t offset,
                              uint32_t key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t value;
        memcpy(&value, (const char *)items + middle * size + offset, sizeof value);
        if (value < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#define OF_THREAD(array, id, count)                                                                \
    ({                                                                                             \
        size_t size_ = sizeof *(array)->items;                                                     \
        size_t offset_ =                                                                           \
            (size_t)((const char *)&(array)->items->thread - (const char *)(array)->items);        \
        size_t first_ = first_not_below((array)->items, (array)->count, size_, offset_, (id));     \
        size_t end_ = (id) == UINT32_MAX ? (array)->count                                          \
                                         : first_not_below((array)->items, (array)->count, size_,  \
                                                           offset_, (id) + 1);                     \
        *(count) = end_ - first_;                                                                  \
        end_ > first_ ? (array)->items + first_ : NULL;                                            \
    })

const struct thread_run *host_timeline_runs(const struct host_timeline *host, uint32_t thread,
                                            size_t *count)
{
    *count = 0;
    return host->runs.count ? OF_THREAD(&host->runs, thread, count) : NULL;
}

const struct waking *host_timeline_wakings(const struct host_timeline *host, uint32_t thread,
                                           size_t *count)
{
    *count = 0;
    return host->wakings.count ? OF_THREAD(&host->wakings, thread, count) : NULL;
}

const struct thread_moment *thread_moments_of(const struct thread_moment_array *moments,
                                              uint32_t thread, size_t *count)
{
    return OF_THREAD(moments, thread, count);
}

size_t thread_moments_before(const struct thread_moment *moments, size_t count, int64_t time_ns)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (moments[middle].time_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The number of spans that begin at or before `time_ns`.
static size_t spans_begun(const struct core_timeline *timeline, int64_t time_ns)
{
    size_t low = 0, high = timeline->spans.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (timeline->spans.items[middle].begin_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The outermost span that the span at `index` lies in, or itself.
static size_t outermost_of(const struct core_timeline *timeline, size_t index)
{
    const struct index_array *outermost = &timeline->outermost;
    if (outermost->count == 0) {
        while (index > 0 && timeline->spans.items[index].depth > 0)
            index--;
        return index;
    }
    size_t low = 0, high = outermost->count; // the last entry that is <= index
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (outermost->items[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return outermost->items[low] <= index ? outermost->items[low] : index;
}

void core_timeline_link(struct core_timeline *timeline)
{
    uint32_t open[UINT8_MAX + 1]; // the latest span of each depth
    unsigned deepest = 0;         // depths [0, deepest) are known
    for (size_t i = 0; i < timeline->spans.count; i++) {
        struct span *span = &timeline->spans.items[i];
        unsigned above = span->depth < deepest ? span->depth : deepest; // depths may be skipped
        span->parent = above > 0 ? open[above - 1] : NO_SPAN;
        for (; above < span->depth; above++)
            open[above] = span->parent;
        open[span->depth] = (uint32_t)i;
        deepest = span->depth + 1u;
    }
    timeline->linked = true;
}

struct tiling {
    const struct span *open[MAX_OPEN];
    unsigned depth;
    int64_t cursor, end;
    span_stack_visitor *each;
    void *context;
};

static void tile_up_to(struct tiling *tiling, int64_t time_ns)
{
    int64_t end = time_ns < tiling->end ? time_ns : tiling->end;
    if (end <= tiling->cursor)
        return;
    tiling->each(tiling->open, tiling->depth, tiling->cursor, end, tiling->context);
    tiling->cursor = end;
}

static void close_ended(struct tiling *tiling, int64_t time_ns)
{
    while (tiling->depth && tiling->open[tiling->depth - 1]->end_ns <= time_ns) {
        tile_up_to(tiling, tiling->open[tiling->depth - 1]->end_ns);
        tiling->depth--;
    }
}

bool core_timeline_traced(const struct core_timeline *timeline, int64_t begin_ns, int64_t end_ns)
{
    const struct time_range_array *traced = &timeline->traced;
    size_t low = 0, high = traced->count; // the first range that ends at end_ns or later
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (traced->items[middle].end_ns < end_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < traced->count && traced->items[low].begin_ns <= begin_ns;
}

size_t core_timeline_handoffs_before(const struct core_timeline *timeline, int64_t time_ns)
{
    size_t low = 0, high = timeline->handoffs.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (timeline->handoffs.items[middle] < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Opens what is open at the cursor: the ancestors of the last span that began, and itself.
static void open_ancestors(struct tiling *tiling, const struct core_timeline *timeline, size_t last)
{
    const struct span *spans = timeline->spans.items;
    const struct span *found[UINT8_MAX + 1];
    unsigned count = 0;
    for (uint32_t at = (uint32_t)last; at != NO_SPAN && count <= UINT8_MAX; at = spans[at].parent)
        if (spans[at].end_ns > tiling->cursor)
            found[count++] = &spans[at];
    while (count > 0 && tiling->depth < MAX_OPEN)
        tiling->open[tiling->depth++] = found[--count];
}

// The same without links: only the outermost span and what lies in the last span of depth 1 can
// still be open.
static void open_by_search(struct tiling *tiling, const struct core_timeline *timeline, size_t last)
{
    const struct span *spans = timeline->spans.items;
    size_t inner = last, outer = outermost_of(timeline, last);
    while (inner > outer && spans[inner].depth > 1)
        inner--;
    if (spans[outer].end_ns > tiling->cursor)
        tiling->open[tiling->depth++] = &spans[outer];
    for (size_t i = inner > outer ? inner : outer + 1; i <= last; i++) {
        close_ended(tiling, spans[i].begin_ns);
        if (spans[i].end_ns > tiling->cursor && tiling->depth < MAX_OPEN)
            tiling->open[tiling->depth++] = &spans[i];
    }
}

void core_timeline_stacks(const struct core_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                          span_stack_visitor *each, void *context)
{
    struct tiling tiling;
    tiling.cursor = begin_ns;
    tiling.end = end_ns;
    tiling.each = each;
    tiling.context = context;
    tiling.depth = 0;
    if (end_ns <= begin_ns)
        return;
    const struct span *spans = timeline->spans.items;
    size_t next = spans_begun(timeline, begin_ns);
    if (next > 0 && timeline->linked)
        open_ancestors(&tiling, timeline, next - 1);
    else if (next > 0)
        open_by_search(&tiling, timeline, next - 1);
    for (; next < timeline->spans.count && spans[next].begin_ns < end_ns; next++) {
        close_ended(&tiling, spans[next].begin_ns);
        tile_up_to(&tiling, spans[next].begin_ns);
        if (tiling.depth < MAX_OPEN)
            tiling.open[tiling.depth++] = &spans[next];
    }
    close_ended(&tiling, end_ns);
    tile_up_to(&tiling, end_ns);
}

// Joins neighbouring pieces of one context, which differ only in their functions.
struct context_visit {
    span_piece_visitor *each;
    void *context;
    const struct span *innermost;
    int64_t begin, end;
};

static void flush_context(const struct context_visit *visit)
{
    if (visit->end > visit->begin)
        visit->each(visit->innermost, visit->begin, visit->end, visit->context);
}

static void visit_context(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct context_visit *visit = opaque;
    while (depth > 0 && open[depth - 1]->kind == SPAN_FUNCTION)
        depth--;
    const struct span *innermost = depth ? open[depth - 1] : NULL;
    if (innermost != visit->innermost) {
        flush_context(visit);
        visit->innermost = innermost;
        visit->begin = begin_ns;
    }
    visit->end = end_ns;
}

void core_timeline_pieces(const struct core_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                          span_piece_visitor *each, void *context)
{
    struct context_visit visit = {
        .each = each, .context = context, .begin = begin_ns, .end = begin_ns};
    core_timeline_stacks(timeline, begin_ns, end_ns, visit_context, &visit);
    flush_context(&visit);
}
