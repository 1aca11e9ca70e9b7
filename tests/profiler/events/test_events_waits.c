// SPDX-License-Identifier: MIT
//
// The kernel's other waits as they are recorded: this test forks, writes to what it then shares,
// syncs a file, and sleeps in calls for a pipe, a FIFO, a peer, a terminal, a locked file and a
// condition, while it is captured.
// Runs beside others: it counts.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log_file.h"
#include "profiler/bpf/event_log.h"
#include "profiler/events/events_capture.h"
#include "profiler/events/events_programs.h"
#include "profiler/host/host_facts.h"
#include "tests/skip.h"

enum { PAGES = 300, PAGE = 4096, LIMIT_S = 1000 };

static bool is_attached(const struct events_capture *capture, const char *name)
{
    for (size_t i = 0; i < EVENT_PROGRAMS; i++)
        if (strcmp(event_programs[i].name, name) == 0)
            return events_capture_programs(capture)[i].attached;
    return false;
}

// A capture of what this test does meanwhile, and the events that it recorded.
struct recorded {
    char folder[40];
    struct events_capture *capture;
    struct log_reader reader;
    const struct event *events;
    size_t count;
};

static void recorded_begin(struct recorded *recorded, unsigned groups)
{
    const struct events_capture_settings settings = {.groups = groups, .ring_bytes = 4 << 20};
    struct error err = {0};
    *recorded = (struct recorded){.folder = "/tmp/taillight-waits-XXXXXX"};
    assert_non_null(mkdtemp(recorded->folder));
    if (events_capture_open(&settings, &recorded->capture, &err) < 0)
        fail_msg("%s", err.text);
}

static void recorded_end(struct recorded *recorded)
{
    struct error err = {0};
    char path[64];
    assert_int_equal(events_capture_stop(recorded->capture, recorded->folder, NULL, &err), 0);
    events_capture_free(recorded->capture);
    snprintf(path, sizeof path, "%s/events.tlog", recorded->folder);
    assert_int_equal(log_reader_open(&recorded->reader, path, LOG_EVENTS, EVENT_LOG_VERSION,
                                     sizeof(struct event), &err),
                     0);
    recorded->events = recorded->reader.records;
    recorded->count = recorded->reader.count;
}

static void recorded_free(struct recorded *recorded)
{
    static const char *const files[] = {"events.tlog", "sockets.tlog"};
    char path[64];
    log_reader_close(&recorded->reader);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", recorded->folder, files[i]);
        unlink(path);
    }
    rmdir(recorded->folder);
}

static void touch_pages(char *pages)
{
    for (size_t i = 0; i < PAGES; i++)
        ((volatile char *)pages)[i * PAGE]++;
}

static pid_t fork_and_write(char *pages)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    touch_pages(pages);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return child;
}

// Whether it lies on a disk: other file systems have no device of their own.
static bool sync_file(const char *folder)
{
    char path[128];
    struct stat status = {0};
    snprintf(path, sizeof path, "%s/synced", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, path, sizeof path) > 0 && fsync(fd) == 0);
    fstat(fd, &status);
    close(fd);
    unlink(path);
    return major(status.st_dev) != 0;
}

