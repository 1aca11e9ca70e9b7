// SPDX-License-Identifier: MIT
//
// One request that a server passes on to another one: who waited for whom, with the other server
// captured and not; a blocking thread, an event loop, a request behind it, and a pool of
// connections that are all taken.
#include "tests/analysis/decomposition/two_tiers.h"

// The front asks and sleeps in recv from 23 to 1030 us, a bystander has its core; the backend works
// from 30 to 1020 us.
static void front_asks(struct scene *s)
{
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 20, 22, MADE);
    call(s, FRONT, CALL_RECEIVE, 23, 1036, MADE);
    call(s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    runs(s, 24, 0, BYSTANDER, "bystander");
    runs(s, 26, 1, BACKEND, "backend");
    event(s, 1030, EVENT_WAKING, 1, FRONT);
    runs(s, 1032, 1, 0, "swapper/1");
    runs(s, 1035, 0, FRONT, "front");
}

static void test_not_captured(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    front_asks(&s);
    build(&s, 1, 10, 1040, 1);
    expect(&s, "waiting for 127.0.0.1:6379", 1000, 1010);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// The same, but the backend is known to listen there, or a child of it works: what its thread does
// is told, also where something else woke the front. Of one that merely had the core as the answer
// came nothing is.
static void test_not_captured_but_seen(void **state)
{
    static const char waits[] = "waiting for backend (127.0.0.1:6379)",
                      sleeps[] = "waiting for backend (127.0.0.1:6379), sleeping (timer)";
    enum { LISTENS, CHILD, ONLY, ANOTHER };
    (void)state;
    for (int who = LISTENS; who <= ANOTHER; who++) {
        struct scene s;
        open_scene(&s);
        s.programs = json_pack("[{s:s, s:s, s:i}]", "address", "127.0.0.1:6379", "program",
                               "backend", "process", BACKEND_PROCESS);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 20, 22, MADE);
        call(&s, FRONT, CALL_RECEIVE, 23, 1036, MADE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        struct event *member = event(&s, 2, EVENT_MEMBER, 1, BACKEND);
        member->payload.a = who == LISTENS || who == ONLY ? BACKEND_PROCESS : OTHER;
        member->payload.b = who == CHILD ? BACKEND_PROCESS : 1;
        runs(&s, 12, 1, BACKEND, "backend");
        runs(&s, 24, 0, BYSTANDER, "bystander");
        event(&s, 40, EVENT_BLOCKED, 1, BACKEND)->payload.a = 35; // nanosleep
        runs(&s, 40, 1, 0, "swapper/1");
        event(&s, 899, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
        event(&s, 900, EVENT_WAKING, 1, BACKEND);
        event(&s, 901, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        runs(&s, 902, 1, BACKEND, "backend");
        event(&s, 1028, EVENT_SOFTIRQ_ENTRY, 1, 3); // NET_RX
        event(&s, 1030, EVENT_WAKING, 1, FRONT)->payload.b = who == ONLY ? BYSTANDER : BACKEND;
        event(&s, 1031, EVENT_SOFTIRQ_EXIT, 1, 3);
        runs(&s, 1035, 0, FRONT, "front");
        build(&s, 1, 10, 1040, 1);
        expect(&s, sleeps, who == ANOTHER ? 0 : 850, who == ANOTHER ? 0 : 862);
        expect(&s, waits, who == ANOTHER ? 1000 : 140, who == ANOTHER ? 1010 : 152);
        close_scene(&s);
    }
}

// A worker has the lock that the front wants, and asks the same backend.
static void test_holder_asks_who_is_seen(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    s.programs = json_pack("[{s:s, s:s, s:i}]", "address", "127.0.0.1:6379", "program", "backend",
                           "process", BACKEND_PROCESS);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, WORKER, CALL_SEND, 14, 16, MADE);
    call(&s, WORKER, CALL_RECEIVE, 17, 1005, MADE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    for (uint32_t thread = FRONT; thread <= WORKER; thread++)
        event(&s, 2, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
    event(&s, 2, EVENT_MEMBER, 1, BACKEND)->payload.a = BACKEND_PROCESS;
    runs(&s, 12, 1, BACKEND, "backend");
    runs(&s, 12, 2, WORKER, "worker");
    runs(&s, 18, 2, 0, "swapper/2");
    event(&s, 20, EVENT_BLOCKED, 1, BACKEND)->payload.a = 35; // nanosleep
    runs(&s, 20, 1, 0, "swapper/1");
    event(&s, 24, EVENT_BLOCKED, 0, FRONT)->payload.a = 202; // futex
    runs(&s, 24, 0, BYSTANDER, "bystander");
    event(&s, 989, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
    event(&s, 990, EVENT_WAKING, 1, BACKEND);
    event(&s, 991, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
    runs(&s, 992, 1, BACKEND, "backend");
    event(&s, 998, EVENT_SOFTIRQ_ENTRY, 1, 3); // NET_RX
    event(&s, 1000, EVENT_WAKING, 1, WORKER)->payload.b = BACKEND;
    event(&s, 1001, EVENT_SOFTIRQ_EXIT, 1, 3);
    runs(&s, 1003, 2, WORKER, "worker");
    event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
    runs(&s, 1035, 0, FRONT, "front");
    runs(&s, 1400, 1, 0, "swapper/1");
    runs(&s, 1400, 2, 0, "swapper/2");
    build(&s, 1, 10, 1040, 1);
    expect(&s,
           "lock wait (futex): held by worker, waiting for backend (127.0.0.1:6379), "
           "sleeping (timer)",
           960, 970);
    close_scene(&s);
}

static void test_captured(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, BACKEND, CALL_RECEIVE, 27, 30, BACKEND_SIDE);
    call(&s, BACKEND, CALL_SEND, 1020, 1025, BACKEND_SIDE);
    front_asks(&s);
    build(&s, 1, 10, 1040, 1);
    expect(&s, "backend: application time", 985, 1000);
    expect(&s, "waiting for 127.0.0.1:6379", 0, 5); // until it was woken
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// The backend's thread does something else, while a part of what it is asked lies in its socket,
// which has no room for the rest.
static void test_question_unread(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, BACKEND, CALL_RECEIVE, 900, 905, BACKEND_SIDE);
    call(&s, BACKEND, CALL_SEND, 1020, 1025, BACKEND_SIDE);
    front_asks(&s);
    s.rest_us = 902;
    build(&s, 1, 10, 1040, 1);
    expect(&s, "backend: network to server", 0, 10);
    expect(&s, "backend: application time", 985, 1000);
    close_scene(&s);
}

// TCP holds back the end of what is sent on the connection `made` until 800 us.
static void kernel_holds(struct scene *s, uint64_t sent, uint64_t written)
{
    enum { COOKIE = 4711 };
    s->made[0].cookie = COOKIE;
    struct event *held = event(s, 800, EVENT_HELD, 0, COOKIE);
    held->flags = HELD_NAGLE;
    held->payload.a = sent;
    held->payload.b = written;
}

// The front asks in two halves, the second of which waits for the acknowledgement of the first. The
// backend, which need not be captured, has nothing to do until then.
static void test_held_back(void **state)
{
    (void)state;
    for (int captured = 0; captured <= 1; captured++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call_at(&s, FRONT, CALL_SEND, 14, 16, MADE, 0, 10);
        call_at(&s, FRONT, CALL_SEND, 20, 22, MADE, 10, 10);
        call_at(&s, FRONT, CALL_RECEIVE, 23, 1036, MADE, 0, 10);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        runs(&s, 24, 0, BYSTANDER, "bystander");
        if (captured) {
            call_at(&s, BACKEND, CALL_RECEIVE, 30, 31, BACKEND_SIDE, 0, 10);
            call_at(&s, BACKEND, CALL_RECEIVE, 804, 806, BACKEND_SIDE, 10, 10);
            call_at(&s, BACKEND, CALL_SEND, 1020, 1022, BACKEND_SIDE, 0, 10);
        }
        kernel_holds(&s, 10, 20);
        runs(&s, 803, 1, BACKEND, "backend");
        event(&s, 1030, EVENT_WAKING, 1, FRONT);
        runs(&s, 1032, 1, 0, "swapper/1");
        runs(&s, 1035, 0, FRONT, "front");
        build(&s, 1, 10, 1040, 1);
        expect(&s, "Nagle's algorithm, asking 127.0.0.1:6379", 775, 780);
        expect(&s, captured ? "backend: application time" : "waiting for 127.0.0.1:6379", 205, 235);
        expect(&s, "bystander", 0, 6);
        close_scene(&s);
    }
}

// The same of an event loop that asks for another request in between, on the same connection: of
// its question no byte had left.
static void test_shared_held_back(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    runs(&s, 8, 1, BACKEND, "backend");
    call_at(&s, BACKEND, CALL_RECEIVE, 24, 25, BACKEND_SIDE, 0, 5);
    call_at(&s, BACKEND, CALL_RECEIVE, 804, 805, BACKEND_SIDE, 5, 15);
    call_at(&s, BACKEND, CALL_SEND, 1020, 1022, BACKEND_SIDE, 0, 20);
    runs(&s, 1050, 1, 0, "swapper/1");
    call(&s, FRONT, CALL_RECEIVE, 3, 4, OTHERS_SIDE);
    call_at(&s, FRONT, CALL_SEND, 5, 6, MADE, 0, 5);
    call_at(&s, FRONT, CALL_SEND, 7, 8, MADE, 5, 5);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call_at(&s, FRONT, CALL_SEND, 16, 18, MADE, 10, 5);
    call_at(&s, FRONT, CALL_SEND, 20, 22, MADE, 15, 5);
    front_waits(&s, 25, 1030);
    kernel_holds(&s, 5, 20);
    call_at(&s, FRONT, CALL_RECEIVE, 1034, 1035, MADE, 0, 20);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    build(&s, 1, 10, 1040, 1);
    expect(&s, "Nagle's algorithm, asking 127.0.0.1:6379", 775, 780);
    expect(&s, "backend: application time", 100, 115); // the other one was first
    expect(&s, "bystander", 0, 3);
    close_scene(&s);
}

// Another request of the same thread came at 100 us, while it was the backend's turn.
static void test_behind_one_that_waits(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    front_asks(&s);
    call(&s, FRONT, CALL_RECEIVE, 1043, 1044, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 1050, 1051, CLIENT_SIDE);
    build(&s, 100, 1044, 1050, 1);
    expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", 925, 935);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// The backend, which nobody captured, sleeps from 40 to 900 us before it answers at 1030.
static void seen_backend_sleeps(struct scene *s)
{
    s->programs = json_pack("[{s:s, s:s, s:i}]", "address", "127.0.0.1:6379", "program", "backend",
                            "process", BACKEND_PROCESS);
    event(s, 2, EVENT_MEMBER, 1, BACKEND)->payload.a = BACKEND_PROCESS;
    runs(s, 12, 1, BACKEND, "backend");
    event(s, 40, EVENT_BLOCKED, 1, BACKEND)->payload.a = 35; // nanosleep
    runs(s, 40, 1, 0, "swapper/1");
    event(s, 899, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
    event(s, 900, EVENT_WAKING, 1, BACKEND);
    event(s, 901, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
    runs(s, 902, 1, BACKEND, "backend");
    event(s, 1028, EVENT_SOFTIRQ_ENTRY, 1, 3); // NET_RX
    event(s, 1030, EVENT_WAKING, 1, FRONT)->payload.b = BACKEND;
    event(s, 1031, EVENT_SOFTIRQ_EXIT, 1, 3);
}

// The same of a backend that nobody captured, whose thread is known.
static void test_behind_one_that_waits_for_who_is_seen(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 20, 22, MADE);
    call(&s, FRONT, CALL_RECEIVE, 23, 1036, MADE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    call(&s, FRONT, CALL_RECEIVE, 1043, 1044, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 1050, 1051, CLIENT_SIDE);
    runs(&s, 24, 0, BYSTANDER, "bystander");
    seen_backend_sleeps(&s);
    runs(&s, 1035, 0, FRONT, "front");
    build(&s, 100, 1044, 1050, 1);
    expect(&s, "head-of-line blocking: waiting for backend (127.0.0.1:6379), sleeping (timer)", 795,
           802);
    expect(&s, "head-of-line blocking: waiting for backend (127.0.0.1:6379)", 125, 135);
    close_scene(&s);
}

// An event loop that had asked it for another request when this one came.
static void test_loop_waits_for_who_is_seen(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 3, 4, OTHERS_SIDE);
    call(&s, FRONT, CALL_SEND, 5, 6, MADE);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_WAIT, 20, 1036, 0);
    call(&s, FRONT, CALL_RECEIVE, 1037, 1038, MADE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    seen_backend_sleeps(&s);
    runs(&s, 1035, 0, FRONT, "front");
    build(&s, 1, 10, 1040, 1);
    expect(&s, "waiting for backend (127.0.0.1:6379), sleeping (timer)", 855, 862);
    expect(&s, "waiting for backend (127.0.0.1:6379)", 140, 150);
    close_scene(&s);
}

// An event loop asks, serves somebody else meanwhile, and gets the answer.
static void test_event_loop(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 20, 22, MADE);
    call(&s, FRONT, CALL_WAIT, 23, 500, 0);
    call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE); // somebody else's
    call(&s, FRONT, CALL_SEND, 540, 541, OTHERS_SIDE);
    call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
    call(&s, FRONT, CALL_RECEIVE, 1034, 1035, MADE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 498, EVENT_WAKING, 2, FRONT);
    runs(&s, 499, 0, FRONT, "front");
    event(&s, 543, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 1030, EVENT_WAKING, 2, FRONT);
    runs(&s, 1031, 0, FRONT, "front");
    build(&s, 1, 10, 1040, 1);
    expect(&s, "waiting for 127.0.0.1:6379", 1000, 1010);
    expect(&s, "bystander", 0, 3);
    expect(&s, "head-of-line blocking", 0, 3);
    close_scene(&s);
}

// An event loop has one connection to the backend for all requests: it asks for a second one while
// the first is not answered yet. What follows is that one's.
static void test_shared_connection(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    backend_answers_both(&s);
    call(&s, FRONT, CALL_RECEIVE, 3, 4, OTHERS_SIDE);
    call_at(&s, FRONT, CALL_SEND, 5, 7, MADE, 0, 10);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call_at(&s, FRONT, CALL_SEND, 20, 22, MADE, 10, 10);
    front_waits(&s, 25, 606);
    call_at(&s, FRONT, CALL_RECEIVE, 612, 613, MADE, 0, 10);
    call(&s, FRONT, CALL_SEND, 615, 617, OTHERS_SIDE);
    front_waits(&s, 620, 1030);
    call_at(&s, FRONT, CALL_RECEIVE, 1034, 1035, MADE, 10, 10);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    build(&s, 1, 10, 1040, 1);
    expect(&s, "backend: way in, undivided", 575, 590); // no kernel's record of the bytes
    expect(&s, "backend: application time", 410, 420);
    expect(&s, "bystander", 0, 3);
    close_scene(&s);
}

// The backend closes the connection when it has answered the other request's question only. What
// was replied to by then was not asked in vain, though its connection has another request later.
static void test_shared_in_vain(void **state)
{
    (void)state;
    for (int replied = 0; replied <= 1; replied++) {
        struct scene s;
        open_scene(&s);
        runs(&s, 8, 1, BACKEND, "backend");
        call_at(&s, BACKEND, CALL_RECEIVE, 24, 25, BACKEND_SIDE, 0, 10);
        call_at(&s, BACKEND, CALL_SEND, 600, 602, BACKEND_SIDE, 0, 10);
        runs(&s, 1050, 1, 0, "swapper/1");
        call(&s, FRONT, CALL_RECEIVE, 3, 4, OTHERS_SIDE);
        call_at(&s, FRONT, CALL_SEND, 5, 7, MADE, 0, 10);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call_at(&s, FRONT, CALL_SEND, 20, 22, MADE, 10, 10);
        front_waits(&s, 25, 606);
        call_at(&s, FRONT, CALL_RECEIVE, 612, 613, MADE, 0, 10);
        call(&s, FRONT, CALL_SEND, 615, 617, replied ? CLIENT_SIDE : OTHERS_SIDE);
        front_waits(&s, 620, 1030);
        call(&s, FRONT, CALL_CLOSE, 1034, 1035, MADE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        build(&s, 1, 10, 1040, 1);
        expect(&s, "waiting for 127.0.0.1:6379, in vain", replied ? 0 : 995, replied ? 0 : 1010);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

// The front's thread sleeps for a connection; two workers have both of them.
static void test_pool(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, WORKER, CALL_SEND, 5, 6, MADE);
    call(&s, WORKER, CALL_RECEIVE, 7, 800, MADE);
    call(&s, OTHER, CALL_SEND, 5, 6, MADE_TOO);
    call(&s, OTHER, CALL_RECEIVE, 7, 1500, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 830, 831, MADE);
    call(&s, FRONT, CALL_RECEIVE, 832, 900, MADE);
    call(&s, FRONT, CALL_SEND, 910, 911, CLIENT_SIDE);
    struct event *blocked = event(&s, 20, EVENT_BLOCKED, 0, FRONT);
    blocked->payload.a = 202; // futex
    runs(&s, 20, 0, BYSTANDER, "bystander");
    runs(&s, 798, 1, WORKER, "front");
    struct event *waking = event(&s, 810, EVENT_WAKING, 1, FRONT);
    waking->payload.b = WORKER;
    runs(&s, 812, 1, 0, "swapper/1");
    runs(&s, 815, 0, FRONT, "front");
    runs(&s, 834, 0, 0, "swapper/0");
    event(&s, 890, EVENT_WAKING, 2, FRONT);
    runs(&s, 895, 0, FRONT, "front");
    build(&s, 1, 10, 910, 2);
    expect(&s, "waiting for a free connection: all 2 wait for 127.0.0.1:6379", 785, 795);
    expect(&s, "waiting for 127.0.0.1:6379", 55, 60);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

enum { THIRD = OTHER + 1 }; // of the front's threads that have none of the message

// The front's thread sleeps from then on until a timer wakes it, in front of a condition.
static void waits_in_vain(struct scene *s, int from, int to)
{
    event(s, from, EVENT_BLOCKED, 0, FRONT)->payload.a = 202; // futex
    runs(s, from, 0, BYSTANDER, "bystander");
    event(s, to - 3, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
    event(s, to - 2, EVENT_WAKING, 2, FRONT);
    event(s, to - 1, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
    runs(s, to, 0, FRONT, "front");
}

// The front's thread sleeps for a connection until its time is out, and does without. taken: both
// are; else there is one that nobody used. multiplexed: whoever asked does other things meanwhile.
// again: it sleeps once more, until a thread wakes it: a worker that gives its connection back, or
// one that has nothing to do with it.
static void pool_in_vain(struct scene *s, bool taken, bool multiplexed, uint32_t again)
{
    open_scene(s);
    for (uint32_t thread = FRONT; thread <= THIRD; thread++) {
        struct event *member = event(s, -45, EVENT_MEMBER, 1, thread);
        member->payload.a = FRONT_PROCESS;
    }
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, WORKER, CALL_SEND, 5, 6, MADE);
    if (multiplexed)
        call(s, WORKER, CALL_RECEIVE, 300, 301, OTHERS_SIDE);
    call(s, WORKER, CALL_RECEIVE, multiplexed ? 302 : 7, 800, MADE);
    call(s, OTHER, CALL_SEND, taken ? 5 : -40, taken ? 6 : -39, MADE_TOO);
    call(s, OTHER, CALL_RECEIVE, taken ? 7 : -30, taken ? 1500 : -29, MADE_TOO);
    call(s, WORKER, CALL_SEND, 2000, 2001, MADE);
    call(s, OTHER, CALL_SEND, 2000, 2001, MADE_TOO);
    waits_in_vain(s, 20, 500);
    if (again) {
        event(s, 510, EVENT_BLOCKED, 0, FRONT)->payload.a = 202;
        runs(s, 510, 0, BYSTANDER, "bystander");
        runs(s, 798, 1, again, "front");
        event(s, 810, EVENT_WAKING, 1, FRONT)->payload.b = again;
        runs(s, 812, 1, 0, "swapper/1");
        runs(s, 815, 0, FRONT, "front");
    }
    call(s, FRONT, CALL_SEND, again ? 830 : 520, again ? 831 : 521, CLIENT_SIDE);
    build(s, 1, 10, again ? 830 : 520, 2);
}

static void test_pool_in_vain(void **state)
{
    static const char all[] = "waiting for a free connection, timed out: all 2 wait for "
                              "127.0.0.1:6379";
    static const char until[] = "waiting for a free connection: all 2 wait for 127.0.0.1:6379";
    (void)state;
    struct scene s;
    pool_in_vain(&s, true, false, 0);
    expect(&s, all, 470, 480);
    close_scene(&s);
    pool_in_vain(&s, false, false, 0);
    expect(&s, all, 0, 0);
    expect(&s, "lock wait (futex), timed out", 470, 480);
    close_scene(&s);
    pool_in_vain(&s, true, true, 0);
    expect(&s, all, 0, 0);
    close_scene(&s);
    pool_in_vain(&s, true, false, WORKER);
    expect(&s, all, 0, 0);
    expect(&s, until, 760, 790);
    close_scene(&s);
    pool_in_vain(&s, true, false, THIRD);
    expect(&s, all, 470, 480);
    expect(&s, until, 0, 0);
    close_scene(&s);
}

// The backend works on the front's core for one of its workers, until 1000 us, and then for
// somebody else. The front's thread, which has another request, is ready all the time.
static void peer_has_core(struct scene *s, bool captured)
{
    if (captured) {
        call(s, BACKEND, CALL_RECEIVE, 27, 30, BACKEND_SIDE);
        call(s, BACKEND, CALL_SEND, 1000, 1002, BACKEND_SIDE);
    }
    call(s, WORKER, CALL_RECEIVE, 3, 4, OTHERS_SIDE);
    call(s, WORKER, CALL_SEND, 5, 6, MADE);
    call(s, WORKER, CALL_RECEIVE, 7, 1250, MADE);
    call(s, FRONT, CALL_RECEIVE, 1201, 1202, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 1210, 1212, CLIENT_SIDE);
    event(s, 8, EVENT_SWITCH, 0, BACKEND)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "backend");
    event(s, 40, EVENT_WAKING, 2, FRONT);
    runs(s, 1200, 0, FRONT, "front");
    build(s, 40, 1202, 1210, 1);
}

static void test_peer_has_core(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    peer_has_core(&s, true);
    expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", 955, 965);
    expect(&s, "backend", 195, 205); // what it did then was for others
    close_scene(&s);
}

// Nobody knows that the program is the peer: it has the core, as any other.
static void test_stranger_has_core(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    peer_has_core(&s, false);
    expect(&s, "backend", 1155, 1165);
    close_scene(&s);
}

// The front's thread is woken while a bystander has its core, who has to make way, or goes on for a
// while and then either is preempted, too, or has finished.
static void bystander_until(struct scene *s, int us, bool preempted)
{
    open_scene(s);
    event(s, 8, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    call(s, FRONT, CALL_RECEIVE, us + 2, us + 3, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, us + 10, us + 12, CLIENT_SIDE);
    event(s, 100, EVENT_WAKING, 2, FRONT);
    runs(s, us, 0, FRONT, "front");
    if (preempted)
        s->events.items[s->events.count - 1].flags = SWITCH_PREEMPTED;
    build(s, 100, us + 3, us + 10, 0);
}

static void test_makes_way(void **state)
{
    (void)state;
    struct scene s;
    bystander_until(&s, 130, true);
    expect(&s, "wake-up latency", 29, 31);
    expect(&s, "bystander", 0, 1); // until the hand-off
    close_scene(&s);
    bystander_until(&s, 130, false); // it had the core as long as it wanted
    expect(&s, "bystander", 30, 32);
    close_scene(&s);
    bystander_until(&s, 400, true); // it was given some time
    expect(&s, "bystander", 300, 302);
    close_scene(&s);
}

// What happened at another server begins with its name, however long that is, as what one that
// waits for it does not.
static void test_names_of_a_tier(void **state)
{
    static const char tier[] = "a-server-behind-the-server-whose-name-is-longer (10.0.0.7:5432)";
    struct component_table table;
    (void)state;
    assert_int_equal(component_table_init(&table, NULL, NULL, NULL), 0);
    int64_t there = component_of_tier(&table, COMPONENT_APPLICATION, tier);
    assert_true(there > 0);
    assert_true(component_is_at_tier(table.components.items[there].name, tier));
    there = component_of_peer(&table, "waiting for redis (10.0.0.7:6379)", "redis", false);
    assert_true(there > 0);
    assert_false(component_is_at_tier(table.components.items[there].name, "redis"));
    assert_false(component_is_at_tier("redis-server: application time", "redis"));
    assert_false(component_is_at_tier("application time", ""));
    static const char wait[] =
        "condition wait (futex): mariadbd (another thread), blocked in fdatasync "
        "of ib_logfile0, disk vda: write";
    there = component_of_wait(&table, wait);
    assert_true(there > 0);
    there = component_of_tier(&table, (uint32_t)there, "mariadbd");
    assert_true(there > 0);
    const char *name = table.components.items[there].name;
    assert_string_equal(name + strlen("mariadbd: "), wait);
    component_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_captured),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_not_captured_but_seen),
        cmocka_unit_test(test_holder_asks_who_is_seen),
        cmocka_unit_test(test_question_unread),
        cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_shared_held_back),
        cmocka_unit_test(test_behind_one_that_waits),
        cmocka_unit_test(test_behind_one_that_waits_for_who_is_seen),
        cmocka_unit_test(test_loop_waits_for_who_is_seen),
        cmocka_unit_test(test_event_loop),
        cmocka_unit_test(test_shared_connection),
        cmocka_unit_test(test_shared_in_vain),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_in_vain),
        cmocka_unit_test(test_peer_has_core),
        cmocka_unit_test(test_stranger_has_core),
        cmocka_unit_test(test_makes_way),
        cmocka_unit_test(test_names_of_a_tier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
