// SPDX-License-Identifier: MIT
#include "analysis/timeline/pauses.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

enum { RESTART_SYSCALL = 219 };

struct system_call {
    const char *name, *words;
};

// NULL: no call of this kernel interface that is known.
static const struct system_call *system_call_of(uint32_t number)
{
    static const struct system_call calls[] = {
#define SYSTEM_CALL(number, name, words) [number] = {name, words},
#include "analysis/timeline/system_calls.tbl.h"
    };
    return number < sizeof calls / sizeof *calls && calls[number].name ? &calls[number] : NULL;
}

void pause_name(uint32_t pause, char *out, size_t out_bytes)
{
    const struct system_call *call = system_call_of(pause);
    if (pause == PAUSE_STOPPED)
        snprintf(out, out_bytes, "stopped by a signal");
    else if (pause == PAUSE_TRACED)
        snprintf(out, out_bytes, "stopped by a tracer");
    else if (pause == PAUSE_FROZEN)
        snprintf(out, out_bytes, "stopped: its control group is frozen");
    else if (pause == PAUSE_CONDITION)
        snprintf(out, out_bytes, "condition wait (futex)");
    else if (pause == PAUSE_INTERPRETER)
        snprintf(out, out_bytes, "waiting for the interpreter lock (GIL)");
    else if (pause == PAUSE_PARKED)
        snprintf(out, out_bytes, "parked by its scheduler");
    else if (pause == PAUSE_NO_CALL)
        snprintf(out, out_bytes, "blocked in a page fault");
    else if (call && call->words)
        snprintf(out, out_bytes, "%s", call->words);
    else if (call)
        snprintf(out, out_bytes, "blocked in %s", call->name);
    else
        snprintf(out, out_bytes, "blocked in system call %u", pause);
}

void system_call_name(uint32_t number, char *out, size_t out_bytes)
{
    const struct system_call *call = system_call_of(number);
    if (call)
        snprintf(out, out_bytes, "%s", call->name);
    else
        snprintf(out, out_bytes, "system call %u", number);
}

static struct thread_moment *moment_after(const struct host_timeline *host,
                                          const struct thread_stint *stint)
{
    size_t count;
    const struct thread_moment *pauses = thread_moments_of(&host->pauses, stint->thread, &count);
    size_t after = pauses ? thread_moments_before(pauses, count, stint->end_ns + 1) : 0;
    if (after == 0 || pauses[after - 1].time_ns < stint->begin_ns)
        return NULL;
    return &host->pauses.items[pauses - host->pauses.items + (ptrdiff_t)after - 1];
}

bool pause_after(const struct host_timeline *host, const struct thread_stint *stint,
                 uint32_t *pause)
{
    const struct thread_moment *moment =
        stint->left == STINT_WAITS ? NULL : moment_after(host, stint);
    if (moment)
        *pause = moment->value;
    return moment;
}

// Whether a pause goes on with the call of the last, as far as the calls tell. stopped: it was, in
// between.
static bool is_rest(const struct thread_moment *pause, const struct thread_moment *last,
                    bool stopped)
{
    return pause &&
           (pause->value == RESTART_SYSCALL || (stopped && last && pause->value == last->value));
}

// The thread's stints [first, after), where some of its pauses may be the rest of a call.
static void settle_thread(struct host_timeline *host, size_t first, size_t after)
{
    enum { RESTARTS_NS = 300000 }; // more, and it has returned from the call
    struct thread_stint *stints = host->stints.items, *last = NULL; // before it slept by itself
    struct thread_moment *call = NULL;                              // in which, unless it waits
    bool stopped = false;
    int64_t ran_ns = 0; // since
    for (size_t i = first; i < after; i++) {
        struct thread_stint *stint = &stints[i];
        struct thread_moment *pause =
            stint->left == STINT_SLEEPS ? moment_after(host, stint) : NULL;
        bool could_go_on = stint->left == STINT_PREEMPTED || stint->left == STINT_THROTTLED;
        bool stops = pause && pause_is_stop(pause->value);
        stopped |= stops;
        ran_ns += stint->end_ns - stint->begin_ns;
        if (could_go_on || stops)
            continue;
        if (last && ran_ns < RESTARTS_NS && is_rest(pause, call, stopped)) {
            last->interrupted = true;
            stint->left = last->left;
            pause->value = call ? call->value : RESTART_SYSCALL;
        }
        last = stint->left == STINT_WAITS || pause ? stint : NULL;
        call = stint->left == STINT_SLEEPS ? pause : NULL;
        stopped = false;
        ran_ns = 0;
    }
}

