// SPDX-License-Identifier: MIT
#include "analysis/timeline/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/timeline/call_files.h"
#include "analysis/timeline/calls_seen.h"
#include "analysis/timeline/core_spans.h"
#include "analysis/timeline/collections.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_records.h"
#include "analysis/timeline/timeline_builder.h"
#include "base/array.h"
#include "base/text.h"

// What a row of the events' table may say that an event becomes.
#define BECOMES_task_switch         core_spans_switch(builder, event, time_ns)
#define BECOMES_watched             core_spans_watched(builder, event, time_ns)
#define BECOMES_unseen              core_spans_unseen(builder, event, time_ns)
#define BECOMES_waking              thread_records_waking(builder, event, time_ns)
#define BECOMES_entry(KIND)         core_spans_entry(builder, SPAN_##KIND, event, time_ns)
#define BECOMES_exit(KIND)          core_spans_exit(builder, SPAN_##KIND, event, time_ns)
#define BECOMES_lasted(KIND, cause) core_spans_lasted(builder, SPAN_##KIND, cause, event, time_ns)
#define BECOMES_handoff             core_spans_handoff(builder, event, time_ns)
#define BECOMES_member              thread_records_member(builder, event, time_ns)
#define BECOMES_renamed             core_spans_renamed(builder, event)
#define BECOMES_blocked             thread_records_blocked(builder, event, time_ns)
#define BECOMES_vector              take_vector(builder, event, time_ns)
#define BECOMES_asked               thread_records_asked(builder, event, time_ns)
#define BECOMES_moment(list)        thread_records_moment(&builder->out->list, event, time_ns)
#define BECOMES_fault               thread_records_fault(builder, event, time_ns)
#define BECOMES_detour              thread_records_detour(builder, event, time_ns)
#define BECOMES_disk_done           thread_records_disk(builder, event, time_ns)
#define BECOMES_fault_end           thread_records_fault_end(builder, event, time_ns)
#define BECOMES_named(list)         thread_records_named(builder, &builder->out->list, event, time_ns)
#define BECOMES_file                thread_records_file(builder, event, time_ns)
#define BECOMES_file_lock           thread_records_file_lock(builder, event, time_ns)
#define BECOMES_nothing             0 // processes are taken before, messages are the join's (analysis/lifetime)

static int take_vector(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    return event->payload.b && calls_seen_at_timer(builder, event, time_ns) < 0
               ? -1
               : core_spans_entry(builder, SPAN_VECTOR, event, time_ns);
}

static int take_event(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    switch ((enum event_kind)event->kind) {
#define EVENT(NAME, number, name, becomes, carries, means)                                         \
    case EVENT_##NAME:                                                                             \
        return BECOMES_##becomes;
#include "profiler/bpf/events.tbl.h"
    }
    return 0;
}

static int compare_events(const void *left, const void *right)
{
    const struct event *a = *(const struct event *const *)left;
    const struct event *b = *(const struct event *const *)right;
    return order_of(a->time, b->time) ?: order_of(a, b); // keep the log's order
}

// The thread that an event shows to have its core; -1: it shows none.
static int64_t thread_shown(const struct event *event)
{
    switch (event->kind) {
    case EVENT_PAGE_FAULT:
    case EVENT_FAULT_END:
    case EVENT_ASKED:
    case EVENT_FILE_LOCK:
        return event->id;
    case EVENT_WAKING:
    case EVENT_RECEIVED:
    case EVENT_SENDING:
    case EVENT_SENT:
        return (uint32_t)event->payload.b;
    case EVENT_VECTOR_ENTRY: // 0: it is another than the timer's, or the core is idle
        return (uint32_t)event->payload.b ? (int64_t)(uint32_t)event->payload.b : -1;
    default:
        return -1;
    }
}

// Of a thread that leaves its core though nobody saw it come: which of the core's events is the
// first that shows it there, and which says that it leaves.
struct arrival {
    size_t shown, left; // equal: none shows it, or there is no such thread
};

// Looks from the core's event at `from` up to its next switch.
static struct arrival find_arrival(const struct event *const *events, size_t count, size_t from)
{
    size_t left = from;
    while (left < count && events[left]->kind != EVENT_SWITCH && events[left]->kind != EVENT_UNSEEN)
        left++;
    struct arrival arrival = {left, left};
    if (left == count || events[left]->kind == EVENT_SWITCH)
        return arrival;
    for (size_t i = left; i-- > from;) {
        int64_t thread = thread_shown(events[i]);
        if (thread == events[left]->id)
            arrival.shown = i;
        else if (thread >= 0)
            break;
    }
    return arrival;
}

