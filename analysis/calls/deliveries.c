// SPDX-License-Identifier: MIT
#include "analysis/calls/deliveries.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

// A wait call collects the ready sockets a little before its return is stamped: what is delivered
// in between counts for the next wait call.
enum { LATE_NS = 2000 };

enum { NO_DELIVERY = 0xffffffff };

// What one return of a wait call made ready, and the deliveries that may be behind it.
struct batch {
    int64_t exit_ns;
    size_t wait, end;   // the calls in between are the thread's until its next wait call
    size_t low, high;   // its deliveries are among these
    uint32_t ready;     // sockets; so many deliveries, where each has one
    bool slept;         // the thread slept until the first of its deliveries
    bool first_settled; // its first delivery is known
    size_t first;       // and is this one
    bool grouped;       // its delivery is one of a group's, which nobody else can have
    bool settled;       // all its deliveries are known
};
struct batches ARRAY_OF(struct batch);

struct matcher {
    const struct delivery_array *deliveries;
    const struct thread_sleeps *sleeps;
    const struct application_calls *calls;
    struct batches batches;
    size_t *free_from;     // by delivery: the first from it on that belongs to no batch yet
    uint32_t *delivery_of; // by call
};

static bool is_receive(const struct application_call *call)
{
    return call->kind == CALL_RECEIVE && call->length > 0;
}

// --- batches -------------------------------------------------------------------------------------

// The receive calls that follow a return of the thread's wait call, up to the next; false where
// they are not one for each ready socket.
static bool has_call_for_each_socket(const struct application_calls *calls, size_t wait,
                                     size_t *end)
{
    const struct application_call *waited = &calls->items[wait];
    uint32_t position = 0;
    bool each = true;
    size_t i = wait + 1;
    for (; i < calls->count; i++) {
        const struct application_call *call = &calls->items[i];
        if (call->kind == CALL_WAIT || call->thread != waited->thread)
            break;
        if (is_receive(call))
            each &= call->batch == waited->batch && call->batch_position == position++;
    }
    *end = i;
    return each && position == waited->length;
}

// The first delivery after that time.
static size_t first_after(const struct delivery_array *all, int64_t time_ns)
{
    return array_bound(0, all->count, at, all->items[at].delivered_ns <= time_ns);
}

// Since when the thread slept in this call, the last time, and nothing had woken it; INT64_MIN: it
// did not, or is not known.
static int64_t slept_at(const struct thread_sleeps *sleeps, const struct application_call *wait)
{
    // the first after the call
    size_t low = array_bound(0, sleeps->count, at,
                             sleeps->items[at].thread < wait->thread ||
                                 (sleeps->items[at].thread == wait->thread &&
                                  sleeps->items[at].time_ns <= wait->exit_ns));
    const struct thread_sleep *last = low ? &sleeps->items[low - 1] : NULL;
    if (!last || last->thread != wait->thread || last->time_ns < wait->entry_ns)
        return INT64_MIN;
    return last->idle_ns > last->time_ns ? last->idle_ns : last->time_ns;
}

// What the search remembers of a thread's previous return.
struct thread_waits {
    uint32_t thread;
    bool began;            // there was one
    int64_t before_ns;     // when it returned
    bool unread;           // what it said to be ready was left as it was
    int64_t unread_ns;     // and was delivered after this
    size_t holes_seen;     // deliveries
    int64_t lost_until_ns; // of those
};

// When the last hole in the trace that began before this delivery ended.
static int64_t lost_until(struct thread_waits *waits, const struct delivery_array *all, size_t end)
{
    for (; waits->holes_seen < end; waits->holes_seen++) {
        const struct delivery *delivery = &all->items[waits->holes_seen];
        if (delivery->lost && delivery->arrived_ns > waits->lost_until_ns)
            waits->lost_until_ns = delivery->arrived_ns;
    }
    return waits->lost_until_ns;
}

