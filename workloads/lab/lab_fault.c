// SPDX-License-Identifier: MIT
#include "workloads/lab/lab_fault.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

// --- the log of faults ---------------------------------------------------------------------------

int fault_log_open(struct fault_log *log, const char *path, struct error *err)
{
    const size_t bytes = (size_t)FAULT_LOG_LINES * FAULT_LOG_LINE_BYTES;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot write the fault log %s", path);
    *log = (struct fault_log){.lines = MAP_FAILED};
    if (ftruncate(fd, (off_t)bytes) == 0)
        log->lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (log->lines == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "cannot map the fault log %s", path);
    memset(log->lines, 0, bytes); // its first writes must not fault
    return 0;
}

enum { NUMBER_BYTES = 20 };

static void put_number(char field[NUMBER_BYTES], int64_t value)
{
    for (size_t at = NUMBER_BYTES; at-- > 0; value /= 10)
        field[at] = value > 0 || at + 1 == NUMBER_BYTES ? (char)('0' + value % 10) : ' ';
}

// Without printf(): who adds a line is being measured, and after a fault whose caches are cold that
// takes some microseconds, which would be no part of the fault.
void fault_log_add(struct fault_log *log, int64_t begin_ns, int64_t end_ns, const char *kind)
{
    enum { KIND_AT = 2 * (NUMBER_BYTES + 1), KIND_BYTES = FAULT_LOG_LINE_BYTES - KIND_AT - 1 };
    uint32_t number = __atomic_fetch_add(&log->used, 1, __ATOMIC_RELAXED);
    if (number >= FAULT_LOG_LINES)
        return;
    char *line = log->lines + (size_t)number * FAULT_LOG_LINE_BYTES;
    memset(line, ' ', FAULT_LOG_LINE_BYTES);
    put_number(line, begin_ns);
    put_number(line + NUMBER_BYTES + 1, end_ns);
    memcpy(line + KIND_AT, kind, strnlen(kind, KIND_BYTES));
    line[FAULT_LOG_LINE_BYTES - 1] = '\n';
}

int64_t fault_log_now(void)
{
    return clock_now_ns(CLOCK_MONOTONIC_RAW);
}

enum { PAGE_BYTES = 4096, EXTRA_CALL_NS = 2000 };
enum { WRITTEN_BYTES = 4 << 20, SYNCED_BYTES = 4 * WRITTEN_BYTES, MEMORY_BYTES = 256 << 20 };
enum { MOST_SPANS = 1024 }; // of one call
enum { MOST_FILLED_BYTES = 128 << 20, SWAPPED_BYTES = 128 << 20 };

static const size_t fresh_bytes = (size_t)1 << 30; // bytes of address space; used at some 4 GB/s

static const char *const kind_names[] = {
    [LAB_FAULT_NONE] = "none",       [LAB_FAULT_SLOW] = "slow",     [LAB_FAULT_CALLS] = "calls",
    [LAB_FAULT_PAGES] = "pages",     [LAB_FAULT_HALVES] = "halves", [LAB_FAULT_SYNC] = "sync",
    [LAB_FAULT_FORK] = "fork",       [LAB_FAULT_SWAP] = "swap",     [LAB_FAULT_LOCK] = "lock",
    [LAB_FAULT_COMPACT] = "compact", [LAB_FAULT_DEAF] = "deaf",     [LAB_FAULT_COLLECT] = "collect",
    [LAB_FAULT_SYN] = "syn",         [LAB_FAULT_KERNEL] = "kernel", [LAB_FAULT_ROOM] = "room",
};

