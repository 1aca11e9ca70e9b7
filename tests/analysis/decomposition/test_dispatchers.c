// SPDX-License-Identifier: MIT
//
// A thread that reads the results of a pool's processes and tells whoever waits for one: what is
// waited for is the process that wrote the last of them, not what was read for others before.
#include "tests/analysis/decomposition/two_tiers.h"

enum { READER = 103, EARLIER = 104, ONE_PROCESS = 201, OTHER_PROCESS = 202 };

enum how {
    ONE_WORD,
    FOR_NOBODY, // what it read before was nobody's either: it may all have been for this request
    TWO_WORDS   // it reads two results at once and tells two threads
};

static void sleeps(struct scene *s, int us, uint16_t core, uint32_t thread, uint64_t call)
{
    struct event *blocked = event(s, us, EVENT_BLOCKED, core, thread);
    blocked->payload.a = call;
    blocked->flags = call == 202 ? BLOCKED_CONDITION : 0; // futex
    runs(s, us, core, 0, "swapper");
}

static void awaits_events(struct scene *s, int us, uint16_t core)
{
    struct event *away = event(s, us, EVENT_SWITCH, core, 0);
    away->flags = SWITCH_WAITS;
    strcpy(away->payload.text, "swapper");
}

// The front's thread waits from 24 to 1010 for the reader, which reads the other process's result
// at 500, and that of the one process, which ran all along, at 1000.
static void build_scene(struct scene *s, enum how how)
{
    static const uint32_t threads[] = {FRONT, OTHER, READER, EARLIER};
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        event(s, -45, EVENT_MEMBER, 0, threads[i])->payload.a = FRONT_PROCESS;
    for (uint32_t child = ONE_PROCESS; child <= OTHER_PROCESS; child++) {
        struct event *member = event(s, -45, EVENT_MEMBER, 0, child);
        member->payload.a = child;
        member->payload.b = FRONT_PROCESS;
    }
    runs(s, -40, 1, EARLIER, "earlier");
    sleeps(s, -30, 1, EARLIER, 202);
    runs(s, -29, 1, OTHER, "other");
    sleeps(s, -28, 1, OTHER, 202);
    runs(s, -27, 1, READER, "reader");
    sleeps(s, -20, 1, READER, 0); // read
    runs(s, -10, 2, ONE_PROCESS, "one");
    runs(s, -10, 3, OTHER_PROCESS, "two");
    sleeps(s, 24, 0, FRONT, 202);
    event(s, 500, EVENT_WAKING, 3, READER)->payload.b = OTHER_PROCESS;
    runs(s, 501, 1, READER, "reader");
    if (how != FOR_NOBODY)
        event(s, 505, EVENT_WAKING, 1, EARLIER)->payload.b = READER;
    sleeps(s, 510, 1, READER, 0);
    event(s, 1000, EVENT_WAKING, 2, READER)->payload.b = ONE_PROCESS;
    runs(s, 1001, 1, READER, "reader");
    if (how == TWO_WORDS)
        event(s, 1005, EVENT_WAKING, 1, OTHER)->payload.b = READER;
    event(s, 1010, EVENT_WAKING, 1, FRONT)->payload.b = READER;
    runs(s, 1011, 0, FRONT, "front");
    runs(s, 1400, 1, 0, "swapper");
    runs(s, 1400, 2, 0, "swapper");
    runs(s, 1400, 3, 0, "swapper");
    build(s, 1, 10, 1040, 0);
}

static void test_last_word_counts(void **state)
{
    static const struct {
        int one, two, reader; // us that are theirs
    } truth[] = {
        [ONE_WORD] = {975, 0, 10}, [FOR_NOBODY] = {490, 476, 20}, [TWO_WORDS] = {0, 0, 985}};
    (void)state;
    for (enum how how = ONE_WORD; how <= TWO_WORDS; how++) {
        struct scene s;
        build_scene(&s, how);
        expect(&s, "condition wait (futex): one", truth[how].one - 3, truth[how].one + 3);
        expect(&s, "condition wait (futex): two", truth[how].two - 3, truth[how].two + 3);
        expect(&s, "condition wait (futex): reader", truth[how].reader - 3, truth[how].reader + 3);
        close_scene(&s);
    }
}

// An event loop hands jobs to a thread that waits for events, too, and passes them on to a pool's
// processes: that one sleeps until a process is done, or the loop has another job for it, which is
// not what the loop waits for.
static void test_further_jobs_are_no_word(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_WAIT, 23, 300, 0);
    call(&s, FRONT, CALL_RECEIVE, 301, 302, OTHERS_SIDE);
    call(&s, FRONT, CALL_WAIT, 310, 1011, 0);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    event(&s, -45, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
    event(&s, -45, EVENT_MEMBER, 0, READER)->payload.a = FRONT_PROCESS;
    struct event *member = event(&s, -45, EVENT_MEMBER, 0, ONE_PROCESS);
    member->payload.a = ONE_PROCESS;
    member->payload.b = FRONT_PROCESS;
    runs(&s, -29, 1, READER, "reader");
    awaits_events(&s, -20, 1);
    runs(&s, -10, 2, ONE_PROCESS, "one");
    awaits_events(&s, 24, 0);
    event(&s, 297, EVENT_SOFTIRQ_ENTRY, 3, 3);
    event(&s, 298, EVENT_WAKING, 3, FRONT);
    event(&s, 299, EVENT_SOFTIRQ_EXIT, 3, 3);
    runs(&s, 299, 0, FRONT, "front");
    event(&s, 305, EVENT_WAKING, 0, READER)->payload.b = FRONT;
    runs(&s, 306, 1, READER, "reader");
    awaits_events(&s, 311, 0);
    awaits_events(&s, 316, 1);
    event(&s, 1000, EVENT_WAKING, 2, READER)->payload.b = ONE_PROCESS;
    runs(&s, 1001, 1, READER, "reader");
    event(&s, 1009, EVENT_WAKING, 1, FRONT)->payload.b = READER;
    runs(&s, 1010, 0, FRONT, "front");
    runs(&s, 1400, 1, 0, "swapper");
    runs(&s, 1400, 2, 0, "swapper");
    build(&s, 1, 10, 1040, 0);
    expect(&s, "waiting for one", 950, 965);
    expect(&s, "waiting for reader", 5, 20);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_word_counts),
        cmocka_unit_test(test_further_jobs_are_no_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
