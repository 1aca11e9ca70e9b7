// SPDX-License-Identifier: MIT
//
// Context switches come with every few kilobytes of trace, so they would be most of what a long
// recording holds in memory. A lean reading keeps only 16 bytes of each, by CPU: which task was
// switched in, and when.
#include "analysis/perf/perf_data_switches.h"

#include <stdlib.h>
#include "base/array.h"

enum { LISTS_MOST = 1 << 14 }; // Linux has 8,192 CPUs at most

static struct perf_switches *list_for(struct perf_reader *reader, uint32_t cpu, uint32_t thread)
{
    struct perf_switches_array *lists = &reader->data->switches;
    struct perf_switches *found = perf_switches_of(reader->data, cpu, thread);
    if (found)
        return found;
    if (lists->count >= LISTS_MOST) {
        perf_complain(reader, "context switches of more than %d CPUs or threads", LISTS_MOST);
        return NULL;
    }
    if (cpu != PERF_NO_CPU)
        thread = PERF_NO_PID;
    if (array_push(lists, (struct perf_switches){0}) < 0) {
        reader->out_of_memory = true;
        return NULL;
    }
    struct perf_switches *at = &lists->items[lists->count - 1];
    for (; at > lists->items && (at[-1].cpu > cpu || (at[-1].cpu == cpu && at[-1].thread > thread));
         at--)
        at[0] = at[-1];
    *at = (struct perf_switches){.cpu = cpu, .thread = thread};
    return at;
}

void perf_take_switch(struct perf_reader *reader, const struct perf_event *event)
{
    const struct perf_intel_pt *pt = &reader->data->intel_pt;
    uint32_t cpu = pt->present && !pt->per_cpu ? PERF_NO_CPU : event->cpu;
    struct perf_switches *list = list_for(reader, cpu, event->tid);
    struct perf_stint stint = {event->time, event->pid, event->tid};
    if (!list)
        return;
    list->records++;
    if (event->misc & PERF_MISC_SWITCH_OUT) {
        if (!list->has_before || stint.time < list->before.time)
            list->before = stint;
        list->has_before = true;
        return; // the matching "in" record has the time at which the next task really runs
    }
    if (reader->switches++ >= reader->limits.events) {
        if (reader->data->events_over_limit++ == 0)
            perf_complain(reader, "more context switches than may be kept");
        return;
    }
    struct perf_stint_array *stints = &list->stints;
    list->disordered |= stints->count && stints->items[stints->count - 1].time > stint.time;
    if (array_push(stints, stint) < 0)
        reader->out_of_memory = true;
}

static int by_time(const void *a, const void *b)
{
    const struct perf_stint *left = a, *right = b;
    return order_of(left->time, right->time) ?: order_of(left->tid, right->tid);
}

void perf_finish_switches(struct perf_data *data)
{
    for (size_t i = 0; i < data->switches.count; i++) {
        struct perf_switches *list = &data->switches.items[i];
        if (list->disordered)
            array_sort(&list->stints, by_time);
        list->disordered = false;
    }
}
