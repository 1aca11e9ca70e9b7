// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/trace_windows.h"

#include <stdlib.h>

#include "analysis/diagnosis/reference.h"
#include "base/array.h"

enum { MOST_MESSAGES = 1000 }; // of the slowest messages of a slice
// Added before and after each life, against the clocks' error and calls cut at its edges.
enum { MARGIN_NS = 5000 };

struct chooser {
    const struct diagnosis_input *in;
    bool *chosen, *is_slow; // by lifetime
    bool slow;              // those that are being added are a slice's own
    struct trace_windows *out;
    bool failed;
};

static struct core_windows *windows_at(struct chooser *chooser, uint16_t core)
{
    struct trace_windows *out = chooser->out;
    for (size_t i = 0; i < out->core_count; i++)
        if (out->cores[i].core == core)
            return &out->cores[i];
    struct core_windows *grown = realloc(out->cores, (out->core_count + 1) * sizeof *grown);
    if (!grown) {
        chooser->failed = true;
        return NULL;
    }
    out->cores = grown;
    out->cores[out->core_count] = (struct core_windows){.core = core};
    return &out->cores[out->core_count++];
}

// A life's time on a core.
static void add_range(struct chooser *chooser, uint16_t core, struct time_range range)
{
    struct core_windows *windows = core == NO_CORE ? NULL : windows_at(chooser, core);
    struct time_range wider = {range.begin_ns - MARGIN_NS, range.end_ns + MARGIN_NS};
    if (windows && (array_push(&windows->ranges, wider) < 0 ||
                    (chooser->slow && array_push(&windows->slow, range) < 0)))
        chooser->failed = true;
}

// The cores that a thread ran on in that time, and the first one after it.
static void add_thread(struct chooser *chooser, uint32_t thread, struct time_range range)
{
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(chooser->in->server, thread, &count);
    // the thread's first stay on a core that ends after the range begins
    size_t low = array_bound(0, count, at, stints[at].end_ns <= range.begin_ns);
    uint16_t core = NO_CORE;
    for (; low < count; low++) {
        if (stints[low].core != core)
            add_range(chooser, core = stints[low].core, range);
        if (stints[low].end_ns >= range.end_ns)
            break;
    }
}

static void add_message(struct chooser *chooser, uint64_t index)
{
    const struct lifetime *life = &chooser->in->lifetimes[index];
    struct time_range range = {INT64_MAX, INT64_MIN};
    if (chooser->slow ? chooser->is_slow[index] : chooser->chosen[index])
        return;
    chooser->out->messages += !chooser->chosen[index];
    chooser->chosen[index] = true;
    chooser->is_slow[index] |= chooser->slow;
    for (int kind = STAMP_NIC; kind <= STAMP_SERVER_TX; kind++) {
        if (!lifetime_has(life, (enum stamp_kind)kind))
            continue;
        int64_t at = life->stamp_ns[kind];
        range.begin_ns = at < range.begin_ns ? at : range.begin_ns;
        range.end_ns = at > range.end_ns ? at : range.end_ns;
    }
    if (range.end_ns < range.begin_ns)
        return;
    for (int kind = STAMP_NIC; kind <= STAMP_SERVER_TX; kind++) {
        bool again = !lifetime_has(life, (enum stamp_kind)kind);
        for (int earlier = STAMP_NIC; earlier < kind; earlier++)
            again |= lifetime_has(life, (enum stamp_kind)earlier) &&
                     life->stamp_core[earlier] == life->stamp_core[kind];
        if (!again)
            add_range(chooser, life->stamp_core[kind], range);
    }
    add_thread(chooser, life->thread, range);
    const struct application_calls *calls = chooser->in->calls;
    if (calls && life->send_call < calls->count &&
        calls->items[life->send_call].thread != life->thread)
        add_thread(chooser, calls->items[life->send_call].thread, range);
}

static void take_reference(uint64_t lifetime, void *context)
{
    add_message(context, lifetime);
}

static int add_slice(struct chooser *chooser, const struct diagnosis_slice *slice,
                     struct error *err)
{
    struct diagnosis picked;
    struct lifetime_indices candidates = {0};
    int result = diagnosis_pick(chooser->in, slice, &picked, &candidates, err);
    chooser->slow = true;
    for (size_t i = 0; result == 0 && i < picked.messages.count && i < MOST_MESSAGES; i++)
        add_message(chooser, picked.messages.items[i].lifetime);
    chooser->slow = false;
    if (result == 0 && reference_sample(chooser->in->lifetimes, candidates.items, candidates.count,
                                        take_reference, chooser) < 0)
        chooser->failed = true;
    array_free(&candidates);
    diagnosis_free(&picked);
    return result;
}

static int by_begin(const void *left, const void *right)
{
    const struct time_range *a = left, *b = right;
    return order_of(a->begin_ns, b->begin_ns);
}

static void merge_ranges(struct time_range_array *ranges)
{
    size_t kept = 0;
    if (ranges->count == 0)
        return;
    array_sort(ranges, by_begin);
    for (size_t i = 1; i < ranges->count; i++) {
        struct time_range *last = &ranges->items[kept], *next = &ranges->items[i];
        if (next->begin_ns > last->end_ns)
            ranges->items[++kept] = *next;
        else if (next->end_ns > last->end_ns)
            last->end_ns = next->end_ns;
    }
    ranges->count = kept + 1;
}

int trace_windows_choose(const struct diagnosis_input *in, const struct diagnosis_slice *slices,
                         size_t slice_count, struct trace_windows *out, struct error *err)
{
    *out = (struct trace_windows){0};
    struct chooser chooser = {.in = in, .out = out};
    chooser.chosen = calloc(in->lifetime_count + 1, sizeof *chooser.chosen);
    chooser.is_slow = calloc(in->lifetime_count + 1, sizeof *chooser.is_slow);
    int result = 0;
    if (!chooser.chosen || !chooser.is_slow)
        chooser.failed = true;
    for (size_t i = 0; result == 0 && !chooser.failed && i < slice_count; i++)
        result = add_slice(&chooser, &slices[i], err);
    for (size_t i = 0; i < out->core_count; i++)
        merge_ranges(&out->cores[i].ranges);
    for (size_t i = 0; i < out->core_count; i++)
        merge_ranges(&out->cores[i].slow);
    free(chooser.chosen);
    free(chooser.is_slow);
    if (result == 0 && chooser.failed)
        result = error_set(err, ERROR_FAILED, "no memory to choose what to decode");
    return result;
}

const struct time_range_array *trace_windows_of(const struct trace_windows *windows, uint16_t core)
{
    for (size_t i = 0; i < windows->core_count; i++)
        if (windows->cores[i].core == core)
            return &windows->cores[i].ranges;
    return NULL;
}

void trace_windows_free(struct trace_windows *windows)
{
    for (size_t i = 0; i < windows->core_count; i++) {
        array_free(&windows->cores[i].ranges);
        array_free(&windows->cores[i].slow);
    }
    free(windows->cores);
    *windows = (struct trace_windows){0};
}