int lab_fault_parse(const char *text, struct lab_fault *fault, struct error *err)
{
    char kind[16], length[24], every[24];
    if (sscanf(text, "%15[a-z],%23[^,],%23s", kind, length, every) != 3)
        return error_set(err, ERROR_INPUT,
                         "--fault: \"%s\" is not KIND,LENGTH,EVERY, such as slow,1ms,20ms", text);
    if (units_parse_duration_ns(length, &fault->length_ns, err) < 0 ||
        units_parse_duration_ns(every, &fault->every_ns, err) < 0)
        return error_prefix(err, "--fault");
    if (fault->length_ns == 0 || fault->length_ns >= fault->every_ns)
        return error_set(err, ERROR_INPUT, "--fault: LENGTH must be more than 0, less than EVERY");
    for (int k = LAB_FAULT_SLOW; k <= LAB_FAULT_COLLECT; k++) {
        if (strcmp(kind, kind_names[k]) == 0) {
            fault->kind = (enum lab_fault_kind)k;
            return 0;
        }
    }
    return error_set(err, ERROR_INPUT,
                     "--fault: \"%s\" is none of slow, calls, pages, halves, sync, fork, swap, "
                     "compact, kernel, lock, deaf, syn, "
                     "collect, room",
                     kind);
}

// Most of it is its own work, some 100 ns between two looks at the clock: what takes samples is to
// find this function, also where the machine takes its time to tell the time. Written out, for a
// trace would hold every turn of a loop.
static __attribute__((noinline)) int64_t slow_function(int64_t until_ns)
{
    enum { OWN_STEPS = 128 };
    int64_t now = fault_log_now();
    uint64_t work = (uint64_t)now;
    while (now < until_ns) {
#pragma GCC unroll 128
        for (int step = 0; step < OWN_STEPS; step++) {
            work *= 0x9e3779b97f4a7c15u;       // 3 to 4 cycles
            __asm__ volatile("" : "+r"(work)); // each step waits for the one before
        }
        now = fault_log_now();
    }
    return now;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

// Of the thread that calls it first, which is the only one that asks.
static void watch_ready(struct lab_fault *fault)
{
    struct error err = {0};
    if (fault->watched)
        return;
    fault->watched = true;
    fault->spans = calloc(MOST_SPANS, sizeof *fault->spans);
    if (!fault->spans) {
        error_set(&err, ERROR_FAILED, "no memory to note when a thread is woken");
    } else {
        memset(fault->spans, 1, MOST_SPANS * sizeof *fault->spans); // later uses must not fault
        fault->ready = ready_times_new(&err);
    }
    if (!fault->ready)
        fprintf(stderr, "labserver: %s: the log calls it waiting, too\n", err.text);
}

// What the kernel has recorded of the thread since the call began, into `spans`.
static size_t take_spans(struct lab_fault *fault, int64_t begin_ns, int64_t end_ns)
{
    bool whole;
    size_t count = ready_times_take(fault->ready, fault->spans, MOST_SPANS, &whole);
    if (!whole)
        fault_log_add(&fault->log, begin_ns, end_ns, FAULT_LOG_UNTOLD);
    for (size_t i = 0; i < count; i++)
        if (fault->spans[i].begin_ns == 0)
            fault_log_add(&fault->log, fault->spans[i].out_ns, fault->spans[i].end_ns,
                          FAULT_LOG_UNTOLD);
    return count;
}

// Notes what of that time the thread had to wait for, and when it was only kept from going on.
static void note_wait(struct lab_fault *fault, int64_t begin_ns, int64_t end_ns)
{
    const struct ready_span *ready = fault->spans;
    size_t count = take_spans(fault, begin_ns, end_ns);
    for (size_t i = 0; i < count && begin_ns < end_ns; i++) {
        if (ready[i].end_ns <= begin_ns || ready[i].begin_ns == 0)
            continue;
        if (begin_ns < ready[i].begin_ns)
            fault_log_add(&fault->log, begin_ns, ready[i].begin_ns, FAULT_LOG_WAITS);
        fault_log_add(&fault->log, ready[i].begin_ns, ready[i].end_ns, FAULT_LOG_READY);
        begin_ns = ready[i].end_ns;
    }
    if (begin_ns < end_ns)
        fault_log_add(&fault->log, begin_ns, end_ns, FAULT_LOG_WAITS);
}

// A call that waits: what it ran by the kernel's account, it ran first, which is no waiting.
struct waiting_call {
    int64_t begin_ns, ran_ns;
};

static struct waiting_call call_begin(struct lab_fault *fault)
{
    ready_times_skip(fault->ready);
    const int64_t ran_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
    return (struct waiting_call){fault_log_now(), ran_ns};
}

static void call_end(struct lab_fault *fault, const struct waiting_call *call)
{
    const int64_t end_ns = fault_log_now();
    const int64_t ran_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - call->ran_ns;
    note_wait(fault, call->begin_ns + ran_ns, end_ns);
}

// What the holder does with the lock: sleeps, or by turns works a little and waits for others that
// work for it, as a runtime's thread does that has stopped the world.
static void keep_lock(struct lab_fault *fault)
{
    enum { WORK_NS = 20000, WAIT_NS = 100000 };
    const struct timespec length = timespec_of(fault->length_ns);
    const struct timespec wait = {0, WAIT_NS};
    int64_t now = fault_log_now(), until = now + (int64_t)fault->length_ns;
    if (fault->kind == LAB_FAULT_LOCK) {
        struct waiting_call call = call_begin(fault);
        nanosleep(&length, NULL);
        call_end(fault, &call);
    }
    while (fault->kind == LAB_FAULT_COLLECT && now < until) {
        nanosleep(&wait, NULL);
        now = slow_function(fault_log_now() + WORK_NS);
    }
}

// Holds the lock for a time, at regular intervals, until the process ends.
static void *hold_lock(void *argument)
{
    struct lab_fault *fault = argument;
    const struct timespec rest = timespec_of(fault->every_ns - fault->length_ns);
    if (fault->kind == LAB_FAULT_LOCK)
        watch_ready(fault);
    for (;;) {
        nanosleep(&rest, NULL);
        pthread_mutex_lock(&fault->lock);
        int64_t begin = fault_log_now();
        keep_lock(fault);
        int64_t end = fault_log_now();
        pthread_mutex_unlock(&fault->lock);
        fault_log_add(&fault->log, begin, end, kind_names[fault->kind]);
    }
    return NULL;
}

// Whether every request takes a lock that another thread holds now and then.
static bool takes_lock(const struct lab_fault *fault)
{
    return fault->kind == LAB_FAULT_LOCK || fault->kind == LAB_FAULT_COLLECT;
}

// Whether connections are closed now and then, and not to be opened again.
static bool closes_connections(const struct lab_fault *fault)
{
    return fault->kind == LAB_FAULT_DEAF || fault->kind == LAB_FAULT_SYN;
}

enum { QUEUE_PLACES = 2 }; // more than it holds with a length of 0

// A connection to the server itself, which takes a place in its queue. -1: none was left.
static int connect_to_itself(const struct lab_fault *fault)
{
    struct sockaddr_in6 address;
    socklen_t bytes = sizeof address;
    int client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client < 0 || getsockname(fault->listener, (void *)&address, &bytes) < 0)
        return client;
    address.sin6_addr = // 127.0.0.1: not every network namespace has the other protocol
        (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    (void)connect(client, (const void *)&address, sizeof address);
    return client;
}

// Connections are not taken, and the queue holds one and has it.
static void fill_queue(const struct lab_fault *fault, int clients[QUEUE_PLACES])
{
    struct epoll_event event = {.events = 0};
    epoll_ctl(fault->epoll, EPOLL_CTL_MOD, fault->listener, &event);
    listen(fault->listener, 0);
    for (int i = 0; i < QUEUE_PLACES; i++)
        clients[i] = connect_to_itself(fault);
}

static void empty_queue(const struct lab_fault *fault, const int clients[QUEUE_PLACES])
{
    enum { BACKLOG = 1024 };
    struct epoll_event event = {.events = EPOLLIN};
    for (int i = 0; i < QUEUE_PLACES; i++)
        close(clients[i]);
    listen(fault->listener, BACKLOG);
    epoll_ctl(fault->epoll, EPOLL_CTL_MOD, fault->listener, &event);
}

// As ordinary programs, which hold nobody up.
static bool command_firewall(const char *nft)
{
    char command[192];
    snprintf(command, sizeof command, "chrt -o 0 nft '%s'", nft);
    return system(command) == 0;
}

static bool drop_openings(void)
{
    return command_firewall("add rule ip taillight-syn input tcp flags & (syn | ack) == syn drop");
}

// Nobody can open a connection for a time, at regular intervals, and those that there are are
// closed.
static void *refuse_connections(void *argument)
{
    struct lab_fault *fault = argument;
    const struct timespec length = timespec_of(fault->length_ns);
    const struct timespec rest = timespec_of(fault->every_ns - fault->length_ns);
    bool by_firewall = fault->kind == LAB_FAULT_SYN;
    for (;;) {
        int clients[QUEUE_PLACES];
        nanosleep(&rest, NULL);
        int64_t begin = fault_log_now();
        if (!by_firewall)
            fill_queue(fault, clients);
        else if (!drop_openings())
            continue;
        fault->deaf = true;
        nanosleep(&length, NULL);
        fault->deaf = false;
        if (by_firewall)
            command_firewall("flush chain ip taillight-syn input");
        else
            empty_queue(fault, clients);
        fault_log_add(&fault->log, begin, fault_log_now(), kind_names[fault->kind]);
    }
    return NULL;
}

static int prepare_file(struct lab_fault *fault, const char *log_path, struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.synced", log_path);
    fault->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_DIRECT, 0600);
    fault->memory =
        mmap(NULL, WRITTEN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fault->memory == MAP_FAILED || fault->file < 0 || unlink(path) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot write %s", path);
    madvise(fault->memory, WRITTEN_BYTES, MADV_HUGEPAGE);
    memset(fault->memory, 1, WRITTEN_BYTES);
    for (off_t at = 0; at < SYNCED_BYTES; at += WRITTEN_BYTES) // it has its blocks from now on
        if (pwrite(fault->file, fault->memory, WRITTEN_BYTES, at) != WRITTEN_BYTES)
            return error_set_errno(err, ERROR_FAILED, "cannot write %s", path);
    if (fsync(fault->file) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot write %s", path);
    return 0;
}

static int prepare_compaction(struct lab_fault *fault, struct error *err)
{
    static const char path[] = "/proc/sys/vm/compact_memory";
    fault->file = open(path, O_WRONLY | O_CLOEXEC);
    // The first time takes a second, later ones have little to do.
    if (fault->file < 0 || pwrite(fault->file, "1", 1, 0) != 1)
        return error_set_errno(err, ERROR_FAILED, "cannot write %s", path);
    return 0;
}

// Memory of its own that is there.
static int prepare_memory(struct lab_fault *fault, size_t bytes, struct error *err)
{
    fault->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fault->memory == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "no memory to fork or to page out");
    madvise(fault->memory, bytes, MADV_NOHUGEPAGE);
    memset(fault->memory, 1, bytes);
    fault->fresh = fault->memory;
    fault->fresh_bytes = bytes;
    return 0;
}

static int prepare_fork(struct lab_fault *fault, struct error *err)
{
    signal(SIGCHLD, SIG_IGN); // nobody waits for the children
    return prepare_memory(fault, MEMORY_BYTES, err);
}

// Reads the pages that the kernel still has, in the swap cache, and says how many those were.
static size_t read_kept_pages(const struct lab_fault *fault)
{
    static unsigned char kept[SWAPPED_BYTES / PAGE_BYTES];
    size_t count = 0;
    if (mincore(fault->memory, SWAPPED_BYTES, kept) < 0)
        return sizeof kept;
    for (size_t i = 0; i < sizeof kept; i++) {
        if (!(kept[i] & 1))
            continue;
        (void)*(volatile char *)(fault->memory + i * PAGE_BYTES);
        count++;
    }
    return count;
}

// A page that is written out stays in the swap cache until somebody wants its memory, and is not
// read from there when it is touched. Read, but not written to, it has its copy on the disk, so
// that paging it out once more throws it away: unless half of the swap space is in use, when the
// kernel gives up such copies (mm/memory.c, should_try_to_free_swap).
static int prepare_swapping(struct lab_fault *fault, struct error *err)
{
    enum { ROUNDS = 20, MOST_KEPT = SWAPPED_BYTES / PAGE_BYTES / 100 };
    const struct timespec written = timespec_of(100000000);
    size_t kept = 0;
    int result = prepare_memory(fault, SWAPPED_BYTES, err);
    if (result < 0)
        return result;
    for (int i = 0; i < ROUNDS; i++) {
        if (madvise(fault->memory, SWAPPED_BYTES, MADV_PAGEOUT) < 0)
            return error_set_errno(err, ERROR_FAILED, "cannot page memory out");
        nanosleep(&written, NULL);
        kept = read_kept_pages(fault);
        if (kept <= MOST_KEPT)
            return 0;
    }
    return error_set(err, ERROR_FAILED,
                     "--fault swap: %.0f %% of what was paged out stay in memory",
                     100.0 * (double)kept / (SWAPPED_BYTES / PAGE_BYTES));
}

// How much of it the kernel fills with random bytes in that long: no disk, no other thread, no page
// fault has a part in that.
static int prepare_filling(struct lab_fault *fault, struct error *err)
{
    enum { TRIES = 5, TRIED_BYTES = 1 << 20 };
    fault->memory = mmap(NULL, MOST_FILLED_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (fault->memory == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "no memory for the kernel to fill");
    int64_t least_ns = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t begin = fault_log_now();
        if (getrandom(fault->memory, TRIED_BYTES, 0) != TRIED_BYTES)
            return error_set_errno(err, ERROR_FAILED, "the kernel gives no random bytes");
        int64_t took_ns = fault_log_now() - begin;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    double bytes = (double)fault->length_ns / (double)least_ns * TRIED_BYTES;
    fault->fresh_bytes = bytes < MOST_FILLED_BYTES ? (size_t)bytes : MOST_FILLED_BYTES;
    return 0;
}

int lab_fault_start(struct lab_fault *fault, const char *log_path, struct error *err)
{
    if (fault->kind == LAB_FAULT_NONE)
        return 0;
    int result = fault_log_open(&fault->log, log_path, err);
    if (result < 0)
        return result;
    fault->due_ns = fault_log_now() + (int64_t)fault->every_ns;
    if (fault->kind == LAB_FAULT_PAGES) {
        fault->fresh = mmap(NULL, fresh_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fault->fresh == MAP_FAILED)
            return error_set_errno(err, ERROR_FAILED, "cannot reserve memory for page faults");
        fault->fresh_bytes = fresh_bytes;
        madvise(fault->fresh, fresh_bytes, MADV_NOHUGEPAGE);
    }
    if (fault->kind == LAB_FAULT_SYNC)
        result = prepare_file(fault, log_path, err);
    if (fault->kind == LAB_FAULT_COMPACT)
        result = prepare_compaction(fault, err);
    if (fault->kind == LAB_FAULT_KERNEL)
        result = prepare_filling(fault, err);
    if (fault->kind == LAB_FAULT_FORK)
        result = prepare_fork(fault, err);
    if (fault->kind == LAB_FAULT_SWAP)
        result = prepare_swapping(fault, err);
    if (fault->kind == LAB_FAULT_SYN &&
        !command_firewall("table ip taillight-syn { chain input { type filter hook input priority "
                          "0; }; }"))
        return error_set(err, ERROR_FAILED, "cannot make the firewall (nft)");
    if (closes_connections(fault) &&
        pthread_create(&fault->holder, NULL, refuse_connections, fault) != 0)
        return error_set(err, ERROR_FAILED, "cannot start the thread that refuses connections");
    if (takes_lock(fault)) {
        pthread_mutex_init(&fault->lock, NULL);
        if (pthread_create(&fault->holder, NULL, hold_lock, fault) != 0)
            return error_set(err, ERROR_FAILED, "cannot start the thread that holds the lock");
        pthread_setname_np(fault->holder,
                           fault->kind == LAB_FAULT_LOCK ? "lock-holder" : "VM Thread");
    }
    return result;
}

// What it calls stays a call: as a jump, which ends this function, it would have all of the time.
static __attribute__((noinline)) int64_t extra_call(void)
{
    const int64_t end = slow_function(fault_log_now() + EXTRA_CALL_NS);
    __asm__ volatile("" ::: "memory");
    return end;
}

static __attribute__((noinline)) int64_t touch_pages(struct lab_fault *fault, int64_t until_ns)
{
    int64_t now = fault_log_now();
    while (now < until_ns && fault->fresh_bytes >= PAGE_BYTES) {
        *(volatile char *)fault->fresh = 1;
        fault->fresh += PAGE_BYTES;
        fault->fresh_bytes -= PAGE_BYTES;
        now = fault_log_now();
    }
    return now;
}

// As touch_pages, of pages that are read from a disk, and notes what of it is the pages': without
// how long the thread was kept from going on when they had been read.
static int64_t touch_swapped(struct lab_fault *fault, int64_t begin_ns, int64_t until_ns)
{
    ready_times_skip(fault->ready);
    int64_t end_ns = touch_pages(fault, until_ns);
    note_wait(fault, begin_ns, end_ns);
    return end_ns;
}

// Most of that time the thread is to sleep: writes past the page cache, so large that what they
// cost the processor, and a virtual machine's host, is little beside what they take the disk.
static int64_t sync_file(struct lab_fault *fault, int64_t until_ns)
{
    int64_t now = fault_log_now();
    for (off_t at = 0; now < until_ns; at = (at + WRITTEN_BYTES) % SYNCED_BYTES) {
        struct waiting_call call = call_begin(fault);
        if (pwrite(fault->file, fault->memory, WRITTEN_BYTES, at) < 0)
            break;
        call_end(fault, &call);
        call = call_begin(fault);
        if (fdatasync(fault->file) < 0)
            break;
        call_end(fault, &call);
        now = fault_log_now();
    }
    return now;
}

// The thread that asks for it does it.
static int64_t compact_memory(struct lab_fault *fault, int64_t until_ns)
{
    int64_t now = fault_log_now();
    while (now < until_ns && pwrite(fault->file, "1", 1, 0) == 1)
        now = fault_log_now();
    return now;
}

static int64_t fill_memory(struct lab_fault *fault, int64_t begin_ns)
{
    ssize_t filled = getrandom(fault->memory, fault->fresh_bytes, 0);
    return filled > 0 ? fault_log_now() : begin_ns;
}

// A child that does nothing, and begins and ends when nobody wants its core, also where it is
// killed before it has begun and the server is a real-time program: to end takes milliseconds.
static pid_t fork_child(void)
{
    const struct sched_param none = {0};
    struct sched_param own;
    int policy = sched_getscheduler(0);
    if (policy >= 0 && sched_getparam(0, &own) == 0)
        sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &own);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sched_setscheduler(0, SCHED_IDLE, &none);
        for (;;)
            pause();
    }
    return child;
}

