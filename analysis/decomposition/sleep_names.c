// SPDX-License-Identifier: MIT
#include "analysis/decomposition/sleep_names.h"

#include <stdio.h>
#include <string.h>

#include "analysis/timeline/call_files.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"
#include "base/text.h"

// The function that called the scheduler, inside which whoever records switches may be at work;
// else the innermost.
static void find_function(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct sweep *sweep = opaque;
    const struct component_table *table = sweep->decomposer->table;
    (void)begin_ns;
    (void)end_ns;
    bool scheduler = false; // the function before, further in, was its
    sweep->gap_function = NULL;
    for (unsigned at = depth; at > 0 && open[at - 1]->kind == SPAN_FUNCTION; at--) {
        const char *name = table->host->names.items[open[at - 1]->name];
        const char *category = categories_of_function(table->categories, name, true);
        bool inside = category && strcmp(category, "scheduling") == 0;
        if (inside)
            sweep->gap_function = NULL;
        else if (!sweep->gap_function)
            sweep->gap_function = name;
        if (scheduler && !inside)
            return;
        scheduler = inside;
    }
}

// The function in which a thread left its core, where functions are traced; NULL: not known.
static const char *function_left_in(struct sweep *sweep, const struct thread_stint *before)
{
    const struct core_timeline *core =
        host_timeline_core(sweep->decomposer->in->server, before->core);
    sweep->gap_function = NULL;
    if (core && core_timeline_traced(core, before->end_ns - 1, before->end_ns))
        core_timeline_stacks(core, before->end_ns - 1, before->end_ns, find_function, sweep);
    return sweep->gap_function;
}

// Who sent the signal that has stopped a thread: the latest one that its process got.
static void append_sender(const struct host_timeline *host, const struct thread_stint *before,
                          char out[CAUSE_NAME_BYTES])
{
    const struct thread_owner *owner = host_timeline_owner(host, before->thread);
    size_t count = 0;
    const struct thread_moment *stops =
        thread_moments_of(&host->stops, owner ? owner->process : before->thread, &count);
    size_t after = stops ? thread_moments_before(stops, count, before->end_ns) : 0;
    if (after > 0)
        text_append(out, CAUSE_NAME_BYTES, " of %s", host->names.items[stops[after - 1].value]);
}

bool sleep_call_name(const struct host_timeline *host, const struct thread_stint *before,
                     char out[CAUSE_NAME_BYTES])
{
    uint32_t pause;
    out[0] = '\0';
    if (!pause_after(host, before, &pause))
        return false;
    pause_name(pause, out, CAUSE_NAME_BYTES);
    call_file_append(host, before, pause, out, CAUSE_NAME_BYTES);
    if (pause == PAUSE_STOPPED)
        append_sender(host, before, out);
    return true;
}

void sleep_name(struct sweep *sweep, const struct thread_stint *before, char out[CAUSE_NAME_BYTES])
{
    const char *function;
    bool known = sleep_call_name(sweep->decomposer->in->server, before, out);
    if (!known && before->left != STINT_WAITS && (function = function_left_in(sweep, before)))
        snprintf(out, CAUSE_NAME_BYTES, "asleep in %s", function);
}

bool sleep_awaits_socket(const struct host_timeline *host, const struct thread_stint *before)
{
    static const uint16_t calls[] = {0, 7, 19, 23, 42, 45, 47,      // read, poll, readv, select,
                                                                    // connect, recvfrom, recvmsg
                                     232, 270, 271, 281, 299, 441}; // epoll_wait, pselect6, ppoll,
                                                                    // epoll_pwait, recvmmsg, ...2
    uint32_t pause;
    if (!before || before->left == STINT_WAITS || !pause_after(host, before, &pause))
        return before != NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (pause == calls[i])
            return true;
    return false;
}

bool sleep_is_stop(const char *sleep)
{
    return strncmp(sleep, "stopped", 7) == 0;
}

// The lock without which no thread runs code of the interpreter: each asks for it again after some
// milliseconds.
static bool is_interpreter_lock(const char *sleep)
{
    return strncmp(sleep, "waiting for the interpreter lock", 32) == 0;
}

bool sleep_is_parked(const char *sleep)
{
    return strncmp(sleep, "parked by its scheduler", 23) == 0;
}

