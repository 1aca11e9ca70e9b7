// SPDX-License-Identifier: MIT
#include "analysis/timeline/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline/call_files.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/text.h"

enum { MAX_NESTED = 16 }; // interrupts and softirqs open at once on a core; Linux nests fewer

static const char *const softirq_names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                            "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
static const char *const vector_names[] = {
#define EVENT_VECTOR(NAME, number, name) [number] = name,
#include "profiler/bpf/events.tbl.h"
};

struct builder {
    const struct time_source *clock;
    struct host_timeline *out;
    struct name_table names;
    struct thread_moment_array processes; // by thread: the name of its process
    struct thread_moment_array disks;     // by the disk's number: its name
    // The core at hand.
    struct core_timeline *core;
    uint32_t open[MAX_NESTED]; // indices of nested spans without an end yet
    unsigned depth;
    uint32_t current; // the span of depth 0
    bool started;     // who has this core is known
    bool fresh;       // and nothing but ends of earlier interrupts was seen since
    int64_t last_ns;  // of the core's latest event
    struct thread_moment_array *fault_list; // where its latest page fault is, NULL: there is none
    size_t fault;
    char unseen[40]; // named after the thread seen next: "unseen up to memcached"
    uint32_t leaver; // that thread, and when it was seen; 0: none was
    int64_t leaver_ns;
    uint32_t asker; // of the core's latest ASKED_ADDRESS
    uint8_t asked[16];
};

static const char *table_name(const char *const *names, size_t count, uint32_t id, const char *kind,
                              char *out, size_t out_bytes)
{
    if (id < count && names[id])
        return names[id];
    snprintf(out, out_bytes, "%s %u", kind, id);
    return out;
}

static int name_of(struct builder *builder, enum span_kind kind, const struct event *event,
                   uint32_t *number)
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
static int task_name(struct builder *builder, const struct event *event, uint32_t *number)
{
    const struct thread_moment_array *processes = &builder->processes;
    size_t count;
    const struct thread_moment *named =
        processes->count ? thread_moments_of(processes, event->id, &count) : NULL;
    if (!named)
        return name_of(builder, SPAN_TASK, event, number);
    char text[64];
    const char *process = builder->out->names.items[named[count - 1].value];
    const char *own = event->payload.text;
    int bytes = (int)sizeof event->payload.text;
    bool same = strncmp(process, own, sizeof event->payload.text) == 0;
    int length = same ? snprintf(text, sizeof text, "%s", process)
                      : snprintf(text, sizeof text, "%s:%.*s", process, bytes, own);
    return name_table_intern(&builder->names, text, (size_t)length, number);
}

static int push_span(struct builder *builder, struct span span)
{
    struct span_array *spans = &builder->core->spans;
    return spans->count >= NO_SPAN ? -1 : array_push(spans, span);
}

static int push_unknown(struct builder *builder, int64_t begin_ns, int64_t end_ns, unsigned depth,
                        const char *why, bool lost)
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
static void abandon_nested(struct builder *builder, unsigned depth)
{
    while (builder->depth > depth) {
        builder->core->spans.items[builder->open[--builder->depth]].end_ns = builder->last_ns;
        builder->out->unpaired++;
    }
}