void pauses_settle(struct host_timeline *host)
{
    const struct thread_stint_array *stints = &host->stints;
    size_t at = 0;
    while (at < host->pauses.count && host->pauses.items[at].value != RESTART_SYSCALL &&
           !pause_is_stop(host->pauses.items[at].value))
        at++;
    if (at == host->pauses.count)
        return;
    for (size_t first = 0, after; first < stints->count; first = after) {
        after = first + 1;
        while (after < stints->count && stints->items[after].thread == stints->items[first].thread)
            after++;
        settle_thread(host, first, after);
    }
}

// For bytes: read, readv, recvfrom, recvmsg, recvmmsg, io_getevents, io_pgetevents, io_uring_enter;
// for connections: accept, accept4; for another thread's word: futex, futex_waitv, conditions; for
// a while to pass: nanosleep, clock_nanosleep; the rest of such a call: restart_syscall; for
// children and signals: wait4, waitid, pause, rt_sigtimedwait, rt_sigsuspend; for sockets: poll,
// select, epoll_wait, pselect6, ppoll, epoll_pwait, epoll_pwait2.
bool pause_may_await_work(uint32_t pause)
{
    static const uint32_t calls[] = {
        0,           19, 45,  47, 299, 208, 333, 426, 43,  288, 202, 449, 35,  230,
        219,         61, 247, 34, 128, 130, 7,   23,  232, 270, 271, 281, 441, PAUSE_CONDITION,
        PAUSE_PARKED};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == pause)
            return true;
    return false;
}

bool pause_is_for_time(uint32_t pause)
{
    enum { NANOSLEEP = 35, CLOCK_NANOSLEEP = 230 };
    return pause == NANOSLEEP || pause == CLOCK_NANOSLEEP;
}

bool pause_sends(uint32_t pause)
{
    enum { SENDTO = 44, SENDMSG = 46, SENDMMSG = 307 };
    return pause == SENDTO || pause == SENDMSG || pause == SENDMMSG;
}

bool pause_may_send(uint32_t pause)
{
    enum { WRITE = 1, WRITEV = 20, SENDFILE = 40, SPLICE = 275, PWRITEV = 296, PWRITEV2 = 328 };
    return pause_sends(pause) || pause == WRITE || pause == WRITEV || pause == SENDFILE ||
           pause == SPLICE || pause == PWRITEV || pause == PWRITEV2;
}

bool pause_changes_file(uint32_t pause)
{
    enum { PWRITE64 = 18, FTRUNCATE = 77, FALLOCATE = 285 };
    return pause == PWRITE64 || pause == FTRUNCATE || pause == FALLOCATE;
}

bool pause_moves_bytes(uint32_t pause)
{
    enum { READ = 0, WRITE, READV = 19, WRITEV, SENDFILE = 40, SPLICE = 275 };
    return pause == READ || pause == WRITE || pause == READV || pause == WRITEV ||
           pause == SENDFILE || pause == SPLICE;
}

bool pause_is_stop(uint32_t pause)
{
    return pause == PAUSE_STOPPED || pause == PAUSE_TRACED || pause == PAUSE_FROZEN;
}

bool pause_locks_file(uint32_t pause)
{
    enum { FCNTL = 72, FLOCK = 73 };
    return pause == FCNTL || pause == FLOCK;
}

