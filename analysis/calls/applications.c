// SPDX-License-Identifier: MIT
#include "analysis/calls/applications.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/streams.h"
#include "base/array.h"
#include "base/text.h"

// A process and one of its threads, or one of the places where it serves.
struct member {
    uint32_t process, member;
};
struct member_array ARRAY_OF(struct member);

static const struct application_member no_member = {.application = NO_APPLICATION};

// &no_member: it is none of them.
static const struct application_member *find_member(const struct application_member *members,
                                                    size_t count, uint32_t member)
{
    size_t low = array_bound(0, count, at, members[at].member < member);
    return low < count && members[low].member == member ? &members[low] : &no_member;
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    return order_of(a->member, b->member) ?: order_of(a->process, b->process);
}

// Orders by member and keeps each pair once.
static void settle(struct member_array *members)
{
    size_t kept = 0;
    array_sort(members, compare_members);
    for (size_t i = 0; i < members->count; i++)
        if (i == 0 || compare_members(&members->items[kept - 1], &members->items[i]) != 0)
            members->items[kept++] = members->items[i];
    members->count = kept;
}

static int gather_threads(const struct call *calls, size_t count, struct member_array *out)
{
    for (size_t i = 0; i < count; i++) {
        struct member member = {calls[i].process, calls[i].thread};
        if (out->count && compare_members(&out->items[out->count - 1], &member) == 0)
            continue; // threads make many calls in a row
        if (array_push(out, member) < 0)
            return -1;
    }
    settle(out);
    return 0;
}

// A port in a network namespace; those of one port are in a row, what is not known of it first.
static uint32_t place_of(uint16_t port, uint16_t namespace)
{
    return (uint32_t)port << 16 | namespace;
}

// The kernel's table says in which namespace a connection of the shim's is.
static uint16_t namespace_of(const struct connection *connection,
                             const struct connection_index *sockets)
{
    uint32_t at = connection->namespace ? NO_CONNECTION
                                        : connection_index_of_cookie(sockets, connection->cookie);
    return at == NO_CONNECTION ? connection->namespace : sockets->table[at].namespace;
}

static int gather_places(const struct connection *connections, size_t count,
                         const struct connection_index *sockets, struct member_array *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct connection *one = &connections[i];
        struct member member = {one->process,
                                place_of(one->local_port, namespace_of(one, sockets))};
        if (one->protocol == CONNECTION_TCP && member.process && array_push(out, member) < 0)
            return -1;
    }
    settle(out);
    return 0;
}

static uint16_t find_process(const struct member_array *processes, uint32_t process)
{
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i].process == process)
            return (uint16_t)processes->items[i].member;
    return NO_APPLICATION;
}

// Numbers the processes (as `member`) so that those which serve at the same place have the same
// number.
static int number_processes(const struct member_array *threads, const struct member_array *places,
                            struct member_array *processes)
{
    const struct member_array *const sources[] = {threads, places};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sources[s]->count; i++) {
            const struct member next = {sources[s]->items[i].process, (uint32_t)processes->count};
            if (processes->count < NO_APPLICATION &&
                find_process(processes, next.process) == NO_APPLICATION &&
                array_push(processes, next) < 0)
                return -1;
        }
    for (size_t i = 1; i < places->count; i++) {
        if (places->items[i].member != places->items[i - 1].member)
            continue;
        uint32_t to = find_process(processes, places->items[i - 1].process);
        uint32_t from = find_process(processes, places->items[i].process);
        for (size_t p = 0; p < processes->count; p++)
            if (processes->items[p].member == from)
                processes->items[p].member = to;
    }
    return 0;
}

// The application of a process, made when it is met first.
static int64_t application_of_process(struct applications *out,
                                      const struct member_array *processes, uint32_t process)
{
    uint16_t number = find_process(processes, process);
    for (size_t i = 0; i < out->items.count; i++)
        if (find_process(processes, out->items.items[i].process) == number)
            return (int64_t)i;
    if (array_push(&out->items, (struct application){.process = process}) < 0)
        return -1;
    return (int64_t)out->items.count - 1;
}