static int build_core(struct timeline_builder *builder, uint16_t core, const struct event **events,
                      size_t count)
{
    array_sort_raw(events, count, sizeof *events, compare_events);
    int64_t first = time_source_to_host(builder->clock, HOST_CLOCK_MONOTONIC, events[0]->time);
    builder->asker = 0;
    builder->locker = 0;
    if (core_spans_begin(builder, core, first) < 0)
        return -1;
    struct arrival arrival = {0, 0};
    for (size_t i = 0; i < count; i++) {
        int64_t time = time_source_to_host(builder->clock, HOST_CLOCK_MONOTONIC, events[i]->time);
        if (time < builder->last_ns) // a conversion may be off by its error bound
            time = builder->last_ns;
        if (i >= arrival.shown && i < arrival.left && !builder->shown &&
            core_spans_shown(builder, events[arrival.left], time) < 0)
            return -1;
        if (take_event(builder, events[i], time) < 0)
            return -1;
        if (events[i]->kind == EVENT_SWITCH)
            arrival = find_arrival(events, count, i + 1);
        builder->last_ns = time;
    }
    return core_spans_end(builder);
}

static bool is_event(const struct event *event)
{
    return event->kind > 0 && event->kind < EVENT_KINDS;
}

// How many cores there are, up to the last that has an event.
static size_t core_count(const struct event *events, size_t count)
{
    size_t cores = 0;
    for (size_t i = 0; i < count; i++)
        if (events[i].core >= cores)
            cores = events[i].core + 1u;
    return cores;
}

// Orders pointers to the events by core, keeping the log's order; starts[c] is core c's first, of
// cores + 1, zeroed.
static const struct event **group_by_core(const struct event *events, size_t count, size_t *starts,
                                          size_t cores, uint64_t *damaged)
{
    const struct event **grouped = malloc((count ? count : 1) * sizeof *grouped);
    if (!grouped)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_event(&events[i]))
            starts[events[i].core + 1]++;
        else
            ++*damaged;
    }
    for (size_t c = 0; c < cores; c++)
        starts[c + 1] += starts[c];
    for (size_t i = 0; i < count; i++)
        if (is_event(&events[i]))
            grouped[starts[events[i].core]++] = &events[i];
    for (size_t c = cores; c > 0; c--) // each start has moved to its end: move back
        starts[c] = starts[c - 1];
    starts[0] = 0;
    return grouped;
}

int host_timeline_build(const struct event *events, size_t count, const struct time_source *clock,
                        struct host_timeline *out, struct error *err)
{
    memset(out, 0, sizeof *out);
    struct timeline_builder builder = {.clock = clock, .out = out};
    const size_t cores = core_count(events, count);
    size_t *starts = calloc(cores + 1, sizeof *starts);
    const struct event **grouped = NULL;
    int result = -1;
    if (!starts || name_table_init(&builder.names, &out->names) < 0)
        goto done;
    grouped = group_by_core(events, count, starts, cores, &out->damaged);
    if (!grouped)
        goto done;
    result = thread_records_names(&builder, events, count, EVENT_PROCESS, &builder.processes);
    if (result == 0)
        result = thread_records_names(&builder, events, count, EVENT_DISK, &builder.disks);
    for (size_t core = 0; core < cores && result == 0; core++)
        if (starts[core + 1] > starts[core])
            result = build_core(&builder, (uint16_t)core, grouped + starts[core],
                                starts[core + 1] - starts[core]);
    if (result == 0) {
        thread_records_index(out);
        thread_records_settle_faults(&builder);
        pauses_settle(out);
        result = detours_settle(out);
        if (result == 0)
            result = collections_settle(out);
        if (result == 0)
            result = calls_seen_settle(&builder);
        if (result == 0)
            result = call_files_settle(out, &builder.names);
    }
done:
    free(starts);
    free(grouped);
    array_free(&builder.processes);
    array_free(&builder.disks);
    array_free(&builder.sights);
    array_free(&builder.fault_ends);
    name_table_fini(&builder.names);
    if (result < 0) {
        host_timeline_free(out);
        return error_set(err, ERROR_FAILED,
                         "no memory for the timeline of %s events: analyze a shorter run",
                         TEXT_COUNT(count));
    }
    return 0;
}
