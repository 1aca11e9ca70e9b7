// SPDX-License-Identifier: MIT
//
// Requests that an event loop has read and puts off: what lets them go, as far as that is known.
#include "tests/analysis/decomposition/two_tiers.h"

// The loop puts the request off until a timer; a packet for somebody else woke it before that. With
// an answer of another server in between it is not known what the packet brought.
static void test_put_off_by_an_event_loop(void **state)
{
    (void)state;
    for (unsigned asks = 0; asks <= 1; asks++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        if (asks)
            call(&s, FRONT, CALL_SEND, 20, 21, MADE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        if (asks)
            call(&s, FRONT, CALL_RECEIVE, 501, 502, MADE);
        call(&s, FRONT, CALL_WAIT, 542, 1033, 0);
        call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 498, EVENT_WAKING, 2, FRONT);
        event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 499, 0, FRONT, "front");
        event(&s, 543, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 1029, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
        event(&s, 1030, EVENT_WAKING, 2, FRONT);
        event(&s, 1031, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
        runs(&s, 1031, 0, FRONT, "front");
        build(&s, 1, 10, 1040, asks);
        expect(&s, "waiting for a timer", asks ? 480 : 955, asks ? 490 : 965);
        expect(&s, "waiting for 127.0.0.1:6379", asks ? 470 : 0, asks ? 482 : 0);
        expect(&s, "waiting for a packet", 0, 0);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

static void packet_wakes(struct scene *s, int from, int to)
{
    call(s, FRONT, CALL_WAIT, from - 1, to + 2, 0);
    event(s, from, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s->events.items[s->events.count - 1].payload.text, "bystander");
    event(s, to - 1, EVENT_SOFTIRQ_ENTRY, 2, 3);
    event(s, to, EVENT_WAKING, 2, FRONT);
    event(s, to + 1, EVENT_SOFTIRQ_EXIT, 2, 3);
    runs(s, to + 1, 0, FRONT, "front");
}

// It asks another server for somebody else meanwhile, and for the message, if at all, when a timer
// has run out: that is put off as well, and no lack of connections.
static void test_put_off_by_a_proxy(void **state)
{
    (void)state;
    for (unsigned asks = 0; asks <= 1; asks++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 1, 2, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 5, 6, MADE);
        call(&s, FRONT, CALL_WAIT, 7, 8, 0);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        packet_wakes(&s, 15, 100);
        call(&s, FRONT, CALL_RECEIVE, 105, 106, MADE);
        call(&s, FRONT, CALL_SEND, 110, 111, OTHERS_SIDE);
        packet_wakes(&s, 120, 500);
        call(&s, FRONT, CALL_RECEIVE, 505, 506, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 510, 511, OTHERS_SIDE);
        call(&s, FRONT, CALL_WAIT, 512, 1033, 0);
        event(&s, 513, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 1029, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
        event(&s, 1030, EVENT_WAKING, 2, FRONT);
        event(&s, 1031, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
        runs(&s, 1031, 0, FRONT, "front");
        if (asks) {
            call(&s, FRONT, CALL_SEND, 1035, 1036, MADE);
            packet_wakes(&s, 1040, 1230);
            call(&s, FRONT, CALL_RECEIVE, 1234, 1235, MADE);
        }
        call(&s, FRONT, CALL_SEND, 1240, 1242, CLIENT_SIDE);
        build(&s, 1, 10, 1240, 1);
        expect(&s, "waiting for a timer", 885, 900);
        expect(&s, "waiting for a packet", 0, 0);
        expect(&s, "waiting for 127.0.0.1:6379", asks ? 275 : 80, asks ? 285 : 90);
        close_scene(&s);
    }
}

// It reads somebody else's request, and then a packet that brings none has it answer: it had waited
// for that, as for a resolver. One that brings a request had nothing to do with the message.
static void test_answer_from_nobody_knows_whom(void **state)
{
    (void)state;
    for (int request = 0; request <= 1; request++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        packet_wakes(&s, 20, 300);
        call(&s, FRONT, CALL_RECEIVE, 304, 305, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 310, 311, OTHERS_SIDE);
        packet_wakes(&s, 320, 700);
        if (request)
            call(&s, FRONT, CALL_RECEIVE, 704, 705, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 740, 742, CLIENT_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 750, 751, OTHERS_SIDE);
        build(&s, 1, 10, 740, 0);
        expect(&s, "waiting for a packet", request ? 0 : 640, request ? 0 : 670);
        expect(&s, "put off by its event loop", request ? 640 : 0, request ? 670 : 0);
        close_scene(&s);
    }
}

// It reads somebody else's request each time it is woken, and answers the message at last: it had
// put it off. Not so if what comes is none of its clients', nor if it is a thread of Go's, which
// parks or another one of its process does.
static void test_put_off_for_nobody_knows_what(void **state)
{
    enum { NOBODYS, OTHERS, OTHERS_IN_GO, OTHERS_BESIDE_GO };
    (void)state;
    for (int what = NOBODYS; what <= OTHERS_BESIDE_GO; what++) {
        const bool others = what != NOBODYS, is_put_off = what == OTHERS;
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        if (others)
            call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 497, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 498, EVENT_WAKING, 2, FRONT);
        event(&s, 499, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 499, 0, FRONT, "front");
        if (what >= OTHERS_IN_GO) {
            uint32_t parked = what == OTHERS_IN_GO ? FRONT : WORKER;
            event(&s, 550, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
            event(&s, 550, EVENT_MEMBER, 0, WORKER)->payload.a = FRONT_PROCESS;
            runs(&s, 590, 0, parked, "front");
            struct event *blocked = event(&s, 600, EVENT_BLOCKED, 0, parked);
            blocked->payload.a = 202; // futex
            blocked->flags = BLOCKED_PARKED;
            runs(&s, 600, 0, BYSTANDER, "bystander");
        }
        build(&s, 1, 10, 540, 0);
        expect(&s, "put off by its event loop", is_put_off ? 465 : 0, is_put_off ? 475 : 0);
        expect(&s, "waiting for a packet", is_put_off ? 0 : 465, is_put_off ? 0 : 490);
        close_scene(&s);
    }
}

// Somebody of this host, who slept, sends a request that has the loop answer the message: his time
// it was. Not so if that one's own process had asked for the message, if the loop read another
// request as well, or answered yet another one that it had put off; nor if nobody knows who sent.
static void test_let_go_by_a_request(void **state)
{
    enum { ONE, ASKED_ITSELF, READS_TWO, ANSWERS_TWO, FROM_OUTSIDE };
    (void)state;
    for (int what = ONE; what <= FROM_OUTSIDE; what++) {
        struct scene s;
        open_scene(&s);
        event(&s, 2, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
        event(&s, 2, EVENT_MEMBER, 1, OTHER)->payload.a = OTHER;
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        runs(&s, 12, 1, OTHER, "producer");
        call(&s, FRONT, CALL_WAIT, 23, 500, 0);
        event(&s, 24, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
        strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        event(&s, 25, EVENT_BLOCKED, 1, OTHER)->payload.a = 35; // nanosleep
        runs(&s, 25, 1, 0, "swapper/1");
        event(&s, 479, EVENT_VECTOR_ENTRY, 1, VECTOR_LOCAL_TIMER);
        event(&s, 480, EVENT_WAKING, 1, OTHER);
        event(&s, 481, EVENT_VECTOR_EXIT, 1, VECTOR_LOCAL_TIMER);
        runs(&s, 482, 1, OTHER, "producer");
        if (what == FROM_OUTSIDE) {
            event(&s, 495, EVENT_IRQ_ENTRY, 1, 30);
            event(&s, 496, EVENT_IRQ_EXIT, 1, 30);
        }
        event(&s, 497, EVENT_SOFTIRQ_ENTRY, 1, 3);
        event(&s, 498, EVENT_WAKING, 1, FRONT)->payload.b = OTHER;
        event(&s, 499, EVENT_SOFTIRQ_EXIT, 1, 3);
        runs(&s, 499, 0, FRONT, "front");
        call(&s, FRONT, CALL_RECEIVE, 501, 502, OTHERS_SIDE);
        if (what == READS_TWO)
            call(&s, FRONT, CALL_RECEIVE, 503, 504, OTHERS_SIDE + 97);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        if (what == ANSWERS_TWO)
            call(&s, FRONT, CALL_SEND, 543, 544, OTHERS_SIDE + 97);
        call(&s, FRONT, CALL_SEND, 550, 552, OTHERS_SIDE);
        runs(&s, 600, 1, 0, "swapper/1");
        s.asker = what == ASKED_ITSELF ? OTHER : 0;
        build(&s, 1, 10, 540, 0);
        expect(&s, "put off until producer asks, sleeping (timer)", what == ONE ? 445 : 0,
               what == ONE ? 456 : 0);
        expect(&s, "put off by its event loop", what == ONE ? 0 : 465, what == ONE ? 0 : 475);
        expect(&s, "bystander", 0, 3);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_off_by_an_event_loop),
        cmocka_unit_test(test_put_off_by_a_proxy),
        cmocka_unit_test(test_answer_from_nobody_knows_whom),
        cmocka_unit_test(test_put_off_for_nobody_knows_what),
        cmocka_unit_test(test_let_go_by_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
