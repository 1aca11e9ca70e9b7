// SPDX-License-Identifier: MIT
//
// What holds a thread up by itself: one request of sixty meets it, and the diagnosis must say what
// it was and how long it took.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/timeline/call_files.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

enum { FSYNC = 74, WRITE = 1, JOURNAL = 300, SHELL = 400, DISK = 254 << 20 };
enum { REQUESTS = 60, HIT = 30, PERIOD_NS = 1000000, HELD_NS = 100000, FAR_CORE = 3 };
enum { FUTEX = 202, SLEEP = 230, RESTART = 219 };

enum hindrance {
    NOTHING,
    LOCKED,
    STOPPED,
    CONTINUED,
    TOLD_TO_STOP,
    TRACED,
    FROZEN,
    THAWED,
    UNKNOWN_CALL,
    MOVED,
    MOVED_FROM_IDLE,
    MOVED_FROM_BUSY,
    MOVED_BY_FORCE,
    MOVED_FROM_IDLE_BEHIND_SOFTIRQ,
    MOVED_BY_FORCE_BEHIND_SOFTIRQ,
    FAULTING,
    HALF_FAULTING,
    FAULTING_AFTER_A_QUICK_WAY,
    FAULTING_AND_COLLECTED,
    FAULTING_BETWEEN_COLLECTIONS,
    THROTTLED,
    DISK_SERVING,
    DISK_QUEUEING,
    DISK_LIMITED,
    JOURNALLING,
    THAWING,
    RECLAIMING,
    RECLAIMING_ASLEEP,
    SWAPPING,
    FORKING,
    COPYING,
    COPYING_ALONE,
    AT_LIMIT,
    AT_LIMIT_UNNAMED,
    HELD_BACK,
    WRITING_BACK,
    CONDITION,
    LOGGING,
    LOGGING_FROZEN,
    PIPING,
    ASKING,
    RESTARTED,
    RESTARTED_LATE,
    REPEATED,
    AWAKENED,
    UNLINKING,
    UNLINKING_AGAIN,
    READING,
};

static void sleeps(struct scenario *s, int64_t at, uint64_t call, uint64_t state)
{
    struct event *blocked = scenario_event(s, at, EVENT_BLOCKED, 0, SERVER_THREAD);
    blocked->payload.a = call;
    blocked->payload.b = state;
    scenario_switch(s, at, 0, 0, "swapper/0");
    scenario_event(s, at + HELD_NS, EVENT_WAKING, 1, SERVER_THREAD);
    scenario_switch(s, at + HELD_NS, 0, SERVER_THREAD, "server");
}

static void records_text(struct scenario *s, int64_t at, uint8_t kind, uint32_t id,
                         const char *text)
{
    struct event *event = scenario_event(s, at, kind, 0, id);
    memcpy(event->payload.text, text, strnlen(text, sizeof event->payload.text));
}

static void uses_quota_up(struct scenario *s, int64_t at)
{
    records_text(s, at, EVENT_QUOTA, SERVER_THREAD, "web.slice");
    scenario_switch(s, at, 0, 0, "swapper/0");
    s->events.items[s->events.count - 1].flags = SWITCH_PREEMPTED | SWITCH_THROTTLED;
    scenario_switch(s, at + HELD_NS, 0, SERVER_THREAD, "server");
}

// The disk completes what was made and issued at these times.
static void disk_completes(struct scenario *s, int64_t made, int64_t issued, int64_t done)
{
    records_text(s, done, EVENT_DISK, DISK, "vda");
    struct event *event = scenario_event(s, done, EVENT_DISK_DONE, 1, DISK);
    event->flags = DISK_WRITES;
    event->payload.a = (uint64_t)(issued + MONOTONIC_AHEAD_NS);
    event->payload.b = (uint64_t)(made + MONOTONIC_AHEAD_NS);
}

static void waits_for_disk(struct scenario *s, int64_t at, enum hindrance hindrance)
{
    int64_t done = at + HELD_NS - 1000;
    disk_completes(s, hindrance == DISK_LIMITED ? done - 1000 : at,
                   hindrance == DISK_SERVING || hindrance == RECLAIMING_ASLEEP ? at : done - 1000,
                   done);
    scenario_event(s, done, EVENT_WAKING, 1, SERVER_THREAD);
    sleeps(s, at, hindrance == RECLAIMING_ASLEEP ? BLOCKED_NO_CALL : FSYNC, 2);
}

// A journal's thread, on another core, waits for the disk, and then wakes the server.
static void waits_for_journal(struct scenario *s, int64_t at)
{
    struct event *blocked = scenario_event(s, at, EVENT_BLOCKED, 0, SERVER_THREAD);
    blocked->payload.a = FSYNC;
    blocked->payload.b = 2;
    scenario_switch(s, at, 0, 0, "swapper/0");
    scenario_switch(s, at, 2, JOURNAL, "jbd2/vda-8");
    scenario_switch(s, at + 1000, 2, 0, "swapper/2");
    disk_completes(s, at + 1000, at + 1000, at + HELD_NS - 2000);
    scenario_event(s, at + HELD_NS - 2000, EVENT_WAKING, 1, JOURNAL)->payload.a = 2;
    scenario_switch(s, at + HELD_NS - 1000, 2, JOURNAL, "jbd2/vda-8");
    scenario_event(s, at + HELD_NS - 500, EVENT_WAKING, 2, SERVER_THREAD)->payload.b = JOURNAL;
    scenario_switch(s, at + HELD_NS + 10, 2, 0, "swapper/2");
    scenario_switch(s, at + HELD_NS, 0, SERVER_THREAD, "server");
}

// Another program has the server wait, as one that thaws a file system does: the disk writes down
// that it is, and it wakes the server on the core that has just heard of the disk.
static void waits_for_program(struct scenario *s, int64_t at)
{
    enum { IOCTL = 16 };
    const int64_t slept = at + HELD_NS - 3000, done = at + HELD_NS - 2000;
    scenario_event(s, at - 10, EVENT_MEMBER, 2, SHELL)->payload.a = SHELL;
    scenario_switch(s, at, 2, SHELL, "fsfreeze");
    scenario_event(s, at, EVENT_BLOCKED, 0, SERVER_THREAD)->payload.a = WRITE;
    scenario_switch(s, at, 0, 0, "swapper/0");
    scenario_event(s, slept, EVENT_BLOCKED, 2, SHELL)->payload.a = IOCTL;
    scenario_switch(s, slept, 2, 0, "swapper/2");
    disk_completes(s, slept, slept, done);
    s->events.items[s->events.count - 1].core = 2;
    scenario_event(s, done, EVENT_WAKING, 2, SHELL);
    scenario_switch(s, done + 500, 2, SHELL, "fsfreeze");
    scenario_event(s, done + 1500, EVENT_WAKING, 2, SERVER_THREAD)->payload.b = SHELL;
    scenario_switch(s, done + 2010, 2, 0, "swapper/2");
    scenario_switch(s, at + HELD_NS, 0, SERVER_THREAD, "server");
}