// The child gets a copy of the page tables, and each page that is written to is copied.
static int64_t fork_and_write(struct lab_fault *fault, int64_t until_ns)
{
    pid_t child = fork_child();
    fault->fresh = fault->memory;
    fault->fresh_bytes = MEMORY_BYTES;
    int64_t now = touch_pages(fault, until_ns);
    if (child > 0)
        kill(child, SIGKILL);
    return now;
}

// The request during which a fault is due suffers it.
static void fault_inflict(struct lab_fault *fault, int64_t begin_ns)
{
    int64_t until = begin_ns + (int64_t)fault->length_ns, end = begin_ns;
    if (fault->kind == LAB_FAULT_SLOW)
        end = slow_function(until);
    else if (fault->kind == LAB_FAULT_PAGES)
        end = touch_pages(fault, until);
    else if (fault->kind == LAB_FAULT_SWAP)
        end = touch_swapped(fault, begin_ns, until);
    else if (fault->kind == LAB_FAULT_SYNC)
        end = sync_file(fault, until);
    else if (fault->kind == LAB_FAULT_FORK)
        end = fork_and_write(fault, until);
    else if (fault->kind == LAB_FAULT_COMPACT)
        end = compact_memory(fault, until);
    else if (fault->kind == LAB_FAULT_KERNEL)
        end = fill_memory(fault, begin_ns);
    else
        while (end < until)
            end = extra_call();
    fault_log_add(&fault->log, begin_ns, end, kind_names[fault->kind]);
    fault->due_ns = begin_ns + (int64_t)fault->every_ns;
}