static int take_members(struct applications *out, const struct member_array *processes,
                        const struct member_array *threads, const struct member_array *places)
{
    for (size_t i = 0; i < places->count; i++) {
        int64_t number = application_of_process(out, processes, places->items[i].process);
        struct application_member place = {places->items[i].member, (uint16_t)number,
                                           MEMBERSHIP_SERVES};
        bool known = i > 0 && places->items[i].member == places->items[i - 1].member;
        if (number < 0 || (!known && array_push(&out->places, place) < 0))
            return -1;
        struct application *application = &out->items.items[number];
        if (application->port == 0)
            application->port = (uint16_t)(place.member >> 16);
        if (application->namespace == 0)
            application->namespace = (uint16_t)place.member;
    }
    for (size_t i = 0; i < threads->count; i++) {
        int64_t number = application_of_process(out, processes, threads->items[i].process);
        struct application_member thread = {threads->items[i].member, (uint16_t)number,
                                            MEMBERSHIP_SERVES};
        if (number < 0 || array_push(&out->threads, thread) < 0)
            return -1;
    }
    return 0;
}

static int order_members(const void *left, const void *right)
{
    const struct application_member *a = left, *b = right;
    return order_of(a->member, b->member);
}

// Threads that make no socket calls, by their process or one that forked it.
static int take_own_threads(struct applications *out, const struct member_array *processes,
                            const struct host_timeline *host)
{
    enum { MOST_FORKS = 8 }; // from process to process
    size_t serving = out->threads.count;
    for (size_t i = 0; i < host->owners.count; i++) {
        const struct thread_owner *owner = &host->owners.items[i];
        bool latest = i + 1 == host->owners.count || owner[1].thread != owner->thread;
        struct application_member thread = {owner->thread, NO_APPLICATION, MEMBERSHIP_OWN};
        uint32_t process = owner->process, parent = owner->parent;
        if (!latest || find_member(out->threads.items, serving, owner->thread) != &no_member)
            continue;
        for (int forks = 0; process != 0 && forks < MOST_FORKS; forks++) {
            if (find_process(processes, process) != NO_APPLICATION) {
                thread.application = (uint16_t)application_of_process(out, processes, process);
                break;
            }
            const struct thread_owner *forked = host_timeline_owner(host, parent);
            thread.membership = MEMBERSHIP_FORKED;
            process = parent;
            parent = forked && forked->process == process ? forked->parent : 0;
        }
        if (thread.application != NO_APPLICATION && array_push(&out->threads, thread) < 0)
            return -1;
    }
    array_sort(&out->threads, order_members);
    return 0;
}

// Ports that were watched but whose server has no shim.
static int take_unknown_places(struct applications *out, const struct connection *sockets,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct application unknown = {.port = sockets[i].local_port,
                                            .namespace = sockets[i].namespace};
        if (out->items.count >= NO_APPLICATION - 1 ||
            application_of_connection(out, &sockets[i]) != NO_APPLICATION)
            continue;
        struct application_member member = {place_of(unknown.port, unknown.namespace),
                                            (uint16_t)out->items.count, MEMBERSHIP_SERVES};
        if (array_push(&out->items, unknown) < 0 || array_push(&out->places, member) < 0)
            return -1;
        array_sort(&out->places, order_members);
    }
    return 0;
}

// The name of an application's process: that of any of its threads that ran, up to the thread's
// own.
static void name_from_spans(struct applications *out, const struct host_timeline *host)
{
    size_t left = out->items.count;
    for (size_t c = 0; c < host->cores.count; c++) {
        const struct span_array *spans = &host->cores.items[c].spans;
        for (size_t i = 0; i < spans->count && left > 0; i++) {
            const struct span *span = &spans->items[i];
            uint16_t number =
                span->kind == SPAN_TASK ? application_of_thread(out, span->id) : NO_APPLICATION;
            if (number == NO_APPLICATION || out->items.items[number].program[0] ||
                membership_of_thread(out, span->id) == MEMBERSHIP_FORKED)
                continue;
            const char *name = host->names.items[span->name];
            snprintf(out->items.items[number].program, sizeof out->items.items[number].program,
                     "%.*s", (int)strcspn(name, ":"), name);
            left--;
        }
    }
}

