// SPDX-License-Identifier: MIT
//
// Requests that lie in a server's own queues: of an event loop, of its workers, and of replies that
// find no room.
#include "tests/analysis/decomposition/two_tiers.h"

// An event loop has one connection, and somebody else's request on it; the message waits in the
// loop until that is answered, and is asked for then. others: somebody else's came meanwhile.
// taken: on that connection; else there is another one, of which nobody made use.
static void loop_queues(struct scene *s, bool others, bool taken)
{
    open_scene(s);
    if (!taken) {
        call(s, FRONT, CALL_SEND, -40, -39, MADE_TOO);
        call(s, FRONT, CALL_RECEIVE, -30, -29, MADE_TOO);
        call(s, FRONT, CALL_SEND, 2000, 2001, MADE_TOO);
    }
    call(s, FRONT, CALL_RECEIVE, 1, 2, OTHERS_SIDE);
    call(s, FRONT, CALL_SEND, 5, 6, MADE);
    call(s, FRONT, CALL_WAIT, 7, 8, 0);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_WAIT, 12, others ? 400 : 800, 0);
    if (others) {
        call(s, FRONT, CALL_RECEIVE, 401, 402, 99);
        call(s, FRONT, CALL_WAIT, 405, 800, 0);
        event(s, 13, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
        event(s, 397, EVENT_WAKING, 2, FRONT);
        runs(s, 399, 0, FRONT, "front");
    }
    event(s, others ? 406 : 13, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, 797, EVENT_WAKING, 2, FRONT);
    runs(s, 799, 0, FRONT, "front");
    call(s, FRONT, CALL_RECEIVE, 801, 802, MADE);
    call(s, FRONT, CALL_SEND, 805, 806, OTHERS_SIDE);
    call(s, FRONT, CALL_SEND, 810, 811, MADE);
    call(s, FRONT, CALL_WAIT, 812, 899, 0);
    event(s, 813, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, 897, EVENT_WAKING, 2, FRONT);
    runs(s, 898, 0, FRONT, "front");
    call(s, FRONT, CALL_RECEIVE, 900, 901, MADE);
    call(s, FRONT, CALL_SEND, 910, 911, CLIENT_SIDE);
    build(s, 1, 10, 910, taken ? 1 : 2);
}

