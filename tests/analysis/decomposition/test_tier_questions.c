// SPDX-License-Identifier: MIT
//
// How a server comes by the answer of another one that it asks: by way of another thread, at once,
// with a connection to be made first, from a resolver, in vain, again and again, or not at all.
#include "tests/analysis/decomposition/two_tiers.h"

// A thread goes to sleep on a core until another one has come and woken it.
static void sleeps(struct scene *s, uint16_t core, uint32_t thread, const char *name,
                   uint8_t blocked, int from, int to, uint32_t waker)
{
    if (blocked) {
        struct event *one = event(s, from, EVENT_BLOCKED, core, thread);
        one->payload.a = blocked;
    }
    struct event *away = event(s, from, EVENT_SWITCH, core, 0);
    strcpy(away->payload.text, core == 0 ? "swapper/0" : "swapper/2");
    away->flags = blocked ? 0 : SWITCH_WAITS;
    struct event *waking = event(s, to, EVENT_WAKING, waker == WORKER ? 2 : 1, thread);
    waking->payload.a = core;
    waking->payload.b = waker;
    runs(s, to + 1, core, thread, name);
}

// Threads ask by way of a thread that has the only connection to the backend, and wait until it has
// woken them, in the order of the answers: for a condition, or, as an event loop, for events. Where
// both answers come at once only the second is told, since the first thread does not sleep yet.
static void test_asked_by_another_thread(void **state)
{
    (void)state;
    enum { FUTEX = 202 };
    for (int kind = 0; kind < 4; kind++) {
        const bool at_once = kind & 1, loops = kind & 2;
        struct scene s;
        open_scene(&s);
        s.made[0].cookie = 4711; // the events are the join's, too
        backend_answers_both(&s);
        runs(&s, 1, 2, WORKER, "loop");
        call(&s, OTHER, CALL_RECEIVE, 3, 4, OTHERS_SIDE);
        call_at(&s, WORKER, CALL_SEND, 5, 7, MADE, 0, 10);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        if (loops)
            call(&s, FRONT, CALL_WAIT, 11, 1038, 0);
        sleeps(&s, 0, FRONT, "front", loops ? 0 : FUTEX, 12, 1037, WORKER);
        call_at(&s, WORKER, CALL_SEND, 20, 22, MADE, 10, 10);
        if (!at_once) {
            sleeps(&s, 2, WORKER, "loop", 0, 25, 606, 0);
            call_at(&s, WORKER, CALL_RECEIVE, 612, 613, MADE, 0, 10);
            event(&s, 614, EVENT_WAKING, 2, OTHER)->payload.b = WORKER;
        }
        call(&s, OTHER, CALL_SEND, 618, 619, OTHERS_SIDE);
        sleeps(&s, 2, WORKER, "loop", 0, at_once ? 25 : 620, 1030, 0);
        call_at(&s, WORKER, CALL_RECEIVE, 1034, 1035, MADE, at_once ? 0 : 10, at_once ? 20 : 10);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        build(&s, 1, 10, 1040, 1);
        expect(&s, "backend: application time", 410, 420);
        expect(&s, "backend: head-of-line blocking (same connection)", 570, 590);
        close_scene(&s);
    }
}

