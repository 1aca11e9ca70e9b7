// SPDX-License-Identifier: MIT
#include "analysis/calls/kernel_calls.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/streams.h"
#include "analysis/timeline/span.h"

// A record of a call, and where its socket is in the table.
struct call_record {
    const struct event *event;
    uint32_t socket;
};

struct thread_process {
    uint32_t thread, process;
};

struct builder {
    const struct connection *sockets;
    struct ARRAY_OF(struct call_record) records;
    struct ARRAY_OF(struct thread_process) processes; // by thread
    struct kernel_calls *out;
};

static bool is_call(const struct event *event)
{
    return event->kind == EVENT_RECEIVED || event->kind == EVENT_SENDING ||
           event->kind == EVENT_SENT;
}

// What RECEIVED, SENDING and SENT carry.
static uint32_t thread_of(const struct event *event)
{
    return (uint32_t)event->payload.b;
}

static uint32_t bytes_of(const struct event *event)
{
    return (uint32_t)(event->payload.b >> 32);
}

static int compare_records(const void *left, const void *right)
{
    const struct call_record *a = left, *b = right;
    return order_of(a->event->time, b->event->time) ?: order_of(a->event, b->event);
}

static int compare_threads(const void *left, const void *right)
{
    const struct thread_process *a = left, *b = right;
    return order_of(a->thread, b->thread);
}

static int compare_calls(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    return order_of(a->thread, b->thread) ?:
           order_of(a->entry_tsc, b->entry_tsc) ?:
           order_of(a->exit_tsc, b->exit_tsc);
}

// Orders the records by socket, and those of one by time: dealt out to their sockets, they are
// nearly in order, since a core's are.
static int order_records(struct builder *builder, size_t socket_count)
{
    const struct call_record *from = builder->records.items;
    size_t count = builder->records.count;
    struct call_record *to = malloc((count + 1) * sizeof *to);
    size_t *ends = calloc(socket_count + 1, sizeof *ends);
    int result = to && ends ? 0 : -1;
    for (size_t i = 0; i < count && result == 0; i++)
        ends[from[i].socket + 1]++;
    for (size_t socket = 0; socket < socket_count && result == 0; socket++)
        ends[socket + 1] += ends[socket];
    // Now ends[socket] is where its records begin; it moves to where they end.
    for (size_t i = 0; i < count && result == 0; i++)
        to[ends[from[i].socket]++] = from[i];
    for (size_t socket = 0, first = 0; socket < socket_count && result == 0; first = ends[socket++])
        array_sort_raw(to + first, ends[socket] - first, sizeof *to, compare_records);
    if (result == 0)
        memcpy(builder->records.items, to, count * sizeof *to);
    free(ends);
    free(to);
    return result;
}

static int gather(struct builder *builder, const struct event *events, size_t count,
                  const struct connection_index *sockets, size_t socket_count)
{
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &events[i];
        struct thread_process owner = {event->id, (uint32_t)event->payload.a};
        if (event->kind == EVENT_MEMBER && array_push(&builder->processes, owner) < 0)
            return -1;
        if (!is_call(event))
            continue;
        struct call_record record = {event, connection_index_find(sockets, event->id)};
        if (record.socket != NO_CONNECTION && array_push(&builder->records, record) < 0)
            return -1;
    }
    array_sort(&builder->processes, compare_threads);
    return builder->records.count ? order_records(builder, socket_count) : 0;
}

static uint32_t process_of(const struct builder *builder, uint32_t thread)
{
    const struct thread_process *all = builder->processes.items;
    size_t found = array_bound(0, builder->processes.count, at, all[at].thread < thread);
    return found < builder->processes.count && all[found].thread == thread ? all[found].process
                                                                           : thread;
}

// --- receives and sends --------------------------------------------------------------------------

// A call that moved bytes, from the record of its end. `begun`: the latest record of a send call
// that began on the socket, or NULL.
static struct call call_of(const struct builder *builder, const struct event *end,
                           const struct event *begun)
{
    uint32_t bytes = bytes_of(end), thread = thread_of(end);
    uint64_t after = end->payload.a;
    bool same = begun && end->kind == EVENT_SENT && thread_of(begun) == thread;
    return (struct call){.entry_tsc = same ? begun->time : end->time,
                         .exit_tsc = end->time,
                         .offset = after > bytes ? after - bytes : 0,
                         .length = after > bytes ? bytes : (uint32_t)after,
                         .connection = end->id,
                         .process = process_of(builder, thread),
                         .thread = thread,
                         .entry_core = same ? begun->core : end->core,
                         .exit_core = end->core,
                         .kind = end->kind == EVENT_SENT ? CALL_SEND : CALL_RECEIVE};
}

