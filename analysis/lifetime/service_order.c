// SPDX-License-Identifier: MIT
#include "analysis/lifetime/service_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline/detours.h"
#include "base/array.h"
#include "base/quantile.h"

struct handed {
    int64_t handoff_ns;
    uint32_t lifetime;
    uint16_t core;
};

static int compare_handed(const void *left, const void *right)
{
    const struct handed *a = left, *b = right;
    return order_of(a->core, b->core) ?:
           order_of(a->handoff_ns, b->handoff_ns) ?:
           order_of(a->lifetime, b->lifetime);
}

// --- services ------------------------------------------------------------------------------------

// While the order is made.
struct ordering {
    struct service_order *order;
    const struct lifetime *lifetimes;
    size_t lifetime_count;
    const struct application_calls *calls;
    const struct host_timeline *host;
    uint32_t *by_connection; // calls by connection, then by time
    bool *is_guest;          // by call: its connection is none of the load's
    double *gaps, *work;     // of one thread
};

static bool is_served(const struct ordering *ordering, const struct lifetime *life)
{
    return life->receive_call < ordering->calls->count &&
           (life->send_call == NO_CALL || life->send_call < ordering->calls->count);
}

static uint32_t add_service(struct ordering *ordering, uint32_t connection, bool foreign)
{
    struct service service = {
        .connection = connection, .client = connection, .foreign = foreign, .begin_ns = INT64_MAX};
    if (ordering->order->services.count >= TURN_SERVICE ||
        array_push(&ordering->order->services, service) < 0)
        return NOT_SERVED;
    return (uint32_t)ordering->order->services.count - 1;
}

// The services of the load's requests: those that the same call answered are one. What a receive
// call brought is for the first of its requests.
static int add_known_services(struct ordering *ordering)
{
    struct service_order *order = ordering->order;
    uint32_t *of_call = ordering->order->service_of_call;
    for (size_t i = 0; i < ordering->lifetime_count; i++) {
        const struct lifetime *life = &ordering->lifetimes[i];
        if (!is_served(ordering, life))
            continue;
        uint32_t receive = life->receive_call;
        uint32_t answer = life->send_call == NO_CALL ? receive : life->send_call;
        if (of_call[answer] == NOT_SERVED)
            of_call[answer] =
                add_service(ordering, ordering->calls->items[answer].connection, false);
        if (of_call[answer] == NOT_SERVED)
            return -1;
        if (of_call[receive] == NOT_SERVED)
            of_call[receive] = of_call[answer];
        order->service_of[i] = of_call[answer];
        order->services.items[of_call[answer]].count++;
    }
    return 0;
}

// Calls that are of no known request belong to the exchange that the connection's next one does; a
// receive call after a send call begins a new one.
static int add_exchanges(struct ordering *ordering, size_t first, size_t end)
{
    const struct application_call *calls = ordering->calls->items;
    uint32_t *of_call = ordering->order->service_of_call, current = NOT_SERVED;
    bool foreign = true, receives = false;
    for (size_t i = first; i < end; i++)
        foreign &= of_call[ordering->by_connection[i]] == NOT_SERVED;
    for (size_t i = end; i-- > first;) {
        uint32_t at = ordering->by_connection[i];
        uint8_t kind = calls[at].kind;
        bool ends = current == NOT_SERVED || (kind == CALL_SEND && receives);
        if (of_call[at] == NOT_SERVED && ends)
            of_call[at] = add_service(ordering, calls[at].connection, foreign);
        else if (of_call[at] == NOT_SERVED)
            of_call[at] = current;
        current = of_call[at];
        if (current == NOT_SERVED)
            return -1;
        if (kind == CALL_RECEIVE || kind == CALL_SEND)
            receives = kind == CALL_RECEIVE;
    }
    return 0;
}

static int compare_by_connection(const void *left, const void *right, void *context)
{
    const struct application_call *calls = context;
    const struct application_call *a = &calls[*(const uint32_t *)left],
                                  *b = &calls[*(const uint32_t *)right];
    return order_of(a->connection, b->connection) ?:
           order_of(a->entry_ns, b->entry_ns) ?:
           order_of(a, b);
}