// The same where the event loop asks for both requests at once, one turn after it read them, and
// gets both answers at once. A third one, which it read then, too, waits for something else: it is
// not replied to when the answers come.
static void test_asked_for_at_once(void **state)
{
    (void)state;
    for (int third = 0; third <= 1; third++) {
        struct scene s;
        open_scene(&s);
        runs(&s, 8, 1, BACKEND, "backend");
        call_at(&s, BACKEND, CALL_RECEIVE, 24, 25, BACKEND_SIDE, 0, 10);
        call_at(&s, BACKEND, CALL_RECEIVE, 27, 28, BACKEND_SIDE, 10, 20);
        call_at(&s, BACKEND, CALL_SEND, 1020, 1022, BACKEND_SIDE, 0, 30);
        runs(&s, 1050, 1, 0, "swapper/1");
        call(&s, FRONT, CALL_RECEIVE, 1, 2, OTHERS_SIDE);
        call_at(&s, FRONT, CALL_SEND, 3, 4, MADE, 0, 10);
        call(&s, FRONT, CALL_RECEIVE, 7, 8, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 12, 13, 0);
        call_at(&s, FRONT, CALL_SEND, 20, 22, MADE, 10, 20);
        front_waits(&s, 25, 1030);
        call_at(&s, FRONT, CALL_RECEIVE, 1034, 1035, MADE, 0, 30);
        call(&s, FRONT, CALL_WAIT, 1036, 1037, 0);
        if (third)
            front_waits(&s, 1040, 1050);
        int reply = third ? 1060 : 1040;
        call(&s, FRONT, CALL_SEND, reply, reply + 2, CLIENT_SIDE);
        build(&s, 1, 10, reply, 1);
        expect(&s, "backend: application time", third ? 0 : 990, third ? 0 : 1000);
        expect(&s, "bystander", 0, 4);
        close_scene(&s);
    }
}

// An event loop connects to the backend first, whose queue of connections is full for a while: the
// backend has no request until it has the connection.
static void test_connects_first(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_CONNECT, 12, 13, MADE);
    call(&s, FRONT, CALL_WAIT, 14, 1033, 0);
    call(&s, FRONT, CALL_SEND, 1034, 1035, MADE);
    call(&s, FRONT, CALL_WAIT, 1036, 1233, 0);
    call(&s, FRONT, CALL_RECEIVE, 1234, 1235, MADE);
    call(&s, FRONT, CALL_SEND, 1240, 1242, CLIENT_SIDE);
    for (int turn = 0; turn < 2; turn++) {
        event(&s, turn ? 1037 : 15, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, turn ? 1230 : 1030, EVENT_WAKING, 2, FRONT);
        runs(&s, turn ? 1231 : 1031, 0, FRONT, "front");
    }
    build(&s, 1, 10, 1240, 1);
    expect(&s, "waiting for a connection to 127.0.0.1:6379", 1010, 1020);
    expect(&s, "waiting for 127.0.0.1:6379", 190, 200);
    expect(&s, "bystander", 0, 3);
    close_scene(&s);
}

