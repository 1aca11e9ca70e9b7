// SPDX-License-Identifier: MIT
#include "analysis/timeline/core_spans.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

static const char *const softirq_names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                            "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
static const char *const vector_names[] = {
#define EVENT_VECTOR(NAME, number, name) [number] = name,
#include "profiler/bpf/events.tbl.h"
};

static const char *table_name(const char *const *names, size_t count, uint32_t id, const char *kind,
                              char *out, size_t out_bytes)
{
    if (id < count && names[id])
        return names[id];
    snprintf(out, out_bytes, "%s %u", kind, id);
    return out;
}

int core_spans_name(struct timeline_builder *builder, enum span_kind kind,
                    const struct event *event, uint32_t *number)
{
    char numbered[32];
    const char *text = event->payload.text;
    size_t bytes = sizeof event->payload.text;
    if (kind == SPAN_IDLE)
        text = "idle", bytes = 5;
    if (kind == SPAN_SOFTIRQ)
        text = table_name(softirq_names, sizeof softirq_names / sizeof *softirq_names, event->id,
                          "softirq", numbered, sizeof numbered);
    if (kind == SPAN_VECTOR)
        text = table_name(vector_names, sizeof vector_names / sizeof *vector_names, event->id,
                          "vector", numbered, sizeof numbered);
    if (kind == SPAN_SOFTIRQ || kind == SPAN_VECTOR)
        bytes = strlen(text);
    if (bytes == 0 || text[0] == '\0') {
        snprintf(numbered, sizeof numbered, "%s %u", kind == SPAN_IRQ ? "irq" : "thread",
                 event->id);
        text = numbered, bytes = strlen(numbered);
    }
    return name_table_intern(&builder->names, text, bytes, number);
}

// A thread that is not its process's first is named by both: "memcached:mc-worker".
static int task_name(struct timeline_builder *builder, const struct event *event, uint32_t *number)
{
    const struct thread_moment_array *processes = &builder->processes;
    size_t count;
    const struct thread_moment *named =
        processes->count ? thread_moments_of(processes, event->id, &count) : NULL;
    if (!named)
        return core_spans_name(builder, SPAN_TASK, event, number);
    char text[64];
    const char *process = builder->out->names.items[named[count - 1].value];
    const char *own = event->payload.text;
    int bytes = (int)sizeof event->payload.text;
    bool same = strncmp(process, own, sizeof event->payload.text) == 0;
    int length = same ? snprintf(text, sizeof text, "%s", process)
                      : snprintf(text, sizeof text, "%s:%.*s", process, bytes, own);
    return name_table_intern(&builder->names, text, (size_t)length, number);
}

static int push_span(struct timeline_builder *builder, struct span span)
{
    struct span_array *spans = &builder->core->spans;
    return spans->count >= NO_SPAN ? -1 : array_push(spans, span);
}

static int push_unknown(struct timeline_builder *builder, int64_t begin_ns, int64_t end_ns,
                        unsigned depth, const char *why, bool lost)
{
    uint32_t name;
    if (name_table_intern(&builder->names, why, strlen(why), &name) < 0)
        return -1;
    if (lost)
        builder->out->lost_intervals++;
    return push_span(builder, (struct span){.begin_ns = begin_ns,
                                            .end_ns = end_ns,
                                            .name = name & SPAN_NAMES,
                                            .kind = SPAN_UNKNOWN,
                                            .depth = (uint8_t)depth});
}

// Ends every nested span above `depth`: their exits are lost.
static void abandon_nested(struct timeline_builder *builder, unsigned depth)
{
    while (builder->depth > depth) {
        builder->core->spans.items[builder->open[--builder->depth]].end_ns = builder->last_ns;
        builder->out->unpaired++;
    }
}

int core_spans_entry(struct timeline_builder *builder, enum span_kind kind,
                     const struct event *event, int64_t time_ns)
{
    uint32_t name;
    if (builder->depth == MAX_NESTED)
        abandon_nested(builder, 0);
    if (core_spans_name(builder, kind, event, &name) < 0)
        return -1;
    struct span span = {.begin_ns = time_ns,
                        .end_ns = INT64_MAX,
                        .id = event->id,
                        .name = name & SPAN_NAMES,
                        .kind = kind,
                        .depth = (uint8_t)(builder->depth + 1)};
    builder->fresh = false;
    if (push_span(builder, span) < 0)
        return -1;
    builder->open[builder->depth++] = (uint32_t)builder->core->spans.count - 1;
    return 0;
}

