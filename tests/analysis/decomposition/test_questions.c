// SPDX-License-Identifier: MIT
//
// What a server asked another one, as the kernel saw it, is told of the message that it was for, by
// the thread that asked or the one that got the answer; else nobody is named.
#include "tests/analysis/decomposition/two_tiers.h"

enum how {
    READER_ASKS,   // the thread that asks has just read the request; another one gets the answer
    ANSWERED_ONLY, // another one asks, and the thread that gets the answer replies
    OF_OTHERS,     // other threads do both
    READ_ANOTHER,  // the thread that asks has read somebody else's request since
    EARLIER,       // it was asked before the request came
    BY_IPV6        // as the first, of an address of 16 bytes
};

static void asks(struct scene *s, int us, uint32_t thread, uint64_t socket, bool answered,
                 bool ipv6)
{
    if (ipv6) {
        struct event *address = event(s, us, EVENT_ASKED, 0, thread);
        address->flags = ASKED_ADDRESS;
        memcpy(address->payload.text, (uint8_t[16]){[15] = 1}, 16);
    }
    struct event *asked = event(s, us, EVENT_ASKED, 0, thread);
    asked->flags = (uint8_t)((answered ? ASKED_ANSWERED : 0) | (ipv6 ? ASKED_IPV6 : 0));
    asked->payload.a = 6379ull << 32 | (ipv6 ? 0 : 0x0100007f);
    asked->payload.b = socket;
}