// The backend never answers: the front gives that up after a time, and has the answer from another
// connection. A log that is written to all along answers nobody either, and nobody waits for it.
static void test_asked_in_vain(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 20, 22, MADE);
    front_waits(&s, 25, 830);
    call(&s, FRONT, CALL_CLOSE, 835, 836, MADE);
    call(&s, FRONT, CALL_SEND, 840, 841, MADE_TOO);
    front_waits(&s, 845, 1030);
    call(&s, FRONT, CALL_RECEIVE, 1034, 1035, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    build(&s, 1, 10, 1040, 2);
    expect(&s, "waiting for 127.0.0.1:6379, in vain", 800, 810);
    expect(&s, "waiting for 127.0.0.1:6379", 185, 195);
    expect(&s, "bystander", 0, 3);
    close_scene(&s);

    open_scene(&s);
    call(&s, FRONT, CALL_SEND, 2, 3, MADE);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    front_waits(&s, 25, 1030);
    call(&s, FRONT, CALL_SEND, 1035, 1036, MADE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    call(&s, FRONT, CALL_CLOSE, 4000, 4001, MADE);
    build(&s, 1, 10, 1040, 1);
    expect(&s, "waiting for 127.0.0.1:6379, in vain", 0, 0);
    close_scene(&s);
}

// The front's thread asks a resolver, which the shim does not see, polls that socket alone until
// its time is out, and again until the answer comes.
static void test_asks_a_resolver(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    for (int again = 0; again <= 1; again++) {
        int from = again ? 530 : 20, to = again ? 1030 : 520;
        struct event *file = event(&s, from, EVENT_FILE, 0, FRONT);
        file->flags = FILE_PEER;
        file->payload.a = 0x0100007f; // 127.0.0.1
        file->payload.b = 53;
        event(&s, from, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, to - 1, again ? EVENT_SOFTIRQ_ENTRY : EVENT_VECTOR_ENTRY, 2,
              again ? 3 : VECTOR_LOCAL_TIMER);
        event(&s, to, EVENT_WAKING, 2, FRONT);
        event(&s, to + 1, again ? EVENT_SOFTIRQ_EXIT : EVENT_VECTOR_EXIT, 2,
              again ? 3 : VECTOR_LOCAL_TIMER);
        runs(&s, to + 1, 0, FRONT, "front");
    }
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    build(&s, 1, 10, 1040, 0);
    expect(&s, "waiting for a packet from 127.0.0.1:53, timed out", 495, 500);
    expect(&s, "waiting for a packet from 127.0.0.1:53", 495, 500);
    expect(&s, "bystander", 0, 3);
    close_scene(&s);
}

// The same for a resolver of this host, of which only that is known what it sends: its thread,
// which slept, is told; not who was interrupted by what another host sent.
static void test_asks_a_resolver_here(void **state)
{
    (void)state;
    for (int interrupts = 0; interrupts <= 1; interrupts++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        event(&s, 2, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
        event(&s, 2, EVENT_MEMBER, 1, BACKEND)->payload.a = BACKEND_PROCESS;
        runs(&s, 12, 1, BACKEND, "resolver");
        struct event *file = event(&s, 20, EVENT_FILE, 0, FRONT);
        file->flags = FILE_PEER;
        file->payload.a = 0x0100007f; // 127.0.0.1
        file->payload.b = 53;
        event(&s, 20, EVENT_BLOCKED, 0, FRONT)->payload.a = 45; // recvfrom
        runs(&s, 20, 0, BYSTANDER, "bystander");
        event(&s, 25, EVENT_BLOCKED, 1, BACKEND)->payload.a = 35; // nanosleep
        runs(&s, 25, 1, 0, "swapper/1");
        event(&s, 979, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
        event(&s, 980, EVENT_WAKING, 1, BACKEND);
        event(&s, 981, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        runs(&s, 982, 1, BACKEND, "resolver");
        if (interrupts) {
            event(&s, 1026, EVENT_IRQ_ENTRY, 1, 30);
            event(&s, 1027, EVENT_IRQ_EXIT, 1, 30);
        }
        event(&s, 1028, EVENT_SOFTIRQ_ENTRY, 1, 3); // NET_RX
        event(&s, 1030, EVENT_WAKING, 1, FRONT)->payload.b = BACKEND;
        event(&s, 1031, EVENT_SOFTIRQ_EXIT, 1, 3);
        runs(&s, 1035, 0, FRONT, "front");
        runs(&s, 1400, 1, 0, "swapper/1");
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        build(&s, 1, 10, 1040, 0);
        expect(&s, "waiting for a packet from resolver (127.0.0.1:53), sleeping (timer)",
               interrupts ? 0 : 950, interrupts ? 0 : 957);
        expect(&s, "waiting for a packet from 127.0.0.1:53", interrupts ? 1000 : 0,
               interrupts ? 1012 : 0);
        close_scene(&s);
    }
}

// Nobody takes the connection: the front closes it, waits for a while, and tries again.
static void test_tries_again(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_CONNECT, 12, 13, MADE);
    front_waits(&s, 15, 18);
    call(&s, FRONT, CALL_CLOSE, 22, 23, MADE);
    front_waits(&s, 25, 1030);
    call(&s, FRONT, CALL_CONNECT, 1034, 1035, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 1036, 1037, MADE_TOO);
    front_waits(&s, 1040, 1230);
    call(&s, FRONT, CALL_RECEIVE, 1234, 1235, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 1240, 1242, CLIENT_SIDE);
    build(&s, 1, 10, 1240, 2);
    expect(&s, "waiting for another try at 127.0.0.1:6379", 1000, 1010);
    expect(&s, "waiting for a connection to 127.0.0.1:6379, in vain", 3, 8);
    expect(&s, "waiting for 127.0.0.1:6379", 190, 200);
    expect(&s, "bystander", 0, 3);
    close_scene(&s);
}

// The front asks, does not like the answer and sleeps, until it does: what it asks has the same
// length each time. Of another question nobody knows what the sleep was for.
static void test_asks_again_and_again(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, -9, -8, OTHERS_SIDE);
        call_at(&s, FRONT, CALL_SEND, -7, -6, MADE, 0, 10);
        call_at(&s, FRONT, CALL_RECEIVE, -5, -4, MADE, 0, 10);
        call(&s, FRONT, CALL_SEND, -3, -2, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call_at(&s, FRONT, CALL_SEND, 12, 13, MADE, 10, 20);
        call_at(&s, FRONT, CALL_RECEIVE, 14, 15, MADE, 10, 5);
        event(&s, 20, EVENT_BLOCKED, 0, FRONT)->payload.a = 230; // clock_nanosleep
        runs(&s, 20, 0, BYSTANDER, "bystander");
        event(&s, 999, EVENT_VECTOR_ENTRY, 0, VECTOR_LOCAL_TIMER);
        event(&s, 1000, EVENT_WAKING, 0, FRONT);
        event(&s, 1001, EVENT_VECTOR_EXIT, 0, VECTOR_LOCAL_TIMER);
        runs(&s, 1002, 0, FRONT, "front");
        call_at(&s, FRONT, CALL_SEND, 1010, 1012, MADE, 30, same ? 20 : 21);
        call_at(&s, FRONT, CALL_RECEIVE, 1013, 1015, MADE, 15, 5);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        build(&s, 1, 10, 1040, 1);
        expect(&s, "sleeping (timer) between questions to 127.0.0.1:6379", same ? 975 : 0,
               same ? 985 : 0);
        expect(&s, "sleeping (timer)", same ? 0 : 975, same ? 0 : 985);
        close_scene(&s);
    }
}

// The front opens a connection and closes it without a question, in a call that waits or in the
// background. A packet says that it was made, or refused: then it is tried again.
static void test_asks_nothing(void **state)
{
    enum { WAITS, BACKGROUND, REFUSED, IN_VAIN, CASES };
    (void)state;
    for (int what = WAITS; what < CASES; what++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_CONNECT, 12, what == WAITS ? 620 : 13, MADE);
        event(&s, 15, EVENT_SWITCH, 0, BYSTANDER)->flags = what == WAITS ? 0 : SWITCH_WAITS;
        if (what == WAITS)
            event(&s, 15, EVENT_BLOCKED, 0, FRONT)->payload.a = 42; // connect
        if (what == IN_VAIN) {
            event(&s, 609, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
            event(&s, 610, EVENT_WAKING, 1, FRONT);
            event(&s, 611, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        } else {
            event(&s, 609, EVENT_SOFTIRQ_ENTRY, 1, 3); // NET_RX
            event(&s, 610, EVENT_WAKING, 1, FRONT);
            event(&s, 611, EVENT_SOFTIRQ_EXIT, 1, 3);
        }
        runs(&s, 612, 0, FRONT, "front");
        call(&s, FRONT, CALL_CLOSE, 630, 631, MADE);
        if (what == REFUSED) {
            call(&s, FRONT, CALL_CONNECT, 700, 701, MADE_TOO);
            call(&s, FRONT, CALL_SEND, 702, 703, MADE_TOO);
            call(&s, FRONT, CALL_RECEIVE, 704, 705, MADE_TOO);
        }
        call(&s, FRONT, CALL_SEND, 740, 742, CLIENT_SIDE);
        runs(&s, 1400, 1, 0, "swapper/1");
        build(&s, 1, 10, 740, 2);
        bool is_made = what == WAITS || what == BACKGROUND;
        expect(&s, "waiting for a connection to 127.0.0.1:6379", is_made ? 590 : 0,
               is_made ? 602 : 0);
        expect(&s, "waiting for a connection to 127.0.0.1:6379, in vain", is_made ? 0 : 590,
               is_made ? 0 : 602);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_by_another_thread),
        cmocka_unit_test(test_asked_for_at_once),
        cmocka_unit_test(test_connects_first),
        cmocka_unit_test(test_asked_in_vain),
        cmocka_unit_test(test_asks_a_resolver),
        cmocka_unit_test(test_asks_a_resolver_here),
        cmocka_unit_test(test_tries_again),
        cmocka_unit_test(test_asks_again_and_again),
        cmocka_unit_test(test_asks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