// The loop has one connection, which another request has; the message is answered without, when a
// timer has run out. asks: it had asked on another one before.
static void gives_up(struct scene *s, bool asks)
{
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 1, 2, OTHERS_SIDE);
    call(s, FRONT, CALL_SEND, 5, 6, MADE);
    call(s, FRONT, CALL_WAIT, 7, 8, 0);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    if (asks) {
        call(s, FRONT, CALL_SEND, 11, 12, MADE_TOO);
        call(s, FRONT, CALL_RECEIVE, 13, 14, MADE_TOO);
    }
    call(s, FRONT, CALL_WAIT, 15, 500, 0);
    event(s, 16, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, 495, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
    event(s, 496, EVENT_WAKING, 2, FRONT);
    event(s, 497, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
    runs(s, 499, 0, FRONT, "front");
    call(s, FRONT, CALL_SEND, 510, 511, CLIENT_SIDE);
    call(s, FRONT, CALL_WAIT, 512, 899, 0);
    event(s, 513, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, 897, EVENT_WAKING, 2, FRONT);
    runs(s, 898, 0, FRONT, "front");
    call(s, FRONT, CALL_RECEIVE, 900, 901, MADE);
    call(s, FRONT, CALL_SEND, 905, 906, OTHERS_SIDE);
    build(s, 1, 10, 510, asks ? 2 : 1);
}

static void test_event_loop_gives_up(void **state)
{
    static const char queue[] =
        "waiting for a free connection, timed out: the only one waits for 127.0.0.1:6379";
    (void)state;
    struct scene s;
    gives_up(&s, false);
    expect(&s, queue, 470, 490);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
    gives_up(&s, true);
    expect(&s, queue, 0, 0);
    close_scene(&s);
}

static void test_event_loop_queues(void **state)
{
    static const char queue[] =
        "waiting for a free connection: the only one waits for 127.0.0.1:6379";
    (void)state;
    for (int others = 0; others < 2; others++) {
        struct scene s;
        loop_queues(&s, others, true);
        expect(&s, queue, 770, 790);
        expect(&s, "waiting for 127.0.0.1:6379", 80, 88);
        expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", 0, 3);
        expect(&s, "bystander", 0, 6);
        close_scene(&s);
        loop_queues(&s, others, false);
        expect(&s, queue, 0, 0);
        close_scene(&s);
    }
}

// An event loop gets two answers at once, replies to both, and asks on both connections for what
// had waited.
static void test_answers_at_once(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 1, 2, OTHERS_SIDE);
    call(&s, FRONT, CALL_RECEIVE, 3, 4, 98);
    call(&s, FRONT, CALL_SEND, 5, 6, MADE);
    call(&s, FRONT, CALL_SEND, 7, 8, MADE_TOO);
    call(&s, FRONT, CALL_WAIT, 9, 10, 0);
    call(&s, FRONT, CALL_RECEIVE, 11, 12, CLIENT_SIDE);
    call(&s, FRONT, CALL_RECEIVE, 13, 14, 99);
    call(&s, FRONT, CALL_WAIT, 15, 800, 0);
    event(&s, 16, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 797, EVENT_WAKING, 2, FRONT);
    runs(&s, 799, 0, FRONT, "front");
    call(&s, FRONT, CALL_RECEIVE, 801, 802, MADE);
    call(&s, FRONT, CALL_RECEIVE, 803, 804, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 805, 806, 98);
    call(&s, FRONT, CALL_SEND, 807, 808, OTHERS_SIDE);
    call(&s, FRONT, CALL_SEND, 810, 811, MADE);
    call(&s, FRONT, CALL_SEND, 812, 813, MADE_TOO);
    call(&s, FRONT, CALL_WAIT, 814, 899, 0);
    event(&s, 815, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    event(&s, 897, EVENT_WAKING, 2, FRONT);
    runs(&s, 898, 0, FRONT, "front");
    call(&s, FRONT, CALL_RECEIVE, 900, 901, MADE);
    call(&s, FRONT, CALL_RECEIVE, 902, 903, MADE_TOO);
    call(&s, FRONT, CALL_SEND, 910, 911, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 912, 913, 99);
    build(&s, 3, 12, 910, 2);
    expect(&s, "waiting for a free connection: all 2 wait for 127.0.0.1:6379", 770, 790);
    expect(&s, "waiting for 127.0.0.1:6379", 80, 88);
    expect(&s, "bystander", 0, 6);
    close_scene(&s);
}

// A worker of an event loop's own process, one that it had forked, or another process of the same
// server did what the request needed; a packet for somebody else, or another one's child, woke the
// loop before it had.
static void test_worker_of_an_event_loop(void **state)
{
    enum { THREAD, CHILD, CHILDREN, COLLEAGUE };
    (void)state;
    for (int what = THREAD; what <= COLLEAGUE; what++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 541, OTHERS_SIDE);
        call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        for (uint32_t thread = FRONT; thread <= OTHER; thread++) {
            struct event *member = event(&s, 5, EVENT_MEMBER, 0, thread);
            member->payload.a = what == THREAD ? FRONT_PROCESS : thread;
            bool child = thread != FRONT && (what == CHILD || what == CHILDREN);
            member->payload.b = child ? FRONT_PROCESS : 1;
        }
        if (what == COLLEAGUE)
            call(&s, WORKER, CALL_RECEIVE, 7, 8, OTHERS_SIDE);
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        runs(&s, 26, 1, WORKER, what == THREAD ? "front" : "child");
        if (what == CHILDREN) {
            runs(&s, 26, 2, OTHER, "other");
            event(&s, 498, EVENT_WAKING, 2, FRONT)->payload.b = OTHER;
            runs(&s, 499, 2, 0, "swapper/2");
        } else {
            event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
            event(&s, 498, EVENT_WAKING, 2, FRONT);
            event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
        }
        runs(&s, 499, 0, FRONT, "front");
        event(&s, 543, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 1030, EVENT_WAKING, 1, FRONT)->payload.b = WORKER;
        runs(&s, 1031, 0, FRONT, "front");
        runs(&s, 1032, 1, 0, "swapper/1");
        build(&s, 1, 10, 1040, 0);
        expect(&s, what == THREAD ? "waiting for front (another thread)" : "waiting for child", 955,
               965);
        expect(&s, "waiting for a packet", 0, 0);
        expect(&s, "waiting for other", 0, 0);
        expect(&s, "head-of-line blocking", 40, 42);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

// A request comes while the loop waits for a program that it has started, and for nothing else,
// with somebody else's request in its hands: it waits for that program, too. A loop that has
// answered waits for any work, and the child gives it some.
static void test_comes_while_the_loop_awaits_a_child(void **state)
{
    (void)state;
    for (int answered = 0; answered <= 1; answered++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 2, 3, OTHERS_SIDE);
        if (answered)
            call(&s, FRONT, CALL_SEND, 4, 5, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 6, 7, OTHERS_SIDE);
        s.calls.items[s.calls.count - 1].length = 0;
        call(&s, FRONT, CALL_WAIT, 8, 1003, 0);
        call(&s, FRONT, CALL_RECEIVE, 1009, 1010, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        struct event *member = event(&s, 1, EVENT_MEMBER, 0, FRONT);
        member->payload.a = FRONT_PROCESS;
        member = event(&s, 1, EVENT_MEMBER, 1, WORKER);
        member->payload.a = WORKER;
        member->payload.b = FRONT_PROCESS;
        runs(&s, 1, 1, WORKER, "child");
        event(&s, 9, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 1000, EVENT_WAKING, 1, FRONT)->payload.b = WORKER;
        runs(&s, 1002, 0, FRONT, "front");
        runs(&s, 1004, 1, 0, "swapper/1");
        build(&s, 20, 1010, 1040, 0);
        expect(&s, "waiting for child", answered ? 0 : 975, answered ? 0 : 985);
        expect(&s, "application time", answered ? 1005 : 30, answered ? 1020 : 45);
        close_scene(&s);
    }
}

// The worker had done it while the loop was awake for somebody else, so its waking ended no wait of
// this request's; it did end a later one. A worker that slept meanwhile had not got it, unless the
// loop had woken it for that.
static void test_worker_that_wakes_nobody(void **state)
{
    (void)state;
    enum { WORKS, SLEEPS, SLEEPS_IN_IT };
    for (int what = WORKS; what <= SLEEPS_IN_IT; what++) {
        struct scene s;
        bool sleeps = what != WORKS, given = what == SLEEPS_IN_IT;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 545, 700, 0);
        if (given) {
            runs(&s, -30, 1, WORKER, "front");
            event(&s, -20, EVENT_BLOCKED, 1, WORKER)->payload.a = 202; // futex
            runs(&s, -20, 1, 0, "swapper/1");
            event(&s, 20, EVENT_WAKING, 0, WORKER)->payload.b = FRONT;
        }
        for (uint32_t thread = FRONT; thread <= WORKER; thread++)
            event(&s, 5, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        runs(&s, 25, 1, WORKER, "front");
        if (sleeps) {
            event(&s, 30, EVENT_BLOCKED, 1, WORKER)->payload.a = given ? 35 : 202; // nanosleep
            runs(&s, 30, 1, 0, "swapper/1");
            event(&s, 530, EVENT_WAKING, 1, WORKER);
            runs(&s, 531, 1, WORKER, "front");
        }
        event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 498, EVENT_WAKING, 2, FRONT);
        event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 499, 0, FRONT, "front");
        event(&s, 546, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 690, EVENT_WAKING, 1, FRONT)->payload.b = WORKER;
        runs(&s, 691, 0, FRONT, "front");
        runs(&s, 692, 1, 0, "swapper/1");
        build(&s, 1, 10, 540, 0);
        const bool put_off = what == SLEEPS;
        expect(&s,
               given ? "waiting for front (another thread), sleeping (timer)"
                     : "waiting for front (another thread)",
               put_off ? 0 : 465, put_off ? 0 : 475);
        expect(&s, "put off by its event loop", put_off ? 465 : 0, put_off ? 475 : 0);
        close_scene(&s);
    }
}