// Stopped, or frozen, until a shell on another core has it go on.
static void is_continued(struct scenario *s, int64_t at, enum hindrance hindrance)
{
    struct event *blocked = scenario_event(s, at, EVENT_BLOCKED, 0, SERVER_THREAD);
    blocked->payload.b = hindrance == CONTINUED ? BLOCKED_SIGNALLED : 1;
    blocked->flags = hindrance == CONTINUED ? 0 : BLOCKED_FROZEN;
    scenario_switch(s, at, 0, 0, "swapper/0");
    scenario_switch(s, at, 2, SHELL, "bash");
    scenario_event(s, at + HELD_NS - 500, EVENT_WAKING, 2, SERVER_THREAD)->payload.b = SHELL;
    scenario_switch(s, at + HELD_NS, 0, SERVER_THREAD, "server");
    scenario_switch(s, at + HELD_NS + 1000, 2, 0, "swapper/2");
}

// It sleeps in a call that is about that file.
static void sleeps_over(struct scenario *s, int64_t at, enum hindrance hindrance)
{
    enum { READ = 0 };
    struct event *file;
    const bool logs = hindrance == LOGGING || hindrance == LOGGING_FROZEN;
    if (logs)
        records_text(s, at, EVENT_FILE, SERVER_THREAD, "access.log");
    else
        scenario_event(s, at, EVENT_FILE, 0, SERVER_THREAD);
    file = &s->events.items[s->events.count - 1];
    file->flags = logs ? FILE_NAMED : hindrance == PIPING ? FILE_PIPE : FILE_PEER;
    if (hindrance == LOGGING_FROZEN)
        file->flags |= FILE_ON_FROZEN;
    if (hindrance == ASKING) {
        file->payload.a = inet_addr("127.0.0.1");
        file->payload.b = 6379;
    }
    sleeps(s, at, logs ? WRITE : READ, 1);
}

// It sleeps, a shell stops it and has it continue, and it goes on sleeping; late: it has worked
// since, so it is another call that goes on.
static void sleeps_on(struct scenario *s, int64_t at, uint64_t call, uint64_t again, bool late)
{
    enum { FIRST_NS = 90000, STOPPED_NS = 500, WORKED_NS = 1500000 };
    const int64_t slept = late ? at - WORKED_NS - FIRST_NS : at;
    const int64_t stopped = late ? at : at + FIRST_NS + 10, ends = at + HELD_NS;
    scenario_event(s, slept, EVENT_BLOCKED, 0, SERVER_THREAD)->payload.a = call;
    scenario_switch(s, slept, 0, 0, "swapper/0");
    scenario_switch(s, slept, 2, SHELL, "bash");
    scenario_event(s, slept + FIRST_NS - 500, EVENT_WAKING, 2, SERVER_THREAD)->payload.b = SHELL;
    scenario_switch(s, slept + FIRST_NS, 0, SERVER_THREAD, "server");
    scenario_switch(s, slept + FIRST_NS + 1000, 2, 0, "swapper/2");
    scenario_event(s, stopped, EVENT_BLOCKED, 0, SERVER_THREAD)->payload.b = BLOCKED_SIGNALLED;
    scenario_switch(s, stopped, 0, 0, "swapper/0");
    scenario_event(s, stopped + STOPPED_NS, EVENT_WAKING, 1, SERVER_THREAD);
    scenario_switch(s, stopped + STOPPED_NS, 0, SERVER_THREAD, "server");
    scenario_event(s, stopped + STOPPED_NS + 10, EVENT_BLOCKED, 0, SERVER_THREAD)->payload.a =
        again;
    scenario_switch(s, stopped + STOPPED_NS + 10, 0, 0, "swapper/0");
    scenario_event(s, ends, EVENT_WAKING, 1, SERVER_THREAD);
    scenario_switch(s, ends, 0, SERVER_THREAD, "server");
}

// It sleeps for a time, until a shell has a signal for it.
static void is_awakened(struct scenario *s, int64_t at)
{
    scenario_event(s, at, EVENT_BLOCKED, 0, SERVER_THREAD)->payload.a = SLEEP;
    scenario_switch(s, at, 0, 0, "swapper/0");
    scenario_switch(s, at, 2, SHELL, "bash");
    scenario_event(s, at + HELD_NS - 500, EVENT_WAKING, 2, SERVER_THREAD)->payload.b = SHELL;
    scenario_switch(s, at + HELD_NS, 0, SERVER_THREAD, "server");
    scenario_switch(s, at + HELD_NS + 1000, 2, 0, "swapper/2");
}

// The timer interrupts it twice, in the same call or in one after the other.
static void is_seen_in(struct scenario *s, int64_t at, uint64_t call, bool again)
{
    enum { TIMES = 2 };
    for (int i = 0; i < TIMES; i++) {
        const int64_t then = at + i * (HELD_NS - 1000) / (TIMES - 1);
        const uint64_t instance = again ? 7 + (uint64_t)i : 7;
        struct event *tick = scenario_event(s, then, EVENT_VECTOR_ENTRY, 0, VECTOR_LOCAL_TIMER);
        tick->payload.a = call | instance << 32;
        tick->payload.b = SERVER_THREAD;
        scenario_event(s, then + 100, EVENT_VECTOR_EXIT, 0, VECTOR_LOCAL_TIMER);
    }
}

static void makes_detour(struct scenario *s, uint8_t kind, int64_t from, int64_t to)
{
    struct event *event = scenario_event(s, to, EVENT_DETOUR, 0, SERVER_THREAD);
    event->flags = kind;
    event->payload.a = (uint64_t)(from + MONOTONIC_AHEAD_NS);
}

// A collector marks before and after, beside its program: in one go, or in two, between which the
// world was stopped and went on.
static void collects(struct scenario *s, int64_t at, bool at_once)
{
    makes_detour(s, DETOUR_WORLD, at - 2000, at - 1900);
    makes_detour(s, DETOUR_COLLECTION, at - 1000, at - 900);
    if (!at_once)
        makes_detour(s, DETOUR_WORLD, at - 800, at - 700);
    makes_detour(s, DETOUR_COLLECTION, at + HELD_NS + 11000, at + HELD_NS + 11100);
    makes_detour(s, DETOUR_WORLD, at + HELD_NS + 11500, at + HELD_NS + 11600);
}

static void swaps_in(struct scenario *s, int64_t at)
{
    scenario_event(s, at, EVENT_PAGE_FAULT, 0, SERVER_THREAD);
    sleeps(s, at, BLOCKED_NO_CALL, 2);
    scenario_event(s, at + HELD_NS, EVENT_FAULT_END, 0, SERVER_THREAD);
    scenario_event(s, at + HELD_NS, EVENT_FAULT_END, 0, SERVER_THREAD)->flags = FAULT_SWAPPED_IN;
}