static bool is_lock(const char *sleep)
{
    return strncmp(sleep, "lock wait", 9) == 0 || is_interpreter_lock(sleep);
}

static bool awaits_thread(const char *sleep)
{
    return is_lock(sleep) || strncmp(sleep, "condition wait", 14) == 0;
}

bool sleep_is_for_memory(const char *sleep)
{
    static const char *const calls[] = {"mmap",  "munmap",  "mremap", "mprotect",
                                        "mlock", "madvise", "brk",    "a page fault"};
    static const char blocked[] = "blocked in ";
    const size_t skip = sizeof blocked - 1;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strncmp(sleep, blocked, skip) == 0 && strcmp(sleep + skip, calls[i]) == 0)
            return true;
    return false;
}

// A close that sleeps, with SO_LINGER, does so until the other end has all, or for that long.
static bool lingers(const char *sleep)
{
    return strcmp(sleep, "blocked in close") == 0;
}

// A packet ended the sleep: what it brought, or made room for, on which connection.
static void name_packet(const char *sleep, char out[CAUSE_NAME_BYTES])
{
    const char *from = strstr(sleep, " from "), *to = strstr(sleep, " to ");
    size_t call = from ? (size_t)(from - sleep) : to ? (size_t)(to - sleep) : strlen(sleep);
    bool sends = memmem(sleep, call, "write", 5) || memmem(sleep, call, "send", 4);
    out[0] = '\0';
    if (lingers(sleep)) {
        text_append(out, CAUSE_NAME_BYTES, "%s until the rest was taken", sleep);
        return;
    }
    text_append(out, CAUSE_NAME_BYTES, "%s%s",
                sends ? "waiting for room to send" : "waiting for a packet", from ?: to ?: "");
}

bool sleep_sends(const struct sweep *sweep, const struct thread_stint *before)
{
    const struct application_calls *all = sweep->decomposer->in->calls;
    uint32_t pause;
    size_t count = 0;
    if (before->left == STINT_WAITS || !pause_after(sweep->decomposer->in->server, before, &pause))
        return false;
    if (pause_sends(pause) || !pause_may_send(pause))
        return pause_sends(pause);
    const struct application_call *calls =
        all ? application_calls_of(all, before->thread, &count) : NULL;
    size_t after = calls ? application_calls_after(calls, count, before->end_ns) : 0;
    return after > 0 && calls[after - 1].kind == CALL_SEND &&
           calls[after - 1].exit_ns >= before->end_ns;
}

void sleep_room_name(const char *sleep, enum waker_kind kind, char out[CAUSE_NAME_BYTES])
{
    const char *to = strstr(sleep, " to ");
    out[0] = '\0';
    text_append(out, CAUSE_NAME_BYTES, "waiting for room to send%s%s", to ? to : "",
                kind == WAKER_TIMER ? ", timed out" : "");
}

bool sleep_polled_name(const struct host_timeline *host, const struct thread_stint *before,
                       enum waker_kind kind, char out[CAUSE_NAME_BYTES])
{
    const char *peer = call_polled_peer(host, before);
    if (!peer || (kind != WAKER_PACKET && kind != WAKER_TIMER))
        return false;
    snprintf(out, CAUSE_NAME_BYTES, "waiting for a packet from %s%s", peer,
             kind == WAKER_TIMER ? ", timed out" : "");
    return true;
}

// A call that took bytes from a client or gave it some; one that found none is not.
static bool moves_bytes(const struct application_call *call)
{
    return (call->kind == CALL_RECEIVE || call->kind == CALL_SEND) && call->length > 0;
}

// Whether one client has the thread to itself at the calls before `after`, as a database's: of the
// last calls none is another's but those of clients that it served before, one after the other.
static bool serves_alone(const struct application_call *calls, size_t after, uint32_t connection)
{
    enum { LOOKED_AT = 32, MOST_BEFORE = 8 };
    uint32_t before[MOST_BEFORE];
    unsigned known = 0, words = 0;
    for (size_t at = after; at > 0 && after - at < LOOKED_AT; at--) {
        const struct application_call *call = &calls[at - 1];
        if (!moves_bytes(call) || (known && before[known - 1] == call->connection))
            continue;
        if (call->connection == connection && known == 0) {
            words += call->kind == CALL_RECEIVE;
            continue;
        }
        for (unsigned i = 0; i < known; i++)
            if (before[i] == call->connection)
                return false;
        if (call->connection == connection || known == MOST_BEFORE)
            return false;
        before[known++] = call->connection;
    }
    return words > 1 || known == 0; // a loop comes back to the same one now and then
}

