// SPDX-License-Identifier: MIT
#include "workloads/lab/ready_times.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// One page of each ring says how far the kernel has written, the others hold records of 16 bytes.
enum { PAGE_BYTES = 4096, RECORD_PAGES = 16, RING_BYTES = RECORD_PAGES * PAGE_BYTES };

struct ring {
    struct perf_event_mmap_page *head;
    uint64_t seen; // bytes
};

struct record {
    struct perf_event_header header;
    int64_t time_ns;
};

// sched_waking is of the core of whoever wakes it, sched_wakeup of its own. Of a core whose
// interrupts the kernel records nothing of, as some virtual machines', there is the latter only.
enum waking { WAKING, WAKEUP, WAKINGS };

static const char *const tracepoints[WAKINGS] = {"events/sched/sched_waking/id",
                                                 "events/sched/sched_wakeup/id"};

struct ready_times {
    struct ring switches;
    struct ring (*wakings)[WAKINGS]; // of each core
    size_t cores;
    int64_t ready_ns; // since when it has been ready; 0: it runs, or sleeps
    int64_t out_ns;   // when it was last switched out
};

// --- the kernel's records ------------------------------------------------------------------------

// Its id. The file system that has it is mounted nowhere on some machines: so it is mounted where
// nobody else sees it.
static int read_tracepoint(const char *path, uint64_t *id, struct error *err)
{
    char text[24] = "";
    int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), mounted = -1, file = -1;
    if (context >= 0 && syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        mounted = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
    if (mounted >= 0)
        file = openat(mounted, path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0)
        error_set_errno(err, ERROR_FAILED, "cannot read the kernel's tracepoint %s", path);
    if (file >= 0)
        close(file);
    if (mounted >= 0)
        close(mounted);
    if (context >= 0)
        close(context);
    *id = strtoull(text, NULL, 10);
    return *id ? 0 : -1;
}

static int open_ring(struct ring *ring, struct perf_event_attr *attr, pid_t thread, int core,
                     const char *filter, struct error *err)
{
    attr->size = sizeof *attr;
    attr->sample_type = PERF_SAMPLE_TIME;
    attr->sample_id_all = 1;
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC_RAW;
    const int fd = (int)syscall(SYS_perf_event_open, attr, thread, core, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot record when a thread is woken");
    void *head = MAP_FAILED;
    if (!filter || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) == 0)
        head = mmap(NULL, PAGE_BYTES + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED)
        error_set_errno(err, ERROR_FAILED, "cannot record when a thread is woken");
    close(fd); // the mapping keeps it
    ring->head = head == MAP_FAILED ? NULL : head;
    return ring->head ? 0 : -1;
}

static uint64_t written(const struct ring *ring)
{
    return __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
}

// Whether it has no room for another record: then some may have been lost.
static bool is_full(const struct ring *ring)
{
    return written(ring) - ring->seen + sizeof(struct record) >= RING_BYTES;
}

// The next record, and stays there. false: there is none.
static bool peek(const struct ring *ring, struct record *out)
{
    const char *bytes = (const char *)ring->head + PAGE_BYTES;
    if (written(ring) - ring->seen < sizeof(struct perf_event_header))
        return false;
    for (size_t i = 0; i < sizeof *out; i++)
        ((char *)out)[i] = bytes[(ring->seen + i) % RING_BYTES];
    return true;
}

static void go_on(struct ring *ring, uint64_t bytes)
{
    ring->seen += bytes;
    __atomic_store_n(&ring->head->data_tail, ring->seen, __ATOMIC_RELEASE);
}

static void skip_ring(struct ring *ring)
{
    go_on(ring, written(ring) - ring->seen);
}

static int open_rings(struct ready_times *times, struct error *err)
{
    uint64_t ids[WAKINGS];
    char filter[32];
    const pid_t thread = (pid_t)syscall(SYS_gettid);
    for (int kind = 0; kind < WAKINGS; kind++)
        if (read_tracepoint(tracepoints[kind], &ids[kind], err) < 0)
            return -1;
    snprintf(filter, sizeof filter, "pid == %d", thread);
    for (size_t i = 0; i < times->cores * WAKINGS; i++) {
        struct perf_event_attr wakings = {
            .type = PERF_TYPE_TRACEPOINT, .config = ids[i % WAKINGS], .sample_period = 1};
        if (open_ring(&times->wakings[i / WAKINGS][i % WAKINGS], &wakings, -1, (int)(i / WAKINGS),
                      filter, err) < 0)
            return -1;
    }
    struct perf_event_attr switches = {
        .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .context_switch = 1};
    return open_ring(&times->switches, &switches, 0, -1, NULL, err);
}