static void copies_pages(struct scenario *s, int64_t at, bool forked)
{
    if (forked)
        makes_detour(s, DETOUR_FORK, SCENARIO_BEGIN_NS, SCENARIO_BEGIN_NS + 500);
    for (int64_t then = 0; then < HELD_NS; then += 2000)
        scenario_event(s, at + then, EVENT_PAGE_FAULT, 0, SERVER_THREAD)->flags =
            FAULT_USER | FAULT_COPIES;
}

static void moves(struct scenario *s, int64_t at, uint16_t to)
{
    scenario_event(s, at, EVENT_MIGRATE, 0, SERVER_THREAD)->payload.b = to;
}

// Woken, it is put on a core that runs another program, while its own does or idles.
static void moves_behind(struct scenario *s, int64_t at, int64_t held, bool busy, bool forced,
                         bool interrupted)
{
    scenario_switch(s, at - 1000, 2, SHELL, "bash");
    if (busy)
        scenario_switch(s, at, 0, SHELL + 1, "neighbour");
    moves(s, at, 2);
    s->events.items[s->events.count - 1].flags = forced ? MIGRATE_FORCED : 0;
    if (interrupted) // by NET_RX, 3
        scenario_nested(s, at + held / 8, at + held * 7 / 8, EVENT_SOFTIRQ_ENTRY, 2, 3, "");
    moves(s, at + held, 0);
    scenario_switch(s, at + held, 2, 0, "swapper/2");
}

// One request's life on the server; returns how long it was held up.
static int64_t serve(struct scenario *s, int64_t begin, enum hindrance hindrance)
{
    int64_t held = hindrance == NOTHING ? 0 : HELD_NS, service = begin + 6000;
    scenario_event(s, begin + 2000, EVENT_WAKING, 0, SERVER_THREAD);
    if (hindrance == MOVED) {
        moves(s, begin + 2000, FAR_CORE);
        moves(s, begin + 2000 + held, 0);
        scenario_switch(s, begin + 4000 + held, 0, SERVER_THREAD, "server");
    } else if (hindrance >= MOVED_FROM_IDLE && hindrance <= MOVED_BY_FORCE_BEHIND_SOFTIRQ) {
        bool from_idle =
            hindrance == MOVED_FROM_IDLE || hindrance == MOVED_FROM_IDLE_BEHIND_SOFTIRQ;
        moves_behind(s, begin + 2000, held, !from_idle,
                     hindrance == MOVED_BY_FORCE || hindrance == MOVED_BY_FORCE_BEHIND_SOFTIRQ,
                     hindrance >= MOVED_FROM_IDLE_BEHIND_SOFTIRQ);
        scenario_switch(s, begin + 2000 + held, 0, SERVER_THREAD, "server");
    } else {
        scenario_switch(s, begin + 4000, 0, SERVER_THREAD, "server");
    }
    if (hindrance == LOCKED)
        sleeps(s, service, FUTEX, 1);
    if (hindrance == CONDITION) {
        sleeps(s, service, FUTEX, 1);
        s->events.items[s->events.count - 4].flags = BLOCKED_CONDITION;
    }
    if (hindrance == LOGGING || hindrance == LOGGING_FROZEN || hindrance == PIPING ||
        hindrance == ASKING)
        sleeps_over(s, service, hindrance);
    if (hindrance == RESTARTED || hindrance == RESTARTED_LATE)
        sleeps_on(s, service, FUTEX, RESTART, hindrance == RESTARTED_LATE);
    if (hindrance == REPEATED)
        sleeps_on(s, service, FUTEX, FUTEX, false);
    if (hindrance == AWAKENED)
        is_awakened(s, service);
    if (hindrance == UNLINKING || hindrance == UNLINKING_AGAIN)
        is_seen_in(s, service, 87 /* unlink */, hindrance == UNLINKING_AGAIN);
    if (hindrance == READING)
        is_seen_in(s, service, 0 /* read */, false);
    if (hindrance == STOPPED)
        sleeps(s, service, BLOCKED_NO_CALL, BLOCKED_SIGNALLED);
    if (hindrance == CONTINUED || hindrance == THAWED)
        is_continued(s, service, hindrance);
    if (hindrance == TOLD_TO_STOP) {
        records_text(s, service - 500, EVENT_STOP_SENT, SERVER_PROCESS, "supervisor");
        s->events.items[s->events.count - 1].core = 2;
        scenario_event(s, service - 500, EVENT_MEMBER, 0, SERVER_THREAD)->payload.a =
            SERVER_PROCESS;
        is_continued(s, service, CONTINUED);
        records_text(s, service + held, EVENT_STOP_SENT, SERVER_PROCESS, "another");
    }
    if (hindrance == TRACED)
        sleeps(s, service, BLOCKED_NO_CALL, BLOCKED_TRACED);
    if (hindrance == FROZEN) {
        sleeps(s, service, FUTEX, 1);
        s->events.items[s->events.count - 4].flags = BLOCKED_FROZEN;
    }
    if (hindrance == UNKNOWN_CALL)
        sleeps(s, service, 999, 2);
    if (hindrance == THROTTLED)
        uses_quota_up(s, service);
    if (hindrance == DISK_SERVING || hindrance == DISK_QUEUEING || hindrance == DISK_LIMITED ||
        hindrance == RECLAIMING_ASLEEP)
        waits_for_disk(s, service, hindrance);
    if (hindrance == JOURNALLING)
        waits_for_journal(s, service);
    if (hindrance == THAWING)
        waits_for_program(s, service);
    if (hindrance == RECLAIMING || hindrance == RECLAIMING_ASLEEP)
        makes_detour(s, DETOUR_RECLAIM, service, service + held);
    if (hindrance == AT_LIMIT) {
        records_text(s, service + 10, EVENT_LIMIT, SERVER_THREAD, "web.slice");
        records_text(s, service + 20, EVENT_LIMIT, SERVER_THREAD + 1, "another");
    }
    if (hindrance == AT_LIMIT || hindrance == AT_LIMIT_UNNAMED)
        makes_detour(s, DETOUR_GROUP_RECLAIM, service, service + held);
    if (hindrance == HELD_BACK) {
        records_text(s, service - 500, EVENT_LIMIT, SERVER_THREAD, "earlier");
        records_text(s, service, EVENT_LIMIT, SERVER_THREAD, "web.slice");
        makes_detour(s, DETOUR_HELD_BACK, service, service);
        sleeps(s, service, WRITE, 2);
    }
    if (hindrance == SWAPPING)
        swaps_in(s, service);
    if (hindrance == FORKING)
        makes_detour(s, DETOUR_FORK, service, service + held);
    if (hindrance == COPYING || hindrance == COPYING_ALONE)
        copies_pages(s, service, hindrance == COPYING);
    if (hindrance == WRITING_BACK) {
        makes_detour(s, DETOUR_DIRTY, service, service);
        sleeps(s, service, WRITE, 2);
    }
    if (hindrance == FAULTING_AND_COLLECTED || hindrance == FAULTING_BETWEEN_COLLECTIONS)
        collects(s, service, hindrance == FAULTING_AND_COLLECTED);
    bool faults = hindrance == FAULTING || hindrance == FAULTING_AFTER_A_QUICK_WAY ||
                  hindrance == FAULTING_AND_COLLECTED || hindrance == FAULTING_BETWEEN_COLLECTIONS;
    for (int64_t at = 0; faults && at < held; at += 2000)
        scenario_event(s, service + at, EVENT_PAGE_FAULT, 0, SERVER_THREAD);
    for (int64_t at = 0; hindrance == HALF_FAULTING && at < held / 2; at += 2000)
        scenario_event(s, service + at, EVENT_PAGE_FAULT, 0, SERVER_THREAD);
    scenario_switch(s, begin + 18000 + held, 0, 0, "swapper/0");
    return held;
}