static int add_batch(struct matcher *matcher, struct thread_waits *waits, size_t wait, size_t *end)
{
    const struct delivery_array *all = matcher->deliveries;
    const struct application_call *call = &matcher->calls->items[wait];
    if (!waits->began || waits->thread != call->thread)
        *waits = (struct thread_waits){.thread = call->thread, .lost_until_ns = INT64_MIN};
    int64_t from_ns = waits->before_ns - LATE_NS;
    struct batch batch = {.exit_ns = call->exit_ns,
                          .wait = wait,
                          .high = first_after(all, call->exit_ns),
                          .ready = call->length};
    int64_t slept_ns = slept_at(matcher->sleeps, call);
    batch.slept = slept_ns != INT64_MIN;
    if (batch.slept && (!waits->began || slept_ns - LATE_NS > from_ns))
        from_ns = slept_ns - LATE_NS; // nothing was ready then
    if (!batch.slept && waits->unread)
        from_ns = waits->unread_ns; // it is ready still (libevent waits once more for a new socket)
    bool known = has_call_for_each_socket(matcher->calls, wait, end) && batch.ready > 0;
    known &= waits->began || batch.slept;
    batch.end = *end;
    known &= lost_until(waits, all, batch.high) <= from_ns;
    waits->began = true;
    waits->before_ns = call->exit_ns;
    waits->unread = batch.ready > 0 && *end == wait + 1;
    waits->unread_ns = from_ns;
    if (!known)
        return 0;
    batch.low = first_after(all, from_ns);
    return array_push(&matcher->batches, batch);
}

static int by_exit(const void *left, const void *right)
{
    const struct batch *a = left, *b = right;
    return order_of(a->exit_ns, b->exit_ns);
}

static int add_batches(struct matcher *matcher)
{
    const struct application_calls *calls = matcher->calls;
    struct thread_waits waits = {0};
    for (size_t i = 0, end; i < calls->count; i = end) {
        end = i + 1;
        if (calls->items[i].kind == CALL_WAIT && add_batch(matcher, &waits, i, &end) < 0)
            return -1;
    }
    array_sort(&matcher->batches, by_exit);
    return 0;
}

// --- matching ------------------------------------------------------------------------------------

// The first delivery from this one on that belongs to no batch yet.
static size_t next_free(struct matcher *matcher, size_t delivery)
{
    size_t *from = matcher->free_from;
    while (from[delivery] != delivery)
        delivery = from[delivery] = from[from[delivery]];
    return delivery;
}

// How many deliveries of [*from, to) are free and, if only those are asked for, woke a thread;
// counts no further than to `most` + 1. *from becomes the first of them.
static size_t count_free(struct matcher *matcher, size_t *from, size_t to, bool only_wakes,
                         size_t most)
{
    size_t count = 0, first = to;
    for (size_t i = next_free(matcher, *from); i < to && count <= most;
         i = next_free(matcher, i + 1)) {
        if (only_wakes && !matcher->deliveries->items[i].wakes)
            continue;
        if (count++ == 0)
            first = i;
    }
    *from = first;
    return count;
}

// Takes the first of the deliveries that are left for the batch.
static size_t take(struct matcher *matcher, size_t from, size_t to, bool only_wakes)
{
    count_free(matcher, &from, to, only_wakes, 0);
    matcher->free_from[from] = from + 1;
    return from;
}

// Settles which delivery woke the thread, where only one can have.
static bool settle_first(struct matcher *matcher, struct batch *batch)
{
    size_t at = batch->low;
    if (!batch->slept || batch->first_settled || batch->grouped ||
        count_free(matcher, &at, batch->high, true, 1) != 1)
        return false;
    batch->first = take(matcher, at, batch->high, true);
    return batch->first_settled = true;
}

// Settles a batch's deliveries where exactly as many are left as it needs. That a thread did not
// sleep is no evidence: the trace may not show it.
static bool settle_batch(struct matcher *matcher, struct batch *batch)
{
    size_t low = batch->slept ? batch->first + 1 : batch->low, at = low;
    size_t wanted = batch->ready - batch->slept;
    if (batch->settled || batch->slept != batch->first_settled ||
        count_free(matcher, &at, batch->high, false, wanted) != wanted)
        return false;
    bool first = batch->slept;
    for (size_t i = batch->wait + 1; i < batch->end; i++) {
        if (!is_receive(&matcher->calls->items[i]))
            continue;
        size_t delivery = first ? batch->first : take(matcher, low, batch->high, false);
        matcher->delivery_of[i] = (uint32_t)delivery;
        first = false;
    }
    return batch->settled = true;
}