// Whether that client was the last to get something, and is the next to say something.
static bool between_words(const struct application_call *calls, size_t count, size_t after)
{
    size_t last = after, next = after;
    while (last > 0 && !moves_bytes(&calls[last - 1]))
        last--;
    while (next < count && !moves_bytes(&calls[next]))
        next++;
    return last > 0 && next < count && calls[last - 1].kind == CALL_SEND &&
           calls[next].kind == CALL_RECEIVE &&
           calls[last - 1].connection == calls[next].connection &&
           serves_alone(calls, last, calls[next].connection);
}

bool sleep_client_name(const struct sweep *sweep, const struct thread_stint *before,
                       enum waker_kind kind, bool awaited, char out[CAUSE_NAME_BYTES])
{
    const struct application_calls *all = sweep->decomposer->in->calls;
    size_t count = 0;
    const struct application_call *calls =
        all && kind == WAKER_PACKET ? application_calls_of(all, before->thread, &count) : NULL;
    size_t after = calls ? application_calls_after(calls, count, before->end_ns) : 0;
    if (after == 0)
        return false;
    const struct application_call *call = &calls[after - 1];
    bool reads =
        before->left != STINT_WAITS && call->kind == CALL_RECEIVE && call->exit_ns > before->end_ns;
    if (!reads && (!awaited || before->left != STINT_WAITS || !between_words(calls, count, after)))
        return false;
    snprintf(out, CAUSE_NAME_BYTES, "waiting for its client to go on");
    return true;
}