static struct lifetime life_of(int64_t begin, int64_t held)
{
    struct lifetime life = {.thread = SERVER_THREAD,
                            .receive_call = NO_CALL,
                            .send_call = NO_CALL,
                            .sharing = 1,
                            .state = LIFETIME_WHOLE};
    const struct {
        enum stamp_kind kind;
        int64_t at;
    } stamps[] = {{STAMP_INTENDED, 0},
                  {STAMP_SEND, 0},
                  {STAMP_NIC, 1000},
                  {STAMP_HANDOFF, 2000},
                  {STAMP_APPLICATION, 5000},
                  {STAMP_REPLY, 15000 + held},
                  {STAMP_REPLY_READ, 20000 + held}};
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
        life.stamp_ns[stamps[i].kind] = begin + stamps[i].at;
        life.present |= (uint16_t)(1u << stamps[i].kind);
    }
    struct disorder disorder = {0};
    lifetime_compute_stages(&life, 0, &disorder);
    return life;
}

// For whom the thread works while it is held up; its calls on sockets are not known, are at the
// ends of that time, or there are others in the middle or before.
enum served { FOR_ITSELF, FOR_ANOTHER, ASKING_MEANWHILE, ASKING_BEFORE };

// The calls of a request, between two of which the thread works for another connection's.
static void call_for_another(struct application_call calls[4], struct lifetime *life,
                             uint32_t first)
{
    enum { OWN, ANOTHER };
    const int64_t received = life->stamp_ns[STAMP_APPLICATION], sends = life->stamp_ns[STAMP_REPLY];
    const struct application_call all[4] = {
        {received - 200, received, .connection = OWN, .kind = CALL_RECEIVE},
        {received + 300, received + 500, .connection = ANOTHER, .kind = CALL_RECEIVE},
        {sends - 2000, sends - 1800, .connection = ANOTHER, .kind = CALL_SEND},
        {sends, sends + 200, .connection = OWN, .kind = CALL_SEND}};
    memcpy(calls, all, sizeof all);
    for (int i = 0; i < 4; i++)
        calls[i].thread = SERVER_THREAD;
    life->receive_call = first;
    life->send_call = first + 3;
}

// The same of a request for which alone the thread works; it sends to another server.
static void ask(struct application_call calls[4], struct lifetime *life, uint32_t first,
                int64_t after_ns)
{
    enum { OTHER_SERVER = 1 };
    call_for_another(calls, life, first);
    const int64_t at = calls[0].exit_ns + after_ns;
    calls[1] = (struct application_call){at, at + 10, .connection = OTHER_SERVER, .kind = CALL_SEND,
                                         .thread = SERVER_THREAD};
    calls[2] = (struct application_call){at + 20, at + 30, .connection = OTHER_SERVER,
                                         .kind = CALL_SEND, .thread = SERVER_THREAD};
}

// How long it took on the network, and before it was sent.
enum { QUICK_NS = 10000, USUAL_NS = 50000 };
static void came_by(struct lifetime *life, int64_t network_ns, int64_t queued_ns)
{
    struct disorder disorder = {0};
    life->stamp_ns[STAMP_SEND] -= network_ns;
    life->stamp_ns[STAMP_INTENDED] -= network_ns + queued_ns;
    lifetime_compute_stages(life, 0, &disorder);
}

// parts: how much of that cause was what, in words.
static void expect_parts(enum hindrance hindrance, enum served served, const char *name,
                         const char *parts)
{
    struct scenario s = {0};
    struct lifetime lives[REQUESTS];
    struct application_call items[4 * REQUESTS];
    struct application_calls calls = {.items = items, .count = 4 * REQUESTS};
    struct host_timeline server;
    struct time_source clock = scenario_clock();
    struct error err = {0};
    scenario_switch(&s, SCENARIO_BEGIN_NS, 0, 0, "swapper/0");
    for (int i = 0; i < REQUESTS; i++) {
        int64_t begin = SCENARIO_BEGIN_NS + (i + 1) * (int64_t)PERIOD_NS;
        lives[i] = life_of(begin, serve(&s, begin, i == HIT ? hindrance : NOTHING));
        lives[i].request = (uint64_t)i;
        if (hindrance == FAULTING_AFTER_A_QUICK_WAY)
            came_by(&lives[i], i == HIT ? QUICK_NS : USUAL_NS, i == HIT ? USUAL_NS : QUICK_NS);
        if (served == FOR_ANOTHER)
            call_for_another(items + 4 * (size_t)i, &lives[i], 4 * (uint32_t)i);
        if (served == ASKING_MEANWHILE || served == ASKING_BEFORE)
            ask(items + 4 * (size_t)i, &lives[i], 4 * (uint32_t)i,
                served == ASKING_BEFORE ? 100 : 50000);
    }
    assert_int_equal(host_timeline_build(s.events.items, s.events.count, &clock, &server, &err), 0);
    const uint32_t threads[] = {SERVER_THREAD};
    const struct diagnosis_input input = {.lifetimes = lives,
                                          .lifetime_count = REQUESTS,
                                          .server = &server,
                                          .calls = served == FOR_ITSELF ? NULL : &calls,
                                          .application_threads = threads,
                                          .application_thread_count = 1,
                                          .granularity_ns = 500};
    const struct diagnosis_slice slowest = {.low = 0.99, .high = 1};
    struct diagnosis diagnosis;
    assert_int_equal(diagnose(&input, &slowest, &diagnosis, &err), 0);
    assert_false(diagnosis.not_available);
    assert_int_equal(diagnosis.messages.count, 1);
    assert_int_equal(diagnosis.messages.items[0].lifetime, HIT);
    assert_true(diagnosis.causes.count > 0);
    assert_string_equal(diagnosis.causes.items[0].name, name);
    assert_string_equal(diagnosis.causes.items[0].parts_words, parts);
    assert_int_equal(diagnosis.causes.items[0].role, ROLE_A);
    assert_float_equal(diagnosis.causes.items[0].total_ns, HELD_NS, 4000);
    assert_true(diagnosis.coverage_min > 0.95 || !diagnosis.causes.items[0].explains);
    diagnosis_free(&diagnosis);
    host_timeline_free(&server);
    scenario_free(&s);
}

