// SPDX-License-Identifier: MIT
#include "analysis/timeline/thread_records.h"

#include <string.h>

#include "analysis/timeline/call_files.h"
#include "analysis/timeline/calls_seen.h"
#include "analysis/timeline/core_spans.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"

int thread_records_waking(struct timeline_builder *builder, const struct event *event,
                          int64_t time_ns)
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

int thread_records_blocked(struct timeline_builder *builder, const struct event *event,
                           int64_t time_ns)
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
    if (calls_seen_asleep(builder, event, time_ns) < 0)
        return -1;
    return array_push(
        &builder->out->pauses,
        (struct thread_moment){.time_ns = time_ns, .thread = event->id, .value = pause_of(event)});
}

int thread_records_moment(struct thread_moment_array *moments, const struct event *event,
                          int64_t time_ns)
{
    uint32_t value = event->kind == EVENT_MIGRATE ? (uint16_t)event->payload.b : 0;
    if (event->kind == EVENT_MIGRATE && event->flags & MIGRATE_FORCED)
        value |= MOVE_FORCED;
    return array_push(
        moments, (struct thread_moment){.time_ns = time_ns, .thread = event->id, .value = value});
}

int thread_records_fault(struct timeline_builder *builder, const struct event *event,
                         int64_t time_ns)
{
    struct host_timeline *out = builder->out;
    return thread_records_moment(event->flags & FAULT_COPIES ? &out->copies : &out->faults, event,
                                 time_ns);
}

int thread_records_fault_end(struct timeline_builder *builder, const struct event *event,
                             int64_t time_ns)
{
    if (event->flags & FAULT_SWAPPED_IN)
        return array_push(&builder->out->detours, (struct detour){.begin_ns = time_ns,
                                                                  .end_ns = time_ns,
                                                                  .thread = event->id,
                                                                  .kind = DETOUR_SWAP_IN});
    return thread_records_moment(&builder->fault_ends, event, time_ns);
}

// The latest of a thread's moments that lies before `time_ns`, NULL: none.
static struct thread_moment *moment_before(struct thread_moment_array *moments, uint32_t thread,
                                           int64_t time_ns)
{
    size_t count;
    const struct thread_moment *own = thread_moments_of(moments, thread, &count);
    size_t before = own ? thread_moments_before(own, count, time_ns) : 0;
    return before ? &moments->items[own + before - 1 - moments->items] : NULL;
}

void thread_records_settle_faults(struct timeline_builder *builder)
{
    struct host_timeline *out = builder->out;
    for (size_t i = 0; i < builder->fault_ends.count; i++) {
        const struct thread_moment *end = &builder->fault_ends.items[i];
        struct thread_moment *fault = moment_before(&out->faults, end->thread, end->time_ns);
        struct thread_moment *copy = moment_before(&out->copies, end->thread, end->time_ns);
        if (!fault || (copy && copy->time_ns > fault->time_ns))
            fault = copy;
        int64_t length = fault ? end->time_ns - fault->time_ns : INT64_MAX;
        if (length < UINT32_MAX && fault->value == 0)
            fault->value = (uint32_t)length;
    }
}

static int64_t moment_of(const struct timeline_builder *builder, uint64_t monotonic_ns)
{
    return time_source_to_host(builder->clock, HOST_CLOCK_MONOTONIC, monotonic_ns);
}

int thread_records_detour(struct timeline_builder *builder, const struct event *event,
                          int64_t time_ns)
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

int thread_records_disk(struct timeline_builder *builder, const struct event *event,
                        int64_t time_ns)
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

int thread_records_member(struct timeline_builder *builder, const struct event *event,
                          int64_t time_ns)
{
    return array_push(&builder->out->owners,
                      (struct thread_owner){.time_ns = time_ns,
                                            .thread = event->id,
                                            .process = (uint32_t)event->payload.a,
                                            .parent = (uint32_t)event->payload.b});
}

int thread_records_named(struct timeline_builder *builder, struct thread_moment_array *moments,
                         const struct event *event, int64_t time_ns)
{
    struct thread_moment moment = {.time_ns = time_ns, .thread = event->id};
    const char *text = event->payload.text;
    return name_table_intern(&builder->names, text, sizeof event->payload.text, &moment.value) < 0
               ? -1
               : array_push(moments, moment);
}

int thread_records_file(struct timeline_builder *builder, const struct event *event,
                        int64_t time_ns)
{
    char name[CALL_FILE_BYTES];
    struct thread_moment moment = {.time_ns = time_ns, .thread = event->id};
    call_file_name(event, name);
    return name_table_intern(&builder->names, name, strlen(name), &moment.value) < 0
               ? -1
               : array_push(&builder->out->files, moment);
}

int thread_records_asked(struct timeline_builder *builder, const struct event *event,
                         int64_t time_ns)
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

int thread_records_file_lock(struct timeline_builder *builder, const struct event *event,
                             int64_t time_ns)
{
    struct file_lock_try try = {.time_ns = time_ns,
                                .thread = event->id,
                                .process = (uint32_t)(event->payload.a >> 32),
                                .holder = (uint32_t)event->payload.b,
                                .file = (uint32_t)event->payload.a,
                                .name = NO_FILE_NAME,
                                .how = event->flags};
    if (event->flags & FILE_LOCK_NAME) {
        builder->locker = event->id;
        return name_table_intern(&builder->names, event->payload.text, sizeof event->payload.text,
                                 &builder->locked);
    }
    if (event->flags & FILE_LOCK_REFUSED && builder->locker == event->id)
        try.name = builder->locked;
    return array_push(&builder->out->lock_tries, try) < 0 ||
                   array_push(&builder->out->lock_turns, try) < 0
               ? -1
               : 0;
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

static int compare_tries(const void *left, const void *right)
{
    const struct file_lock_try *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

static int compare_turns(const void *left, const void *right)
{
    const struct file_lock_try *a = left, *b = right;
    return order_of(a->file, b->file) ?: order_of(a->time_ns, b->time_ns);
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

int thread_records_names(struct timeline_builder *builder, const struct event *events, size_t count,
                         enum event_kind kind, struct thread_moment_array *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &events[i];
        struct thread_moment named = {.time_ns = (int64_t)event->time, .thread = event->id};
        if (event->kind != kind)
            continue;
        if (core_spans_name(builder, SPAN_TASK, event, &named.value) < 0 ||
            array_push(out, named) < 0)
            return -1;
    }
    sort_moments(out);
    return 0;
}

void thread_records_index(struct host_timeline *out)
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
    array_sort(&out->lock_tries, compare_tries);
    array_sort(&out->lock_turns, compare_turns);
    array_sort(&out->disk_requests, compare_requests);
    array_sort(&out->owners, compare_owners);
    // A thread cannot run on two cores at once: the switch by which it left the one was lost.
    for (size_t i = 1; i < out->stints.count; i++) {
        struct thread_stint *before = &out->stints.items[i - 1], *stint = &out->stints.items[i];
        if (stint->thread == before->thread && stint->begin_ns < before->end_ns) {
            before->end_ns = stint->begin_ns;
            out->unpaired++;
        }
    }
}