// The calls on one socket.
static int add_socket(struct builder *builder, size_t first, size_t end)
{
    struct connection connection = builder->sockets[builder->records.items[first].socket];
    const struct event *begun = NULL;
    connection.process = 0;
    for (size_t i = first; i < end; i++) {
        const struct event *event = builder->records.items[i].event;
        if (event->kind == EVENT_SENDING) {
            begun = event;
            continue;
        }
        struct call call = call_of(builder, event, begun);
        if (event->kind == EVENT_SENT)
            begun = NULL;
        if (!connection.process)
            connection.process = call.process;
        if (array_push(&builder->out->calls, call) < 0)
            return -1;
    }
    return connection.process ? array_push(&builder->out->connections, connection) : 0;
}

static int add_sockets(struct builder *builder)
{
    const struct call_record *records = builder->records.items;
    for (size_t first = 0, end; first < builder->records.count; first = end) {
        for (end = first;
             end < builder->records.count && records[end].socket == records[first].socket;)
            end++;
        if (add_socket(builder, first, end) < 0)
            return -1;
    }
    return 0;
}

// --- waits ---------------------------------------------------------------------------------------

// A thread that has calls, and since when it sleeps in a wait call; 0: it does not.
struct waiting {
    uint32_t thread, process;
    uint16_t core;
    uint64_t since;
};
struct waiting_array ARRAY_OF(struct waiting);

static int list_threads(const struct kernel_calls *calls, struct waiting_array *out)
{
    for (size_t i = 0; i < calls->calls.count; i++) {
        const struct call *call = &calls->calls.items[i];
        struct waiting one = {.thread = call->thread, .process = call->process};
        if ((i == 0 || call[-1].thread != call->thread) && array_push(out, one) < 0)
            return -1;
    }
    return 0;
}

static struct waiting *find_thread(const struct waiting_array *threads, uint32_t thread)
{
    size_t found = array_bound(0, threads->count, at, threads->items[at].thread < thread);
    return found < threads->count && threads->items[found].thread == thread ? &threads->items[found]
                                                                            : NULL;
}

struct switch_record {
    const struct event *event;
    uint32_t leaves; // the thread that leaves
};
struct switch_array ARRAY_OF(struct switch_record);

static int compare_switches(const void *left, const void *right)
{
    const struct switch_record *a = left, *b = right;
    return order_of(a->event->time, b->event->time) ?: order_of(a->event, b->event);
}

// The switches to and from these threads, of all cores in order of time.
static int gather_switches(const struct event *events, size_t count,
                           const struct waiting_array *threads, struct switch_array *out)
{
    uint32_t running = 0;
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &events[i];
        if (i > 0 && event->core != event[-1].core)
            running = 0;
        if (event->kind == EVENT_UNSEEN || event->kind == EVENT_WATCHED)
            running = event->id;
        if (event->kind != EVENT_SWITCH)
            continue;
        struct switch_record record = {event, running};
        running = event->id;
        bool waits = (event->flags & SWITCH_WAITS) && find_thread(threads, record.leaves);
        if ((waits || find_thread(threads, event->id)) && array_push(out, record) < 0)
            return -1;
    }
    array_sort(out, compare_switches);
    return 0;
}

static int add_wait(struct kernel_calls *out, const struct waiting *waiting,
                    const struct event *back)
{
    return array_push(&out->calls, (struct call){.entry_tsc = waiting->since,
                                                 .exit_tsc = back->time,
                                                 .process = waiting->process,
                                                 .thread = waiting->thread,
                                                 .entry_core = waiting->core,
                                                 .exit_core = back->core,
                                                 .kind = CALL_WAIT});
}

static int add_waits(struct kernel_calls *out, const struct event *events, size_t count)
{
    struct waiting_array threads = {0};
    struct switch_array switches = {0};
    int result = list_threads(out, &threads);
    if (result == 0 && threads.count)
        result = gather_switches(events, count, &threads, &switches);
    for (size_t i = 0; i < switches.count && result == 0; i++) {
        const struct event *event = switches.items[i].event;
        struct waiting *leaves =
            event->flags & SWITCH_WAITS ? find_thread(&threads, switches.items[i].leaves) : NULL;
        struct waiting *comes = find_thread(&threads, event->id);
        if (leaves)
            leaves->since = event->time, leaves->core = event->core;
        if (comes && comes->since) {
            result = add_wait(out, comes, event);
            comes->since = 0;
        }
    }
    array_free(&threads);
    array_free(&switches);
    return result;
}

int kernel_calls_build(const struct event *events, size_t count, const struct connection *sockets,
                       size_t socket_count, struct kernel_calls *out)
{
    struct builder builder = {.sockets = sockets, .out = out};
    struct connection_index index = {0};
    bool any = false;
    *out = (struct kernel_calls){0};
    for (size_t i = 0; i < count && !any; i++)
        any = is_call(&events[i]);
    if (!any)
        return 0;
    int result = connection_index_init(&index, sockets, socket_count);
    if (result == 0)
        result = gather(&builder, events, count, &index, socket_count);
    if (result == 0)
        result = add_sockets(&builder);
    array_sort(&out->calls, compare_calls);
    if (result == 0)
        result = add_waits(out, events, count);
    array_sort(&out->calls, compare_calls);
    connection_index_fini(&index);
    array_free(&builder.records);
    array_free(&builder.processes);
    return result;
}

