// SPDX-License-Identifier: MIT
//
// A thread that waited in vain, up to a time: who had what it asked for is told where that one gave
// it to the next that waited, and else nobody is.
#include "tests/analysis/decomposition/two_tiers.h"

enum { THIRD = 103, WORD = 7, OTHER_WORD = 8, THIRD_WORD = 9, LIMIT_US = 500 };

static void waits_at(struct scene *s, int us, uint16_t core, uint32_t thread, uint64_t word,
                     uint64_t limit_us, uint8_t flags)
{
    struct event *blocked = event(s, us, EVENT_BLOCKED, core, thread);
    blocked->payload.a = limit_us << 32 | 202; // futex
    blocked->payload.b = word << 32;
    blocked->flags = flags;
    runs(s, us, core, 0, "swapper");
}

static void times_out(struct scene *s, int us, uint16_t core, uint32_t thread, const char *name)
{
    event(s, us - 2, EVENT_VECTOR_ENTRY, core, VECTOR_LOCAL_TIMER);
    event(s, us - 1, EVENT_WAKING, core, thread);
    event(s, us, EVENT_VECTOR_EXIT, core, VECTOR_LOCAL_TIMER);
    runs(s, us + 1, core, thread, name);
}

enum how {
    SAME_WORD,
    OTHERS_WORD,   // the other one waits for something else, not in Python
    OTHERS_LIMIT,  // the same in Python, not for as long
    IN_PYTHON,     // the same in Python, for as long
    NO_HOLDER,     // but the worker itself waits meanwhile, for somebody else's bytes
    TOO_LATE,      // the other one begins to wait only afterwards
    WITHOUT_BREAK, // but a third one waited until then, in vain as well
    ALWAYS_HE, // only afterwards, but the worker is who gives it to all that wait, again and again
    OUT_OF_TURN, // in Python, but one that waited for longer still does then: for another thing
    TO_YOUNGER   // in Python, but the worker gave to one that had begun later, meanwhile
};

// The front's thread waits for half a millisecond at most, from 24 to 520, and answers without. The
// other one waits, too, until the worker wakes it at 900.
static void build_scene(struct scene *s, enum how how)
{
    static const uint32_t threads[] = {FRONT, WORKER, OTHER, THIRD};
    bool python = how == OTHERS_LIMIT || how == IN_PYTHON || how == NO_HOLDER ||
                  how == OUT_OF_TURN || how == TO_YOUNGER;
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 540, 542, CLIENT_SIDE);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        event(s, 5, EVENT_MEMBER, 0, threads[i])->payload.a = FRONT_PROCESS;
    if (python) {
        runs(s, -40, 1, OTHER, "other");
        waits_at(s, -30, 1, OTHER, OTHER_WORD, 5000, BLOCKED_CONDITION | BLOCKED_INTERPRETER);
        event(s, -20, EVENT_WAKING, 1, OTHER);
    }
    runs(s, 15, 2, WORKER, "worker");
    waits_at(s, 24, 0, FRONT, WORD, LIMIT_US, BLOCKED_CONDITION);
    times_out(s, 520, 0, FRONT, "front");
    if (how == NO_HOLDER) {
        event(s, 100, EVENT_BLOCKED, 2, WORKER)->payload.a = 45; // recvfrom
        runs(s, 100, 2, 0, "swapper");
        event(s, 500, EVENT_WAKING, 0, WORKER);
        runs(s, 501, 2, WORKER, "worker");
    }
    if (how == WITHOUT_BREAK) {
        runs(s, 290, 3, THIRD, "third");
        waits_at(s, 300, 3, THIRD, WORD, LIMIT_US, BLOCKED_CONDITION);
        times_out(s, 800, 3, THIRD, "third");
    }
    if (how == OUT_OF_TURN || how == TO_YOUNGER) {
        int from = how == OUT_OF_TURN ? 150 : 250;
        runs(s, from - 10, 3, THIRD, "third");
        waits_at(s, from, 3, THIRD, THIRD_WORD, LIMIT_US, BLOCKED_CONDITION);
    }
    if (how == TO_YOUNGER) {
        event(s, 480, EVENT_WAKING, 2, THIRD)->payload.b = WORKER;
        runs(s, 482, 3, THIRD, "third");
    }
    bool late = how == TOO_LATE || how == WITHOUT_BREAK || how == ALWAYS_HE;
    runs(s, late ? 590 : 390, 1, OTHER, "other");
    waits_at(s, late ? 600 : 400, 1, OTHER, how == OTHERS_WORD || python ? OTHER_WORD : WORD,
             how == OTHERS_LIMIT ? 2 * LIMIT_US : LIMIT_US, BLOCKED_CONDITION);
    if (how == ALWAYS_HE) {
        runs(s, 600, 3, THIRD, "third");
        waits_at(s, 610, 3, THIRD, WORD, LIMIT_US, BLOCKED_CONDITION);
        event(s, 899, EVENT_WAKING, 2, THIRD)->payload.b = WORKER;
        runs(s, 905, 3, THIRD, "third");
    }
    event(s, 900, EVENT_WAKING, 2, OTHER)->payload.b = WORKER;
    runs(s, 901, 1, OTHER, "other");
    runs(s, 1400, 1, 0, "swapper");
    runs(s, 1400, 2, 0, "swapper");
    build(s, 1, 10, 540, 0);
}

static void test_who_gave_it_to_the_next(void **state)
{
    (void)state;
    for (enum how how = SAME_WORD; how <= TO_YOUNGER; how++) {
        struct scene s;
        bool told =
            how == SAME_WORD || how == IN_PYTHON || how == WITHOUT_BREAK || how == ALWAYS_HE;
        build_scene(&s, how);
        expect(&s, "condition wait (futex), timed out: worker", told ? 490 : 0, told ? 497 : 0);
        expect(&s, "condition wait (futex), timed out", told ? 0 : 490, told ? 0 : 497);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_gave_it_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