static int take_entry(struct builder *builder, enum span_kind kind, const struct event *event,
                      int64_t time_ns)
{
    uint32_t name;
    if (builder->depth == MAX_NESTED)
        abandon_nested(builder, 0);
    if (name_of(builder, kind, event, &name) < 0)
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
static int take_first_exit(struct builder *builder, enum span_kind kind, const struct event *event,
                           int64_t time_ns)
{
    const struct span *last = &builder->core->spans.items[builder->core->spans.count - 1];
    uint32_t name;
    if (name_of(builder, kind, event, &name) < 0)
        return -1;
    return push_span(builder, (struct span){.begin_ns = last->depth ? last->end_ns : last->begin_ns,
                                            .end_ns = time_ns,
                                            .id = event->id,
                                            .name = name & SPAN_NAMES,
                                            .kind = kind,
                                            .depth = 1});
}

static int take_exit(struct builder *builder, enum span_kind kind, const struct event *event,
                     int64_t time_ns)
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

// The event says how long something took since the event before, but not when. Taken as the end of
// that time, because a core that is idle first does not notice.
static int take_lasted(struct builder *builder, enum span_kind kind, const char *cause,
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

// The thread that leaves now is not the last one seen to come: a switch in between was lost.
static int mark_unseen(struct builder *builder)
{
    struct span *span = &builder->core->spans.items[builder->current];
    uint32_t name;
    const char *text = builder->unseen[0] ? builder->unseen : "unseen switch";
    if (name_table_intern(&builder->names, text, strlen(text), &name) < 0)
        return -1;
    builder->unseen[0] = '\0';
    span->kind = SPAN_UNKNOWN;
    span->name = name & SPAN_NAMES;
    builder->out->lost_intervals++;
    return 0;
}

// The core has another thread from now on.
static int push_task(struct builder *builder, const struct event *event, int64_t time_ns)
{
    enum span_kind kind = event->id == 0 ? SPAN_IDLE : SPAN_TASK;
    uint32_t name;
    if ((kind == SPAN_IDLE ? name_of(builder, kind, event, &name)
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

// The thread that has the core was named so as it came; what it does is known by its new name.
static int take_renamed(struct builder *builder, const struct event *event)
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
static int mark_unrecorded(struct builder *builder, int64_t until_ns)
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

// The core is recorded from now on. Its switches may have been seen before: then the thread that
// has it is known already.
static int take_watched(struct builder *builder, const struct event *event, int64_t time_ns)
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
static int push_stint(struct builder *builder, enum stint_end left)
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

static int take_switch(struct builder *builder, const struct event *event, int64_t time_ns)
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
    if ((event->flags & SWITCH_UNSEEN) && builder->started) {
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
    return push_task(builder, event, time_ns);
}

static int take_waking(struct builder *builder, const struct event *event, int64_t time_ns)
{
    return array_push(&builder->out->wakings, (struct waking){.time_ns = time_ns,
                                                              .thread = event->id,
                                                              .waker = (uint32_t)event->payload.b,
                                                              .core = (uint16_t)event->payload.a,
                                                              .from = event->core,
                                                              .flags = event->flags});
}

static uint32_t pause_of(const struct event *event)
{
    if (event->flags & BLOCKED_FROZEN)
        return PAUSE_FROZEN;
    if (event->payload.b & BLOCKED_STOPPED)
        return event->payload.b & BLOCKED_TRACED ? PAUSE_TRACED : PAUSE_STOPPED;
    if (event->flags & BLOCKED_INTERPRETER)
        return PAUSE_INTERPRETER;
    if (event->flags & BLOCKED_PARKED)
        return PAUSE_PARKED;
    if (event->flags & BLOCKED_CONDITION)
        return PAUSE_CONDITION;
    uint32_t call = (uint32_t)event->payload.a;
    return call < PAUSE_OTHERS ? call : PAUSE_NO_CALL;
}

// Not those of a runtime, which has its own way to say who may run.
static int take_blocked(struct builder *builder, const struct event *event, int64_t time_ns)
{
    enum { FUTEX = 202 };
    const struct futex_wait wait = {.time_ns = time_ns,
                                    .thread = event->id,
                                    .word = (uint32_t)(event->payload.b >> 32),
                                    .limit_us = (uint32_t)(event->payload.a >> 32)};
    bool counts = (uint32_t)event->payload.a == FUTEX && wait.word &&
                  !(event->flags & (BLOCKED_INTERPRETER | BLOCKED_PARKED));
    if (counts && (array_push(&builder->out->futexes, wait) < 0 ||
                   array_push(&builder->out->words, wait) < 0))
        return -1;
    return array_push(
        &builder->out->pauses,
        (struct thread_moment){.time_ns = time_ns, .thread = event->id, .value = pause_of(event)});
}

static int take_moment(struct thread_moment_array *moments, const struct event *event,
                       int64_t time_ns)
{
    uint32_t value = event->kind == EVENT_MIGRATE ? (uint16_t)event->payload.b : 0;
    if (event->kind == EVENT_MIGRATE && event->flags & MIGRATE_FORCED)
        value |= MOVE_FORCED;
    return array_push(
        moments, (struct thread_moment){.time_ns = time_ns, .thread = event->id, .value = value});
}

static int take_fault(struct builder *builder, const struct event *event, int64_t time_ns)
{
    builder->fault_list =
        event->flags & FAULT_COPIES ? &builder->out->copies : &builder->out->faults;
    builder->fault = builder->fault_list->count;
    return take_moment(builder->fault_list, event, time_ns);
}

// Sets the length of the core's latest page fault, if it is this thread's. What was swapped in has
// a second end, a moment after the first; when it began is found later, as the thread may have
// slept and moved.
static int take_fault_end(struct builder *builder, const struct event *event, int64_t time_ns)
{
    if (event->flags & FAULT_SWAPPED_IN)
        return array_push(&builder->out->detours, (struct detour){.begin_ns = time_ns,
                                                                  .end_ns = time_ns,
                                                                  .thread = event->id,
                                                                  .kind = DETOUR_SWAP_IN});
    if (!builder->fault_list || builder->fault >= builder->fault_list->count)
        return 0;
    struct thread_moment *fault = &builder->fault_list->items[builder->fault];
    int64_t length = time_ns - fault->time_ns;
    if (fault->thread == event->id && fault->value == 0 && length < UINT32_MAX)
        fault->value = (uint32_t)length;
    return 0;
}

static int64_t moment_of(const struct builder *builder, uint64_t monotonic_ns)
{
    return time_source_to_host(builder->clock, HOST_CLOCK_MONOTONIC, monotonic_ns);
}

static int take_detour(struct builder *builder, const struct event *event, int64_t time_ns)
{
    struct detour detour = {.begin_ns = moment_of(builder, event->payload.a),
                            .end_ns = time_ns,
                            .thread = event->id,
                            .kind = event->flags};
    if (event->flags == DETOUR_FORK &&
        array_push(&builder->out->forks,
                   (struct thread_moment){.time_ns = time_ns, .thread = event->id}) < 0)
        return -1;
    return array_push(
        event->flags == DETOUR_OWN_WORK ? &builder->out->own_work : &builder->out->detours, detour);
}

static int take_disk_done(struct builder *builder, const struct event *event, int64_t time_ns)
{
    struct disk_request request = {.done_ns = time_ns,
                                   .issued_ns = time_ns,
                                   .disk = event->id,
                                   .name = NO_DISK_NAME,
                                   .core = builder->core->core,
                                   .operation = event->flags};
    size_t count;
    const struct thread_moment *named = thread_moments_of(&builder->disks, event->id, &count);
    if (named)
        request.name = named->value;
    if (event->payload.a)
        request.issued_ns = moment_of(builder, event->payload.a);
    request.made_ns = event->payload.b ? moment_of(builder, event->payload.b) : request.issued_ns;
    if (!event->payload.a)
        request.issued_ns = request.made_ns;
    return array_push(&builder->out->disk_requests, request);
}

static int take_member(struct builder *builder, const struct event *event, int64_t time_ns)
{
    return array_push(&builder->out->owners,
                      (struct thread_owner){.time_ns = time_ns,
                                            .thread = event->id,
                                            .process = (uint32_t)event->payload.a,
                                            .parent = (uint32_t)event->payload.b});
}

static int take_named(struct builder *builder, struct thread_moment_array *moments,
                      const struct event *event, int64_t time_ns)
{
    struct thread_moment moment = {.time_ns = time_ns, .thread = event->id};
    const char *text = event->payload.text;
    return name_table_intern(&builder->names, text, sizeof event->payload.text, &moment.value) < 0
               ? -1
               : array_push(moments, moment);
}

static int take_file(struct builder *builder, const struct event *event, int64_t time_ns)
{
    char name[CALL_FILE_BYTES];
    struct thread_moment moment = {.time_ns = time_ns, .thread = event->id};
    call_file_name(event, name);
    return name_table_intern(&builder->names, name, strlen(name), &moment.value) < 0
               ? -1
               : array_push(&builder->out->files, moment);
}

static int take_asked(struct builder *builder, const struct event *event, int64_t time_ns)
{
    struct server_question question = {.time_ns = time_ns,
                                       .socket = event->payload.b,
                                       .thread = event->id,
                                       .address = {[10] = 0xff, [11] = 0xff},
                                       .port = (uint16_t)(event->payload.a >> 32),
                                       .answered = event->flags & ASKED_ANSWERED};
    if (event->flags & ASKED_ADDRESS) {
        builder->asker = event->id;
        memcpy(builder->asked, event->payload.text, sizeof builder->asked);
        return 0;
    }
    if (event->flags & ASKED_IPV6) {
        if (builder->asker != event->id)
            return 0; // its address was lost
        memcpy(question.address, builder->asked, sizeof builder->asked);
    } else {
        memcpy(question.address + 12, &event->payload.a, 4);
    }
    return array_push(&builder->out->questions, question);
}

static int take_unseen(struct builder *builder, const struct event *event, int64_t time_ns)
{
    builder->leaver = event->id;
    builder->leaver_ns = time_ns;
    snprintf(builder->unseen, sizeof builder->unseen, "unseen up to %.16s", event->payload.text);
    return 0;
}

static int take_handoff(struct builder *builder, const struct event *event, int64_t time_ns)
{
    struct core_timeline *core = builder->core;
    return array_push(&core->handoff_sockets, event->id) < 0 ? -1
                                                             : array_push(&core->handoffs, time_ns);
}

// What a row of the events' table may say that an event becomes.
#define BECOMES_task_switch         take_switch(builder, event, time_ns)
#define BECOMES_watched             take_watched(builder, event, time_ns)
#define BECOMES_unseen              take_unseen(builder, event, time_ns)
#define BECOMES_waking              take_waking(builder, event, time_ns)
#define BECOMES_entry(KIND)         take_entry(builder, SPAN_##KIND, event, time_ns)
#define BECOMES_exit(KIND)          take_exit(builder, SPAN_##KIND, event, time_ns)
#define BECOMES_lasted(KIND, cause) take_lasted(builder, SPAN_##KIND, cause, event, time_ns)
#define BECOMES_handoff             take_handoff(builder, event, time_ns)
#define BECOMES_member              take_member(builder, event, time_ns)
#define BECOMES_renamed             take_renamed(builder, event)
#define BECOMES_blocked             take_blocked(builder, event, time_ns)
#define BECOMES_asked               take_asked(builder, event, time_ns)
#define BECOMES_moment(list)        take_moment(&builder->out->list, event, time_ns)
#define BECOMES_fault               take_fault(builder, event, time_ns)
#define BECOMES_detour              take_detour(builder, event, time_ns)
#define BECOMES_disk_done           take_disk_done(builder, event, time_ns)
#define BECOMES_fault_end           take_fault_end(builder, event, time_ns)
#define BECOMES_named(list)         take_named(builder, &builder->out->list, event, time_ns)
#define BECOMES_file                take_file(builder, event, time_ns)
#define BECOMES_nothing             0 // processes are taken before, messages are the join's (analysis/lifetime)

static int take_event(struct builder *builder, const struct event *event, int64_t time_ns)
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

static int build_core(struct builder *builder, uint16_t core, const struct event **events,
                      size_t count)
{
    array_sort_raw(events, count, sizeof *events, compare_events);
    if (array_push(&builder->out->cores, (struct core_timeline){.core = core}) < 0)
        return -1;
    builder->core = &builder->out->cores.items[builder->out->cores.count - 1];
    builder->depth = 0;
    builder->current = 0;
    builder->started = false;
    builder->fresh = false;
    builder->fault_list = NULL;
    builder->unseen[0] = '\0';
    builder->leaver = 0;
    builder->asker = 0;
    int64_t first = time_source_to_host(builder->clock, HOST_CLOCK_MONOTONIC, events[0]->time);
    builder->last_ns = first;
    if (push_unknown(builder, first, INT64_MAX, 0, "before the first switch", false) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        int64_t time = time_source_to_host(builder->clock, HOST_CLOCK_MONOTONIC, events[i]->time);
        if (time < builder->last_ns) // a conversion may be off by its error bound
            time = builder->last_ns;
        if (take_event(builder, events[i], time) < 0)
            return -1;
        builder->last_ns = time;
    }
    builder->core->scheduled = builder->started;
    if (!builder->started && mark_unrecorded(builder, INT64_MAX) < 0)
        return -1;
    // The capture ends with the core's last event: what is open then is cut there.
    while (builder->depth > 0)
        builder->core->spans.items[builder->open[--builder->depth]].end_ns = builder->last_ns;
    builder->core->spans.items[builder->current].end_ns = builder->last_ns;
    return push_stint(builder, STINT_CUT) < 0 ? -1 : core_timeline_link(builder->core);
}

static int compare_wakings(const void *left, const void *right)
{
    const struct waking *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

static int compare_stints(const void *left, const void *right)
{
    const struct thread_stint *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->begin_ns, b->begin_ns);
}

static int compare_moments(const void *left, const void *right)
{
    const struct thread_moment *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

static int compare_owners(const void *left, const void *right)
{
    const struct thread_owner *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

static int compare_futexes(const void *left, const void *right)
{
    const struct futex_wait *a = left, *b = right;
    return order_of(a->time_ns, b->time_ns) ?: order_of(a->thread, b->thread);
}

static int compare_words(const void *left, const void *right)
{
    const struct futex_wait *a = left, *b = right;
    return order_of(a->word, b->word) ?: compare_futexes(left, right);
}

static int compare_questions(const void *left, const void *right)
{
    const struct server_question *a = left, *b = right;
    return order_of(a->time_ns, b->time_ns) ?: order_of(a->socket, b->socket);
}

static int compare_requests(const void *left, const void *right)
{
    const struct disk_request *a = left, *b = right;
    return order_of(a->done_ns, b->done_ns);
}

static void sort_moments(struct thread_moment_array *moments)
{
    array_sort(moments, compare_moments);
}

static void index_threads(struct host_timeline *out)
{
    array_sort(&out->stints, compare_stints);
    array_sort(&out->wakings, compare_wakings);
    sort_moments(&out->pauses);
    sort_moments(&out->files);
    sort_moments(&out->moves);
    sort_moments(&out->faults);
    sort_moments(&out->copies);
    sort_moments(&out->forks);
    sort_moments(&out->quotas);
    sort_moments(&out->limits);
    sort_moments(&out->stops);
    array_sort(&out->futexes, compare_futexes);
    array_sort(&out->words, compare_words);
    array_sort(&out->questions, compare_questions);
    array_sort(&out->disk_requests, compare_requests);
    array_sort(&out->owners, compare_owners);
    // A thread cannot run on two cores at once: one of its switches was lost.
    for (size_t i = 1; i < out->stints.count; i++)
        if (out->stints.items[i].thread == out->stints.items[i - 1].thread &&
            out->stints.items[i].begin_ns < out->stints.items[i - 1].end_ns)
            out->unpaired++;
}

// Names the processes of threads, or disks; each is recorded on whatever core was the first.
static int take_names(struct builder *builder, const struct event *events, size_t count,
                      enum event_kind kind, struct thread_moment_array *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &events[i];
        struct thread_moment named = {.time_ns = (int64_t)event->time, .thread = event->id};
        if (event->kind != kind)
            continue;
        if (name_of(builder, SPAN_TASK, event, &named.value) < 0 || array_push(out, named) < 0)
            return -1;
    }
    sort_moments(out);
    return 0;
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
    struct builder builder = {.clock = clock, .out = out};
    const size_t cores = core_count(events, count);
    size_t *starts = calloc(cores + 1, sizeof *starts);
    const struct event **grouped = NULL;
    int result = -1;
    if (!starts || name_table_init(&builder.names, &out->names) < 0)
        goto done;
    grouped = group_by_core(events, count, starts, cores, &out->damaged);
    if (!grouped)
        goto done;
    result = take_names(&builder, events, count, EVENT_PROCESS, &builder.processes);
    if (result == 0)
        result = take_names(&builder, events, count, EVENT_DISK, &builder.disks);
    for (size_t core = 0; core < cores && result == 0; core++)
        if (starts[core + 1] > starts[core])
            result = build_core(&builder, (uint16_t)core, grouped + starts[core],
                                starts[core + 1] - starts[core]);
    if (result == 0) {
        index_threads(out);
        pauses_settle(out);
        result = detours_settle(out);
        if (result == 0)
            result = call_files_settle(out, &builder.names);
    }
done:
    free(starts);
    free(grouped);
    array_free(&builder.processes);
    array_free(&builder.disks);
    name_table_fini(&builder.names);
    if (result < 0) {
        host_timeline_free(out);
        return error_set(err, ERROR_FAILED,
                         "no memory for the timeline of %s events: analyze a shorter run",
                         TEXT_COUNT(count));
    }
    return 0;
}
