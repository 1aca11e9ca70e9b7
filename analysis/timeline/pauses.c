// SPDX-License-Identifier: MIT
#include "analysis/timeline/pauses.h"

#include <stdio.h>

// The calls that servers sleep in. Recordings are of x86-64.
static const struct {
    uint32_t call;
    const char *name;
} names[] = {
    {PAUSE_STOPPED, "stopped by a signal"},
    {PAUSE_NO_CALL, "blocked in a page fault"},
    {202, "lock wait (futex)"},
    {449, "lock wait (futex)"},
    {35, "sleeping"},
    {230, "sleeping"},
    {0, "blocked in read"},
    {1, "blocked in write"},
    {17, "blocked in pread"},
    {18, "blocked in pwrite"},
    {19, "blocked in readv"},
    {20, "blocked in writev"},
    {26, "blocked in msync"},
    {40, "blocked in sendfile"},
    {44, "blocked in sendto"},
    {45, "blocked in recvfrom"},
    {46, "blocked in sendmsg"},
    {47, "blocked in recvmsg"},
    {61, "blocked in wait4"},
    {73, "lock wait (flock)"},
    {74, "blocked in fsync"},
    {75, "blocked in fdatasync"},
    {208, "blocked in io_getevents"},
    {257, "blocked in openat"},
    {426, "blocked in io_uring_enter"},
};

void pause_name(uint32_t pause, char *out, size_t out_bytes)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].call == pause) {
            snprintf(out, out_bytes, "%s", names[i].name);
            return;
        }
    }
    snprintf(out, out_bytes, "blocked in system call %u", pause);
}

bool pause_after(const struct host_timeline *host, const struct thread_stint *stint,
                 uint32_t *pause)
{
    size_t count;
    const struct thread_moment *pauses = thread_moments_of(&host->pauses, stint->thread, &count);
    size_t after = pauses ? thread_moments_before(pauses, count, stint->end_ns + 1) : 0;
    if (after == 0 || pauses[after - 1].time_ns < stint->begin_ns)
        return false;
    *pause = pauses[after - 1].value;
    return true;
}

// Whether a fault is followed by the next within this time, and the length of both is known.
static bool followed(const struct thread_moment *faults, size_t count, size_t at, int64_t within_ns)
{
    return at + 1 < count && faults[at].value &&
           faults[at + 1].time_ns - faults[at].time_ns - faults[at].value < within_ns;
}

// Whether faults come one after another around this one: the program hardly gets further than to
// the next page.
static bool amid_storm(const struct thread_moment *faults, size_t count, size_t at)
{
    enum { AROUND = 4 };
    return at >= AROUND && at + 1 + AROUND < count &&
           faults[at].time_ns - faults[at - AROUND].time_ns < PAGE_FAULT_PAUSE_NS &&
           faults[at + 1 + AROUND].time_ns - faults[at + 1].time_ns < PAGE_FAULT_PAUSE_NS;
}

// When a fault of a thread's list is over.
static int64_t fault_end(const struct thread_moment *faults, size_t count, size_t at)
{
    const struct thread_moment *fault = &faults[at];
    int64_t to =
        fault->time_ns + fault->value + (fault->value ? PAGE_FAULT_RETURN_NS : PAGE_FAULT_MOST_NS);
    if ((at + 1 < count && faults[at + 1].time_ns < to) ||
        followed(faults, count, at, PAGE_FAULT_STORM_NS) ||
        (followed(faults, count, at, PAGE_FAULT_PAUSE_NS) && amid_storm(faults, count, at)))
        to = faults[at + 1].time_ns;
    return to;
}

double page_fault_ns(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns)
{
    size_t count = 0;
    const struct thread_moment *faults =
        host ? thread_moments_of(&host->faults, thread, &count) : NULL;
    size_t i = faults ? thread_moments_before(faults, count, begin_ns) : 0;
    int64_t sum = 0;
    for (i -= i > 0; i < count && faults[i].time_ns < end_ns; i++) {
        int64_t from = faults[i].time_ns, to = fault_end(faults, count, i);
        from = from < begin_ns ? begin_ns : from;
        to = to > end_ns ? end_ns : to;
        sum += to > from ? to - from : 0;
    }
    return (double)sum;
}
