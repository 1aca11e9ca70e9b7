// SPDX-License-Identifier: MIT
#include "analysis/lifetime/busy_times.h"

// What a thread has done since it last waited for sockets to become ready.
struct batch {
    uint32_t thread;
    bool received, replied;
    int64_t begin_ns, had_ns, end_ns; // of the receive calls, then of what follows them
};

static int batch_end(struct batch *batch, struct busy_time_array *out)
{
    int result = 0;
    if (batch->received || batch->replied)
        result = array_push(out, (struct busy_time){.begin_ns = batch->begin_ns,
                                                    .had_ns = batch->had_ns,
                                                    .end_ns = batch->end_ns,
                                                    .thread = batch->thread});
    batch->received = batch->replied = false;
    return result;
}

// A thread receives requests and replies to them, each at once or all at the end of the batch. What
// it does after a reply is its own, unless another reply follows.
static int batch_take(struct batch *batch, const struct application_call *call,
                      struct busy_time_array *out)
{
    bool receives = call->kind == CALL_RECEIVE, sends = call->kind == CALL_SEND;
    if (call->thread != batch->thread || call->kind == CALL_WAIT || (receives && batch->replied)) {
        if (batch_end(batch, out) < 0)
            return -1;
        batch->thread = call->thread;
    }
    if (!receives && !sends)
        return 0;
    if (!batch->received && !batch->replied) {
        batch->begin_ns = call->entry_ns;
        batch->had_ns = call->exit_ns;
    }
    batch->end_ns = call->exit_ns;
    batch->received |= receives;
    batch->replied |= sends;
    return 0;
}

// A request whose reply comes after another wait, or from another thread. That one may have had it
// from when it was received, or from the end of its call before.
static int take_handed_over(const struct application_calls *calls, const struct lifetime *life,
                            struct busy_time_array *out)
{
    if (life->receive_call == NO_CALL || life->send_call == NO_CALL)
        return 0;
    const struct application_call *receive = &calls->items[life->receive_call];
    const struct application_call *send = &calls->items[life->send_call];
    struct busy_time time = {receive->entry_ns, receive->exit_ns, send->exit_ns, send->thread};
    if (send->thread == receive->thread && send->batch == receive->batch)
        return 0; // of one batch
    if (send->thread != receive->thread) {
        int64_t free_ns =
            life->send_call > 0 && send[-1].thread == send->thread ? send[-1].exit_ns : INT64_MIN;
        time.begin_ns = receive->exit_ns > free_ns ? receive->exit_ns : free_ns;
        time.had_ns = time.begin_ns;
    }
    return time.end_ns > time.begin_ns ? array_push(out, time) : 0;
}

static int compare_times(const void *left, const void *right)
{
    const struct busy_time *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->begin_ns, b->begin_ns);
}

static void merge_overlapping(struct busy_time_array *times)
{
    size_t kept = 0;
    array_sort(times, compare_times);
    for (size_t i = 0; i < times->count; i++) {
        struct busy_time *last = kept ? &times->items[kept - 1] : NULL, *next = &times->items[i];
        if (!last || last->thread != next->thread || next->begin_ns > last->end_ns)
            times->items[kept++] = *next;
        else if (next->end_ns > last->end_ns)
            last->end_ns = next->end_ns;
    }
    times->count = kept;
}

int busy_times_build(struct busy_time_array *out, const struct application_calls *calls,
                     const struct lifetime *lifetimes, size_t count)
{
    struct batch batch = {0};
    int result = 0;
    for (size_t i = 0; i < calls->count && result == 0; i++)
        result = batch_take(&batch, &calls->items[i], out);
    if (result == 0)
        result = batch_end(&batch, out);
    for (size_t i = 0; i < count && calls->count && result == 0; i++)
        result = take_handed_over(calls, &lifetimes[i], out);
    merge_overlapping(out);
    return result;
}

const struct busy_time *busy_times_of(const struct busy_time_array *all, uint32_t thread,
                                      size_t *count)
{
    size_t first = array_bound(0, all->count, at, all->items[at].thread < thread);
    size_t end = array_bound(first, all->count, at, all->items[at].thread <= thread);
    *count = end - first;
    return end > first ? &all->items[first] : NULL;
}