static void forks_copies_and_disks_are_recorded(void **state)
{
    (void)state;
    struct recorded recorded;
    char *pages =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE);
    touch_pages(pages);
    recorded_begin(&recorded, EVENT_GROUP_FAULTS | EVENT_GROUP_WAITS);
    bool forks = is_attached(recorded.capture, "sched_process_fork") &&
                 is_attached(recorded.capture, "rss_stat");
    bool disks = is_attached(recorded.capture, "block_rq_complete");
    pid_t child = fork_and_write(pages);
    disks &= sync_file(recorded.folder);
    recorded_end(&recorded);
    size_t forked = 0, made = 0, copied = 0, completed = 0, named = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        const struct event *event = &recorded.events[i];
        bool mine = event->id == (uint32_t)getpid();
        forked += mine && event->kind == EVENT_DETOUR && event->flags == DETOUR_FORK &&
                  event->payload.a > 0 && event->payload.a < event->time;
        made += event->kind == EVENT_WAKING && event->id == (uint32_t)child &&
                event->payload.b == (uint32_t)getpid();
        copied += mine && event->kind == EVENT_PAGE_FAULT && (event->flags & FAULT_COPIES) &&
                  event->payload.a - (uint64_t)(uintptr_t)pages < PAGES * PAGE;
        completed += event->kind == EVENT_DISK_DONE && event->payload.a <= event->time;
        named += event->kind == EVENT_DISK && event->payload.text[0];
    }
    print_message("%zu forks, %zu children, %zu pages copied, %zu requests of %zu disks\n", forked,
                  made, copied, completed, named);
    assert_true(!forks || (forked == 1 && made == 1));
    assert_true(copied >= PAGES);
    assert_true(!disks || (completed > 0 && named > 0));
    recorded_free(&recorded);
    munmap(pages, PAGES * PAGE);
}

// --- what calls are about ------------------------------------------------------------------------

// What a thread sleeps for, one after the other, until another gives it.
struct gifts {
    int pipe[2], fifo, connection[2], locked[2], terminal[2]; // of each pair the second gives
    uint16_t port; // where the connection's other end listens
    pthread_mutex_t lock;
    pthread_cond_t given;
    bool is_given;
    pid_t taker;
};

// Whether the taker went to sleep, however long that takes it.
static bool is_asleep(pid_t taker)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)taker);
    for (int tries = 0; tries < 10000; tries++) {
        FILE *file = fopen(path, "re");
        const char *state = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
        if (file)
            fclose(file);
        if (state && state[2] == 'S')
            return true;
        usleep(1000);
    }
    return false;
}

// Locks the file, or unlocks it; in the name of the descriptor, whichever thread does it.
static int set_lock(int fd, int how, short kind)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET};
    return fcntl(fd, how, &lock);
}

static void *give(void *opaque)
{
    struct gifts *gifts = opaque;
    const int to[] = {gifts->pipe[1], gifts->fifo, gifts->connection[1]};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        if (!is_asleep(gifts->taker) || write(to[i], "x", 1) != 1)
            return opaque;
    }
    if (!is_asleep(gifts->taker) || set_lock(gifts->locked[1], F_OFD_SETLK, F_UNLCK) < 0 ||
        !is_asleep(gifts->taker))
        return opaque;
    pthread_mutex_lock(&gifts->lock);
    gifts->is_given = true;
    pthread_cond_signal(&gifts->given);
    pthread_mutex_unlock(&gifts->lock);
    // Last: what is written to a terminal comes there later.
    return is_asleep(gifts->taker) && write(gifts->terminal[1], "\n", 1) == 1 ? NULL : opaque;
}

