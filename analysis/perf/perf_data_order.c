// SPDX-License-Identifier: MIT
//
// Sorts events by time, in place: a recording is almost sorted already, and may be large.
#include "analysis/perf/perf_data_private.h"
#include "base/array.h"

// The first event of [from, to) that is later than `time`, or (or_at) at it.
static size_t first_later(const struct perf_event *events, size_t from, size_t to, uint64_t time,
                          bool or_at)
{
    return array_bound(from, to, at, events[at].time < time || (!or_at && events[at].time == time));
}

struct spare ARRAY_OF(struct perf_event);

// Merges the ascending runs [from, middle) and [middle, to) in place. Events are out of order only
// a little, so only the stretch where the runs overlap is moved, by way of a copy of its shorter
// part.
static int merge(struct perf_event *events, size_t from, size_t middle, size_t to,
                 struct spare *spare)
{
    from = first_later(events, from, middle, events[middle].time, false);
    if (from == middle)
        return 0;
    to = first_later(events, middle, to, events[middle - 1].time, true);
    size_t left = middle - from, right = to - middle;
    size_t shorter = left < right ? left : right;
    if (array_reserve(spare, shorter) < 0)
        return -1;
    struct perf_event *copy = spare->items;
    if (left <= right) { // from the front, with the left part out of the way
        memcpy(copy, events + from, left * sizeof *copy);
        for (size_t i = 0; i < left;)
            events[from++] =
                middle < to && events[middle].time < copy[i].time ? events[middle++] : copy[i++];
    } else { // from the back, with the right part out of the way
        memcpy(copy, events + middle, right * sizeof *copy);
        for (size_t i = right; i > 0;)
            events[--to] = middle > from && events[middle - 1].time > copy[i - 1].time
                               ? events[--middle]
                               : copy[--i];
    }
    return 0;
}

struct run_array ARRAY_OF(size_t);

// Sorts by time and keeps the order of equals. perf writes the buffers of the CPUs one after the
// other, round by round, so the events are ascending runs, which are merged pairwise.
int perf_sort_events(struct perf_event_array *events)
{
    struct run_array runs = {0}; // where each begins
    struct spare spare = {0};
    int result = 0;
    for (size_t i = 0; i < events->count && result == 0; i++)
        if (i == 0 || events->items[i - 1].time > events->items[i].time)
            result = array_push(&runs, i);
    while (runs.count > 1 && result == 0) {
        size_t kept = 0;
        for (size_t i = 0; i < runs.count && result == 0; i += 2) {
            size_t to = i + 2 < runs.count ? runs.items[i + 2] : events->count;
            if (i + 1 < runs.count)
                result = merge(events->items, runs.items[i], runs.items[i + 1], to, &spare);
            runs.items[kept++] = runs.items[i];
        }
        runs.count = kept;
    }
    array_free(&runs);
    array_free(&spare);
    return result;
}