// What tells it from the others that have its program, or none as it has.
static void name_application(const struct applications *all, struct application *application)
{
    char *const name = application->name;
    const size_t bytes = sizeof application->name;
    bool same_program = false, same_port = false;
    for (size_t i = 0; i < all->items.count; i++) {
        const struct application *other = &all->items.items[i];
        if (other == application || strcmp(other->program, application->program) != 0)
            continue;
        same_program |= other->port != application->port;
        same_port |= other->port == application->port;
    }
    if (!application->program[0])
        snprintf(name, bytes, "server on port %u", application->port);
    else if (same_program)
        snprintf(name, bytes, "%s:%u", application->program, application->port);
    else
        snprintf(name, bytes, "%s", application->program);
    if (same_port)
        text_append(name, bytes, " (%u)", application->process ?: application->namespace);
}

int applications_build(struct applications *out, const struct call *calls, size_t call_count,
                       const struct connection *connections, size_t connection_count,
                       const struct connection *sockets, size_t socket_count,
                       const struct host_timeline *host)
{
    struct member_array threads = {0}, places = {0}, processes = {0};
    struct connection_index index = {0};
    *out = (struct applications){0};
    int result = -1;
    if (connection_index_init(&index, sockets, socket_count) == 0 &&
        gather_threads(calls, call_count, &threads) == 0 &&
        gather_places(connections, connection_count, &index, &places) == 0 &&
        number_processes(&threads, &places, &processes) == 0 &&
        take_members(out, &processes, &threads, &places) == 0 &&
        (!host || take_own_threads(out, &processes, host) == 0) &&
        take_unknown_places(out, sockets, socket_count) == 0)
        result = 0;
    if (result == 0 && host)
        name_from_spans(out, host);
    for (size_t i = 0; i < out->items.count; i++)
        name_application(out, &out->items.items[i]);
    connection_index_fini(&index);
    array_free(&threads);
    array_free(&places);
    array_free(&processes);
    return result;
}

void applications_free(struct applications *applications)
{
    array_free(&applications->items);
    array_free(&applications->threads);
    array_free(&applications->places);
}

uint16_t application_of_thread(const struct applications *applications, uint32_t thread)
{
    return find_member(applications->threads.items, applications->threads.count, thread)
        ->application;
}

enum membership membership_of_thread(const struct applications *applications, uint32_t thread)
{
    return (enum membership)find_member(applications->threads.items, applications->threads.count,
                                        thread)
        ->membership;
}

uint16_t application_of_connection(const struct applications *applications,
                                   const struct connection *connection)
{
    const struct application_member *places = applications->places.items;
    const size_t count = applications->places.count;
    const uint32_t place = place_of(connection->local_port, connection->namespace);
    size_t exact = array_bound(0, count, at, places[at].member < place);
    if (exact < count && places[exact].member == place)
        return places[exact].application;
    // One of the two does not say in which namespace it is.
    const uint32_t anywhere = place_of(connection->local_port, 0);
    size_t first = array_bound(0, count, at, places[at].member < anywhere);
    bool is_it = first < count && places[first].member >> 16 == connection->local_port &&
                 (!connection->namespace || places[first].member == anywhere);
    return is_it ? places[first].application : NO_APPLICATION;
}

int applications_mark_handoffs(const struct applications *applications, struct host_timeline *host,
                               const struct connection *sockets, size_t socket_count)
{
    struct connection_index index = {0};
    if (applications->items.count < 2)
        return 0;
    if (connection_index_init(&index, sockets, socket_count) < 0)
        return -1;
    int result = 0;
    for (size_t c = 0; c < host->cores.count && result == 0; c++) {
        struct core_timeline *core = &host->cores.items[c];
        result = array_reserve(&core->handoff_applications, core->handoff_sockets.count);
        for (size_t i = 0; i < core->handoff_sockets.count && result == 0; i++) {
            uint32_t at = connection_index_find(&index, core->handoff_sockets.items[i]);
            uint32_t number = at == NO_CONNECTION
                                  ? NO_APPLICATION
                                  : application_of_connection(applications, &sockets[at]);
            result = array_push(&core->handoff_applications, number);
        }
    }
    connection_index_fini(&index);
    return result;
}