// The front's thread reads the request at 10 and sleeps from 40 until a packet comes at 500. What
// was asked at 30 is answered at 505.
static void build_scene(struct scene *s, enum how how)
{
    bool others = how == OF_OTHERS || how == ANSWERED_ONLY;
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    if (how == READ_ANOTHER)
        call(s, FRONT, CALL_RECEIVE, 19, 20, OTHERS_SIDE);
    call(s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
    asks(s, how == EARLIER ? 5 : 30, others ? OTHER : FRONT, 7, false, how == BY_IPV6);
    asks(s, 60, OTHER, 8, false, false); // on another connection, for somebody else
    event(s, 40, EVENT_SWITCH, 0, 0)->flags = SWITCH_WAITS;
    event(s, 490, EVENT_SOFTIRQ_ENTRY, 0, 3); // NET_RX
    event(s, 500, EVENT_WAKING, 0, FRONT);
    event(s, 501, EVENT_SOFTIRQ_EXIT, 0, 3);
    runs(s, 502, 0, FRONT, "front");
    asks(s, 505, how == ANSWERED_ONLY ? FRONT : OTHER, 7, true, how == BY_IPV6);
    build(s, 1, 10, 540, 0);
}

static void test_for_which_message(void **state)
{
    (void)state;
    for (enum how how = READER_ASKS; how <= BY_IPV6; how++) {
        struct scene s;
        bool told = how == READER_ASKS || how == ANSWERED_ONLY || how == BY_IPV6;
        build_scene(&s, how);
        expect(&s,
               how == BY_IPV6 ? "waiting for a packet from [::1]:6379"
                              : "waiting for a packet from 127.0.0.1:6379",
               told ? 445 : 0, told ? 462 : 0);
        expect(&s, "waiting for a packet", told ? 0 : 445, told ? 0 : 462);
        close_scene(&s);
    }
}

// A goroutine wants one of two connections, on both of which others' questions are open: it waits
// until one of them is answered, and asks there. Not so where the other connection was free.
static void test_goroutine_without_a_connection(void **state)
{
    (void)state;
    for (int was_free = 0; was_free <= 1; was_free++) {
        struct scene s;
        open_scene(&s);
        for (uint32_t thread = FRONT; thread <= OTHER; thread++)
            event(&s, -40, EVENT_MEMBER, 0, thread)->payload.a = FRONT_PROCESS;
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        asks(&s, 2, OTHER, 7, false, false);
        asks(&s, 3, OTHER, 8, false, false);
        if (was_free)
            asks(&s, 5, OTHER, 8, true, false);
        event(&s, 40, EVENT_SWITCH, 0, 0)->flags = SWITCH_WAITS;
        asks(&s, 300, OTHER, 7, true, false);
        asks(&s, 310, OTHER, 7, false, false);
        event(&s, 490, EVENT_SOFTIRQ_ENTRY, 0, 3); // NET_RX
        event(&s, 500, EVENT_WAKING, 0, FRONT);
        event(&s, 501, EVENT_SOFTIRQ_EXIT, 0, 3);
        runs(&s, 502, 0, FRONT, "front");
        asks(&s, 505, FRONT, 7, true, false);
        asks(&s, 600, OTHER, 8, !was_free, false);
        struct event *parked = event(&s, 700, EVENT_BLOCKED, 0, FRONT);
        parked->payload.a = 202; // futex
        parked->flags = BLOCKED_PARKED;
        runs(&s, 700, 0, 0, "swapper/0");
        build(&s, 1, 10, 540, 0);
        expect(&s, "waiting for a free connection: all 2 wait for 127.0.0.1:6379",
               was_free ? 0 : 285, was_free ? 0 : 295);
        expect(&s, "waiting for a packet from 127.0.0.1:6379", 175, 192);
        close_scene(&s);
    }
}

// An event loop asks for two requests on its only connection, before the first answer comes: the
// second waits until its own does, by itself or with the first.
static void test_loop_with_one_connection(void **state)
{
    (void)state;
    for (int together = 0; together <= 1; together++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, -6, -5, OTHERS_SIDE);
        asks(&s, -3, FRONT, 7, false, false);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        asks(&s, 30, FRONT, 7, false, false);
        for (int begin = 40, end = 300; end <= 500; begin += 270, end += 200) {
            event(&s, begin, EVENT_SWITCH, 0, 0)->flags = SWITCH_WAITS;
            event(&s, end - 10, EVENT_SOFTIRQ_ENTRY, 0, 3); // NET_RX
            event(&s, end, EVENT_WAKING, 0, FRONT);
            event(&s, end + 1, EVENT_SOFTIRQ_EXIT, 0, 3);
            runs(&s, end + 2, 0, FRONT, "front");
            if (end == 500 || !together)
                asks(&s, end + 5, FRONT, 7, true, false);
        }
        call(&s, FRONT, CALL_SEND, together ? 520 : 306, together ? 521 : 307, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        build(&s, 1, 10, 540, 0);
        expect(&s, "waiting for a packet from 127.0.0.1:6379", 420, 435);
        expect(&s, "put off by its event loop", 0, 0);
        close_scene(&s);
    }
}

// A thread that asks for somebody else's request, before this one, and takes the answer itself: who
// waits meanwhile, and is not put off, waits for the same, if nobody else is asked.
static void test_question_of_the_loop(void **state)
{
    (void)state;
    enum { SHARED, TWO_ASKED, NEVER_ANSWERED, CASES };
    for (int which = 0; which < CASES; which++) {
        struct scene s;
        open_scene(&s);
        asks(&s, 5, FRONT, 7, false, false);
        call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
        for (int us = 6; which == TWO_ASKED && us < 1000; us += 498) {
            struct event *second = event(&s, us, EVENT_ASKED, 0, FRONT);
            second->payload.a = 5353ull << 32 | 0x0100007f;
            second->payload.b = 8;
            second->flags = us > 6 ? ASKED_ANSWERED : 0;
        }
        event(&s, 40, EVENT_SWITCH, 0, 0)->flags = SWITCH_WAITS;
        event(&s, 490, EVENT_SOFTIRQ_ENTRY, 0, 3); // NET_RX
        event(&s, 500, EVENT_WAKING, 0, FRONT);
        event(&s, 501, EVENT_SOFTIRQ_EXIT, 0, 3);
        runs(&s, 502, 0, FRONT, "front");
        if (which != NEVER_ANSWERED)
            asks(&s, 505, FRONT, 7, true, false);
        build(&s, 1, 10, 540, 0);
        bool told = which == SHARED;
        expect(&s, "waiting for a packet from 127.0.0.1:6379", told ? 445 : 0, told ? 462 : 0);
        expect(&s, "waiting for a packet", told ? 0 : 445, told ? 0 : 462);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_for_which_message),
        cmocka_unit_test(test_question_of_the_loop),
        cmocka_unit_test(test_loop_with_one_connection),
        cmocka_unit_test(test_goroutine_without_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