bool pause_awaits_thread(uint32_t pause)
{
    enum { FUTEX = 202, FUTEX_WAITV = 449 };
    return pause == FUTEX || pause == FUTEX_WAITV || pause == PAUSE_CONDITION ||
           pause == PAUSE_INTERPRETER || pause == PAUSE_PARKED;
}

// A thread's faults of one kind, what one costs at least, and how much of that comes before the
// kernel's handler has begun.
struct fault_list {
    const struct thread_moment *items;
    size_t count;
    int64_t least_ns, before_ns;
};

// Whether a fault is followed by the next within this time, and the length of both is known.
static bool followed(const struct fault_list *faults, size_t at, int64_t within_ns)
{
    const struct thread_moment *fault = &faults->items[at];
    return at + 1 < faults->count && fault->value &&
           fault[1].time_ns - fault->time_ns - fault->value < within_ns;
}

enum { STORM_SIDE = 4, STORM_FAULTS = 2 * STORM_SIDE + 2, STORM_STRAYS = 2 };

// Whether faults come one after another around this one and the next: the program hardly gets
// further than to the next page. `before`: how many faults there are to be before this one; as many
// as make STORM_FAULTS follow. What the kernel takes for a page, as to read it from a disk, says
// nothing of what the program does between; a few may be further apart, as where a thread that
// slept for its page comes back to a core that others had meanwhile.
static bool in_storm(const struct fault_list *faults, size_t at, size_t before)
{
    const int64_t within_ns = PAGE_FAULT_PAUSE_NS / STORM_SIDE + faults->least_ns;
    const size_t first = at - before, last = first + STORM_FAULTS - 1;
    int strays = 0;
    if (at < before || last >= faults->count)
        return false;
    for (size_t i = first; i < last; i++)
        strays += i != at && faults->items[i + 1].time_ns - faults->items[i].time_ns -
                                     faults->items[i].value >=
                                 within_ns;
    return strays <= STORM_STRAYS;
}

static bool amid_storm(const struct fault_list *faults, size_t at)
{
    return in_storm(faults, at, STORM_SIDE);
}

// Whether a storm begins or ends with this fault and the next, or a few further.
static bool at_storms_edge(const struct fault_list *faults, size_t at)
{
    for (size_t before = 0; before <= STORM_FAULTS - 2; before++)
        if (before != STORM_SIDE && in_storm(faults, at, before))
            return true;
    return false;
}

// What one of them costs outside of the kernel's handler is uneven, the more so when the thread is
// new on its core: up to some times what one costs that is the storm's, amid it also a pause of
// PAGE_FAULT_PAUSE_NS.
static bool lasts_until_next(const struct fault_list *faults, size_t at)
{
    const int64_t once_ns = faults->least_ns, uneven_ns = STORM_SIDE * once_ns;
    const struct thread_moment *fault = &faults->items[at];
    if (!fault->value) // what it costs is at least half of the time until the next one
        return at + 1 < faults->count && fault[1].time_ns - fault->time_ns < 2 * once_ns;
    return followed(faults, at, PAGE_FAULT_STORM_NS + once_ns) ||
           (followed(faults, at, PAGE_FAULT_PAUSE_NS + uneven_ns) && amid_storm(faults, at)) ||
           (followed(faults, at, PAGE_FAULT_STORM_NS + uneven_ns) && at_storms_edge(faults, at));
}

// Whether its handler took longer than all of a fault does as a rule: its thread slept for the
// page, or the kernel had to find it.
static bool took_long(const struct fault_list *faults, size_t at)
{
    return faults->least_ns > PAGE_FAULT_RETURN_NS && faults->items[at].value > faults->least_ns;
}

static int compare_times(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return order_of(*a, *b);
}