static void expect_of(enum hindrance hindrance, enum served served, const char *name)
{
    expect_parts(hindrance, served, name, "");
}

static void expect(enum hindrance hindrance, const char *name)
{
    expect_of(hindrance, FOR_ITSELF, name);
}

static void a_sleeping_thread_says_in_what(void **state)
{
    (void)state;
    expect(LOCKED, "lock wait (futex)");
    expect(CONDITION, "condition wait (futex)");
    expect(STOPPED, "stopped by a signal");
    expect(CONTINUED, "stopped by a signal (continued by bash)");
    expect(TOLD_TO_STOP, "stopped by a signal of supervisor");
    expect(TRACED, "stopped by a tracer");
    expect(FROZEN, "stopped: its control group is frozen");
    expect(THAWED, "stopped: its control group is frozen (thawed by bash)");
    expect(UNKNOWN_CALL, "blocked in system call 999");
}

static void a_call_that_goes_on_after_a_stop_keeps_its_name(void **state)
{
    (void)state;
    expect(RESTARTED, "lock wait (futex)");
    expect(REPEATED, "lock wait (futex)");
    expect(RESTARTED_LATE, "blocked in a call that was interrupted before");
}

static void the_kernels_work_in_a_call_is_no_program(void **state)
{
    (void)state;
    expect(UNLINKING, "kernel work in unlink");
    expect(UNLINKING_AGAIN, "application time");
    expect_of(UNLINKING, FOR_ANOTHER, "head-of-line blocking");
    expect_of(UNLINKING, ASKING_MEANWHILE, "application time");
    expect(READING, "application time"); // it may be of a socket, one after the other
    expect_of(READING, ASKING_BEFORE, "kernel work in read");
    expect_of(READING, ASKING_MEANWHILE, "application time");
}

static void nobody_ends_a_sleep_but_the_time(void **state)
{
    (void)state;
    expect(AWAKENED, "sleeping (timer)");
}

static void a_pause_has_a_name(void **state)
{
    static const struct {
        uint32_t pause;
        const char *name;
    } pauses[] = {{0, "blocked in read"},
                  {9, "blocked in mmap"},
                  {11, "blocked in munmap"},
                  {12, "blocked in brk"},
                  {17, "blocked in pread"},
                  {28, "blocked in madvise"},
                  {56, "blocked in clone"},
                  {76, "blocked in truncate"},
                  {82, "blocked in rename"},
                  {202, "lock wait (futex)"},
                  {230, "sleeping"},
                  {277, "blocked in sync_file_range"},
                  {455, "lock wait (futex)"},
                  {340, "blocked in system call 340"}, // between the old numbers and the new
                  {PAUSE_CONDITION, "condition wait (futex)"},
                  {PAUSE_INTERPRETER, "waiting for the interpreter lock (GIL)"},
                  {PAUSE_PARKED, "parked by its scheduler"},
                  {PAUSE_STOPPED, "stopped by a signal"},
                  {PAUSE_NO_CALL, "blocked in a page fault"}};
    char name[64];
    (void)state;
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        pause_name(pauses[i].pause, name, sizeof name);
        assert_string_equal(name, pauses[i].name);
    }
}

static void a_call_names_what_it_is_about(void **state)
{
    (void)state;
    expect(LOGGING, "blocked in write to access.log");
    expect(LOGGING_FROZEN, "blocked in write to access.log (file system frozen)");
    expect(PIPING, "blocked in read from a pipe");
    expect(ASKING, "blocked in read from 127.0.0.1:6379");
}

// Four files of a call are told apart, five are not; another call's stay as they are.
static void many_files_are_one_cause(void **state)
{
    (void)state;
    enum { FEW, MANY, OF_ANOTHER, WAYS };
    for (int way = FEW; way < WAYS; way++) {
        const int files = way == MANY ? 5 : 4;
        struct scenario s = {0};
        struct host_timeline server;
        struct time_source clock = scenario_clock();
        struct error err = {0};
        char name[16];
        scenario_switch(&s, SCENARIO_BEGIN_NS, 0, SERVER_THREAD, "server");
        for (int i = 0; i <= files; i++) {
            int64_t at = SCENARIO_BEGIN_NS + (i + 1) * (int64_t)PERIOD_NS;
            snprintf(name, sizeof name, "page-%d", i);
            records_text(&s, at, EVENT_FILE, SERVER_THREAD, name);
            sleeps(&s, at, i == files ? FSYNC : 17 /* pread64 */, 1);
        }
        if (way == OF_ANOTHER) {
            scenario_switch(&s, SCENARIO_BEGIN_NS, 1, SHELL, "backup:copier");
            struct event *blocked =
                scenario_event(&s, SCENARIO_BEGIN_NS + 10, EVENT_BLOCKED, 1, SHELL);
            blocked->payload.a = 17;
            records_text(&s, SCENARIO_BEGIN_NS + 10, EVENT_FILE, SHELL, "page-9");
            s.events.items[s.events.count - 1].core = 1;
            scenario_switch(&s, SCENARIO_BEGIN_NS + 10, 1, 0, "swapper/1");
        }
        assert_int_equal(host_timeline_build(s.events.items, s.events.count, &clock, &server, &err),
                         0);
        assert_int_equal(server.files.count, files + 1 + (way == OF_ANOTHER));
        size_t count;
        const struct thread_stint *stints = host_timeline_stints(&server, SERVER_THREAD, &count);
        assert_true(count > (size_t)files);
        for (int i = 0; i <= files; i++) {
            char words[64] = "", wanted[64];
            const struct thread_stint *stint = &stints[i];
            uint32_t pause;
            assert_true(pause_after(&server, stint, &pause));
            call_file_append(&server, stint, pause, words, sizeof words);
            if (i == files)
                snprintf(wanted, sizeof wanted, " of page-%d", i);
            else if (way != MANY)
                snprintf(wanted, sizeof wanted, " from page-%d", i);
            else
                snprintf(wanted, sizeof wanted, " from several files");
            assert_string_equal(words, wanted);
        }
        host_timeline_free(&server);
        scenario_free(&s);
    }
}

static void a_quota_names_its_group(void **state)
{
    (void)state;
    expect(THROTTLED, "throttled (CPU quota of web.slice)");
}

static void a_disk_is_named_with_what_it_did(void **state)
{
    (void)state;
    expect(DISK_SERVING, "blocked in fsync, disk vda: write");
    expect(DISK_QUEUEING, "blocked in fsync, disk vda: queue");
    expect(DISK_LIMITED, "blocked in fsync, disk vda: held back");
    expect(JOURNALLING, "blocked in fsync: jbd2, disk vda: write");
    expect(THAWING, "blocked in write: fsfreeze");
}