static int add_other_services(struct ordering *ordering)
{
    const struct application_call *calls = ordering->calls->items;
    uint32_t *sorted = ordering->by_connection;
    size_t count = 0;
    for (size_t i = 0; i < ordering->calls->count; i++)
        if (calls[i].kind != CALL_WAIT)
            sorted[count++] = (uint32_t)i;
    qsort_r(sorted, count, sizeof *sorted, compare_by_connection, (void *)calls);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first;
             end < count && calls[sorted[end]].connection == calls[sorted[first]].connection;)
            end++;
        if (add_exchanges(ordering, first, end) < 0)
            return -1;
    }
    return 0;
}

static void measure_services(struct ordering *ordering)
{
    for (size_t i = 0; i < ordering->calls->count; i++) {
        const struct application_call *call = &ordering->calls->items[i];
        if (ordering->order->service_of_call[i] == NOT_SERVED)
            continue;
        struct service *service =
            &ordering->order->services.items[ordering->order->service_of_call[i]];
        ordering->is_guest[i] = service->foreign;
        service->begin_ns = call->entry_ns < service->begin_ns ? call->entry_ns : service->begin_ns;
        service->end_ns = call->exit_ns > service->end_ns ? call->exit_ns : service->end_ns;
        service->bytes += call->kind == CALL_SEND ? call->length : 0;
        service->command = service->command ? service->command : call->command;
    }
}

static void list_members(struct ordering *ordering)
{
    struct service_order *order = ordering->order;
    uint32_t first = 0;
    for (size_t i = 0; i < order->services.count; i++) {
        order->services.items[i].first = first;
        first += order->services.items[i].count;
        order->services.items[i].count = 0;
    }
    for (size_t i = 0; i < ordering->lifetime_count; i++) {
        if (order->service_of[i] == NOT_SERVED)
            continue;
        struct service *service = &order->services.items[order->service_of[i]];
        order->members[service->first + service->count++] = (uint32_t)i;
    }
}

// --- turns ---------------------------------------------------------------------------------------

// Whom the time between a call and the thread's next is for. What was received elsewhere, or what
// is answered next, is worked on before it is sent.
static uint32_t service_after(const struct ordering *ordering, size_t call, size_t end)
{
    const struct application_call *calls = ordering->calls->items, *now = &calls[call];
    uint32_t own = now->kind == CALL_WAIT ? TURN_NOBODY : ordering->order->service_of_call[call];
    bool answers = call + 1 < end && now[1].kind == CALL_SEND &&
                   (now->kind != CALL_RECEIVE || now->connection == now[1].connection);
    return answers ? ordering->order->service_of_call[call + 1] : own;
}

// Whether a call is followed by time that is for no request by its place: after a reply, or before
// a request is received.
static bool between_requests(const struct ordering *ordering, size_t call, size_t end)
{
    const struct application_call *now = &ordering->calls->items[call];
    return call + 1 < end && (now->kind == CALL_SEND || now->kind == CALL_WAIT) &&
           now[1].kind != CALL_SEND;
}

static double gap_ns(const struct ordering *ordering, size_t call)
{
    const struct application_call *now = &ordering->calls->items[call];
    return thread_running_ns(ordering->host, now->thread, NO_CORE, now->exit_ns, now[1].entry_ns);
}

// What a thread does between requests is usually short: the return to its loop. Far longer than
// that, by six standard deviations as everywhere (docs/diagnosis.md), it is the server's own work.
static void mark_own_work(struct ordering *ordering, size_t first, size_t end, uint8_t kind)
{
    enum { ENOUGH = 20 };
    size_t count = 0;
    for (size_t i = first; i < end; i++)
        if (ordering->calls->items[i].kind == kind && between_requests(ordering, i, end))
            ordering->gaps[count++] = gap_ns(ordering, i);
    if (count < ENOUGH)
        return;
    double median = quantile_of(ordering->gaps, count, 0.5, ordering->work);
    for (size_t i = 0; i < count; i++)
        ordering->gaps[i] = fabs(ordering->gaps[i] - median);
    double spread = quantile_of(ordering->gaps, count, 0.5, ordering->work);
    double bound = median + fmax(6 * 1.4826 * spread, fmax(median, OWN_WORK_LEAST_NS));
    for (size_t i = first; i < end; i++)
        if (ordering->calls->items[i].kind == kind && between_requests(ordering, i, end) &&
            gap_ns(ordering, i) > bound)
            ordering->order->own_from[i] = ordering->calls->items[i].exit_ns;
}