// How long after its handler a fault lasts as a rule, by those alike of the thread's latest that
// lasted until their next: who comes back to a core that others had while it slept for its page
// pays some times what the others do. Without what is the next one's. 0: there were too few.
static int64_t usual_rest_ns(const struct fault_list *faults, size_t at)
{
    enum { LATEST = 64, ALIKE = 3 };
    int64_t rests_ns[LATEST];
    size_t count = 0;
    const bool is_long = took_long(faults, at);
    for (size_t i = at > LATEST ? at - LATEST : 0; i < at; i++)
        if (took_long(faults, i) == is_long && lasts_until_next(faults, i))
            rests_ns[count++] = faults->items[i + 1].time_ns - faults->items[i].time_ns -
                                faults->items[i].value - faults->before_ns;
    if (count < ALIKE)
        return 0;
    qsort(rests_ns, count, sizeof *rests_ns, compare_times);
    return rests_ns[(count - 1) / 2];
}

// When a fault of a thread's list is over. Where its handler took longer than all of a fault does
// as a rule, what lies outside of the handler comes on top.
static int64_t fault_end(const struct fault_list *faults, size_t at)
{
    const struct thread_moment *fault = &faults->items[at];
    int64_t length =
        fault->value ? fault->value + PAGE_FAULT_RETURN_NS : (int64_t)PAGE_FAULT_MOST_NS;
    if (lasts_until_next(faults, at))
        return fault[1].time_ns;
    if (took_long(faults, at))
        length = fault->value + faults->least_ns;
    int64_t usual_ns = fault->value + usual_rest_ns(faults, at);
    length = length < usual_ns ? usual_ns : length;
    int64_t to = fault->time_ns + (length < faults->least_ns ? faults->least_ns : length);
    return at + 1 < faults->count && fault[1].time_ns < to ? fault[1].time_ns : to;
}

struct thread_pages thread_pages_of(const struct host_timeline *host, uint32_t thread)
{
    struct thread_pages pages = {.faults = NULL};
    if (host) {
        pages.faults = thread_moments_of(&host->faults, thread, &pages.fault_count);
        pages.copies = thread_moments_of(&host->copies, thread, &pages.copy_count);
        pages.least_ns = host->page_fault_ns;
        pages.before_ns = host->page_fault_before_ns;
    }
    return pages;
}

static double faults_ns(const struct fault_list *faults, int64_t begin_ns, int64_t end_ns)
{
    size_t i = faults->count ? thread_moments_before(faults->items, faults->count, begin_ns) : 0;
    int64_t sum = 0, last_ns = INT64_MIN;
    for (i -= i > 0; i < faults->count && faults->items[i].time_ns - faults->before_ns < end_ns;
         i++) {
        int64_t from = faults->items[i].time_ns - faults->before_ns, to = fault_end(faults, i);
        from = from < last_ns ? last_ns : from;
        from = from < begin_ns ? begin_ns : from;
        last_ns = to;
        to = to > end_ns ? end_ns : to;
        sum += to > from ? to - from : 0;
    }
    return (double)sum;
}

double page_fault_ns(const struct thread_pages *pages, int64_t begin_ns, int64_t end_ns)
{
    const struct fault_list faults = {pages->faults, pages->fault_count, pages->least_ns,
                                      pages->before_ns};
    return faults_ns(&faults, begin_ns, end_ns);
}

int64_t page_fault_end_ns(const struct thread_pages *pages, int64_t before_ns)
{
    const struct fault_list faults = {pages->faults, pages->fault_count, pages->least_ns,
                                      pages->before_ns};
    size_t i = faults.count ? thread_moments_before(faults.items, faults.count, before_ns) : 0;
    return i > 0 ? fault_end(&faults, i - 1) : 0;
}

double page_copy_ns(const struct thread_pages *pages, int64_t begin_ns, int64_t end_ns)
{
    const struct fault_list copies = {pages->copies, pages->copy_count, pages->least_ns,
                                      pages->before_ns};
    return faults_ns(&copies, begin_ns, end_ns);
}