// The end of what had begun before the core was recorded.
static int take_first_exit(struct timeline_builder *builder, enum span_kind kind,
                           const struct event *event, int64_t time_ns)
{
    const struct span *last = &builder->core->spans.items[builder->core->spans.count - 1];
    uint32_t name;
    if (core_spans_name(builder, kind, event, &name) < 0)
        return -1;
    return push_span(builder, (struct span){.begin_ns = last->depth ? last->end_ns : last->begin_ns,
                                            .end_ns = time_ns,
                                            .id = event->id,
                                            .name = name & SPAN_NAMES,
                                            .kind = kind,
                                            .depth = 1});
}

int core_spans_exit(struct timeline_builder *builder, enum span_kind kind,
                    const struct event *event, int64_t time_ns)
{
    struct span *spans = builder->core->spans.items;
    unsigned level = builder->depth;
    while (level > 0 && !(spans[builder->open[level - 1]].kind == kind &&
                          spans[builder->open[level - 1]].id == event->id))
        level--;
    if (level == 0) {
        if (builder->fresh)
            return take_first_exit(builder, kind, event, time_ns);
        // Its entry is lost (counted), or lies before the capture (not counted).
        if (builder->core->spans.count == 1 && !builder->started)
            return 0;
        builder->out->unpaired++;
        return push_unknown(builder, builder->last_ns, time_ns, builder->depth + 1, "lost records",
                            true);
    }
    abandon_nested(builder, level);
    spans[builder->open[--builder->depth]].end_ns = time_ns;
    return 0;
}

int core_spans_lasted(struct timeline_builder *builder, enum span_kind kind, const char *cause,
                      const struct event *event, int64_t time_ns)
{
    uint64_t passed = (uint64_t)(time_ns - builder->last_ns);
    uint64_t length = event->payload.a < passed ? event->payload.a : passed;
    uint32_t name;
    if (length == 0 || !builder->started)
        return 0;
    if (name_table_intern(&builder->names, cause, strlen(cause), &name) < 0)
        return -1;
    return push_span(builder, (struct span){.begin_ns = time_ns - (int64_t)length,
                                            .end_ns = time_ns,
                                            .name = name & SPAN_NAMES,
                                            .kind = kind,
                                            .depth = (uint8_t)(builder->depth + 1)});
}

// The thread that has the core now is not the last one seen to come: a switch in between was lost.
static int mark_unseen(struct timeline_builder *builder)
{
    struct span *span = &builder->core->spans.items[builder->current];
    uint32_t name;
    char text[64];
    snprintf(text, sizeof text, "unseen since %.40s", builder->out->names.items[span->name]);
    if (name_table_intern(&builder->names, text, strlen(text), &name) < 0)
        return -1;
    span->kind = SPAN_UNKNOWN;
    span->name = name & SPAN_NAMES;
    builder->out->lost_intervals++;
    return 0;
}

// The core has another thread from now on.
static int push_task(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    enum span_kind kind = event->id == 0 ? SPAN_IDLE : SPAN_TASK;
    uint32_t name;
    if ((kind == SPAN_IDLE ? core_spans_name(builder, kind, event, &name)
                           : task_name(builder, event, &name)) < 0)
        return -1;
    builder->started = true;
    builder->current = (uint32_t)builder->core->spans.count;
    return push_span(builder, (struct span){.begin_ns = time_ns,
                                            .end_ns = INT64_MAX,
                                            .id = event->id,
                                            .name = name & SPAN_NAMES,
                                            .kind = kind});
}

int core_spans_renamed(struct timeline_builder *builder, const struct event *event)
{
    struct span *span = &builder->core->spans.items[builder->current];
    uint32_t name;
    if (!builder->started || span->kind != SPAN_TASK || span->id != event->id)
        return 0;
    if (task_name(builder, event, &name) < 0)
        return -1;
    span->name = name & SPAN_NAMES;
    return 0;
}

// What the core did so far is not known because it was not recorded.
static int mark_unrecorded(struct timeline_builder *builder, int64_t until_ns)
{
    static const char why[] = "core not recorded";
    struct span *span = &builder->core->spans.items[0];
    uint32_t name;
    if (name_table_intern(&builder->names, why, sizeof why - 1, &name) < 0)
        return -1;
    span->name = name & SPAN_NAMES;
    builder->core->recorded_ns = until_ns;
    return 0;
}

int core_spans_watched(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    if (builder->started)
        return 0;
    if ((event->flags & WATCHED_LATE) && mark_unrecorded(builder, time_ns) < 0)
        return -1;
    builder->core->spans.items[builder->current].end_ns = time_ns;
    builder->fresh = true;
    return push_task(builder, event, time_ns);
}