void kernel_calls_free(struct kernel_calls *calls)
{
    array_free(&calls->calls);
    array_free(&calls->connections);
}

// --- beside the shim -----------------------------------------------------------------------------

static int compare_numbers(const void *left, const void *right)
{
    return order_of(*(const uint32_t *)left, *(const uint32_t *)right);
}

// The threads that have calls, in order.
static int list_known(const struct call *calls, size_t count, struct index_array *out)
{
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || calls[i].thread != calls[i - 1].thread) &&
            array_push(out, calls[i].thread) < 0)
            return -1;
    array_sort(out, compare_numbers);
    return 0;
}

// The connections on which bytes were moved, in order.
static int list_used(const struct call *calls, size_t count, struct index_array *out)
{
    for (size_t i = 0; i < count; i++)
        if ((calls[i].kind == CALL_RECEIVE || calls[i].kind == CALL_SEND) &&
            (out->count == 0 || calls[i].connection != out->items[out->count - 1]) &&
            array_push(out, calls[i].connection) < 0)
            return -1;
    array_sort(out, compare_numbers);
    return 0;
}

static bool is_listed(const struct index_array *list, uint32_t number)
{
    size_t found = array_bound(0, list->count, at, list->items[at] < number);
    return found < list->count && list->items[found] == number;
}

struct renamed {
    uint32_t before, now;
};
struct renamed_array ARRAY_OF(struct renamed);

static int compare_renamed(const void *left, const void *right)
{
    const struct renamed *a = left, *b = right;
    return order_of(a->before, b->before);
}

// The lowest number above that one which nobody has; `taken` is in order, from *at on not looked
// at.
static uint32_t next_free(const struct index_array *taken, size_t *at, uint32_t number)
{
    number++;
    for (; *at < taken->count && taken->items[*at] <= number; ++*at)
        number += taken->items[*at] == number;
    return number;
}

static int list_ids(const struct connection *connections, size_t count, struct index_array *out)
{
    for (size_t i = 0; i < count; i++)
        if (array_push(out, connections[i].id) < 0)
            return -1;
    array_sort(out, compare_numbers);
    return 0;
}

// Keeps the kernel's connections that no entry of the shim's table is the same side's view of; the
// calls of those of which the shim has none become those of the shim's entry.
static int keep_connections(struct kernel_calls *kernel, const struct index_array *used,
                            const struct connection *shims, size_t count,
                            struct renamed_array *renamed)
{
    uint32_t *same = malloc((kernel->connections.count + 1) * sizeof *same);
    struct index_array taken = {0}; // any number may be: the log may be damaged
    uint32_t number = 0;
    size_t kept = 0, at = 0;
    int result = same ? match_same_ends(kernel->connections.items, kernel->connections.count, shims,
                                        count, same)
                      : -1;
    if (result == 0)
        result = list_ids(shims, count, &taken);
    for (size_t i = 0; i < kernel->connections.count && result == 0; i++) {
        struct connection connection = kernel->connections.items[i];
        const bool is_adopted = same[i] < count && !is_listed(used, shims[same[i]].id);
        if (is_adopted) {
            result = array_push(renamed, ((struct renamed){connection.id, shims[same[i]].id}));
            kernel->adopted++;
        }
        if (same[i] != NO_CONNECTION)
            continue;
        number = next_free(&taken, &at, number);
        result = array_push(renamed, ((struct renamed){connection.id, number}));
        connection.id = number;
        kernel->connections.items[kept++] = connection;
    }
    kernel->connections.count = kept;
    array_sort(renamed, compare_renamed);
    array_free(&taken);
    free(same);
    return result;
}

int kernel_calls_beside_shim(struct kernel_calls *kernel, const struct call *calls, size_t count,
                             const struct connection *connections, size_t connection_count)
{
    struct index_array threads = {0}, used = {0};
    struct renamed_array renamed = {0};
    size_t kept = 0;
    int result = list_known(calls, count, &threads);
    if (result == 0)
        result = list_used(calls, count, &used);
    if (result == 0)
        result = keep_connections(kernel, &used, connections, connection_count, &renamed);
    for (size_t i = 0; i < kernel->calls.count && result == 0; i++) {
        struct call call = kernel->calls.items[i];
        size_t found =
            array_bound(0, renamed.count, at, renamed.items[at].before < call.connection);
        bool is_kept = found < renamed.count && renamed.items[found].before == call.connection;
        if (call.kind == CALL_WAIT ? is_listed(&threads, call.thread) : !is_kept)
            continue;
        if (call.kind != CALL_WAIT)
            call.connection = renamed.items[found].now;
        kernel->calls.items[kept++] = call;
    }
    kernel->calls.count = kept;
    array_free(&threads);
    array_free(&used);
    array_free(&renamed);
    return result;
}