static int add_turn(struct ordering *ordering, uint32_t thread, uint32_t service, int64_t begin_ns,
                    int64_t end_ns)
{
    struct service_order *order = ordering->order;
    struct turn *last = order->turns.count ? &order->turns.items[order->turns.count - 1] : NULL;
    struct turn turn = {
        .thread = thread, .service = service, .begin_ns = begin_ns, .end_ns = end_ns};
    if (last && last->thread != thread)
        last = NULL;
    if (last && turn.begin_ns < last->end_ns)
        turn.begin_ns = last->end_ns;
    if (turn.end_ns <= turn.begin_ns)
        return 0;
    turn.running_ns = thread_running_ns(ordering->host, thread, NO_CORE, turn.begin_ns, end_ns);
    if (service < TURN_SERVICE)
        order->services.items[service].running_ns += turn.running_ns;
    if (last && last->service == service && last->end_ns == turn.begin_ns) {
        last->end_ns = turn.end_ns;
        last->running_ns += turn.running_ns;
        return 0;
    }
    if (last)
        turn.before_ns = last->before_ns + last->running_ns;
    return array_push(&order->turns, turn);
}

// What the program says it does for itself, between two calls, is for none of the requests.
static int add_turns_between(struct ordering *ordering, uint32_t thread, uint32_t service,
                             int64_t begin_ns, int64_t end_ns)
{
    while (begin_ns < end_ns) {
        int64_t until;
        bool own = own_work_at(ordering->host, thread, begin_ns, &until);
        until = until < end_ns ? until : end_ns;
        if (add_turn(ordering, thread, own ? TURN_SERVER : service, begin_ns, until) < 0)
            return -1;
        begin_ns = until;
    }
    return 0;
}

static int add_thread_turns(struct ordering *ordering, size_t first, size_t end)
{
    const struct application_call *calls = ordering->calls->items;
    mark_own_work(ordering, first, end, CALL_SEND);
    mark_own_work(ordering, first, end, CALL_WAIT);
    if (loop_work_mark(ordering->calls, first, end, ordering->host, ordering->is_guest,
                       ordering->order->own_from) < 0)
        return -1;
    for (size_t i = first; i < end; i++) {
        const struct application_call *call = &calls[i];
        int64_t next_ns = i + 1 < end ? calls[i + 1].entry_ns : INT64_MAX;
        uint32_t during =
            call->kind == CALL_WAIT ? TURN_NOBODY : ordering->order->service_of_call[i];
        int64_t own_from = ordering->order->own_from[i];
        own_from = own_from < next_ns ? own_from : next_ns;
        if (add_turn(ordering, call->thread, during, call->entry_ns, call->exit_ns) < 0 ||
            add_turns_between(ordering, call->thread, service_after(ordering, i, end),
                              call->exit_ns, own_from) < 0 ||
            add_turns_between(ordering, call->thread, TURN_SERVER, own_from, next_ns) < 0)
            return -1;
    }
    return 0;
}

// How many requests each thread had served before each turn.
static void count_served(struct service_order *order)
{
    uint64_t served = 0;
    for (size_t i = 0; i < order->turns.count; i++) {
        struct turn *turn = &order->turns.items[i];
        served = i > 0 && turn[-1].thread == turn->thread ? served : 0;
        turn->served = served;
        if (turn->service >= TURN_SERVICE)
            continue;
        const struct service *service = &order->services.items[turn->service];
        if (service->end_ns > turn->begin_ns && service->end_ns <= turn->end_ns)
            served += service->count ? service->count : 1;
    }
}

static int add_turns(struct ordering *ordering)
{
    const struct application_calls *calls = ordering->calls;
    for (size_t first = 0, end; first < calls->count; first = end) {
        for (end = first;
             end < calls->count && calls->items[end].thread == calls->items[first].thread;)
            end++;
        if (add_thread_turns(ordering, first, end) < 0)
            return -1;
    }
    return 0;
}

