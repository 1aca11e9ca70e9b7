// SPDX-License-Identifier: MIT
#include "analysis/lifetime/spared.h"

static int compare_times(const void *left, const void *right)
{
    const struct spared_time *a = left, *b = right;
    return order_of(a->at_ns, b->at_ns) ?: order_of(a->begins, b->begins);
}

int spared_times_find(const struct event *events, size_t count, const struct time_source *clock,
                      struct spared_times *out)
{
    *out = (struct spared_times){0};
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind != EVENT_SPARING)
            continue;
        const struct spared_time one = {
            .at_ns = time_source_to_host(clock, HOST_CLOCK_MONOTONIC, events[i].time),
            .begins = events[i].flags & SPARING_BEGINS};
        if (array_push(out, one) < 0)
            return -1;
    }
    array_sort(out, compare_times);
    return 0;
}

bool spared_at(const struct spared_times *times, int64_t at_ns)
{
    size_t after = array_bound(0, times->count, at, times->items[at].at_ns <= at_ns);
    return after > 0 && times->items[after - 1].begins;
}