struct ready_times *ready_times_new(struct error *err)
{
    struct ready_times *times = calloc(1, sizeof *times);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (times && cores > 0)
        times->wakings = calloc((size_t)cores, sizeof *times->wakings);
    if (!times || !times->wakings) {
        error_set(err, ERROR_FAILED, "no memory to record when a thread is woken");
        ready_times_free(times);
        return NULL;
    }
    times->cores = (size_t)cores;
    if (open_rings(times, err) < 0) {
        ready_times_free(times);
        return NULL;
    }
    ready_times_skip(times);
    return times;
}

static void free_ring(struct ring *ring)
{
    if (ring->head)
        munmap(ring->head, PAGE_BYTES + RING_BYTES);
}

void ready_times_free(struct ready_times *times)
{
    if (!times)
        return;
    for (size_t i = 0; i < times->cores * WAKINGS; i++)
        free_ring(&times->wakings[i / WAKINGS][i % WAKINGS]);
    free_ring(&times->switches);
    free(times->wakings);
    free(times);
}

// --- what they say -------------------------------------------------------------------------------

void ready_times_skip(struct ready_times *times)
{
    if (!times)
        return;
    skip_ring(&times->switches);
    for (size_t i = 0; i < times->cores * WAKINGS; i++)
        skip_ring(&times->wakings[i / WAKINGS][i % WAKINGS]);
    times->ready_ns = times->out_ns = 0;
}

static bool none_lost(const struct ready_times *times)
{
    bool none = !is_full(&times->switches);
    for (size_t i = 0; i < times->cores * WAKINGS; i++)
        none &= !is_full(&times->wakings[i / WAKINGS][i % WAKINGS]);
    return none;
}

// When it was last woken until then, 0: never, or its record was lost.
static int64_t woken_before(struct ready_times *times, enum waking kind, int64_t until_ns)
{
    int64_t woken_ns = 0;
    for (size_t core = 0; core < times->cores; core++) {
        struct ring *ring = &times->wakings[core][kind];
        struct record record;
        while (peek(ring, &record) &&
               (record.header.type != PERF_RECORD_SAMPLE || record.time_ns <= until_ns)) {
            if (record.header.type == PERF_RECORD_SAMPLE && record.time_ns > woken_ns)
                woken_ns = record.time_ns;
            go_on(ring, record.header.size);
        }
    }
    return woken_ns;
}

static void switched_out(struct ready_times *times, const struct record *record)
{
    const bool put_aside = record->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    times->out_ns = record->time_ns;
    times->ready_ns = put_aside ? record->time_ns : 0;
}

// Who wakes a thread that is about to sleep does so before it is switched out.
static bool switched_in(struct ready_times *times, int64_t time_ns, struct ready_span *span)
{
    const int64_t waking_ns = woken_before(times, WAKING, time_ns),
                  wakeup_ns = woken_before(times, WAKEUP, time_ns),
                  woken_ns = waking_ns ? waking_ns : wakeup_ns;
    int64_t from_ns = times->ready_ns;
    if (from_ns == 0 && woken_ns != 0)
        from_ns = woken_ns < times->out_ns ? times->out_ns : woken_ns;
    *span = (struct ready_span){times->out_ns, from_ns, time_ns};
    bool began = times->out_ns != 0;
    times->ready_ns = times->out_ns = 0;
    return began;
}

size_t ready_times_take(struct ready_times *times, struct ready_span *spans, size_t most,
                        bool *whole)
{
    struct record record;
    size_t count = 0;
    *whole = !times || none_lost(times);
    while (times && peek(&times->switches, &record)) {
        struct ready_span span;
        if (record.header.type == PERF_RECORD_SWITCH &&
            (record.header.misc & PERF_RECORD_MISC_SWITCH_OUT))
            switched_out(times, &record);
        else if (record.header.type != PERF_RECORD_SWITCH)
            ;
        else if (switched_in(times, record.time_ns, &span) && count < most)
            spans[count++] = span;
        else
            *whole = false;
        go_on(&times->switches, record.header.size);
    }
    return count;
}
