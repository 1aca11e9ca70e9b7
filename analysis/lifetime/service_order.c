// SPDX-License-Identifier: MIT
#include "analysis/lifetime/service_order.h"
#include "base/array.h"

#include <stdlib.h>

// A request on its way into the order.
struct turn {
    uint32_t thread, lifetime;
    uint32_t answer; // the call that ended its service
    int64_t begin_ns, end_ns;
};

struct handed {
    int64_t handoff_ns;
    uint32_t lifetime;
    uint16_t core;
};

static int compare_turns(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    return order_of(a->thread, b->thread) ?:
           order_of(a->end_ns, b->end_ns) ?:
           order_of(a->answer, b->answer) ?:
           order_of(a->lifetime, b->lifetime);
}

static int compare_handed(const void *left, const void *right)
{
    const struct handed *a = left, *b = right;
    return order_of(a->core, b->core) ?:
           order_of(a->handoff_ns, b->handoff_ns) ?:
           order_of(a->lifetime, b->lifetime);
}

double thread_running_ns(const struct host_timeline *host, uint32_t thread, uint16_t core,
                         int64_t begin_ns, int64_t end_ns)
{
    size_t count = 0;
    const struct thread_stint *stints = host ? host_timeline_stints(host, thread, &count) : NULL;
    size_t low = array_bound(0, count, at, stints[at].end_ns <= begin_ns);
    double ns = 0;
    for (; low < count && stints[low].begin_ns < end_ns; low++) {
        int64_t from = stints[low].begin_ns > begin_ns ? stints[low].begin_ns : begin_ns;
        int64_t to = stints[low].end_ns < end_ns ? stints[low].end_ns : end_ns;
        if (to > from && (core == NO_CORE || stints[low].core == core))
            ns += (double)(to - from);
    }
    return ns;
}

// When another thread sends the reply, the service ends for the receiving thread there.
static struct turn turn_of(const struct lifetime *life, uint32_t number,
                           const struct application_calls *calls)
{
    const struct application_call *receive = &calls->items[life->receive_call];
    bool here = life->send_call != NO_CALL && calls->items[life->send_call].thread == life->thread;
    uint32_t answer = here ? life->send_call : life->receive_call;
    return (struct turn){.thread = life->thread,
                         .lifetime = number,
                         .answer = answer,
                         .begin_ns = receive->entry_ns,
                         .end_ns = calls->items[answer].exit_ns};
}

// Makes one service of the turns from `first` on that the same call ended. Returns where the next
// begins; 0: no memory.
static size_t add_service(struct service_order *order, const struct turn *turns, size_t first,
                          size_t count, const struct host_timeline *host)
{
    struct service service = {.thread = turns[first].thread,
                              .first = (uint32_t)first,
                              .begin_ns = turns[first].begin_ns,
                              .end_ns = turns[first].end_ns};
    size_t after = first;
    for (; after < count && turns[after].thread == service.thread &&
           turns[after].answer == turns[first].answer;
         after++) {
        if (turns[after].begin_ns < service.begin_ns)
            service.begin_ns = turns[after].begin_ns;
        order->members[after] = turns[after].lifetime;
        order->service_of[turns[after].lifetime] = (uint32_t)order->services.count;
    }
    service.count = (uint32_t)(after - first);
    if (order->services.count) {
        const struct service *last = &order->services.items[order->services.count - 1];
        if (last->thread == service.thread) {
            service.before_ns = last->before_ns + last->running_ns;
            if (service.begin_ns < last->end_ns)
                service.begin_ns = last->end_ns;
        }
    }
    service.running_ns =
        thread_running_ns(host, service.thread, NO_CORE, service.begin_ns, service.end_ns);
    return array_push(&order->services, service) < 0 ? 0 : after;
}

static int order_services(struct service_order *order, const struct lifetime *lifetimes,
                          size_t count, const struct application_calls *calls,
                          const struct host_timeline *host)
{
    struct turn *turns = malloc((count + 1) * sizeof *turns);
    size_t served = 0;
    if (!turns)
        return -1;
    for (size_t i = 0; calls && i < count; i++)
        if (lifetimes[i].receive_call != NO_CALL && lifetimes[i].receive_call < calls->count &&
            (lifetimes[i].send_call == NO_CALL || lifetimes[i].send_call < calls->count))
            turns[served++] = turn_of(&lifetimes[i], (uint32_t)i, calls);
    qsort(turns, served, sizeof *turns, compare_turns);
    size_t at = 0;
    int result = 0;
    while (at < served && result == 0) {
        at = add_service(order, turns, at, served, host);
        result = at ? 0 : -1;
    }
    free(turns);
    return result;
}

static int order_handoffs(struct service_order *order, const struct lifetime *lifetimes,
                          size_t count)
{
    struct handed *handed = malloc((count + 1) * sizeof *handed);
    if (!handed)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (lifetime_has(&lifetimes[i], STAMP_HANDOFF) &&
            lifetimes[i].stamp_core[STAMP_HANDOFF] != NO_CORE)
            handed[order->handed_count++] =
                (struct handed){.handoff_ns = lifetimes[i].stamp_ns[STAMP_HANDOFF],
                                .lifetime = (uint32_t)i,
                                .core = lifetimes[i].stamp_core[STAMP_HANDOFF]};
    qsort(handed, order->handed_count, sizeof *handed, compare_handed);
    for (size_t i = 0; i < order->handed_count; i++) {
        order->handed[i] = handed[i].lifetime;
        order->place_of[handed[i].lifetime] = (uint32_t)i;
    }
    free(handed);
    return 0;
}

int service_order_build(struct service_order *order, const struct lifetime *lifetimes, size_t count,
                        const struct application_calls *calls, const struct host_timeline *host)
{
    *order = (struct service_order){0};
    if (count >= NOT_SERVED)
        return -1;
    order->members = malloc((count + 1) * sizeof *order->members);
    order->service_of = malloc((count + 1) * sizeof *order->service_of);
    order->handed = malloc((count + 1) * sizeof *order->handed);
    order->place_of = malloc((count + 1) * sizeof *order->place_of);
    if (!order->members || !order->service_of || !order->handed || !order->place_of)
        return -1;
    for (size_t i = 0; i < count; i++)
        order->service_of[i] = order->place_of[i] = NOT_SERVED;
    if (order_services(order, lifetimes, count, calls, host) < 0)
        return -1;
    return order_handoffs(order, lifetimes, count);
}

void service_order_free(struct service_order *order)
{
    array_free(&order->services);
    free(order->members);
    free(order->service_of);
    free(order->handed);
    free(order->place_of);
    *order = (struct service_order){0};
}

size_t service_order_after(const struct service_order *order, uint32_t thread, int64_t time_ns,
                           size_t *end)
{
    const struct service *services = order->services.items;
    // the first of the thread, or of a later one, that ends after
    size_t low = array_bound(0, order->services.count, at,
                             services[at].thread < thread ||
                                 (services[at].thread == thread && services[at].end_ns <= time_ns));
    *end = array_bound(low, order->services.count, at, services[at].thread <= thread);
    return low;
}
