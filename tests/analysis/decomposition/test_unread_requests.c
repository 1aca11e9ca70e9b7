// SPDX-License-Identifier: MIT
//
// Requests that nobody has read yet: not accepted, come in parts, or come to a thread that is not
// seen to wait for them.
#include "tests/analysis/decomposition/two_tiers.h"

// The front waits for what comes on another connection, and turns to the message's only then, which
// nobody had accepted. Not so where it had: `accepted_us` is when, 0: its calls do not say.
static void not_accepted(bool unaccepted, int accepted_us, bool by_thread, double us)
{
    struct scene s;
    open_scene(&s);
    s.unaccepted = unaccepted;
    if (accepted_us == 4)
        call(&s, FRONT, CALL_ACCEPT, 4, 5, CLIENT_SIDE);
    event(&s, 5, EVENT_SWITCH, 0, BYSTANDER)->flags = SWITCH_WAITS;
    strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
    if (!by_thread)
        event(&s, 700, EVENT_SOFTIRQ_ENTRY, 2, 3);
    else
        runs(&s, 4, 2, WORKER, "worker");
    event(&s, 701, EVENT_WAKING, 2, FRONT)->payload.b = by_thread ? WORKER : 0;
    if (!by_thread)
        event(&s, 702, EVENT_SOFTIRQ_EXIT, 2, 3);
    else
        runs(&s, 702, 2, 0, "swapper/2");
    runs(&s, 703, 0, FRONT, "front");
    call(&s, FRONT, CALL_RECEIVE, 705, 706, OTHERS_SIDE);
    call(&s, FRONT, CALL_CLOSE, 707, 708, OTHERS_SIDE);
    if (accepted_us == 710)
        call(&s, FRONT, CALL_ACCEPT, 710, 711, CLIENT_SIDE);
    call(&s, FRONT, CALL_RECEIVE, 712, 713, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 720, 721, CLIENT_SIDE);
    build(&s, 3, 713, 720, 0);
    expect(&s, "waiting to be accepted", us, us ? us + 2 : 0);
    expect(&s, "waiting for a packet", us || by_thread ? 0 : 694, us || by_thread ? 0 : 697);
    close_scene(&s);
}

static void test_not_accepted(void **state)
{
    (void)state;
    not_accepted(true, 710, false, 695);
    not_accepted(true, 0, false, 695);
    not_accepted(true, 4, false, 0);
    not_accepted(false, 0, false, 0);
    not_accepted(true, 0, true, 0);
}

// The front's thread asks the backend before it reads the request, as it does to open a connection
// of its own for each client: nobody is ahead of the request then. Somebody is, if it had one
// before.
static void test_asks_before_it_reads(void **state)
{
    (void)state;
    for (int others = 0; others <= 1; others++) {
        struct scene s;
        open_scene(&s);
        if (others)
            call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 20, 22, MADE);
        call(&s, FRONT, CALL_RECEIVE, 23, 1036, MADE);
        if (others)
            call(&s, FRONT, CALL_SEND, 1037, 1038, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 1040, 1041, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 1050, 1052, CLIENT_SIDE);
        runs(&s, 24, 0, BYSTANDER, "bystander");
        event(&s, 1029, EVENT_SOFTIRQ_ENTRY, 2, 3);
        event(&s, 1030, EVENT_WAKING, 2, FRONT);
        event(&s, 1031, EVENT_SOFTIRQ_EXIT, 2, 3);
        runs(&s, 1032, 0, FRONT, "front");
        build(&s, 10, 1041, 1050, 1);
        expect(&s, "waiting for 127.0.0.1:6379", others ? 0 : 1000, others ? 0 : 1015);
        expect(&s, "head-of-line blocking: waiting for 127.0.0.1:6379", others ? 1000 : 0,
               others ? 1015 : 0);
        close_scene(&s);
    }
}

// The front's thread works for somebody else while a part of the request lies in its socket, which
// has no room for the rest: that the client sends it late is not the client's doing.
static void test_part_of_a_request_unread(void **state)
{
    (void)state;
    for (int parts = 0; parts <= 1; parts++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 5, 6, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 900, 901, OTHERS_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 904, 905, CLIENT_SIDE);
        call(&s, FRONT, CALL_RECEIVE, 949, 950, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 960, 962, CLIENT_SIDE);
        if (parts) {
            s.due_us = 10;
            s.part_ready_us = 20;
            s.part_read_us = 905;
        }
        build(&s, 945, 950, 960, 0);
        expect(&s, "head-of-line blocking", parts ? 875 : 0, parts ? 885 : 2);
        expect(&s, "client queue", parts ? 40 : 0, parts ? 50 : 2);
        close_scene(&s);
    }
}

// The thread that serves a request is made for it by a worker, or was made before and first woken
// by a program that only had the core: of that nothing is known.
static void test_thread_made_for_the_request(void **state)
{
    (void)state;
    for (int made = 0; made <= 1; made++) {
        struct scene s;
        open_scene(&s);
        s.events.items[0].id = BYSTANDER; // in the front's place
        strcpy(s.events.items[0].payload.text, "bystander");
        call(&s, FRONT, CALL_RECEIVE, 620, 622, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 640, 642, CLIENT_SIDE);
        for (uint32_t thread = FRONT; thread <= WORKER; thread++) {
            struct event *member = event(&s, 2, EVENT_MEMBER, 2, thread);
            bool other = thread == WORKER && !made;
            member->payload.a = other ? BYSTANDER : FRONT_PROCESS;
            member->payload.b = other ? 1 : 2;
        }
        runs(&s, 3, 2, WORKER, "worker");
        event(&s, 600, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
        runs(&s, 612, 0, FRONT, "front");
        runs(&s, 700, 2, 0, "swapper/2");
        build(&s, 10, 622, 640, 0);
        expect(&s, "application time", made ? 600 : 15, made ? 625 : 30);
        expect(&s, "unknown wait", made ? 0 : 580, made ? 0 : 595);
        expect(&s, "bystander", 10, 14);
        close_scene(&s);
    }
}

// An event loop was seen to wait, and next to leave its core, to which it had come unseen: whether
// it waited any longer nobody knows. Where its coming was seen, it is its waking that is missing.
static void test_comes_unseen(void **state)
{
    (void)state;
    for (int seen = 0; seen <= 1; seen++) {
        struct scene s;
        open_scene(&s);
        call(&s, FRONT, CALL_RECEIVE, 920, 922, CLIENT_SIDE);
        call(&s, FRONT, CALL_SEND, 940, 942, CLIENT_SIDE);
        for (int turn = 0; turn < 2; turn++) {
            if (turn && seen)
                runs(&s, 910, 0, FRONT, "front");
            if (turn)
                strcpy(event(&s, 1000, EVENT_UNSEEN, 0, FRONT)->payload.text, "front");
            event(&s, turn ? 1000 : 20, EVENT_SWITCH, 0, BYSTANDER)->flags =
                SWITCH_WAITS | (turn && !seen ? SWITCH_UNSEEN : 0);
            strcpy(s.events.items[s.events.count - 1].payload.text, "bystander");
        }
        build(&s, 100, 922, 940, 0);
        expect(&s, "lost records (unseen since bystander)", seen ? 0 : 835, seen ? 0 : 845);
        expect(&s, "unknown wait", seen ? 805 : 0, seen ? 815 : 0);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_accepted),
        cmocka_unit_test(test_asks_before_it_reads),
        cmocka_unit_test(test_part_of_a_request_unread),
        cmocka_unit_test(test_thread_made_for_the_request),
        cmocka_unit_test(test_comes_unseen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