bool sleep_stops_the_world(const char *who)
{
    static const char *const names[] = {"VM Thread", "GC Thread", "G1 ",     "G1_",       "ZWorker",
                                        "ZDriver",   "XWorker",   "XDriver", "Shenandoah"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(who, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

// Whether nobody woke a thread between two moments.
static bool unwoken_between(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                            int64_t end_ns)
{
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, thread, &count);
    size_t next = array_bound(0, count, at, wakings[at].time_ns <= begin_ns);
    return next == count || wakings[next].time_ns >= end_ns;
}

void sleep_name_inspector(const struct host_timeline *host, uint32_t thread, int64_t until_ns,
                          char who[CAUSE_NAME_BYTES])
{
    enum { MOST_WAKINGS = 256 };
    static const char *const inspectors[] = {"Attach Listener", "Signal Dispatch"};
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, thread, &count);
    size_t after = array_bound(0, count, at, wakings[at].time_ns < until_ns);
    for (size_t at = after; at > 0 && after - at < MOST_WAKINGS; at--) {
        const struct waking *waking = &wakings[at - 1];
        const struct span *span = thread_span_before(host, waking->waker, waking->time_ns);
        const char *name = span ? host->names.items[span->name] : "", *own = strchr(name, ':');
        own = own ? own + 1 : name;
        for (size_t i = 0; i < sizeof inspectors / sizeof *inspectors; i++)
            if (strncmp(own, inspectors[i], strlen(inspectors[i])) == 0 &&
                unwoken_between(host, waking->waker, waking->time_ns, until_ns)) {
                text_append(who, CAUSE_NAME_BYTES, " for %s", inspectors[i]);
                return;
            }
    }
}

void sleep_ended_name(const char *sleep, enum waker_kind kind, const char *who,
                      char out[CAUSE_NAME_BYTES])
{
    bool known = sleep[0] != '\0';
    const size_t bytes = CAUSE_NAME_BYTES;
    if (kind == WAKER_THREAD && strcmp(sleep, "stopped by a tracer") == 0)
        snprintf(out, bytes, "%s (%s)", sleep, who);
    else if (kind == WAKER_THREAD && strcmp(sleep, "stopped by a signal") == 0)
        snprintf(out, bytes, "%s (continued by %s)", sleep, who);
    else if (kind == WAKER_THREAD && strcmp(sleep, "stopped: its control group is frozen") == 0)
        snprintf(out, bytes, "%s (thawed by %s)", sleep, who);
    else if (sleep_is_stop(sleep) || (kind == WAKER_UNKNOWN && known) ||
             (kind == WAKER_TIMER && is_interpreter_lock(sleep)))
        snprintf(out, bytes, "%s", sleep);
    else if (kind == WAKER_UNKNOWN)
        snprintf(out, bytes, "unknown wait");
    else if (kind == WAKER_PACKET)
        name_packet(sleep, out);
    else if (kind == WAKER_TIMER && !known)
        snprintf(out, bytes, "waiting for a timer");
    else if (kind == WAKER_TIMER)
        snprintf(out, bytes,
                 strcmp(sleep, "sleeping") == 0 ? "%s (timer)"
                 : lingers(sleep)               ? "%s until the rest was taken, timed out"
                                                : "%s, timed out",
                 sleep);
    else if (kind == WAKER_THREAD && awaits_thread(sleep) && sleep_stops_the_world(who))
        snprintf(out, bytes, "stop-the-world pause (%s)", who);
    else if (!known)
        snprintf(out, bytes, "waiting for %s", who);
    else if (kind == WAKER_THREAD)
        snprintf(out, bytes, is_lock(sleep) ? "%s: held by %s" : "%s: %s", sleep, who);
    else
        snprintf(out, bytes, "%s (%s)", sleep, who);
}

bool sleep_serves_disks(const struct component_table *table, const char *name)
{
    const char *category = categories_of_context(table->categories, SPAN_TASK, name);
    return strncmp(name, "kworker", 7) == 0 || (category && strcmp(category, "block I/O") == 0);
}

bool sleep_is_kernel_thread(const struct component_table *table, const char *name)
{
    const char *category = categories_of_context(table->categories, SPAN_TASK, name);
    return category && strcmp(category, "OS threads") == 0;
}

static void take_outermost(const struct span *const *open, unsigned depth, int64_t begin_ns,
                           int64_t end_ns, void *context)
{
    (void)begin_ns;
    (void)end_ns;
    *(const struct span **)context = depth ? open[0] : NULL;
}

// The name of the thread that had a stint.
static const char *name_of_stint(const struct host_timeline *host, const struct thread_stint *stint)
{
    const struct core_timeline *core = host_timeline_core(host, stint->core);
    const struct span *task = NULL;
    if (core)
        core_timeline_stacks(core, stint->begin_ns, stint->begin_ns + 1, take_outermost, &task);
    return task ? host->names.items[task->name] : "";
}

// Whether "memcached:mc-worker" and "memcached" are names of one process.
static bool is_of_process(const char *one, const char *other)
{
    size_t length = strcspn(one, ":");
    return strcspn(other, ":") == length && strncmp(one, other, length) == 0;
}

bool sleep_same_process(const struct host_timeline *host, uint32_t one, uint32_t other)
{
    const struct thread_owner *a = host_timeline_owner(host, one);
    const struct thread_owner *b = host_timeline_owner(host, other);
    return a && b && a->process == b->process;
}

void sleep_waker_name(const struct sweep *sweep, const struct waker *waker,
                      const struct thread_stint *before, char out[CAUSE_NAME_BYTES])
{
    const struct host_timeline *host = sweep->decomposer->in->server;
    const char *name = waker->span ? host->names.items[waker->span->name] : "", *own;
    const char *sleeper = waker->kind == WAKER_THREAD ? name_of_stint(host, before) : "";
    int length = component_family_length(name);
    bool kin = name[0] && component_family_length(sleeper) == length &&
               strncmp(name, sleeper, (size_t)length) == 0;
    if (waker->kind == WAKER_BLOCK)
        snprintf(out, CAUSE_NAME_BYTES, "block device");
    else if (waker->kind == WAKER_KERNEL)
        snprintf(out, CAUSE_NAME_BYTES, "%.50s %s", name, span_kind_word(waker->span->kind));
    else if (waker->kind == WAKER_THREAD && (own = memchr(name, ':', (size_t)length)) &&
             (is_of_process(name, sleeper) ||
              sleep_same_process(host, waker->thread, before->thread)))
        snprintf(out, CAUSE_NAME_BYTES, "%.*s", (int)(name + length - own - 1), own + 1);
    else
        snprintf(out, CAUSE_NAME_BYTES, "%.*s", length, name);
    if (kin && waker->thread != sweep->thread)
        text_append(out, CAUSE_NAME_BYTES, " (another %s)",
                    sleep_same_process(host, waker->thread, sweep->thread) ? "thread" : "process");
}