static void connect_pair(struct gifts *gifts)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (void *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    getsockname(listener, (void *)&address, &bytes);
    gifts->port = ntohs(address.sin_port);
    gifts->connection[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(gifts->connection[0], (void *)&address, sizeof address) < 0)
        fail_msg("no connection to port %u", gifts->port);
    gifts->connection[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(gifts->connection[1] >= 0);
    close(listener);
}

static void lock_file(struct gifts *gifts, const char *path)
{
    for (int i = 0; i < 2; i++)
        gifts->locked[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(set_lock(gifts->locked[1], F_OFD_SETLK, F_WRLCK), 0);
    unlink(path);
}

static void open_terminal(struct gifts *gifts)
{
    gifts->terminal[1] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_int_equal(grantpt(gifts->terminal[1]) | unlockpt(gifts->terminal[1]), 0);
    gifts->terminal[0] = open(ptsname(gifts->terminal[1]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(gifts->terminal[0] >= 0);
}

static void take_gifts(struct gifts *gifts, const char *fifo, const char *locked)
{
    pthread_t giver;
    char got;
    void *failed = NULL;
    assert_int_equal(pipe2(gifts->pipe, O_CLOEXEC), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    gifts->fifo = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(gifts->fifo >= 0);
    connect_pair(gifts);
    lock_file(gifts, locked);
    open_terminal(gifts);
    gifts->taker = gettid();
    assert_int_equal(pthread_create(&giver, NULL, give, gifts), 0);
    assert_int_equal(read(gifts->pipe[0], &got, 1), 1);
    assert_int_equal(read(gifts->fifo, &got, 1), 1);
    assert_int_equal(recv(gifts->connection[0], &got, 1, 0), 1);
    assert_int_equal(set_lock(gifts->locked[0], F_OFD_SETLKW, F_WRLCK), 0);
    pthread_mutex_lock(&gifts->lock);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LIMIT_S;
    while (!gifts->is_given)
        pthread_cond_clockwait(&gifts->given, &gifts->lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&gifts->lock);
    assert_int_equal(read(gifts->terminal[0], &got, 1), 1);
    pthread_join(giver, &failed);
    assert_null(failed);
    struct pollfd nothing = {.fd = gifts->connection[0], .events = POLLIN};
    assert_int_equal(poll(&nothing, 1, 20), 0);
    for (int i = 0; i < 2; i++)
        close(gifts->pipe[i]), close(gifts->connection[i]), close(gifts->locked[i]),
            close(gifts->terminal[i]);
    close(gifts->fifo);
    unlink(fifo);
}

// Whether a thread went to sleep for that condition, with the limit that it had.
static bool awaits_condition(const struct event *event, const pthread_cond_t *condition)
{
    uint32_t first = (uint32_t)((uintptr_t)condition >> 3);
    return event->kind == EVENT_BLOCKED && (event->flags & BLOCKED_CONDITION) &&
           (uint32_t)event->payload.a == SYS_futex &&
           (uint32_t)(event->payload.b >> 32) - first < sizeof *condition / 8 &&
           event->payload.a >> 32 <= LIMIT_S * 1000000u &&
           event->payload.a >> 32 > LIMIT_S * 900000u;
}

static void calls_say_what_they_are_about(void **state)
{
    (void)state;
    struct gifts gifts = {.lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER};
    struct recorded recorded;
    char path[128], locked[128];
    recorded_begin(&recorded, EVENT_GROUP_SCHEDULER);
    snprintf(path, sizeof path, "%s/a-fifo-whose-name-is-long", recorded.folder);
    snprintf(locked, sizeof locked, "%s/a-locked-file-whose-name-is-long", recorded.folder);
    take_gifts(&gifts, path, locked);
    recorded_end(&recorded);
    size_t pipes = 0, fifos = 0, peers = 0, conditions = 0, locks = 0, calls = 0, terminals = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        const struct event *event = &recorded.events[i];
        if (event->id != (uint32_t)gettid())
            continue;
        calls += event->kind == EVENT_BLOCKED;
        conditions += awaits_condition(event, &gifts.given);
        if (event->kind != EVENT_FILE)
            continue;
        pipes += event->flags == FILE_PIPE;
        fifos +=
            event->flags == FILE_NAMED && memcmp(event->payload.text, "a-fifo-whose-nam", 16) == 0;
        locks +=
            event->flags == FILE_NAMED && memcmp(event->payload.text, "a-locked-file-wh", 16) == 0;
        terminals += event->flags == FILE_NAMED && memcmp(event->payload.text, "pts/", 4) == 0;
        peers += event->flags == FILE_PEER && event->payload.a == htonl(INADDR_LOOPBACK) &&
                 event->payload.b == gifts.port;
    }
    print_message(
        "%zu calls: %zu of a pipe, %zu of a FIFO, %zu of a peer, %zu of a lock, %zu conditions\n",
        calls, pipes, fifos, peers, locks, conditions);
    recorded_free(&recorded);
    if (calls == 0) // kernels before 5.15 do not say the call
        skip_case("this kernel does not say in which call a thread sleeps");
    assert_true(pipes > 0 && fifos > 0 && peers > 1 && locks > 0 && terminals > 0 &&
                conditions > 0);
}

// Has another process hold both kinds of lock on a file, tries in vain to get them, and gets them
// when that one is gone, which gives them back. Returns the other process.
static pid_t try_locks(const char *path)
{
    int ready[2], over[2];
    char byte;
    int tries = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(tries >= 0 && pipe(ready) == 0 && pipe(over) == 0);
    pid_t holder = fork();
    if (holder == 0) {
        int holds = open(path, O_RDWR | O_CLOEXEC);
        close(over[1]);
        byte = set_lock(holds, F_SETLK, F_WRLCK) == 0 && flock(holds, LOCK_EX | LOCK_NB) == 0;
        _exit(write(ready[1], &byte, 1) != 1 || read(over[0], &byte, 1) != 0);
    }
    close(over[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    assert_int_equal(set_lock(tries, F_SETLK, F_WRLCK), -1);
    assert_int_equal(flock(tries, LOCK_EX | LOCK_NB), -1);
    close(over[1]);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    assert_int_equal(set_lock(tries, F_SETLK, F_WRLCK), 0);
    assert_int_equal(flock(tries, LOCK_EX | LOCK_NB), 0);
    close(ready[0]), close(ready[1]), close(tries);
    unlink(path);
    return holder;
}

// Of each kind of lock: refused because of whom, with the file's name; given back by that one; had.
static void locks_tried_in_vain_are_recorded(void **state)
{
    (void)state;
    struct recorded recorded;
    char path[128];
    recorded_begin(&recorded, EVENT_GROUP_SCHEDULER | EVENT_GROUP_WAITS);
    snprintf(path, sizeof path, "%s/orders-and-more-orders.db", recorded.folder);
    const pid_t holder = try_locks(path), here = getpid();
    recorded_end(&recorded);
    unsigned found[2] = {0, 0};
    uint64_t file = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        const struct event *event = &recorded.events[i];
        unsigned *what = &found[event->flags & FILE_LOCK_FLOCK ? 1 : 0];
        if (event->kind != EVENT_FILE_LOCK)
            continue;
        if (event->flags & FILE_LOCK_NAME) {
            *what |= memcmp(event->payload.text, "orders-and-more-", 16) == 0 ? FILE_LOCK_NAME : 0;
            continue;
        }
        file = file ?: (uint32_t)event->payload.a;
        assert_int_equal((uint32_t)event->payload.a, file);
        if (event->flags & FILE_LOCK_REFUSED && event->payload.a >> 32 == (uint64_t)holder)
            *what |= event->id == (uint32_t)here ? FILE_LOCK_REFUSED : 0;
        else if (event->id == (uint32_t)(event->flags & FILE_LOCK_RELEASED ? holder : here))
            *what |= event->flags & (FILE_LOCK_RELEASED | FILE_LOCK_GRANTED);
    }
    recorded_free(&recorded);
    const unsigned all =
        FILE_LOCK_NAME | FILE_LOCK_REFUSED | FILE_LOCK_RELEASED | FILE_LOCK_GRANTED;
    print_message("fcntl %x, flock %x of %x\n", found[0], found[1], all);
    assert_int_equal(found[0], all);
    assert_int_equal(found[1], all);
}

// Files that are locks: one that is there already, by open and by mkdir; which is then removed,
// made again and renamed.
static void try_lock_file(const char *path, const char *other)
{
    const int how = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
    int fd = open(path, how, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_true(open(path, how, 0600) < 0 && errno == EEXIST);
    assert_true(mkdir(path, 0700) < 0 && errno == EEXIST);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(rmdir(other), 0);
}

static void lock_files_are_recorded(void **state)
{
    (void)state;
    static const char *const programs[] = {"do_filp_open_exit", "filename_create_exit",
                                           "do_unlinkat_entry", "do_renameat2_entry"};
    struct recorded recorded;
    char path[128], other[128];
    recorded_begin(&recorded, EVENT_GROUP_SCHEDULER | EVENT_GROUP_WAITS);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (!is_attached(recorded.capture, programs[i])) {
            recorded_end(&recorded);
            recorded_free(&recorded);
            skip_case("no function of this kernel calls programs: %s", programs[i]);
        }
    }
    snprintf(path, sizeof path, "%s/orders.lock", recorded.folder);
    snprintf(other, sizeof other, "%s/orders", recorded.folder);
    try_lock_file(path, other);
    recorded_end(&recorded);
    static const uint8_t expected[] = {FILE_LOCK_NAME,    FILE_LOCK_REFUSED,  FILE_LOCK_NAME,
                                       FILE_LOCK_REFUSED, FILE_LOCK_RELEASED, FILE_LOCK_GRANTED,
                                       FILE_LOCK_RELEASED};
    const uint64_t process = (uint64_t)getpid(), thread = (uint64_t)gettid();
    uint64_t file = 0;
    size_t found = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        const struct event *event = &recorded.events[i];
        if (event->kind != EVENT_FILE_LOCK || event->id != (uint32_t)thread)
            continue;
        assert_true(found < sizeof expected);
        assert_int_equal(event->flags, expected[found++] | FILE_LOCK_FILE);
        if (event->flags & FILE_LOCK_NAME) {
            assert_memory_equal(event->payload.text, "orders.lock", sizeof "orders.lock");
            continue;
        }
        file = file ?: (uint32_t)event->payload.a;
        assert_int_equal(event->payload.a, file | process << 32);
        assert_int_equal(event->payload.b, event->flags & FILE_LOCK_REFUSED ? thread : 0);
    }
    recorded_free(&recorded);
    assert_int_equal(found, sizeof expected);
}

// Has the kernel find pages for much memory, in one call each time.
static void populate(unsigned times)
{
    enum { BYTES = 128 << 20 };
    for (unsigned i = 0; i < times; i++) {
        void *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        assert_ptr_not_equal(pages, MAP_FAILED);
        munmap(pages, BYTES);
    }
}

// The timer that interrupts a call says which one, and twice the same of the same.
static void the_timer_says_in_which_call(void **state)
{
    (void)state;
    struct recorded recorded;
    recorded_begin(&recorded, EVENT_GROUP_SCHEDULER | EVENT_GROUP_INTERRUPTS);
    populate(8);
    for (volatile unsigned spent = 0; spent < 100000000; spent++) // in no call
        ;
    recorded_end(&recorded);
    size_t mine = 0, in_call = 0, again = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < recorded.count; i++) {
        const struct event *event = &recorded.events[i];
        if (event->kind != EVENT_VECTOR_ENTRY || event->id != VECTOR_LOCAL_TIMER ||
            event->payload.b != (uint64_t)gettid())
            continue;
        mine++;
        in_call += (uint32_t)event->payload.a == SYS_mmap && event->payload.a >> 32;
        again += (uint32_t)event->payload.a == SYS_mmap && event->payload.a == last;
        last = event->payload.a;
    }
    recorded_free(&recorded);
    print_message("%zu ticks, %zu of them in mmap, %zu after one in the same call\n", mine, in_call,
                  again);
    if (mine > 0 && in_call == 0 && last == 0)
        skip_case("this kernel does not say in which call a thread runs");
    assert_true(again > 0 && in_call < mine);
}

int main(void)
{
    char lacking[64];
    if (geteuid() != 0 || privilege_lacking_for_bpf(lacking, sizeof lacking)[0]) {
        printf("needs root: BPF\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_copies_and_disks_are_recorded),
        cmocka_unit_test(calls_say_what_they_are_about),
        cmocka_unit_test(locks_tried_in_vain_are_recorded),
        cmocka_unit_test(lock_files_are_recorded),
        cmocka_unit_test(the_timer_says_in_which_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
