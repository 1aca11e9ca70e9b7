// SPDX-License-Identifier: MIT
#include "analysis/pauses.h"

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

bool pause_after(const struct host_timeline *host, const struct thread_run *run, uint32_t *pause)
{
    size_t count;
    const struct thread_moment *pauses = thread_moments_of(&host->pauses, run->thread, &count);
    size_t after = pauses ? thread_moments_before(pauses, count, run->end_ns + 1) : 0;
    if (after == 0 || pauses[after - 1].time_ns < run->begin_ns)
        return false;
    *pause = pauses[after - 1].value;
    return true;
}

double page_fault_ns(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns)
{
    size_t count = 0;
    const struct thread_moment *faults =
        host ? thread_moments_of(&host->faults, thread, &count) : NULL;
    size_t i = faults ? thread_moments_before(faults, count, begin_ns - PAGE_FAULT_MOST_NS) : 0;
    int64_t sum = 0;
    for (; i < count && faults[i].time_ns < end_ns; i++) {
        int64_t from = faults[i].time_ns, to = from + PAGE_FAULT_MOST_NS;
        if (i + 1 < count && faults[i + 1].time_ns < to)
            to = faults[i + 1].time_ns;
        from = from < begin_ns ? begin_ns : from;
        to = to > end_ns ? end_ns : to;
        sum += to > from ? to - from : 0;
    }
    return (double)sum;
}
