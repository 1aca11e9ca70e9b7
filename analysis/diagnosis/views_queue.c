// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/views_queue.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/service_order.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_states.h"

// How many turns ahead of a message's are examined one by one, nearest first. The requests of those
// beyond are counted as served by the same thread.
enum { LOOKED_AT = 4000, SOFTIRQ_NET_RX = 3 };

struct reader {
    const struct diagnosis_input *in;
    const struct lifetime *life;
    uint64_t lifetime;
    struct message_view *out;
    struct blocker kept[NAMED_BLOCKERS];
    size_t kept_count;
    const struct queue_sums *sums; // NULL: none are made
    struct service_times *times;
    bool out_of_memory;
};

static void keep_blocker(struct reader *reader, const struct blocker *one)
{
    if (reader->kept_count < NAMED_BLOCKERS) {
        reader->kept[reader->kept_count++] = *one;
        return;
    }
    size_t least = 0;
    for (size_t i = 1; i < NAMED_BLOCKERS; i++)
        if (reader->kept[i].ns < reader->kept[least].ns)
            least = i;
    if (reader->kept[least].ns < one->ns)
        reader->kept[least] = *one;
}

static void note_blocker(struct reader *reader, uint64_t lifetime, uint32_t service,
                         enum blocking_scope scope, double ns)
{
    const struct blocker one = {.lifetime = lifetime,
                                .service = service,
                                .culprit = NOT_SERVED,
                                .ns = (float)ns,
                                .scope = (uint8_t)scope};
    reader->out->blocked_by[scope]++;
    reader->out->blocked_ns[scope] += (float)ns;
    if (reader->sums) {
        size_t at = lifetime == NO_LIFETIME ? reader->in->lifetime_count + service : lifetime;
        struct named_blocker *named = &reader->sums->named[at];
        named->messages += named->last != reader->lifetime + 1;
        named->last = reader->lifetime + 1;
        named->lifetime = lifetime;
        named->service = service;
        named->total_ns += ns;
    }
    keep_blocker(reader, &one);
}

static enum blocking_scope scope_of(const struct lifetime *life, const struct lifetime *other)
{
    if (other->connection == life->connection)
        return BLOCKED_BY_CONNECTION;
    return life->batch != 0 && other->batch == life->batch ? BLOCKED_BY_BATCH : BLOCKED_BY_THREAD;
}

// Divides what the thread ran equally among all requests of a service except the message itself.
// What it slept in them is another's only where the message is none of these.
static void block_by_service(struct reader *reader, uint32_t number,
                             const struct service_time *time, bool same_thread)
{
    double ns = time->ran_ns, slept_ns = time->slept_ns;
    const struct service_order *order = reader->in->order;
    const struct service *service = &order->services.items[number];
    double others = service->count ? 0 : ns;
    if (service->count == 0)
        note_blocker(reader, NO_LIFETIME, number,
                     same_thread ? BLOCKED_BY_THREAD : BLOCKED_BY_CORE_A, ns);
    for (uint32_t i = 0; i < service->count; i++) {
        uint32_t other = order->members[service->first + i];
        if (other == reader->lifetime) {
            slept_ns = 0;
            continue;
        }
        enum blocking_scope scope =
            same_thread ? scope_of(reader->life, &reader->in->lifetimes[other]) : BLOCKED_BY_CORE_A;
        note_blocker(reader, other, number, scope, ns / service->count);
        others += ns / service->count;
    }
    if (others + slept_ns > 0 && reader->sums &&
        culprits_add(reader->sums->culprits, number, reader->lifetime, others, slept_ns) < 0)
        reader->out_of_memory = true;
}

static void add_turn(struct reader *reader, const struct turn *turn, double ran_ns, double slept_ns)
{
    struct service_times *times = reader->times;
    if (turn->service >= TURN_SERVICE || ran_ns + slept_ns <= 0)
        return;
    struct service_time *time = &times->of[turn->service];
    if (time->ran_ns + time->slept_ns <= 0 && array_push(&times->touched, turn->service) < 0) {
        reader->out_of_memory = true;
        return;
    }
    time->ran_ns += ran_ns;
    time->slept_ns += slept_ns;
}

