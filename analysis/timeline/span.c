// SPDX-License-Identifier: MIT
#include "analysis/timeline/span.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

const char *span_kind_word(enum span_kind kind)
{
    switch (kind) {
#define SPAN_KIND(NAME, number, word, label, colour, ink, means)                                   \
    case SPAN_##NAME:                                                                              \
        return word;
#include "analysis/timeline/span_kinds.tbl.h"
    }
    return "unknown";
}

const struct core_timeline *host_timeline_core(const struct host_timeline *host, uint16_t core)
{
    for (size_t i = 0; i < host->cores.count; i++)
        if (host->cores.items[i].core == core)
            return &host->cores.items[i];
    return NULL;
}

size_t core_timeline_from(const struct core_timeline *core, int64_t time_ns)
{
    size_t from = array_bound(0, core->spans.count, at, core->spans.items[at].begin_ns <= time_ns);
    while (from > 0 && core->spans.items[--from].depth > 0)
        ;
    return from;
}

void host_timeline_free(struct host_timeline *host)
{
    for (size_t i = 0; i < host->cores.count; i++) {
        array_free(&host->cores.items[i].spans);
        array_free(&host->cores.items[i].enclosing);
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
    array_free(&host->stints);
    array_free(&host->pauses);
    array_free(&host->futexes);
    array_free(&host->words);
    array_free(&host->questions);
    array_free(&host->lock_tries);
    array_free(&host->lock_turns);
    array_free(&host->files);
    array_free(&host->moves);
    array_free(&host->faults);
    array_free(&host->copies);
    array_free(&host->forks);
    array_free(&host->quotas);
    array_free(&host->limits);
    array_free(&host->stops);
    array_free(&host->disk_requests);
    array_free(&host->detours);
    array_free(&host->collections);
    array_free(&host->own_work);
    array_free(&host->calls);
    array_free(&host->owners);
}

// The first index in [0, count) whose key (a leading uint32_t member at `offset`) is not below
// `key`, among items of `size` bytes ordered by it.
static size_t first_not_below(const void *items, size_t count, size_t size, size_t offset,
                              uint32_t key)
{
    const char *keys = (const char *)items + offset;
    return array_bound(0, count, at, *(const uint32_t *)(keys + at * size) < key);
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

const struct thread_stint *host_timeline_stints(const struct host_timeline *host, uint32_t thread,
                                                size_t *count)
{
    *count = 0;
    return host->stints.count ? OF_THREAD(&host->stints, thread, count) : NULL;
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
    *count = 0;
    return moments->count ? OF_THREAD(moments, thread, count) : NULL;
}

const struct thread_owner *host_timeline_owner(const struct host_timeline *host, uint32_t thread)
{
    const struct thread_owner *owners = host->owners.items;
    size_t after = array_bound(0, host->owners.count, at, owners[at].thread <= thread);
    return after && owners[after - 1].thread == thread ? &owners[after - 1] : NULL;
}

uint32_t host_timeline_process(const struct host_timeline *host, uint32_t thread)
{
    const struct thread_owner *owner = host_timeline_owner(host, thread);
    return owner ? owner->process : thread;
}

size_t thread_moments_before(const struct thread_moment *moments, size_t count, int64_t time_ns)
{
    return array_bound(0, count, at, moments[at].time_ns < time_ns);
}

// The number of spans that begin at or before `time_ns`.
static size_t spans_begun(const struct core_timeline *timeline, int64_t time_ns)
{
    return array_bound(0, timeline->spans.count, at, timeline->spans.items[at].begin_ns <= time_ns);
}

// The latest span of a lesser depth before it. Where its block has none, it encloses the block's
// first span, too.
uint32_t core_timeline_parent(const struct core_timeline *timeline, uint32_t index)
{
    const struct span *spans = timeline->spans.items;
    unsigned depth = spans[index].depth;
    while (depth > 0) {
        uint32_t block = timeline->enclosing.count ? index / SPAN_BLOCK : 0;
        while (index > block * SPAN_BLOCK)
            if (spans[--index].depth < depth)
                return index;
        index = timeline->enclosing.count ? timeline->enclosing.items[block] : NO_SPAN;
        if (index == NO_SPAN || spans[index].depth < depth)
            return index;
    }
    return NO_SPAN;
}

int core_timeline_link(struct core_timeline *timeline)
{
    const struct span *spans = timeline->spans.items;
    timeline->enclosing.count = 0;
    for (size_t i = 0; i < timeline->spans.count; i += SPAN_BLOCK) {
        uint32_t outer = i > 0 ? (uint32_t)i - 1 : NO_SPAN; // whose block has its entry
        while (outer != NO_SPAN && spans[outer].depth >= spans[i].depth)
            outer = core_timeline_parent(timeline, outer);
        if (array_push(&timeline->enclosing, outer) < 0)
            return -1;
    }
    return 0;
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
    // the first range that ends at end_ns or later
    size_t low = array_bound(0, traced->count, at, traced->items[at].end_ns < end_ns);
    return low < traced->count && traced->items[low].begin_ns <= begin_ns;
}

size_t core_timeline_handoffs_before(const struct core_timeline *timeline, int64_t time_ns)
{
    return array_bound(0, timeline->handoffs.count, at, timeline->handoffs.items[at] < time_ns);
}

// Opens what is open at the cursor: the ancestors of the last span that began, and itself.
static void open_ancestors(struct tiling *tiling, const struct core_timeline *timeline,
                           uint32_t last)
{
    const struct span *spans = timeline->spans.items;
    const struct span *found[UINT8_MAX + 1];
    unsigned count = 0;
    for (uint32_t at = last; at != NO_SPAN; at = core_timeline_parent(timeline, at))
        if (spans[at].end_ns > tiling->cursor)
            found[count++] = &spans[at];
    while (count > 0 && tiling->depth < MAX_OPEN)
        tiling->open[tiling->depth++] = found[--count];
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
    if (next > 0)
        open_ancestors(&tiling, timeline, (uint32_t)next - 1);
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

// --- names ---------------------------------------------------------------------------------------

enum { LONGEST_NAME = 63 };

int name_table_init(struct name_table *table, struct name_array *names)
{
    *table = (struct name_table){.names = names};
    for (size_t i = 0; i < names->count; i++)
        if (map_add(&table->numbers, hash_text(names->items[i], strlen(names->items[i])), i) < 0)
            return -1;
    return 0;
}

void name_table_fini(struct name_table *table)
{
    map_free(&table->numbers);
}

int name_table_intern(struct name_table *table, const char *text, size_t bytes, uint32_t *number)
{
    char name[LONGEST_NAME + 1];
    size_t length = 0;
    for (; length < bytes && length < LONGEST_NAME && text[length]; length++)
        name[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    name[length] = '\0';
    uint64_t hash = hash_text(name, length);
    *number = map_find(&table->numbers, hash, at, strcmp(table->names->items[at], name) == 0);
    if (*number != MAP_NONE)
        return 0;
    char *copy = table->names->count <= SPAN_NAMES ? strdup(name) : NULL;
    if (!copy || array_push(table->names, copy) < 0) {
        free(copy);
        return -1;
    }
    *number = (uint32_t)table->names->count - 1;
    return map_add(&table->numbers, hash, *number);
}

double stints_running_ns(const struct thread_stint *stints, size_t count, uint16_t core,
                         int64_t begin_ns, int64_t end_ns)
{
    double ns = 0;
    for (size_t i = 0; i < count && stints[i].begin_ns < end_ns; i++) {
        int64_t from = stints[i].begin_ns > begin_ns ? stints[i].begin_ns : begin_ns;
        int64_t to = stints[i].end_ns < end_ns ? stints[i].end_ns : end_ns;
        if (to > from && (core == NO_CORE || stints[i].core == core))
            ns += (double)(to - from);
    }
    return ns;
}

double thread_running_ns(const struct host_timeline *host, uint32_t thread, uint16_t core,
                         int64_t begin_ns, int64_t end_ns)
{
    size_t count = 0;
    const struct thread_stint *stints = host ? host_timeline_stints(host, thread, &count) : NULL;
    size_t low = array_bound(0, count, at, stints[at].end_ns <= begin_ns);
    return count ? stints_running_ns(stints + low, count - low, core, begin_ns, end_ns) : 0;
}