static void the_kernels_memory_is_named(void **state)
{
    (void)state;
    expect(RECLAIMING, "memory reclaim");
    expect(RECLAIMING_ASLEEP, "memory reclaim, disk vda: write");
    expect(SWAPPING, "swap-in");
    expect(FORKING, "fork: copies page tables");
    expect(COPYING, "page faults (copy on write after a fork)");
    expect(COPYING_ALONE, "page faults");
    expect(WRITING_BACK, "writeback throttling");
    expect(AT_LIMIT, "memory reclaim (memory limit of web.slice)");
    expect(AT_LIMIT_UNNAMED, "memory reclaim (memory limit)");
    expect(HELD_BACK, "held back (memory.high of web.slice)");
}

// What a fork costs a process costs all of its requests; a request's own page faults are its own,
// and those behind it are behind it whatever it does, but told how much of that were page faults.
static void a_fork_holds_up_those_behind(void **state)
{
    (void)state;
    expect_of(FORKING, FOR_ANOTHER, "fork: copies page tables");
    expect_of(COPYING, FOR_ANOTHER, "page faults (copy on write after a fork)");
    expect_parts(COPYING_ALONE, FOR_ANOTHER, "head-of-line blocking", "page faults 100 %");
    expect_parts(FAULTING, FOR_ANOTHER, "head-of-line blocking", "page faults 100 %");
    // The last of them lasts for PAGE_FAULT_MOST_NS.
    expect_parts(HALF_FAULTING, FOR_ANOTHER, "head-of-line blocking", "page faults 68 %");
}

// While a collector marks, what the program needs is new memory, whoever needs it.
static void new_memory_beside_a_collector_is_its_doing(void **state)
{
    (void)state;
    expect_parts(FAULTING_AND_COLLECTED, FOR_ITSELF, "garbage collection",
                 "page faults meanwhile 100 %");
    expect_parts(FAULTING_AND_COLLECTED, FOR_ANOTHER, "garbage collection",
                 "page faults meanwhile 100 %");
    expect_of(FAULTING_BETWEEN_COLLECTIONS, FOR_ITSELF, "page faults");
}

static void a_detour_inside_another_is_cut_out(void **state)
{
    static const struct {
        uint8_t kind;
        int64_t end;
    } wanted[] = {{DETOUR_SWAP_IN, 2000},
                  {DETOUR_RECLAIM, 3000},
                  {DETOUR_SWAP_IN, 4000},
                  {DETOUR_COMPACTION, 5000},
                  {DETOUR_SWAP_IN, 6000 + PAGE_FAULT_RETURN_NS}};
    (void)state;
    struct scenario s = {0};
    struct host_timeline host;
    struct time_source clock = scenario_clock();
    struct error err = {0};
    scenario_switch(&s, 0, 0, SERVER_THREAD, "server");
    scenario_event(&s, 1000, EVENT_PAGE_FAULT, 0, SERVER_THREAD);
    makes_detour(&s, DETOUR_RECLAIM, 2000, 3000);
    makes_detour(&s, DETOUR_COMPACTION, 4000, 5000);
    scenario_event(&s, 6000, EVENT_FAULT_END, 0, SERVER_THREAD);
    scenario_event(&s, 6000, EVENT_FAULT_END, 0, SERVER_THREAD)->flags = FAULT_SWAPPED_IN;
    assert_int_equal(host_timeline_build(s.events.items, s.events.count, &clock, &host, &err), 0);
    assert_int_equal(host.detours.count, sizeof wanted / sizeof *wanted);
    int64_t until, at = 1000;
    assert_null(detour_at(&host, SERVER_THREAD, 500, &until));
    assert_int_equal(until, 1000);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const struct detour *detour = detour_at(&host, SERVER_THREAD, at, &until);
        assert_non_null(detour);
        assert_int_equal(detour->kind, wanted[i].kind);
        assert_int_equal(until, wanted[i].end);
        at = until;
    }
    assert_null(detour_at(&host, SERVER_THREAD, at, &until));
    assert_null(detour_at(&host, SERVER_THREAD + 1, 1500, &until));
    host_timeline_free(&host);
    scenario_free(&s);
}

static void a_moved_thread_waits_elsewhere(void **state)
{
    (void)state;
    expect(MOVED, "scheduler migration");
    expect(MOVED_FROM_IDLE, "scheduler migration");
    expect(MOVED_FROM_BUSY, "bash");
    expect(MOVED_BY_FORCE, "scheduler migration");
    expect(MOVED_FROM_IDLE_BEHIND_SOFTIRQ, "scheduler migration");
    expect(MOVED_BY_FORCE_BEHIND_SOFTIRQ, "scheduler migration");
}

static void page_faults_take_their_time(void **state)
{
    (void)state;
    expect(FAULTING, "page faults");
    // What took longer and what took less than usual make up for one another.
    expect(FAULTING_AFTER_A_QUICK_WAY, "page faults");
}

static double faulting_ns(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                          int64_t end_ns)
{
    const struct thread_pages pages = thread_pages_of(host, thread);
    return page_fault_ns(&pages, begin_ns, end_ns);
}

static void a_fault_lasts_until_the_next_within_bounds(void **state)
{
    (void)state;
    struct thread_moment faults[] = {{.time_ns = 1000, .thread = 7},
                                     {.time_ns = 3000, .thread = 7},
                                     {.time_ns = 70000, .thread = 7}};
    const struct host_timeline host = {.faults = {.items = faults, .count = 3}};
    const float most = PAGE_FAULT_MOST_NS;
    assert_float_equal(faulting_ns(&host, 7, 0, 100000), 2000 + 2 * most, 0.1);
    assert_float_equal(faulting_ns(&host, 7, 2000, 4000), 2000, 0.1);
    assert_float_equal(faulting_ns(&host, 7, 71000, 100000), most - 1000, 0.1);
    assert_float_equal(faulting_ns(&host, 8, 0, 100000), 0, 0.1);
    assert_float_equal(faulting_ns(NULL, 7, 0, 100000), 0, 0.1);
}

static void a_fault_ends_when_it_has_its_page(void **state)
{
    (void)state;
    struct thread_moment faults[24] = {{.time_ns = 1000, .thread = 7, .value = 30000},
                                       {.time_ns = 90000, .thread = 7, .value = 500}};
    const struct host_timeline host = {.faults = {.items = faults, .count = 2}};
    const float after = PAGE_FAULT_RETURN_NS;
    assert_float_equal(faulting_ns(&host, 7, 0, 200000), 30000 + 500 + 2 * after, 0.1);
    assert_float_equal(faulting_ns(&host, 7, 20000, 200000), 11000 + 500 + 2 * after, 0.1);
    faults[1].time_ns =
        1000 + 30000 + PAGE_FAULT_STORM_NS - 1; // what lies between is faulting, too
    assert_float_equal(faulting_ns(&host, 7, 0, 200000),
                       30000 + PAGE_FAULT_STORM_NS - 1 + 500 + after, 0.1);
}