static void block_by_turns(struct reader *reader, bool same_thread)
{
    struct service_times *times = reader->times;
    for (size_t i = 0; i < times->touched.count; i++) {
        uint32_t service = times->touched.items[i];
        block_by_service(reader, service, &times->of[service], same_thread);
        times->of[service] = (struct service_time){0};
    }
    times->touched.count = 0;
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// When the message's thread was done with it: it had answered, or handed it on.
static int64_t left_thread(const struct reader *reader)
{
    const struct lifetime *life = reader->life;
    const struct application_calls *calls = reader->in->calls;
    bool here = life->send_call == NO_CALL || calls->items[life->send_call].thread == life->thread;
    return life->stamp_ns[here ? STAMP_REPLY : STAMP_APPLICATION];
}

struct slept {
    const struct host_timeline *host;
    double ns;
};

// Neither what stops a thread nor a lock that it waits for is the doing of whom it works for; and a
// thread that waits for sockets to become ready is free for others, whosever answer is due.
static void add_sleep(const struct thread_period *period, void *context)
{
    struct slept *slept = context;
    uint32_t pause;
    if (period->state == THREAD_SLEEPS && period->before->left != STINT_WAITS &&
        !(pause_after(slept->host, period->before, &pause) &&
          (pause_is_stop(pause) || pause_awaits_thread(pause))))
        slept->ns += (double)(period->end_ns - period->begin_ns);
}

// How long a thread slept in a part of its time of which it ran `ran_ns`.
static double thread_slept_ns(const struct reader *reader, uint32_t thread, int64_t begin_ns,
                              int64_t end_ns, double ran_ns)
{
    enum { LEAST_NS = 100000 }; // less is no cause, and most turns have none
    struct slept slept = {.host = reader->in->server};
    if (reader->sums && (double)(end_ns - begin_ns) - ran_ns > LEAST_NS)
        thread_periods(reader->in->server, thread, begin_ns, end_ns, add_sleep, &slept);
    return slept.ns;
}

// Since when the thread could have had the message, or its first part.
static int64_t ready_since(const struct lifetime *life)
{
    int64_t handed = life->stamp_ns[STAMP_HANDOFF], part = life->part_ready_ns;
    return life->part_read_ns > part && part < handed
               ? later_of(part, life->stamp_ns[STAMP_INTENDED])
               : handed;
}

// For whom else the message's thread worked, or slept, from then until its reply.
static void read_thread(struct reader *reader)
{
    const struct service_order *order = reader->in->order;
    const struct turn *turns = order->turns.items;
    int64_t from = ready_since(reader->life), until = left_thread(reader);
    if (order->service_of[reader->lifetime] == NOT_SERVED)
        return;
    size_t end, first = service_order_after(order, reader->life->thread, from, &end);
    size_t at = array_bound(first, end, i, turns[i].begin_ns < until);
    for (size_t looked = 0; at > first && looked < LOOKED_AT; looked++) {
        const struct turn *turn = &turns[--at];
        bool whole = turn->begin_ns >= from && turn->end_ns <= until;
        int64_t begin = later_of(turn->begin_ns, from), till = earlier_of(turn->end_ns, until);
        double ran_ns =
            whole ? turn->running_ns
                  : thread_running_ns(reader->in->server, turn->thread, NO_CORE, begin, till);
        add_turn(reader, turn, ran_ns, thread_slept_ns(reader, turn->thread, begin, till, ran_ns));
    }
    block_by_turns(reader, true);
    if (at > first) { // the rest, taken from the sums
        reader->out->blocked_by[BLOCKED_BY_THREAD] +=
            (uint32_t)(turns[at].served - turns[first].served);
        reader->out->blocked_ns[BLOCKED_BY_THREAD] +=
            (float)(turns[at].before_ns - turns[first].before_ns);
    }
}

// The requests that other threads of the application served on the message's core meanwhile.
static void read_core(struct reader *reader)
{
    const struct diagnosis_input *in = reader->in;
    const struct lifetime *life = reader->life;
    uint16_t core = life->stamp_core[STAMP_APPLICATION];
    if (core == NO_CORE)
        return;
    for (size_t t = 0; t < in->application_thread_count; t++) {
        uint32_t thread = in->application_threads[t];
        size_t end, at;
        if (thread == life->thread ||
            (in->applications && in->applications->items.count > 1 &&
             application_of_thread(in->applications, thread) != life->application))
            continue;
        at = service_order_after(in->order, thread, life->stamp_ns[STAMP_HANDOFF], &end);
        if (end - at > LOOKED_AT)
            end = at + LOOKED_AT;
        for (; at < end; at++) {
            const struct turn *turn = &in->order->turns.items[at];
            if (turn->begin_ns >= life->stamp_ns[STAMP_REPLY])
                break;
            add_turn(reader, turn,
                     thread_running_ns(in->server, thread, core,
                                       later_of(turn->begin_ns, life->stamp_ns[STAMP_HANDOFF]),
                                       earlier_of(turn->end_ns, life->stamp_ns[STAMP_REPLY])),
                     0);
        }
    }
    block_by_turns(reader, false);
}

static void add_receive_processing(const struct span *innermost, int64_t begin_ns, int64_t end_ns,
                                   void *context)
{
    double *ns = context;
    if (innermost && innermost->kind == SPAN_SOFTIRQ && innermost->id == SOFTIRQ_NET_RX)
        *ns += (double)(end_ns - begin_ns);
}

static double receive_processing_ns(const struct core_timeline *core, int64_t begin_ns,
                                    int64_t end_ns)
{
    double ns = 0;
    if (core && end_ns > begin_ns)
        core_timeline_pieces(core, begin_ns, end_ns, add_receive_processing, &ns);
    return ns;
}

static void read_receive_core(struct reader *reader)
{
    const struct service_order *order = reader->in->order;
    const struct lifetime *life = reader->life;
    uint16_t number = life->stamp_core[STAMP_HANDOFF];
    const struct core_timeline *core = host_timeline_core(reader->in->server, number);
    int64_t arrived = life->stamp_ns[STAMP_NIC], handed = life->stamp_ns[STAMP_HANDOFF];
    uint32_t at = order->place_of[reader->lifetime];
    if (!core || at == NOT_SERVED)
        return;
    size_t first = core_timeline_handoffs_before(core, arrived),
           last = core_timeline_handoffs_before(core, handed);
    if (last <= first)
        return;
    reader->out->ahead[QUEUE_KERNEL_R] = (uint32_t)(last - first);
    reader->out->ahead_ns[QUEUE_KERNEL_R] =
        (float)receive_processing_ns(core, arrived, core->handoffs.items[last - 1]);
    for (unsigned looked = 0; at > 0 && looked < LOOKED_AT; looked++) {
        uint32_t other = order->handed[--at];
        const struct lifetime *blocker = &reader->in->lifetimes[other];
        int64_t to = blocker->stamp_ns[STAMP_HANDOFF], from;
        if (blocker->stamp_core[STAMP_HANDOFF] != number || to <= arrived)
            break;
        if (to >= handed) // handed over together
            continue;
        size_t before = core_timeline_handoffs_before(core, to);
        from = before && core->handoffs.items[before - 1] > arrived
                   ? core->handoffs.items[before - 1]
                   : arrived;
        note_blocker(reader, other, NOT_SERVED, BLOCKED_BY_CORE_R,
                     receive_processing_ns(core, from, to));
    }
}

// The kernel's receive work on the application's core while the message was there.
static void read_kernel_a(struct reader *reader)
{
    const struct lifetime *life = reader->life;
    const struct core_timeline *core =
        host_timeline_core(reader->in->server, life->stamp_core[STAMP_APPLICATION]);
    int64_t from = life->stamp_ns[STAMP_HANDOFF], to = life->stamp_ns[STAMP_REPLY];
    if (!core || to <= from)
        return;
    size_t first = core_timeline_handoffs_before(core, from + 1),
           last = core_timeline_handoffs_before(core, to);
    reader->out->ahead[QUEUE_KERNEL_A] = (uint32_t)(last > first ? last - first : 0);
    reader->out->ahead_ns[QUEUE_KERNEL_A] = (float)receive_processing_ns(core, from, to);
}

// The socket calls of the message's thread from its hand-off to its reply, except its own.
static void read_calls(struct reader *reader)
{
    const struct lifetime *life = reader->life;
    const struct application_calls *all = reader->in->calls;
    int64_t from = life->stamp_ns[STAMP_HANDOFF], to = life->stamp_ns[STAMP_REPLY];
    size_t count;
    const struct application_call *calls = application_calls_of(all, life->thread, &count);
    size_t at = calls ? application_calls_after(calls, count, from) : 0, stint_count = 0;
    const struct thread_stint *stints =
        reader->in->server ? host_timeline_stints(reader->in->server, life->thread, &stint_count)
                           : NULL;
    size_t stint = array_bound(0, stint_count, i, stints[i].end_ns <= from);
    for (at -= at > 0; at < count && calls[at].entry_ns < to; at++) {
        const struct application_call *call = &calls[at];
        uint32_t number = (uint32_t)(call - all->items);
        if ((call->kind != CALL_RECEIVE && call->kind != CALL_SEND) || call->exit_ns <= from ||
            number == life->receive_call || number == life->send_call)
            continue;
        enum queue_kind kind = call->kind == CALL_RECEIVE ? QUEUE_APP_RECEIVE : QUEUE_APP_SEND;
        int64_t begin_ns = later_of(call->entry_ns, from);
        while (stint < stint_count && stints[stint].end_ns <= begin_ns)
            stint++;
        reader->out->ahead[kind]++;
        reader->out->ahead_ns[kind] +=
            stint < stint_count
                ? (float)stints_running_ns(stints + stint, stint_count - stint, NO_CORE, begin_ns,
                                           earlier_of(call->exit_ns, to))
                : 0;
    }
}

static void sum_processing(struct message_view *out)
{
    float ns = 0;
    for (int scope = BLOCKED_BY_CONNECTION; scope <= BLOCKED_BY_THREAD; scope++) {
        out->ahead[QUEUE_PROCESSING] += out->blocked_by[scope];
        ns += out->blocked_ns[scope];
    }
    ns -= out->ahead_ns[QUEUE_APP_RECEIVE] + out->ahead_ns[QUEUE_APP_SEND];
    out->ahead_ns[QUEUE_PROCESSING] = ns > 0 ? ns : 0;
}

static int compare_blockers(const void *left, const void *right)
{
    const struct blocker *a = left, *b = right;
    return order_of(b->ns, a->ns) ?:
           order_of(a->lifetime, b->lifetime) ?:
           order_of(a->service, b->service);
}

int view_queue(const struct diagnosis_input *in, uint64_t lifetime, struct message_view *out,
               struct blocker_array *blockers, struct service_times *times,
               const struct queue_sums *sums)
{
    struct reader reader = {.in = in,
                            .life = &in->lifetimes[lifetime],
                            .lifetime = lifetime,
                            .out = out,
                            .sums = sums,
                            .times = times};
    *out = (struct message_view){.first_blocker = blockers ? blockers->count : 0};
    read_thread(&reader);
    read_core(&reader);
    read_receive_core(&reader);
    read_kernel_a(&reader);
    read_calls(&reader);
    sum_processing(out);
    if (!blockers || reader.out_of_memory)
        return reader.out_of_memory ? -1 : 0;
    qsort(reader.kept, reader.kept_count, sizeof *reader.kept, compare_blockers);
    for (size_t i = 0; i < reader.kept_count; i++)
        if (array_push(blockers, reader.kept[i]) < 0)
            return -1;
    out->blockers = (uint32_t)reader.kept_count;
    return 0;
}
