// SPDX-License-Identifier: MIT
//
// Whom a thread waits for that waits for a lock or a condition: who tries again, what goes through
// many hands, and who only had the core.
#include "tests/analysis/decomposition/two_tiers.h"

static void waits_in_futex(struct scene *s, int from, uint8_t flags)
{
    struct event *blocked = event(s, from, EVENT_BLOCKED, 0, FRONT);
    blocked->payload.a = 202; // futex
    blocked->flags = flags;
    runs(s, from, 0, BYSTANDER, "bystander");
}

static void waits_for_lock(struct scene *s, int from)
{
    waits_in_futex(s, from, BLOCKED_CONDITION);
}

// The front's thread waits for a worker's word, for half a millisecond at most, and then again.
// Only where it does something else in between it is the first time that it waits for.
static void test_waits_again_and_again(void **state)
{
    (void)state;
    for (int works = 0; works <= 1; works++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1340, 1342, CLIENT_SIDE);
        runs(&s, 15, 2, WORKER, "worker");
        for (int again = 0; again < 2; again++) {
            waits_for_lock(&s, again ? 810 : 24);
            if (again)
                event(&s, 1300, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
            else {
                event(&s, 497, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
                event(&s, 498, EVENT_WAKING, 1, FRONT);
                event(&s, 499, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
            }
            runs(&s, again ? 1301 : works ? 499 : 800, 0, FRONT, "front");
        }
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1340, 0);
        expect(&s, "condition wait (futex): worker", works ? 485 : 955, works ? 495 : 970);
        expect(&s, "condition wait (futex), timed out", works ? 465 : 0, works ? 480 : 0);
        close_scene(&s);
    }
}

// It tries twice, each time for half a millisecond, and then finds the lock free: whoever had it is
// the worker that runs, if that is one that hands it over at other times.
static void test_lock_free_at_last(void **state)
{
    (void)state;
    for (int hands_over = 0; hands_over <= 1; hands_over++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        for (uint32_t thread = FRONT; thread <= WORKER; thread++)
            event(&s, 5, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
        runs(&s, 15, 2, WORKER, "worker");
        for (int from = 24; from <= 524; from += 500) {
            waits_for_lock(&s, from);
            event(&s, from + 493, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
            event(&s, from + 494, EVENT_WAKING, 1, FRONT);
            event(&s, from + 495, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
            runs(&s, from + 496, 0, FRONT, "front");
        }
        waits_for_lock(&s, 1250);
        event(&s, 1290, EVENT_WAKING, 2, FRONT)->payload.b = hands_over ? WORKER : BYSTANDER;
        runs(&s, 1291, 0, FRONT, "front");
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "condition wait (futex): worker", hands_over ? 980 : 0, hands_over ? 992 : 0);
        expect(&s, "condition wait (futex), timed out", hands_over ? 0 : 980, hands_over ? 0 : 990);
        close_scene(&s);
    }
}

// A request that takes from 10 to 1040, in a process of three threads.
static void open_one_process(struct scene *s)
{
    static const uint32_t threads[] = {FRONT, WORKER, OTHER};
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        event(s, 5, EVENT_MEMBER, 0, threads[i])->payload.a = FRONT_PROCESS;
}

// The front's thread waits for the lock of its interpreter, which it asks for twice. A thread that
// sleeps for a packet has it as soon as it comes, and hands it over: the one that had it until then
// is the worker that ran, which woke nobody. In waits for other locks nobody knows that.
static void test_interpreter_lock(void **state)
{
    (void)state;
    for (int interpreter = 0; interpreter <= 1; interpreter++) {
        struct scene s;
        open_one_process(&s);
        runs(&s, 6, 2, OTHER, "reader");
        event(&s, 15, EVENT_BLOCKED, 2, OTHER)->payload.a = 45; // recvfrom
        runs(&s, 15, 2, WORKER, "worker");
        for (int again = 0; again < 2; again++) {
            waits_in_futex(&s, again ? 524 : 24,
                           BLOCKED_CONDITION | (interpreter ? BLOCKED_INTERPRETER : 0));
            if (again) {
                event(&s, 1000, EVENT_WAKING, 2, OTHER);
                event(&s, 1001, EVENT_SWITCH, 2, OTHER)->flags = SWITCH_PREEMPTED;
                event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = OTHER;
            } else {
                event(&s, 517, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
                event(&s, 518, EVENT_WAKING, 1, FRONT);
                event(&s, 519, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
            }
            runs(&s, again ? 1031 : 520, 0, FRONT, "front");
        }
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "waiting for the interpreter lock (GIL): held by worker", interpreter ? 965 : 0,
               interpreter ? 975 : 0);
        expect(&s, "condition wait (futex): worker", 0, 0);
        close_scene(&s);
    }
}

// That the worker came to its core was not delivered, that it woke the thread was: it is who held
// that one up, unless the wait had a limit, and it may have been the timer.
static void test_waker_that_was_not_seen_to_come(void **state)
{
    enum { WORD = 7, LIMIT_US = 500 };
    (void)state;
    for (int limited = 0; limited <= 1; limited++) {
        struct scene s;
        open_one_process(&s);
        runs(&s, 6, 2, WORKER, "worker");
        runs(&s, 15, 2, 0, "swapper/2");
        waits_for_lock(&s, 24);
        s.events.items[s.events.count - 2].payload.a |= (limited ? LIMIT_US : 0ull) << 32;
        s.events.items[s.events.count - 2].payload.b = (uint64_t)WORD << 32;
        event(&s, 1000, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
        runs(&s, 1001, 0, FRONT, "front");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "condition wait (futex): worker, unknown wait", limited ? 0 : 970,
               limited ? 0 : 980);
        expect(&s, "condition wait (futex)", limited ? 970 : 0, limited ? 980 : 0);
        close_scene(&s);
    }
}

// Go's scheduler has parked the front's thread. Who wakes it is the thread that only looks now and
// then, and had slept for a time: it waited for the worker that ran. One that had waited for a
// packet had something to do with it.
static void test_parked_by_go(void **state)
{
    (void)state;
    for (int looks = 0; looks <= 1; looks++) {
        struct scene s;
        open_one_process(&s);
        runs(&s, 6, 2, OTHER, "watcher");
        if (looks)
            event(&s, 15, EVENT_BLOCKED, 2, OTHER)->payload.a = 35; // nanosleep
        runs(&s, 15, 2, WORKER, "worker");
        s.events.items[s.events.count - 1].flags = looks ? 0 : SWITCH_WAITS;
        waits_in_futex(&s, 24, BLOCKED_PARKED);
        if (looks)
            event(&s, 1000, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
        else
            event(&s, 1000, EVENT_SOFTIRQ_ENTRY, 2, 3); // NET_RX
        event(&s, 1000, EVENT_WAKING, 2, OTHER);
        if (looks)
            event(&s, 1001, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
        else
            event(&s, 1001, EVENT_SOFTIRQ_EXIT, 2, 3);
        event(&s, 1001, EVENT_SWITCH, 2, OTHER)->flags = SWITCH_PREEMPTED;
        event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = OTHER;
        runs(&s, 1031, 0, FRONT, "front");
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "parked by its scheduler: worker", looks ? 980 : 0, looks ? 995 : 0);
        expect(&s, "waiting for a packet", looks ? 0 : 980, looks ? 0 : 995);
        close_scene(&s);
    }
}

// A request is there, and the thread that will read it is parked for a time, after which it looks
// itself: that waited for the worker that ran all along, or for the time to pass where nobody did.
static void test_parked_for_a_time(void **state)
{
    (void)state;
    for (int works = 0; works <= 1; works++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 1039, 1040, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1050, 1052, CLIENT_SIDE);
        event(&s, 5, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
        event(&s, 5, EVENT_MEMBER, 0, WORKER)->payload.a = FRONT_PROCESS;
        runs(&s, 6, 2, WORKER, "worker");
        if (!works)
            runs(&s, 7, 2, 0, "swapper/2");
        waits_in_futex(&s, 8, BLOCKED_PARKED);
        event(&s, 1029, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
        event(&s, 1030, EVENT_WAKING, 1, FRONT);
        event(&s, 1031, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        runs(&s, 1032, 0, FRONT, "front");
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 10, 1040, 1050, 0);
        expect(&s, "parked by its scheduler: worker", works ? 1010 : 0, works ? 1025 : 0);
        expect(&s, "parked by its scheduler, timed out", works ? 0 : 1010, works ? 0 : 1025);
        close_scene(&s);
    }
}

// Whoever has the lock writes to a log, whose reader takes its time: that is told, not the lock and
// the reader alone.
static void test_holder_writes_to_a_reader(void **state)
{
    (void)state;
    struct scene s;
    open_one_process(&s);
    runs(&s, 6, 2, WORKER, "worker");
    waits_for_lock(&s, 24);
    struct event *file = event(&s, 30, EVENT_FILE, 2, WORKER);
    file->flags = FILE_NAMED;
    strcpy(file->payload.text, "log");
    event(&s, 30, EVENT_BLOCKED, 2, WORKER)->payload.a = 1; // write
    runs(&s, 30, 2, BACKEND, "reader");
    event(&s, 1000, EVENT_WAKING, 2, WORKER)->payload.b = BACKEND;
    runs(&s, 1001, 2, WORKER, "worker");
    event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
    runs(&s, 1031, 0, FRONT, "front");
    runs(&s, 1400, 2, 0, "swapper/2");
    build(&s, 1, 10, 1040, 0);
    expect(&s, "condition wait (futex): worker, blocked in write to log: reader", 965, 975);
    expect(&s, "condition wait (futex): reader", 0, 0);
    close_scene(&s);
}

static void waits_in_flock(struct scene *s, int us, uint16_t core, uint32_t thread,
                           const char *name, uint32_t next, const char *next_name)
{
    struct event *file = event(s, us, EVENT_FILE, core, thread);
    file->flags = FILE_NAMED;
    strcpy(file->payload.text, name);
    event(s, us, EVENT_BLOCKED, core, thread)->payload.a = 73;
    runs(s, us, core, next, next_name);
}

// Whoever has the lock on a file waited for one before: if for the same, that was in front of the
// message's thread, too, and whoever had it then is told for that time; else the one for the other.
static void test_holder_waited_for_a_file(void **state)
{
    static const char *const before[] = {
        "lock wait (flock) of session: held by other",
        "lock wait (flock) of session: held by worker, lock wait (flock) of table: held by other"};
    (void)state;
    for (int another = 0; another <= 1; another++) {
        struct scene s;
        open_one_process(&s);
        runs(&s, 6, 2, WORKER, "worker");
        waits_in_flock(&s, 20, 2, WORKER, another ? "table" : "session", OTHER, "other");
        waits_in_flock(&s, 24, 0, FRONT, "session", BYSTANDER, "bystander");
        event(&s, 800, EVENT_WAKING, 2, WORKER)->payload.b = OTHER;
        runs(&s, 801, 2, WORKER, "worker");
        event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
        runs(&s, 1031, 0, FRONT, "front");
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, before[another], 770, 780);
        expect(&s, "lock wait (flock) of session: held by worker", 225, 235);
        close_scene(&s);
    }
}

// What so many workers and the front's thread wait for comes through their hands from 900 us on:
// from the thread behind these workers' to the first of them, from each to the next, to the
// front's.
static void passes_on(struct scene *s, int ahead)
{
    for (int i = 0; i < ahead; i++) {
        event(s, 900 + 10 * i, EVENT_WAKING, 2, (uint32_t)(WORKER + i))->payload.b =
            (uint64_t)(i ? WORKER + i - 1 : WORKER + ahead);
        runs(s, 901 + 10 * i, 2, (uint32_t)(WORKER + i), "worker");
    }
    event(s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = (uint64_t)(WORKER + ahead - 1);
    runs(s, 1031, 0, FRONT, "front");
    runs(s, 1400, 2, 0, "swapper/2");
    build(s, 1, 10, 1040, 0);
}

// Ten are ahead of it for the lock, which each gives to the next.
static void test_many_ahead_for_a_file(void **state)
{
    enum { AHEAD = 10 };
    (void)state;
    struct scene s;
    open_one_process(&s);
    runs(&s, 6, 2, WORKER, "worker");
    for (int i = 0; i < AHEAD; i++)
        waits_in_flock(&s, 10 + i, 2, (uint32_t)(WORKER + i), "session", (uint32_t)(OTHER + i),
                       i == AHEAD - 1 ? "holder" : "worker");
    waits_in_flock(&s, 24, 0, FRONT, "session", BYSTANDER, "bystander");
    passes_on(&s, AHEAD);
    expect(&s, "lock wait (flock) of session: held by holder", 870, 880);
    expect(&s, "lock wait (flock) of session: held by worker (another process)", 60, 85);
    close_scene(&s);
}

// Ten of its threads are ahead of it for the lock on their memory's map, in calls of several kinds;
// the eleventh has it, and works. Those of another process have another map.
static void test_many_ahead_for_the_map(void **state)
{
    enum { AHEAD = 10, MMAP = 9, MUNMAP = 11 };
    (void)state;
    for (int elsewhere = 0; elsewhere <= 1; elsewhere++) {
        struct scene s;
        open_one_process(&s);
        runs(&s, 6, 2, WORKER, "worker");
        for (int i = 0; i < AHEAD; i++) {
            uint32_t thread = (uint32_t)(WORKER + i);
            event(&s, 6, EVENT_MEMBER, 0, thread)->payload.a = elsewhere ? BACKEND : FRONT_PROCESS;
            if (!elsewhere)
                call(&s, thread, CALL_RECEIVE, 2, 3, OTHERS_SIDE);
            event(&s, 10 + i, EVENT_BLOCKED, 2, thread)->payload.a = i % 2 ? MUNMAP : MMAP;
            runs(&s, 10 + i, 2, thread + 1, i == AHEAD - 1 ? "allocator" : "worker");
        }
        event(&s, 24, EVENT_BLOCKED, 0, FRONT)->payload.a = MUNMAP;
        runs(&s, 24, 0, BYSTANDER, "bystander");
        passes_on(&s, AHEAD);
        expect(&s, "blocked in munmap: allocator", elsewhere ? 0 : 870, elsewhere ? 0 : 880);
        close_scene(&s);
    }
}

static void writes_to_log(struct scene *s, int from, uint16_t core, uint32_t thread)
{
    struct event *file = event(s, from, EVENT_FILE, core, thread);
    file->flags = FILE_NAMED;
    strcpy(file->payload.text, "log");
    event(s, from, EVENT_BLOCKED, core, thread)->payload.a = 18; // pwrite64
}

// Ten threads of the server are ahead of the front's to write to a file, which an eleventh changes.
static void test_many_ahead_at_a_file(void **state)
{
    enum { AHEAD = 10 };
    (void)state;
    struct scene s;
    open_one_process(&s);
    runs(&s, 6, 2, WORKER, "worker");
    for (int i = 0; i < AHEAD; i++) {
        uint32_t thread = (uint32_t)(WORKER + i);
        event(&s, 6, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
        call(&s, thread, CALL_RECEIVE, 2, 3, OTHERS_SIDE);
        writes_to_log(&s, 10 + i, 2, thread);
        runs(&s, 10 + i, 2, thread + 1, i == AHEAD - 1 ? "rotator" : "worker");
    }
    writes_to_log(&s, 24, 0, FRONT);
    runs(&s, 24, 0, BYSTANDER, "bystander");
    passes_on(&s, AHEAD);
    expect(&s, "blocked in pwrite to log: rotator", 870, 880);
    close_scene(&s);
}

static void writes_to_a_pipe(struct scene *s, int from, uint16_t core, uint32_t thread)
{
    event(s, from, EVENT_FILE, core, thread)->flags = FILE_PIPE;
    event(s, from, EVENT_BLOCKED, core, thread)->payload.a = 1; // write
}

// The front's thread writes its log into a pipe, and so does another one of the server before it;
// the reader sleeps. One of another server writes into a pipe of its own, whose reader that is.
static void test_ahead_at_a_pipe(void **state)
{
    (void)state;
    for (int elsewhere = 0; elsewhere <= 1; elsewhere++) {
        struct scene s;
        uint32_t writer = elsewhere ? BACKEND : WORKER;
        open_one_process(&s);
        call(&s, writer, CALL_RECEIVE, 2, 3, elsewhere ? BACKEND_SIDE : OTHERS_SIDE);
        runs(&s, 6, 1, writer, "writer");
        runs(&s, 6, 2, OTHER, "reader");
        event(&s, 8, EVENT_BLOCKED, 2, OTHER)->payload.a = 35; // nanosleep
        runs(&s, 8, 2, 0, "swapper/2");
        writes_to_a_pipe(&s, 9, 1, writer);
        runs(&s, 9, 1, 0, "swapper/1");
        writes_to_a_pipe(&s, 24, 0, FRONT);
        runs(&s, 24, 0, BYSTANDER, "bystander");
        event(&s, 979, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
        event(&s, 980, EVENT_WAKING, 2, OTHER);
        event(&s, 981, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
        runs(&s, 982, 2, OTHER, "reader");
        event(&s, 990, EVENT_WAKING, 2, writer)->payload.b = OTHER;
        runs(&s, 992, 1, writer, "writer");
        event(&s, 1000, EVENT_WAKING, 1, FRONT)->payload.b = writer;
        runs(&s, 1001, 0, FRONT, "front");
        runs(&s, 1400, 1, 0, "swapper/1");
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "blocked in write to a pipe: reader, sleeping (timer)", elsewhere ? 0 : 945,
               elsewhere ? 0 : 960);
        close_scene(&s);
    }
}

// The worker that it waits for has forked: what it writes to is copied first.
static void test_holder_copies_pages(void **state)
{
    (void)state;
    for (int forked = 0; forked <= 1; forked++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        runs(&s, 3, 2, WORKER, "worker");
        if (forked) {
            struct event *fork = event(&s, 8, EVENT_DETOUR, 2, WORKER);
            fork->payload.a = (uint64_t)US(4);
            fork->flags = DETOUR_FORK;
        }
        waits_for_lock(&s, 24);
        event(&s, 500, EVENT_PAGE_FAULT, 2, WORKER)->flags = FAULT_USER | FAULT_COPIES;
        event(&s, 600, EVENT_FAULT_END, 2, WORKER);
        event(&s, 1010, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
        runs(&s, 1011, 0, FRONT, "front");
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "condition wait (futex): worker, page faults (copy on write after a fork)",
               forked ? 99 : 0, forked ? 102 : 0);
        expect(&s, "condition wait (futex): worker, page faults", forked ? 0 : 99,
               forked ? 0 : 102);
        expect(&s, "condition wait (futex): worker", 880, 890);
        close_scene(&s);
    }
}

// Its own time limit ends the first wait, after 12 ms. The next one is another try only where it is
// no longer than that, where it is for the same message, and at the same word.
static void test_what_is_no_other_try(void **state)
{
    enum { OTHER_TRY, LONGER, OTHER_MESSAGE, OTHER_WORD };
    (void)state;
    for (int what = OTHER_TRY; what <= OTHER_WORD; what++) {
        struct scene s;
        open_scene(&s);
        runs(&s, -49, 0, BYSTANDER, "bystander");
        runs(&s, -49, 1, FRONT, "front");
        runs(&s, -49, 2, WORKER, "worker");
        int ends = what == LONGER ? 42000 : 24000,
            reply = what == OTHER_MESSAGE ? 12030 : ends + 40;
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, reply, reply + 1, CLIENT_SIDE);
        for (int again = 0; again < 2; again++) {
            int from = again ? 12040 : 24, to = again ? ends : 12024;
            struct event *blocked = event(&s, from, EVENT_BLOCKED, 1, FRONT);
            blocked->payload.a = 202; // futex
            blocked->payload.b = (uint64_t)(again && what == OTHER_WORD ? 8 : 7) << 32;
            blocked->flags = BLOCKED_CONDITION;
            runs(&s, from, 1, 0, "swapper/1");
            if (again)
                event(&s, to, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
            else {
                event(&s, to - 1, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
                event(&s, to, EVENT_WAKING, 1, FRONT);
                event(&s, to + 1, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
            }
            runs(&s, to + 2, 1, FRONT, "front");
        }
        runs(&s, 50000, 1, 0, "swapper/1");
        runs(&s, 50000, 2, 0, "swapper/2");
        build(&s, 1, 10, reply, 0);
        expect(&s, "condition wait (futex), timed out", what == OTHER_TRY ? 0 : 11980,
               what == OTHER_TRY ? 0 : 12001);
        expect(&s, "condition wait (futex): worker",
               what == LONGER       ? 29950
               : what == OTHER_TRY  ? 23900
               : what == OTHER_WORD ? 11950
                                    : 0,
               what == LONGER       ? 29970
               : what == OTHER_TRY  ? 23970
               : what == OTHER_WORD ? 11970
                                    : 0);
        close_scene(&s);
    }
}

// A program had the core as the thread was woken: only one of its own family can have ended its
// wait.
static void test_woken_over_a_bystander(void **state)
{
    (void)state;
    for (int forked = 0; forked <= 1; forked++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        event(&s, 5, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
        struct event *member = event(&s, 6, EVENT_MEMBER, 0, BYSTANDER);
        member->payload.a = BYSTANDER;
        member->payload.b = forked ? FRONT_PROCESS : 1;
        waits_for_lock(&s, 24);
        event(&s, 1010, EVENT_WAKING, 0, FRONT)->payload.b = BYSTANDER;
        runs(&s, 1011, 0, FRONT, "front");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "condition wait (futex)", forked ? 0 : 980, forked ? 0 : 990);
        expect(&s, "condition wait (futex): bystander", forked ? 980 : 0, forked ? 990 : 0);
        close_scene(&s);
    }
}

// A worker has the lock for long; another thread waits for it, too, comes first, and has it for a
// tenth of a millisecond. What that one did before is no matter, whether the front's thread waits
// at once or tries twice; unless it waited for something else: then it may have had the lock
// meanwhile. One that had asked another server was told of the answer only.
static void test_lock_through_two_hands(void **state)
{
    enum { AT_ONCE, TWICE, NOT_FOR_THE_LOCK, FOR_AN_ANSWER };
    (void)state;
    for (int how = AT_ONCE; how <= FOR_AN_ANSWER; how++) {
        struct scene s;
        bool waited = how != NOT_FOR_THE_LOCK;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        for (uint32_t thread = FRONT; thread <= OTHER; thread++)
            event(&s, 5, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
        runs(&s, 3, 2, WORKER, "worker");
        waits_for_lock(&s, 24);
        if (how == TWICE) {
            event(&s, 397, EVENT_VECTOR_ENTRY, 0, VECTOR_LOCAL_TIMER);
            event(&s, 398, EVENT_WAKING, 0, FRONT);
            event(&s, 399, EVENT_VECTOR_EXIT, 0, VECTOR_LOCAL_TIMER);
            runs(&s, 400, 0, FRONT, "front");
            waits_for_lock(&s, 402);
        }
        runs(&s, 3, 1, OTHER, "other");
        struct event *blocked = event(&s, 500, EVENT_BLOCKED, 1, OTHER);
        blocked->payload.a = waited ? 202 : 0; // futex, read
        blocked->flags = waited ? BLOCKED_CONDITION : 0;
        runs(&s, 500, 1, 0, "swapper/1");
        if (how == FOR_AN_ANSWER) {
            event(&s, 10, EVENT_SWITCH, 2, 0)->flags = SWITCH_WAITS;
            event(&s, 895, EVENT_SOFTIRQ_ENTRY, 2, 3); // NET_RX
            event(&s, 896, EVENT_WAKING, 2, WORKER);
            event(&s, 897, EVENT_SOFTIRQ_EXIT, 2, 3);
            runs(&s, 898, 2, WORKER, "worker");
        }
        event(&s, 900, EVENT_WAKING, 2, OTHER)->payload.b = WORKER;
        runs(&s, 902, 1, OTHER, "other");
        event(&s, 1010, EVENT_WAKING, 1, FRONT)->payload.b = OTHER;
        runs(&s, 1011, 0, FRONT, "front");
        runs(&s, 1400, 1, 0, "swapper/1");
        runs(&s, 1400, 2, 0, "swapper/2");
        if (how == FOR_AN_ANSWER) {
            call(&s, OTHER, CALL_SEND, 490, 495, MADE);
            call(&s, OTHER, CALL_RECEIVE, 903, 905, MADE);
            build(&s, 1, 10, 1040, 1);
            expect(&s, "condition wait (futex): worker", 0, 0);
            expect(&s, "condition wait (futex): other, waiting for 127.0.0.1:6379", 395, 412);
            close_scene(&s);
            continue;
        }
        build(&s, 1, 10, 1040, 0);
        expect(&s, "condition wait (futex): worker", waited ? 865 : 395, waited ? 877 : 405);
        expect(&s, "condition wait (futex): other", waited ? 105 : 580, waited ? 112 : 590);
        close_scene(&s);
    }
}

// A worker gives it to one that waited for longer. Before that one runs another thread, which comes
// with a packet, takes it, and gives it to the front's: until then it was the worker's, if both
// waited at the same word.
static void test_taken_in_between(void **state)
{
    enum { THIRD = 103, WORD = 7, OTHER_WORD = 8 };
    static const uint32_t threads[] = {FRONT, WORKER, OTHER, THIRD};
    (void)state;
    for (int same = 0; same <= 1; same++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
            event(&s, 5, EVENT_MEMBER, 0, threads[i])->payload.a = FRONT_PROCESS;
        runs(&s, 3, 2, WORKER, "worker");
        runs(&s, 3, 3, THIRD, "third");
        struct event *blocked = event(&s, 20, EVENT_BLOCKED, 3, THIRD);
        blocked->payload.a = 202; // futex
        blocked->payload.b = (uint64_t)(same ? WORD : OTHER_WORD) << 32;
        blocked->flags = BLOCKED_CONDITION;
        runs(&s, 20, 3, BYSTANDER, "bystander");
        waits_for_lock(&s, 24);
        s.events.items[s.events.count - 2].payload.b = (uint64_t)WORD << 32;
        runs(&s, 3, 1, OTHER, "other");
        event(&s, 30, EVENT_BLOCKED, 1, OTHER)->payload.a = 45; // recvfrom
        runs(&s, 30, 1, 0, "swapper/1");
        event(&s, 895, EVENT_SOFTIRQ_ENTRY, 1, 3); // NET_RX
        event(&s, 896, EVENT_WAKING, 1, OTHER);
        event(&s, 897, EVENT_SOFTIRQ_EXIT, 1, 3);
        event(&s, 900, EVENT_WAKING, 2, THIRD)->payload.b = WORKER;
        runs(&s, 902, 1, OTHER, "other");
        event(&s, 1010, EVENT_WAKING, 1, FRONT)->payload.b = OTHER;
        runs(&s, 1011, 0, FRONT, "front");
        runs(&s, 1400, 1, 0, "swapper/1");
        runs(&s, 1400, 2, 0, "swapper/2");
        runs(&s, 1400, 3, 0, "swapper/3");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "condition wait (futex): worker", same ? 865 : 0, same ? 880 : 0);
        expect(&s, "condition wait (futex): other, waiting for a packet", same ? 0 : 860,
               same ? 0 : 880);
        close_scene(&s);
    }
}

// The worker has the lock and has answered its client, who says nothing for a while: the only one,
// or the second one after another. Of a worker that serves several in turn nobody knows whom it
// waits for.
static void test_holder_awaits_its_client(void **state)
{
    enum { ONLY, SECOND, IN_TURN, WAYS };
    (void)state;
    for (int way = ONLY; way < WAYS; way++) {
        struct scene s;
        bool several = way == IN_TURN;
        uint32_t before = way == ONLY ? OTHERS_SIDE : BACKEND_SIDE;
        open_one_process(&s);
        call(&s, WORKER, CALL_RECEIVE, -40, -39, before);
        call(&s, WORKER, CALL_SEND, -38, -37, before);
        call(&s, WORKER, CALL_RECEIVE, -30, -29, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, -28, -27, OTHERS_SIDE);
        call(&s, WORKER, CALL_RECEIVE, 3, 4, several ? BACKEND_SIDE : OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 5, 6, OTHERS_SIDE);
        call(&s, WORKER, CALL_WAIT, 7, 1001, 0);
        call(&s, WORKER, CALL_RECEIVE, 1003, 1004, OTHERS_SIDE);
        runs(&s, 1, 2, WORKER, "worker");
        runs(&s, 10, 2, 0, "swapper/2");
        s.events.items[s.events.count - 1].flags = SWITCH_WAITS;
        waits_for_lock(&s, 24);
        event(&s, 998, EVENT_SOFTIRQ_ENTRY, 2, 3); // NET_RX
        event(&s, 999, EVENT_WAKING, 2, WORKER);
        event(&s, 1000, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 1001, 2, WORKER, "worker");
        event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
        runs(&s, 1031, 0, FRONT, "front");
        runs(&s, 1400, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "condition wait (futex): worker, waiting for its client to go on",
               several ? 0 : 965, several ? 0 : 980);
        expect(&s, "condition wait (futex): worker, waiting for a packet", several ? 965 : 0,
               several ? 980 : 0);
        close_scene(&s);
    }
}

// The only thread reads from another client's connection, which brings nothing for a while, or
// closes one that has not taken all, and takes it then, or never.
static void test_blocked_by_a_client(void **state)
{
    enum { READS, CLOSES, GIVES_UP };
    (void)state;
    for (int closes = READS; closes <= GIVES_UP; closes++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, closes ? CALL_CLOSE : CALL_RECEIVE, 3, 995, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 1009, 1010, CLIENT_SIDE);
        event(&s, 4, EVENT_BLOCKED, 0, FRONT)->payload.a = closes ? 3 : 45; // close, recvfrom
        runs(&s, 4, 0, BYSTANDER, "bystander");
        event(&s, 990, EVENT_SOFTIRQ_ENTRY, 2, closes == GIVES_UP ? 1 : 3); // TIMER, NET_RX
        event(&s, 991, EVENT_WAKING, 2, FRONT);
        event(&s, 992, EVENT_SOFTIRQ_EXIT, 2, closes == GIVES_UP ? 1 : 3);
        runs(&s, 994, 0, FRONT, "front");
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        build(&s, 10, 1010, 1040, 0);
        expect(&s,
               closes == READS    ? "waiting for its client to go on"
               : closes == CLOSES ? "blocked in close until the rest was taken"
                                  : "blocked in close until the rest was taken, timed out",
               975, 985);
        close_scene(&s);
    }
}

// Two workers of one pool hold the lock, one after the other, and either has to wait for another of
// the kernel's workers: one cause each, whatever their numbers.
static void test_one_cause_of_a_pool(void **state)
{
    static const struct {
        uint32_t thread;
        const char *name, *intruder;
    } turns[] = {{WORKER, "pool-1-thread-3", "kworker/2:1"},
                 {OTHER, "pool-1-thread-12", "kworker/2:0H"}};
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 1340, 1342, CLIENT_SIDE);
    for (int turn = 0; turn < 2; turn++) {
        int from = 20 + 600 * turn;
        event(&s, 2 + turn, EVENT_MEMBER, 2, turns[turn].thread)->payload.a = FRONT_PROCESS;
        strcpy(event(&s, 4 + turn, EVENT_PROCESS, 2, turns[turn].thread)->payload.text, "front");
        runs(&s, from, 2, turns[turn].thread, turns[turn].name);
        waits_for_lock(&s, from + 1);
        event(&s, from + 100, EVENT_SWITCH, 2, 70)->flags = SWITCH_PREEMPTED;
        strcpy(s.events.items[s.events.count - 1].payload.text, turns[turn].intruder);
        runs(&s, from + 200, 2, turns[turn].thread, turns[turn].name);
        event(&s, from + 500, EVENT_WAKING, 2, FRONT)->payload.b = turns[turn].thread;
        runs(&s, from + 501, 0, FRONT, "front");
    }
    runs(&s, 1200, 2, 0, "swapper/2");
    build(&s, 1, 10, 1340, 0);
    expect(&s, "condition wait (futex): pool-1-thread", 790, 800);
    expect(&s, "condition wait (futex): pool-1-thread, behind kworker", 195, 205);
    close_scene(&s);
}

// The VM thread stops the front's thread, as somebody asked it to who waits until it is done, or
// who was told something since.
static void test_inspector(void **state)
{
    (void)state;
    for (int again = 0; again <= 1; again++) {
        struct scene s;
        open_one_process(&s);
        runs(&s, 12, 1, OTHER, "Attach Listener");
        event(&s, 14, EVENT_WAKING, 1, WORKER)->payload.b = OTHER;
        runs(&s, 15, 2, WORKER, "VM Thread");
        runs(&s, 16, 1, 0, "swapper/1");
        waits_for_lock(&s, 24);
        if (again)
            event(&s, 500, EVENT_WAKING, 2, OTHER)->payload.b = WORKER;
        event(&s, 900, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
        runs(&s, 901, 0, FRONT, "front");
        runs(&s, 1100, 2, 0, "swapper/2");
        build(&s, 1, 10, 1040, 0);
        expect(&s, "stop-the-world pause (VM Thread for Attach Listener)", again ? 0 : 870,
               again ? 0 : 880);
        expect(&s, "stop-the-world pause (VM Thread)", again ? 870 : 0, again ? 880 : 0);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_again_and_again),
        cmocka_unit_test(test_lock_free_at_last),
        cmocka_unit_test(test_interpreter_lock),
        cmocka_unit_test(test_waker_that_was_not_seen_to_come),
        cmocka_unit_test(test_parked_by_go),
        cmocka_unit_test(test_parked_for_a_time),
        cmocka_unit_test(test_holder_awaits_its_client),
        cmocka_unit_test(test_blocked_by_a_client),
        cmocka_unit_test(test_one_cause_of_a_pool),
        cmocka_unit_test(test_holder_writes_to_a_reader),
        cmocka_unit_test(test_holder_waited_for_a_file),
        cmocka_unit_test(test_many_ahead_for_a_file),
        cmocka_unit_test(test_many_ahead_for_the_map),
        cmocka_unit_test(test_many_ahead_at_a_file),
        cmocka_unit_test(test_ahead_at_a_pipe),
        cmocka_unit_test(test_holder_copies_pages),
        cmocka_unit_test(test_what_is_no_other_try),
        cmocka_unit_test(test_woken_over_a_bystander),
        cmocka_unit_test(test_lock_through_two_hands),
        cmocka_unit_test(test_taken_in_between),
        cmocka_unit_test(test_inspector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