static void a_pause_amid_a_storm_is_the_storms(void **state)
{
    (void)state;
    enum { STORM = 24, EACH_NS = 2000, PAUSE_NS = 60000 };
    struct thread_moment faults[STORM];
    const struct host_timeline host = {.faults = {.items = faults, .count = STORM}};
    for (int pause_at = 0; pause_at < STORM; pause_at++) {
        int64_t now = 0;
        for (int i = 0; i < STORM; i++) {
            now += i == pause_at && i > 0 ? PAUSE_NS : EACH_NS;
            faults[i] = (struct thread_moment){.time_ns = now, .thread = 7, .value = 1000};
        }
        bool amid = pause_at > 4 && pause_at < STORM - 4;
        double all = (STORM - 1) * EACH_NS + 1000 + PAGE_FAULT_RETURN_NS;
        if (pause_at > 0)
            all += amid ? PAUSE_NS - EACH_NS : 1000 + PAGE_FAULT_RETURN_NS - EACH_NS;
        assert_float_equal(faulting_ns(&host, 7, 0, 1000000), all, 0.1);
    }
}

// Each page is read from a disk: what that takes makes it no less of a storm.
static void a_storm_may_wait_for_its_pages(void **state)
{
    (void)state;
    enum { STORM = 24, READ_NS = 200000, BETWEEN_NS = 20000 };
    struct thread_moment faults[STORM];
    const struct host_timeline host = {.faults = {.items = faults, .count = STORM}};
    for (int i = 0; i < STORM; i++)
        faults[i] = (struct thread_moment){
            .time_ns = i * (READ_NS + BETWEEN_NS), .thread = 7, .value = READ_NS};
    assert_float_equal(faulting_ns(&host, 7, faults[4].time_ns, faults[STORM - 5].time_ns),
                       (double)(faults[STORM - 5].time_ns - faults[4].time_ns), 0.1);
}

// The handler has a tenth of it: the rest lies before and behind, where no event is.
static void a_fault_takes_what_it_costs_on_its_machine(void **state)
{
    (void)state;
    enum { COST = 17000, EACH = 24000, HANDLED = 1500, STORM = 20, LAST = EACH * STORM };
    struct thread_moment faults[STORM + 2];
    struct host_timeline host = {.faults = {.items = faults, .count = STORM + 2}};
    for (int i = 0; i < STORM; i++)
        faults[i] = (struct thread_moment){.time_ns = i * EACH, .thread = 7, .value = HANDLED};
    faults[STORM] = (struct thread_moment){.time_ns = LAST, .thread = 7, .value = HANDLED};
    faults[STORM + 1] =
        (struct thread_moment){.time_ns = 10 * LAST, .thread = 7, .value = 2 * COST};
    const float behind = 3 * COST; // of the last the handler alone took more than all of a fault
    host.page_fault_ns = COST;     // amid them nothing else is done
    assert_float_equal(faulting_ns(&host, 7, 0, 20 * LAST), LAST + EACH + behind, 0.1);
    host.faults = (struct thread_moment_array){.items = &faults[STORM], .count = 1}; // no storm
    assert_float_equal(faulting_ns(&host, 7, 0, 20 * LAST), COST, 0.1);
}

// The first and the last of a storm cost as unevenly as the others: a few times what was tried is
// theirs, more is the program's.
static void the_edges_of_a_storm_are_uneven(void **state)
{
    enum { COST = 17000, EACH = 18000, HANDLED = 1500, STORM = 20 };
    static const int64_t pauses[] = {3 * COST, 8 * COST};
    struct thread_moment faults[STORM];
    (void)state;
    for (int storms = 0; storms < 2; storms++)
        for (int pause_at = 1; pause_at < STORM; pause_at += STORM - 3) {
            int64_t now = 0, own = 0;
            for (int i = 0; i < STORM; i++) {
                faults[i] = (struct thread_moment){.time_ns = now, .thread = 7, .value = HANDLED};
                now += EACH + (i + 1 == pause_at ? pauses[storms] : 0);
            }
            const struct host_timeline host = {.faults = {.items = faults, .count = STORM},
                                               .page_fault_ns = COST};
            if (pauses[storms] > 4 * COST)
                own = pauses[storms] + (pause_at == 1 ? EACH - COST : 0);
            assert_float_equal(faulting_ns(&host, 7, 0, 10 * now),
                               (double)(faults[STORM - 1].time_ns + EACH - own), 0.1);
        }
}

// What a host does before the kernel's handler begins is the fault's: of a storm only the first
// one's lies outside of what is seen.
static void a_fault_begins_before_its_handler(void **state)
{
    (void)state;
    enum { COST = 17000, EACH = 24000, HANDLED = 1500, STORM = 20, LAST = EACH * STORM };
    enum { BEFORE = 8000, ALONE = 10 * LAST };
    struct thread_moment faults[STORM + 1];
    const struct host_timeline host = {.faults = {.items = faults, .count = STORM + 1},
                                       .page_fault_ns = COST,
                                       .page_fault_before_ns = BEFORE};
    for (int i = 0; i < STORM; i++)
        faults[i] =
            (struct thread_moment){.time_ns = (i + 1) * EACH, .thread = 7, .value = HANDLED};
    faults[STORM] = (struct thread_moment){.time_ns = ALONE, .thread = 7, .value = HANDLED};
    assert_float_equal(faulting_ns(&host, 7, 0, LAST), LAST - EACH + BEFORE, 0.1);
    assert_float_equal(faulting_ns(&host, 7, 0, EACH), BEFORE, 0.1);
    assert_float_equal(faulting_ns(&host, 7, EACH - BEFORE / 2, EACH), BEFORE / 2, 0.1);
    assert_float_equal(faulting_ns(&host, 7, EACH, LAST), LAST - EACH, 0.1);
    assert_float_equal(faulting_ns(&host, 7, LAST + COST, 2 * ALONE), BEFORE + COST, 0.1);
}

// Who slept for its page comes back to a core that others had, and pays for that: so long does the
// last of a storm take, too, after which no other one is.
static void the_last_of_a_storm_takes_what_those_alike_took(void **state)
{
    (void)state;
    enum { COST = 17000, HANDLED = 1500, READ = 200000, STORM = 60, SLEEPS = 6 };
    enum { REST = 18000, LONG_REST = 70000 };
    struct thread_moment faults[STORM];
    for (int last_sleeps = 0; last_sleeps < 2; last_sleeps++) {
        int64_t now = 0, rest = 0;
        for (int i = 0; i < STORM; i++) {
            const bool sleeps = (i + 1 - last_sleeps) % (STORM / SLEEPS) == (last_sleeps ? 9 : 5);
            const uint32_t took = sleeps ? READ : HANDLED;
            rest = sleeps ? LONG_REST : REST;
            faults[i] = (struct thread_moment){.time_ns = now, .thread = 7, .value = took};
            now += took + rest;
        }
        const struct host_timeline host = {.faults = {.items = faults, .count = STORM},
                                           .page_fault_ns = COST};
        assert_float_equal(faulting_ns(&host, 7, 0, 2 * now), (double)now, 0.1);
    }
}