// The loop sends what its socket has room for, and the rest when the client has acknowledged that.
// A request of somebody else wakes it meanwhile. That is no room only where the reply was begun,
// and by a loop of which it is known that it asked nobody.
static void test_no_room_for_the_reply(void **state)
{
    (void)state;
    enum { BEGUN, NOT_BEGUN, UNSEEN };
    for (int way = BEGUN; way <= UNSEEN; way++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 20, 21, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        for (int woken = 0; woken < 2; woken++) {
            int from = woken ? 543 : 24, to = woken ? 1029 : 497;
            event(&s, from, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
            strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
            event(&s, to, EVENT_SOFTIRQ_ENTRY, 2, 3);
            event(&s, to + 1, EVENT_WAKING, 2, FRONT);
            event(&s, to + 2, EVENT_SOFTIRQ_EXIT, 2, 3);
            runs(&s, to + 2, 0, FRONT, "front");
        }
        s.batch = way == UNSEEN ? 0 : 7;
        s.in_part_us = way == NOT_BEGUN ? 0 : 21;
        build(&s, 1, 10, 1040, 0);
        expect(&s, "waiting for room to send", way == BEGUN ? 950 : 0, way == BEGUN ? 965 : 0);
        expect(&s, "waiting for a packet", way == NOT_BEGUN ? 950 : 0,
               way == NOT_BEGUN ? 965 : 1000);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

// The front's thread sleeps in a call that sends somebody else's reply, whose client does not read.
// That is a wait for room whatever woke it, seen or not; a write is one where it is known to be on
// a connection, and none where another thread ended it.
static void test_sends_without_room(void **state)
{
    (void)state;
    enum { SENDTO = 44, WRITE = 1, NET_TX = 2, NET_RX = 3 };
    static const struct {
        uint32_t call;
        uint8_t softirq; // what woke it; 0: nobody saw it
        bool timer, thread, elsewhere;
        const char *name;
    } ways[] = {
        {SENDTO, NET_RX, false, false, false, "waiting for room to send"},
        {SENDTO, NET_TX, false, false, false, "waiting for room to send"},
        {SENDTO, 0, false, false, false, "waiting for room to send"},
        {SENDTO, 0, true, false, false, "waiting for room to send, timed out"},
        {SENDTO, 0, false, true, false, "blocked in sendto: worker"},
        {WRITE, 0, false, false, false, "waiting for room to send"},
        {WRITE, 0, false, false, true, "blocked in write"},
    };
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct scene s;
        bool elsewhere = ways[way].elsewhere;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, elsewhere ? 10 : 20, elsewhere ? 12 : 1000, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 1003, 1004, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1010, 1011, CLIENT_SIDE);
        runs(&s, 5, 2, WORKER, "worker");
        event(&s, 24, EVENT_BLOCKED, 0, FRONT)->payload.a = ways[way].call;
        runs(&s, 24, 0, BYSTANDER, "bystander");
        if (ways[way].softirq)
            event(&s, 988, EVENT_SOFTIRQ_ENTRY, 1, ways[way].softirq);
        if (ways[way].timer)
            event(&s, 988, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
        struct event *waking = event(&s, 989, EVENT_WAKING, ways[way].thread ? 2 : 1, FRONT);
        waking->payload.b = ways[way].thread ? WORKER : 0;
        if (ways[way].softirq)
            event(&s, 990, EVENT_SOFTIRQ_EXIT, 1, ways[way].softirq);
        if (ways[way].timer)
            event(&s, 990, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        runs(&s, 991, 0, FRONT, "front");
        runs(&s, 1100, 2, 0, "swapper/2");
        build(&s, 30, 1004, 1010, 0);
        expect(&s, ways[way].name, 950, 965);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

// The front has read two requests, of which the message's is the second, and says of itself that it
// works for neither of them before it replies to both: that is nobody's turn.
static void test_works_for_itself_before_it_replies(void **state)
{
    (void)state;
    for (int says = 0; says <= 1; says++) {
        struct scene s;
        struct service_order order;
        size_t end;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 910, 911, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 920, 921, CLIENT_SIDE);
        if (says) {
            struct event *work = event(&s, 900, EVENT_DETOUR, 0, FRONT);
            work->flags = DETOUR_OWN_WORK;
            work->payload.a = (uint64_t)US(20);
        }
        build(&s, 1, 10, 920, 0);
        expect(&s, "the server's own work", says ? 879 : 0, says ? 881 : 0);
        assert_int_equal(service_order_build(&order, &s.life, 1, &s.all, &s.host), 0);
        const struct turn *turn =
            &order.turns.items[service_order_after(&order, FRONT, US(500), &end)];
        assert_int_equal(turn->service == TURN_SERVER, says);
        assert_int_equal(turn->end_ns, US(says ? 900 : 910));
        service_order_free(&order);
        close_scene(&s);
    }
}

// The front hands the message over to a worker, which does something else until 850 us. While
// somebody else has its core that is what it lacks: it would have none if there were more workers.
static void test_worker_without_a_core(void **state)
{
    (void)state;
    for (int preempted = 0; preempted <= 1; preempted++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 14, 15, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 845, 850, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 860, 861, CLIENT_SIDE);
        runs(&s, 5, 1, WORKER, "worker");
        if (preempted) {
            event(&s, 100, EVENT_SWITCH, 1, BYSTANDER)->flags = SWITCH_PREEMPTED;
            strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
            runs(&s, 840, 1, WORKER, "worker");
        }
        build(&s, 1, 10, 860, 0);
        expect(&s, "bystander", preempted ? 739 : 0, preempted ? 741 : 0);
        expect(&s, "waiting for a free worker", preempted ? 95 : 835, preempted ? 97 : 837);
        close_scene(&s);
    }
}

// Nor are more workers what it lacks while it collects garbage, or waits for its interpreter's
// lock.
static void test_worker_without_a_turn(void **state)
{
    (void)state;
    for (int waits = 0; waits <= 1; waits++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 14, 15, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 845, 850, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 860, 861, CLIENT_SIDE);
        runs(&s, 5, 1, WORKER, "worker");
        if (waits) {
            struct event *blocked = event(&s, 100, EVENT_BLOCKED, 1, WORKER);
            blocked->payload.a = 202; // futex
            blocked->flags = BLOCKED_CONDITION | BLOCKED_INTERPRETER;
            runs(&s, 100, 1, OTHER, "other");
            event(&s, 590, EVENT_WAKING, 1, WORKER)->payload.b = OTHER;
            runs(&s, 600, 1, WORKER, "worker");
        } else {
            struct event *collection = event(&s, 600, EVENT_DETOUR, 1, WORKER);
            collection->flags = DETOUR_COLLECTION;
            collection->payload.a = (uint64_t)US(100);
        }
        build(&s, 1, 10, 860, 0);
        expect(&s, "garbage collection", waits ? 0 : 499, waits ? 0 : 501);
        expect(&s, "waiting for the interpreter lock (GIL): held by other", waits ? 489 : 0,
               waits ? 491 : 0);
        expect(&s, "waiting for a free worker", 335, 337);
        close_scene(&s);
    }
}

// What a worker sleeps for in the midst of its work is what keeps it, and all who want it; not what
// it sleeps for until there is work.
static void test_worker_that_sleeps(void **state)
{
    enum { NANOSLEEP = 35, FUTEX = 202 };
    (void)state;
    for (int at_work = 0; at_work <= 1; at_work++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 14, 15, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 845, 850, OTHERS_SIDE);
        call(&s, WORKER, CALL_SEND, 860, 861, CLIENT_SIDE);
        runs(&s, 5, 1, WORKER, "worker");
        event(&s, 100, EVENT_BLOCKED, 1, WORKER)->payload.a = at_work ? NANOSLEEP : FUTEX;
        if (!at_work)
            s.events.items[s.events.count - 1].flags = BLOCKED_CONDITION;
        runs(&s, 100, 1, 0, "swapper/1");
        event(&s, 598, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
        event(&s, 599, EVENT_WAKING, 1, WORKER);
        event(&s, 600, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        runs(&s, 601, 1, WORKER, "worker");
        build(&s, 1, 10, 860, 0);
        expect(&s, "waiting for a free worker, sleeping (timer)", at_work ? 495 : 0,
               at_work ? 500 : 0);
        expect(&s, "waiting for a free worker", at_work ? 330 : 830, at_work ? 340 : 837);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_loop_queues),
        cmocka_unit_test(test_event_loop_gives_up),
        cmocka_unit_test(test_answers_at_once),
        cmocka_unit_test(test_worker_of_an_event_loop),
        cmocka_unit_test(test_comes_while_the_loop_awaits_a_child),
        cmocka_unit_test(test_worker_that_wakes_nobody),
        cmocka_unit_test(test_no_room_for_the_reply),
        cmocka_unit_test(test_sends_without_room),
        cmocka_unit_test(test_works_for_itself_before_it_replies),
        cmocka_unit_test(test_worker_without_a_core),
        cmocka_unit_test(test_worker_without_a_turn),
        cmocka_unit_test(test_worker_that_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
