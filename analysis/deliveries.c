// SPDX-License-Identifier: MIT
#include "analysis/deliveries.h"

// A wait call collects what is ready before its return is stamped: what is delivered in between is
// ready at the next one.
enum { LATE_NS = 2000 };

struct matcher {
    const struct delivery_array *deliveries;
    const struct application_calls *calls;
    struct delivered_calls *out;
    size_t outstanding;    // deliveries before it were received, or given up
    bool settled;          // and none of those is still to be received
    int64_t lost_until_ns; // deliveries up to then may be missing
};

static bool is_receive(const struct application_call *call)
{
    return call->kind == CALL_RECEIVE && call->length > 0;
}

// Whether one thread makes all receive calls; *count: how many there are.
static bool one_receives(const struct application_calls *calls, uint32_t *thread, uint64_t *count)
{
    bool one = true;
    *count = 0;
    for (size_t i = 0; i < calls->count; i++) {
        if (!is_receive(&calls->items[i]))
            continue;
        one &= *count == 0 || calls->items[i].thread == *thread;
        *thread = calls->items[i].thread;
        ++*count;
    }
    return one;
}

// The receive calls that follow a return of the thread's wait call, up to the next; false where
// they are not one for each ready socket.
static bool one_for_each(const struct matcher *matcher, size_t wait, size_t *end)
{
    const struct application_call *waited = &matcher->calls->items[wait];
    uint32_t position = 0;
    bool each = true;
    size_t i = wait + 1;
    for (; i < matcher->calls->count; i++) {
        const struct application_call *call = &matcher->calls->items[i];
        if (call->kind == CALL_WAIT || call->thread != waited->thread)
            break;
        if (is_receive(call))
            each &= call->batch == waited->batch && call->batch_position == position++;
    }
    *end = i;
    return each && position == waited->length;
}

// Whether the deliveries up to the return are known, and are as many as are ready.
static bool deliveries_known(struct matcher *matcher, const struct application_call *wait,
                             int64_t before_ns, size_t *end)
{
    const struct delivery_array *all = matcher->deliveries;
    bool known = matcher->settled, late = false;
    size_t i = matcher->outstanding;
    for (; i < all->count && all->items[i].delivered_ns <= wait->exit_ns; i++) {
        const struct delivery *delivery = &all->items[i];
        late |= delivery->delivered_ns > wait->exit_ns - LATE_NS;
        if (delivery->lost && delivery->arrived_ns > matcher->lost_until_ns)
            matcher->lost_until_ns = delivery->arrived_ns;
    }
    known &= matcher->lost_until_ns <= before_ns && i - matcher->outstanding == wait->length;
    matcher->settled = known || !late;
    *end = i;
    return known;
}

static int match_batch(struct matcher *matcher, size_t wait, size_t end)
{
    size_t delivery = matcher->outstanding;
    for (size_t i = wait + 1; i < end; i++) {
        if (!is_receive(&matcher->calls->items[i]))
            continue;
        struct delivered_call found = {(uint32_t)i, (uint32_t)delivery++};
        if (array_push(matcher->out, found) < 0)
            return -1;
    }
    return 0;
}

static int match_thread(struct matcher *matcher, uint32_t thread)
{
    const struct application_calls *calls = matcher->calls;
    int64_t before_ns = INT64_MIN; // the return before
    for (size_t i = 0, end; i < calls->count; i = end) {
        const struct application_call *wait = &calls->items[i];
        size_t until;
        end = i + 1;
        if (wait->kind != CALL_WAIT || wait->thread != thread)
            continue;
        bool each = one_for_each(matcher, i, &end);
        if (deliveries_known(matcher, wait, before_ns, &until) && each &&
            match_batch(matcher, i, end) < 0)
            return -1;
        matcher->outstanding = until;
        before_ns = wait->exit_ns;
    }
    return 0;
}

int deliveries_match(const struct delivery_array *deliveries, const struct application_calls *calls,
                     struct delivered_calls *out, uint64_t *unknown)
{
    struct matcher matcher = {
        .deliveries = deliveries, .calls = calls, .out = out, .lost_until_ns = INT64_MIN};
    uint32_t thread = 0;
    *out = (struct delivered_calls){0};
    bool one = one_receives(calls, &thread, unknown);
    if (one && *unknown > 0 && match_thread(&matcher, thread) < 0)
        return -1;
    *unknown -= out->count;
    return 0;
}