// When a page is copied is known, but not when that is over: amid copies each lasts until the next,
// unless the program can have done more meanwhile than to get there, and the last as long as those.
static void copies_last_until_the_next(void **state)
{
    (void)state;
    enum { COST = 44000, EACH = 70000, APART = 90000, COPIES = 12 };
    struct thread_moment copies[COPIES];
    struct thread_pages pages = {.copies = copies, .copy_count = COPIES, .least_ns = COST};
    for (int i = 0; i < COPIES; i++)
        copies[i] = (struct thread_moment){.time_ns = i * EACH, .thread = 7};
    assert_float_equal(page_copy_ns(&pages, 0, 10 * COPIES * EACH), COPIES * EACH, 0.1);
    for (int i = 0; i < COPIES; i++)
        copies[i].time_ns = i * APART;
    assert_float_equal(page_copy_ns(&pages, 0, 10 * COPIES * APART), COPIES * COST, 0.1);
    pages.least_ns = 1000; // a machine that does it at once
    assert_float_equal(page_copy_ns(&pages, 0, 10 * COPIES * APART), COPIES * PAGE_FAULT_MOST_NS,
                       0.1);
}

// While a thread waits for its page, others have theirs on the same core; and it may go on on
// another one.
static void a_fault_ends_whoever_had_the_core_meanwhile(void **state)
{
    enum { SLEPT = 300000, OTHER = SERVER_THREAD + 1 };
    (void)state;
    for (uint16_t core = 0; core < 2; core++) {
        struct scenario s = {0};
        struct host_timeline host;
        struct time_source clock = scenario_clock();
        struct error err = {0};
        size_t count;
        scenario_switch(&s, 0, 0, SERVER_THREAD, "server");
        scenario_event(&s, 1000, EVENT_PAGE_FAULT, 0, SERVER_THREAD);
        scenario_switch(&s, 2000, 0, OTHER, "other");
        scenario_event(&s, 3000, EVENT_PAGE_FAULT, 0, OTHER);
        scenario_event(&s, 4000, EVENT_FAULT_END, 0, OTHER);
        scenario_event(&s, 5000, EVENT_PAGE_FAULT, 0, OTHER);
        scenario_event(&s, 6000, EVENT_FAULT_END, 0, OTHER);
        scenario_switch(&s, SLEPT, core, SERVER_THREAD, "server");
        scenario_event(&s, 1000 + SLEPT, EVENT_FAULT_END, core, SERVER_THREAD);
        assert_int_equal(host_timeline_build(s.events.items, s.events.count, &clock, &host, &err),
                         0);
        const struct thread_moment *fault = thread_moments_of(&host.faults, SERVER_THREAD, &count);
        assert_int_equal(count, 1);
        assert_int_equal(fault->value, SLEPT);
        fault = thread_moments_of(&host.faults, OTHER, &count);
        assert_int_equal(count, 2);
        assert_int_equal(fault[0].value, 1000);
        assert_int_equal(fault[1].value, 1000);
        host_timeline_free(&host);
        scenario_free(&s);
    }
}

static void swapping_in_takes_what_a_fault_costs(void **state)
{
    (void)state;
    enum { COST = 17000, EACH = 16000, HANDLED = 1500, STORM = 3, BEFORE = 400 };
    struct scenario s = {0};
    struct host_timeline host;
    struct time_source clock = scenario_clock();
    struct error err = {0};
    int64_t until;
    scenario_switch(&s, 0, 0, SERVER_THREAD, "server");
    for (int i = 0; i < STORM; i++) {
        const int64_t at = 1000 + i * EACH;
        scenario_event(&s, at, EVENT_PAGE_FAULT, 0, SERVER_THREAD);
        scenario_event(&s, at + HANDLED, EVENT_FAULT_END, 0, SERVER_THREAD);
        scenario_event(&s, at + HANDLED, EVENT_FAULT_END, 0, SERVER_THREAD)->flags =
            FAULT_SWAPPED_IN;
    }
    assert_int_equal(host_timeline_build(s.events.items, s.events.count, &clock, &host, &err), 0);
    detours_calibrate(&host, COST, BEFORE);
    assert_null(detour_at(&host, SERVER_THREAD, 0, &until));
    assert_int_equal(until, 1000 - BEFORE);
    for (int i = 0; i < STORM; i++) {
        const int64_t begin = 1000 + i * EACH;
        assert_non_null(detour_at(&host, SERVER_THREAD, begin, &until));
        assert_int_equal(until, begin + (i + 1 < STORM ? EACH : COST));
    }
    host_timeline_free(&host);
    scenario_free(&s);
}

// Who writes a log or waits for a disk with nothing to do for a request does not wait for work.
static void waiting_for_work_is_told_from_other_sleeps(void **state)
{
    (void)state;
    static const uint32_t work[] = {0 /* read */, 232 /* epoll_wait */, 202 /* futex */,
                                    PAUSE_CONDITION};
    static const uint32_t other[] = {1 /* write */, 20 /* writev */, 44 /* sendto */,
                                     74 /* fsync */, 11 /* munmap */};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        assert_true(pause_may_await_work(work[i]));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_false(pause_may_await_work(other[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_for_work_is_told_from_other_sleeps),
        cmocka_unit_test(a_storm_may_wait_for_its_pages),
        cmocka_unit_test(a_fault_begins_before_its_handler),
        cmocka_unit_test(the_last_of_a_storm_takes_what_those_alike_took),
        cmocka_unit_test(the_edges_of_a_storm_are_uneven),
        cmocka_unit_test(copies_last_until_the_next),
        cmocka_unit_test(a_fault_ends_whoever_had_the_core_meanwhile),
        cmocka_unit_test(a_fault_takes_what_it_costs_on_its_machine),
        cmocka_unit_test(swapping_in_takes_what_a_fault_costs),
        cmocka_unit_test(a_sleeping_thread_says_in_what),
        cmocka_unit_test(a_call_that_goes_on_after_a_stop_keeps_its_name),
        cmocka_unit_test(nobody_ends_a_sleep_but_the_time),
        cmocka_unit_test(the_kernels_work_in_a_call_is_no_program),
        cmocka_unit_test(a_pause_has_a_name),
        cmocka_unit_test(a_moved_thread_waits_elsewhere),
        cmocka_unit_test(a_call_names_what_it_is_about),
        cmocka_unit_test(many_files_are_one_cause),
        cmocka_unit_test(a_quota_names_its_group),
        cmocka_unit_test(a_disk_is_named_with_what_it_did),
        cmocka_unit_test(the_kernels_memory_is_named),
        cmocka_unit_test(a_fork_holds_up_those_behind),
        cmocka_unit_test(new_memory_beside_a_collector_is_its_doing),
        cmocka_unit_test(a_detour_inside_another_is_cut_out),
        cmocka_unit_test(page_faults_take_their_time),
        cmocka_unit_test(a_fault_lasts_until_the_next_within_bounds),
        cmocka_unit_test(a_fault_ends_when_it_has_its_page),
        cmocka_unit_test(a_pause_amid_a_storm_is_the_storms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