static int order_services(struct service_order *order, const struct lifetime *lifetimes,
                          size_t count, const struct application_calls *calls,
                          const struct host_timeline *host)
{
    size_t call_count = calls->count;
    struct ordering ordering = {.order = order,
                                .lifetimes = lifetimes,
                                .lifetime_count = count,
                                .calls = calls,
                                .host = host,
                                .by_connection = malloc((call_count + 1) * sizeof(uint32_t)),
                                .is_guest = calloc(call_count + 1, sizeof(bool)),
                                .gaps = malloc((call_count + 1) * sizeof(double)),
                                .work = malloc((call_count + 1) * sizeof(double))};
    order->service_of_call = malloc((call_count + 1) * sizeof *order->service_of_call);
    order->own_from = malloc((call_count + 1) * sizeof *order->own_from);
    int result = -1;
    if (order->service_of_call && ordering.by_connection && ordering.is_guest && ordering.gaps &&
        ordering.work && order->own_from) {
        for (size_t i = 0; i < call_count; i++) {
            order->service_of_call[i] = NOT_SERVED;
            order->own_from[i] = NO_OWN_WORK;
        }
        result = add_known_services(&ordering);
    }
    if (result == 0)
        result = add_other_services(&ordering);
    if (result == 0) {
        measure_services(&ordering);
        list_members(&ordering);
        result = add_turns(&ordering);
        count_served(order);
    }
    free(ordering.by_connection);
    free(ordering.is_guest);
    free(ordering.gaps);
    free(ordering.work);
    return result;
}

// --- hand-offs -----------------------------------------------------------------------------------

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
    array_sort_raw(handed, order->handed_count, sizeof *handed, compare_handed);
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
    if (calls && order_services(order, lifetimes, count, calls, host) < 0)
        return -1;
    return order_handoffs(order, lifetimes, count);
}

// --- clients -------------------------------------------------------------------------------------

// A connection of a client that is not the load, while clients are told apart.
struct guest {
    uint32_t connection, client;
    uint32_t exchanges;
    const uint8_t *peer;
};
struct guest_array ARRAY_OF(struct guest);

static int by_connection(const void *left, const void *right)
{
    const struct guest *a = left, *b = right;
    return order_of(a->connection, b->connection);
}

static int by_peer(const void *left, const void *right)
{
    const struct guest *a = left, *b = right;
    return memcmp(a->peer, b->peer, 16) ?: by_connection(left, right);
}

static struct guest *find_guest(const struct guest_array *guests, uint32_t connection)
{
    size_t at = array_bound(0, guests->count, i, guests->items[i].connection < connection);
    return at < guests->count && guests->items[at].connection == connection ? &guests->items[at]
                                                                            : NULL;
}

// Short connections of one address become one client.
static void join_guests(struct guest_array *guests)
{
    enum { SHORT = 2 };
    const struct guest *first = NULL;
    array_sort(guests, by_peer);
    for (size_t i = 0; i < guests->count; i++) {
        struct guest *one = &guests->items[i];
        if (one->exchanges > SHORT)
            continue;
        if (!first || memcmp(first->peer, one->peer, 16) != 0)
            first = one;
        one->client = first->connection;
    }
    array_sort(guests, by_connection);
}

int service_order_group_clients(struct service_order *order, const struct connection *connections,
                                size_t count)
{
    struct guest_array guests = {0};
    for (size_t i = 0; i < count; i++) {
        struct guest guest = {connections[i].id, connections[i].id, 0, connections[i].peer};
        if (array_push(&guests, guest) < 0) {
            array_free(&guests);
            return -1;
        }
    }
    array_sort(&guests, by_connection);
    for (size_t i = 0; i < order->services.count; i++) {
        struct guest *guest = find_guest(&guests, order->services.items[i].connection);
        if (guest)
            guest->exchanges++;
    }
    join_guests(&guests);
    for (size_t i = 0; i < order->services.count; i++) {
        struct service *service = &order->services.items[i];
        const struct guest *guest =
            service->foreign ? find_guest(&guests, service->connection) : NULL;
        if (guest)
            service->client = guest->client;
    }
    array_free(&guests);
    return 0;
}

void service_order_free(struct service_order *order)
{
    array_free(&order->services);
    array_free(&order->turns);
    free(order->members);
    free(order->service_of);
    free(order->handed);
    free(order->place_of);
    free(order->service_of_call);
    free(order->own_from);
    *order = (struct service_order){0};
}

size_t service_order_after(const struct service_order *order, uint32_t thread, int64_t time_ns,
                           size_t *end)
{
    const struct turn *turns = order->turns.items;
    // the first of the thread, or of a later one, that ends after
    size_t low = array_bound(0, order->turns.count, at,
                             turns[at].thread < thread ||
                                 (turns[at].thread == thread && turns[at].end_ns <= time_ns));
    *end = array_bound(low, order->turns.count, at, turns[at].thread <= thread);
    return low;
}