// How the thread left that the switch takes the core from.
static enum stint_end stint_end_of(const struct event *event)
{
    if (event->flags & SWITCH_EXITED)
        return STINT_EXITED;
    if (event->flags & SWITCH_THROTTLED)
        return STINT_THROTTLED;
    if (event->flags & SWITCH_PREEMPTED)
        return STINT_PREEMPTED;
    return event->flags & SWITCH_WAITS ? STINT_WAITS : STINT_SLEEPS;
}

// The span of depth 0 has ended: if a thread ran, that was a stint of its. Of one that nobody saw
// come its end is known, and how it left: without that, its sleep would seem to be the one before.
static int push_stint(struct timeline_builder *builder, enum stint_end left)
{
    const struct span *span = &builder->core->spans.items[builder->current];
    bool seen = span->kind == SPAN_TASK;
    uint32_t thread = seen ? span->id : builder->leaver;
    int64_t begin_ns = seen ? span->begin_ns : builder->leaver_ns;
    builder->leaver = 0;
    if (thread == 0 || (!seen && begin_ns < span->begin_ns))
        return 0;
    return array_push(&builder->out->stints, (struct thread_stint){.begin_ns = begin_ns,
                                                                   .end_ns = span->end_ns,
                                                                   .thread = thread,
                                                                   .core = builder->core->core,
                                                                   .left = (uint8_t)left});
}

int core_spans_switch(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    struct span *spans = builder->core->spans.items;
    const struct span *current = &spans[builder->current];
    bool nested = builder->depth > 0;
    // A switch inside an interrupt, or from a thread to itself, is impossible: records were lost
    // since the last one.
    bool lost = nested || (builder->started && current->id == event->id &&
                           (current->kind == SPAN_IDLE) == (event->id == 0));
    if (lost && !nested)
        builder->out->unpaired++;
    abandon_nested(builder, 0);
    if (!(event->flags & SWITCH_UNSEEN))
        builder->leaver = 0; // its switch was lost
    if ((event->flags & SWITCH_UNSEEN) && builder->started && !builder->shown) {
        if (mark_unseen(builder) < 0)
            return -1;
        lost = false; // the whole span is unknown already
    }
    spans[builder->current].end_ns = lost ? builder->last_ns : time_ns;
    if (push_stint(builder, lost ? STINT_CUT : stint_end_of(event)) < 0)
        return -1;
    if (lost && builder->last_ns < time_ns &&
        push_unknown(builder, builder->last_ns, time_ns, 0, "lost records", true) < 0)
        return -1;
    builder->fresh = false;
    builder->shown = false;
    return push_task(builder, event, time_ns);
}

int core_spans_unseen(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    builder->leaver = event->id;
    builder->leaver_ns = time_ns;
    return 0;
}

int core_spans_shown(struct timeline_builder *builder, const struct event *unseen, int64_t time_ns)
{
    if (!builder->started || builder->depth > 0)
        return 0;
    if (mark_unseen(builder) < 0)
        return -1;
    builder->core->spans.items[builder->current].end_ns = time_ns;
    builder->fresh = false;
    builder->shown = true;
    return push_task(builder, unseen, time_ns);
}

int core_spans_handoff(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    struct core_timeline *core = builder->core;
    return array_push(&core->handoff_sockets, event->id) < 0 ? -1
                                                             : array_push(&core->handoffs, time_ns);
}

int core_spans_begin(struct timeline_builder *builder, uint16_t core, int64_t first_ns)
{
    if (array_push(&builder->out->cores, (struct core_timeline){.core = core}) < 0)
        return -1;
    builder->core = &builder->out->cores.items[builder->out->cores.count - 1];
    builder->depth = 0;
    builder->current = 0;
    builder->started = false;
    builder->fresh = false;
    builder->shown = false;
    builder->leaver = 0;
    builder->last_ns = first_ns;
    return push_unknown(builder, first_ns, INT64_MAX, 0, "before the first switch", false);
}

int core_spans_end(struct timeline_builder *builder)
{
    builder->core->scheduled = builder->started;
    if (!builder->started && mark_unrecorded(builder, INT64_MAX) < 0)
        return -1;
    while (builder->depth > 0)
        builder->core->spans.items[builder->open[--builder->depth]].end_ns = builder->last_ns;
    builder->core->spans.items[builder->current].end_ns = builder->last_ns;
    return push_stint(builder, STINT_CUT) < 0 ? -1 : core_timeline_link(builder->core);
}
