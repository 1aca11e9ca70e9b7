// SPDX-License-Identifier: MIT
//
// One message's queue: what was ahead of it, and which requests that belonged to.
#include "analysis/diagnosis/views_queue.h"

#include "analysis/lifetime/service_order.h"
#include "base/array.h"

// How many requests ahead of a message are examined one by one, nearest first. Those beyond are
// counted as served by the same thread.
enum { LOOKED_AT = 1000, SOFTIRQ_NET_RX = 3 };

struct reader {
    const struct diagnosis_input *in;
    const struct lifetime *life;
    uint64_t lifetime;
    struct message_view *out;
    struct blocker kept[NAMED_BLOCKERS];
    size_t kept_count;
    struct named_blocker *by_lifetime;
};

static void note_blocker(struct reader *reader, uint64_t blocker, enum blocking_scope scope,
                         double ns)
{
    const struct blocker one = {.lifetime = blocker, .ns = (float)ns, .scope = (uint8_t)scope};
    reader->out->blocked_by[scope]++;
    reader->out->blocked_ns[scope] += (float)ns;
    if (reader->by_lifetime) {
        struct named_blocker *named = &reader->by_lifetime[blocker];
        named->messages += named->last != reader->lifetime + 1;
        named->last = reader->lifetime + 1;
        named->lifetime = blocker;
        named->total_ns += ns;
    }
    if (reader->kept_count < NAMED_BLOCKERS) {
        reader->kept[reader->kept_count++] = one;
        return;
    }
    size_t least = 0;
    for (size_t i = 1; i < NAMED_BLOCKERS; i++)
        if (reader->kept[i].ns < reader->kept[least].ns)
            least = i;
    if (reader->kept[least].ns < one.ns)
        reader->kept[least] = one;
}

static enum blocking_scope scope_of(const struct lifetime *life, const struct lifetime *other)
{
    if (other->connection == life->connection)
        return BLOCKED_BY_CONNECTION;
    return life->batch != 0 && other->batch == life->batch ? BLOCKED_BY_BATCH : BLOCKED_BY_THREAD;
}

// Divides `ns` equally among all requests of a service except the message itself.
static void block_by_service(struct reader *reader, const struct service *service, double ns,
                             bool same_thread)
{
    const struct service_order *order = reader->in->order;
    for (uint32_t i = 0; i < service->count; i++) {
        uint32_t other = order->members[service->first + i];
        if (other == reader->lifetime)
            continue;
        enum blocking_scope scope =
            same_thread ? scope_of(reader->life, &reader->in->lifetimes[other]) : BLOCKED_BY_CORE_A;
        note_blocker(reader, other, scope, ns / service->count);
    }
}

// The requests that the message's thread served between the message's hand-off and its turn.
static void read_thread(struct reader *reader)
{
    const struct service_order *order = reader->in->order;
    const struct lifetime *life = reader->life;
    const struct service *services = order->services.items;
    uint32_t own = order->service_of[reader->lifetime];
    if (own == NOT_SERVED)
        return;
    size_t end,
        first = service_order_after(order, life->thread, life->stamp_ns[STAMP_HANDOFF], &end);
    size_t looked = 0, at = own;
    while (at > first && looked < LOOKED_AT) {
        const struct service *service = &services[--at];
        double ns = service->begin_ns >= life->stamp_ns[STAMP_HANDOFF]
                        ? service->running_ns
                        : thread_running_ns(reader->in->server, life->thread, NO_CORE,
                                            life->stamp_ns[STAMP_HANDOFF], service->end_ns);
        block_by_service(reader, service, ns, true);
        looked += service->count;
    }
    if (at > first) { // the rest, taken from the sums
        reader->out->blocked_by[BLOCKED_BY_THREAD] += services[at].first - services[first].first;
        reader->out->blocked_ns[BLOCKED_BY_THREAD] +=
            (float)(services[at].before_ns - services[first].before_ns);
    }
    if (services[own].count > 1) {
        int64_t from = services[own].begin_ns, to = life->stamp_ns[STAMP_REPLY];
        if (from < life->stamp_ns[STAMP_HANDOFF])
            from = life->stamp_ns[STAMP_HANDOFF];
        block_by_service(reader, &services[own],
                         thread_running_ns(reader->in->server, life->thread, NO_CORE, from, to),
                         true);
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
            const struct service *service = &in->order->services.items[at];
            int64_t from = service->begin_ns, to = service->end_ns;
            if (from >= life->stamp_ns[STAMP_REPLY])
                break;
            from = from > life->stamp_ns[STAMP_HANDOFF] ? from : life->stamp_ns[STAMP_HANDOFF];
            to = to < life->stamp_ns[STAMP_REPLY] ? to : life->stamp_ns[STAMP_REPLY];
            double ns = thread_running_ns(in->server, thread, core, from, to);
            if (ns > 0)
                block_by_service(reader, service, ns, false);
        }
    }
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
        note_blocker(reader, other, BLOCKED_BY_CORE_R, receive_processing_ns(core, from, to));
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
    size_t at = calls ? application_calls_after(calls, count, from) : 0;
    for (at -= at > 0; at < count && calls[at].entry_ns < to; at++) {
        const struct application_call *call = &calls[at];
        uint32_t number = (uint32_t)(call - all->items);
        if ((call->kind != CALL_RECEIVE && call->kind != CALL_SEND) || call->exit_ns <= from ||
            number == life->receive_call || number == life->send_call)
            continue;
        enum queue_kind kind = call->kind == CALL_RECEIVE ? QUEUE_APP_RECEIVE : QUEUE_APP_SEND;
        reader->out->ahead[kind]++;
        reader->out->ahead_ns[kind] += (float)thread_running_ns(
            reader->in->server, life->thread, NO_CORE,
            call->entry_ns > from ? call->entry_ns : from, call->exit_ns < to ? call->exit_ns : to);
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
    return order_of(b->ns, a->ns) ?: order_of(a->lifetime, b->lifetime);
}

int view_queue(const struct diagnosis_input *in, uint64_t lifetime, struct message_view *out,
               struct blocker_array *blockers, struct named_blocker *by_lifetime)
{
    struct reader reader = {.in = in,
                            .life = &in->lifetimes[lifetime],
                            .lifetime = lifetime,
                            .out = out,
                            .by_lifetime = by_lifetime};
    *out = (struct message_view){.first_blocker = blockers ? blockers->count : 0};
    read_thread(&reader);
    read_core(&reader);
    read_receive_core(&reader);
    read_kernel_a(&reader);
    read_calls(&reader);
    sum_processing(out);
    if (!blockers)
        return 0;
    qsort(reader.kept, reader.kept_count, sizeof *reader.kept, compare_blockers);
    for (size_t i = 0; i < reader.kept_count; i++)
        if (array_push(blockers, reader.kept[i]) < 0)
            return -1;
    out->blockers = (uint32_t)reader.kept_count;
    return 0;
}