// For returns close to one another whose threads all slept: where exactly as many deliveries woke a
// thread, each return had one of them, though it is not known which. No other return can have had
// these. Tries the smallest such group that ends with this return.
static bool settle_group(struct matcher *matcher, size_t last)
{
    enum { MOST_MEMBERS = 8 };
    struct batch *all = matcher->batches.items;
    size_t members = 0, low = SIZE_MAX;
    for (size_t i = last + 1; i-- > 0 && members < MOST_MEMBERS;) {
        if (!all[i].slept || all[i].first_settled || all[i].grouped)
            continue;
        members++;
        low = all[i].low < low ? all[i].low : low;
        size_t at = low;
        if (count_free(matcher, &at, all[last].high, true, members) != members)
            continue;
        for (size_t k = i; k <= last; k++)
            all[k].grouped |= all[k].slept && !all[k].first_settled;
        for (size_t k = 0; k < members; k++)
            take(matcher, at, all[last].high, true);
        return true;
    }
    return false;
}

// What is settled for one batch leaves fewer deliveries for the others, later and earlier ones.
static size_t settle_forwards(struct matcher *matcher)
{
    size_t settled = 0;
    for (size_t i = 0; i < matcher->batches.count; i++) {
        struct batch *batch = &matcher->batches.items[i];
        settled += settle_first(matcher, batch);
        settled += settle_batch(matcher, batch);
        if (batch->slept && !batch->first_settled && !batch->grouped)
            settled += settle_group(matcher, i);
    }
    return settled;
}

static size_t settle_backwards(struct matcher *matcher)
{
    size_t settled = 0;
    for (size_t i = matcher->batches.count; i-- > 0;) {
        settled += settle_first(matcher, &matcher->batches.items[i]);
        settled += settle_batch(matcher, &matcher->batches.items[i]);
    }
    return settled;
}

static void settle_all(struct matcher *matcher)
{
    enum { MOST_PASSES = 16 }; // a few passes suffice; what further ones could settle stays unknown
    for (int pass = 0; pass < MOST_PASSES; pass++)
        if (settle_forwards(matcher) + settle_backwards(matcher) == 0)
            break;
}

// A receive call may also have returned bytes delivered after the wait call had returned. Where
// there is such a delivery and nothing shows whose it was, the call's delivery stays unknown.
static void forget_late(struct matcher *matcher)
{
    const struct delivery_array *all = matcher->deliveries;
    for (size_t b = 0; b < matcher->batches.count; b++) {
        const struct batch *batch = &matcher->batches.items[b];
        size_t late = next_free(matcher, batch->high);
        for (size_t i = batch->wait + 1; i < batch->end && late < all->count; i++)
            if (all->items[late].delivered_ns <= matcher->calls->items[i].exit_ns)
                matcher->delivery_of[i] = NO_DELIVERY;
    }
}

static int collect(const struct matcher *matcher, struct delivered_calls *out, uint64_t *unknown)
{
    for (size_t i = 0; i < matcher->calls->count; i++) {
        struct delivered_call found = {(uint32_t)i, matcher->delivery_of[i]};
        if (!is_receive(&matcher->calls->items[i]))
            continue;
        if (found.delivery == NO_DELIVERY)
            ++*unknown;
        else if (array_push(out, found) < 0)
            return -1;
    }
    return 0;
}

int deliveries_match(const struct delivery_array *deliveries, const struct thread_sleeps *sleeps,
                     const struct application_calls *calls, struct delivered_calls *out,
                     uint64_t *unknown)
{
    size_t count = deliveries->count;
    struct matcher matcher = {.deliveries = deliveries,
                              .sleeps = sleeps,
                              .calls = calls,
                              .free_from = malloc((count + 1) * sizeof *matcher.free_from),
                              .delivery_of = malloc((calls->count + 1) * sizeof(uint32_t))};
    int result = matcher.free_from && matcher.delivery_of ? 0 : -1;
    *out = (struct delivered_calls){0};
    *unknown = 0;
    for (size_t i = 0; result == 0 && i <= count; i++)
        matcher.free_from[i] = i < count && deliveries->items[i].lost ? i + 1 : i;
    if (result == 0) {
        memset(matcher.delivery_of, 0xff, calls->count * sizeof(uint32_t));
        result = add_batches(&matcher);
    }
    if (result == 0) {
        settle_all(&matcher);
        forget_late(&matcher);
        result = collect(&matcher, out, unknown);
    }
    array_free(&matcher.batches);
    free(matcher.free_from);
    free(matcher.delivery_of);
    return result;
}