void lab_fault_begin_send(struct lab_fault *fault)
{
    if (fault->kind != LAB_FAULT_ROOM)
        return;
    watch_ready(fault);
    ready_times_skip(fault->ready);
    fault->send_ns = fault_log_now();
}

// Only what waited for room is a fault; to fill what there was is work of its own.
void lab_fault_end_send(struct lab_fault *fault)
{
    if (fault->kind != LAB_FAULT_ROOM)
        return;
    const int64_t end_ns = fault_log_now();
    const struct ready_span *spans = fault->spans;
    const size_t count = take_spans(fault, fault->send_ns, end_ns);
    int64_t first_ns = 0, last_ns = 0;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].begin_ns == 0) // told already
            continue;
        fault_log_add(&fault->log, spans[i].begin_ns, spans[i].end_ns, FAULT_LOG_READY);
        if (spans[i].out_ns == spans[i].begin_ns) // put aside for another
            continue;
        fault_log_add(&fault->log, spans[i].out_ns, spans[i].begin_ns, FAULT_LOG_WAITS);
        first_ns = first_ns ? first_ns : spans[i].out_ns;
        last_ns = spans[i].begin_ns;
    }
    if (first_ns)
        fault_log_add(&fault->log, first_ns, last_ns, kind_names[fault->kind]);
}

void lab_fault_begin_service(struct lab_fault *fault)
{
    if (fault->kind == LAB_FAULT_NONE)
        return;
    if (takes_lock(fault)) {
        pthread_mutex_lock(&fault->lock);
        return;
    }
    if (fault->kind == LAB_FAULT_ROOM)
        return;
    if (fault->kind == LAB_FAULT_SYNC || fault->kind == LAB_FAULT_SWAP)
        watch_ready(fault);
    int64_t now = fault_log_now();
    if (fault->kind != LAB_FAULT_HALVES && !closes_connections(fault) && now >= fault->due_ns &&
        fault->log.used < FAULT_LOG_LINES)
        fault_inflict(fault, now);
}

bool lab_fault_halves(struct lab_fault *fault)
{
    if (fault->kind != LAB_FAULT_HALVES || fault->log.used >= FAULT_LOG_LINES)
        return false;
    int64_t now = fault_log_now();
    if (now < fault->due_ns)
        return false;
    fault_log_add(&fault->log, now, now + (int64_t)fault->length_ns, kind_names[fault->kind]);
    fault->due_ns = now + (int64_t)fault->every_ns;
    return true;
}

bool lab_fault_closes(const struct lab_fault *fault)
{
    return fault->deaf;
}

void lab_fault_end_service(struct lab_fault *fault)
{
    if (takes_lock(fault))
        pthread_mutex_unlock(&fault->lock);
}
