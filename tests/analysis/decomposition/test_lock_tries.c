// SPDX-License-Identifier: MIT
//
// Locks on files that a thread tries to get again and again, with a sleep after each try in vain.
#include "tests/analysis/decomposition/two_tiers.h"

enum { FILE_NUMBER = 77, HOLDER_PROCESS = WORKER, SLEEP = 35 };

static struct event *tries(struct scene *s, int us, uint16_t core, uint32_t thread, uint8_t how,
                           uint32_t process, uint32_t file)
{
    struct event *name = event(s, us, EVENT_FILE_LOCK, core, thread);
    name->flags = FILE_LOCK_NAME;
    strcpy(name->payload.text, "orders.db");
    struct event *tried = event(s, us, EVENT_FILE_LOCK, core, thread);
    tried->flags = how;
    tried->payload.a = file | (uint64_t)process << 32;
    return tried;
}

static void sleeps(struct scene *s, int from, int to)
{
    event(s, from, EVENT_BLOCKED, 0, FRONT)->payload.a = SLEEP;
    runs(s, from, 0, BYSTANDER, "bystander");
    event(s, to - 1, EVENT_VECTOR_ENTRY, 0, VECTOR_LOCAL_TIMER);
    event(s, to, EVENT_WAKING, 0, FRONT);
    event(s, to, EVENT_VECTOR_EXIT, 0, VECTOR_LOCAL_TIMER);
    runs(s, to + 1, 0, FRONT, "front");
}

// The front's thread, whose request takes from 10 to 1040, sleeps twice; the holder runs.
static void open_tries(struct scene *s)
{
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    event(s, 5, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
    event(s, 5, EVENT_MEMBER, 0, WORKER)->payload.a = HOLDER_PROCESS;
    runs(s, 6, 2, WORKER, "holder");
}

static void close_tries(struct scene *s)
{
    runs(s, 1400, 2, 0, "swapper/2");
    build(s, 1, 10, 1040, 0);
}

// Twice in vain: the holder's, until it gives the lock back in the midst of the second sleep. What
// SQLite gives back itself before it sleeps is not what it wants.
static void test_tries_in_vain(void **state)
{
    (void)state;
    struct scene s;
    open_tries(&s);
    tries(&s, 20, 0, FRONT, FILE_LOCK_REFUSED, HOLDER_PROCESS, FILE_NUMBER);
    tries(&s, 21, 0, FRONT, FILE_LOCK_RELEASED, FRONT_PROCESS, FILE_NUMBER);
    sleeps(&s, 30, 500);
    tries(&s, 510, 0, FRONT, FILE_LOCK_REFUSED, HOLDER_PROCESS, FILE_NUMBER);
    sleeps(&s, 520, 1000);
    tries(&s, 820, 2, WORKER, FILE_LOCK_RELEASED, HOLDER_PROCESS, FILE_NUMBER);
    tries(&s, 1010, 0, FRONT, FILE_LOCK_GRANTED, FRONT_PROCESS, FILE_NUMBER);
    close_tries(&s);
    expect(&s, "lock wait (fcntl tries) of orders.db: held by holder", 765, 775);
    expect(&s, "sleeping (timer), free: lock wait (fcntl tries) of orders.db", 175, 185);
    expect(&s, "sleeping (timer)", 0, 0);
    close_scene(&s);
}

// Another one gets it before the thread tries again.
static void test_from_hand_to_hand(void **state)
{
    (void)state;
    struct scene s;
    open_tries(&s);
    event(&s, 5, EVENT_MEMBER, 1, OTHER)->payload.a = OTHER;
    runs(&s, 6, 1, OTHER, "next");
    tries(&s, 20, 0, FRONT, FILE_LOCK_REFUSED | FILE_LOCK_FLOCK, HOLDER_PROCESS, FILE_NUMBER);
    sleeps(&s, 30, 1000);
    tries(&s, 300, 2, WORKER, FILE_LOCK_RELEASED, HOLDER_PROCESS, FILE_NUMBER);
    tries(&s, 400, 1, OTHER, FILE_LOCK_GRANTED, OTHER, FILE_NUMBER);
    tries(&s, 900, 1, OTHER, FILE_LOCK_RELEASED, OTHER, FILE_NUMBER);
    tries(&s, 1010, 0, FRONT, FILE_LOCK_GRANTED, FRONT_PROCESS, FILE_NUMBER);
    close_tries(&s);
    expect(&s, "lock wait (flock tries) of orders.db: held by holder", 265, 275);
    expect(&s, "lock wait (flock tries) of orders.db: held by next", 495, 505);
    expect(&s, "sleeping (timer), free: lock wait (flock tries) of orders.db", 190, 205);
    close_scene(&s);
}

// No try, or none of that file, follows the sleep; or another sleep lay between; or it got it.
static void test_sleeps_for_something_else(void **state)
{
    enum { GIVES_UP, OTHER_FILE, SLEEPS_BEFORE, SLEEPS_AFTER, GOT_IT, CASES };
    (void)state;
    for (int what = GIVES_UP; what < CASES; what++) {
        struct scene s;
        open_tries(&s);
        tries(&s, 15, 0, FRONT, FILE_LOCK_REFUSED, HOLDER_PROCESS, FILE_NUMBER);
        if (what == GOT_IT)
            tries(&s, 17, 0, FRONT, FILE_LOCK_GRANTED, FRONT_PROCESS, FILE_NUMBER);
        if (what == SLEEPS_BEFORE)
            sleeps(&s, 20, 22);
        sleeps(&s, 30, 1000);
        if (what == SLEEPS_AFTER)
            sleeps(&s, 1005, 1007);
        if (what != GIVES_UP)
            tries(&s, 1020, 0, FRONT, FILE_LOCK_GRANTED, FRONT_PROCESS,
                  what == OTHER_FILE ? FILE_NUMBER + 1 : FILE_NUMBER);
        close_tries(&s);
        expect(&s, "sleeping (timer)", 965, 975);
        expect(&s, "lock wait (fcntl tries) of orders.db: held by holder", 0, 0);
        close_scene(&s);
    }
}

// The holder ran on a core that was not recorded.
static void test_holder_unseen(void **state)
{
    (void)state;
    struct scene s;
    open_tries(&s);
    tries(&s, 20, 0, FRONT, FILE_LOCK_REFUSED, 4711, FILE_NUMBER);
    sleeps(&s, 30, 1000);
    tries(&s, 1010, 0, FRONT, FILE_LOCK_GRANTED, FRONT_PROCESS, FILE_NUMBER);
    close_tries(&s);
    expect(&s, "lock wait (fcntl tries) of orders.db: held by process 4711", 965, 975);
    close_scene(&s);
}

// A file that is a lock, as only one can make it: another thread of the process did, and removes it
// later. The next one's maker is not known, but who removes it.
static void test_lock_file(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct scene s;
        open_tries(&s);
        event(&s, 5, EVENT_MEMBER, 0, WORKER)->payload.a = FRONT_PROCESS;
        const uint32_t process = known ? FRONT_PROCESS : 0;
        tries(&s, 20, 0, FRONT, FILE_LOCK_REFUSED | FILE_LOCK_FILE, process, FILE_NUMBER)
            ->payload.b = known ? WORKER : 0;
        sleeps(&s, 30, 500);
        tries(&s, 510, 0, FRONT, FILE_LOCK_REFUSED | FILE_LOCK_FILE, process, FILE_NUMBER)
            ->payload.b = known ? WORKER : 0;
        sleeps(&s, 520, 1000);
        tries(&s, 820, 2, WORKER, FILE_LOCK_RELEASED | FILE_LOCK_FILE, FRONT_PROCESS, FILE_NUMBER);
        tries(&s, 1010, 0, FRONT, FILE_LOCK_GRANTED | FILE_LOCK_FILE, FRONT_PROCESS, FILE_NUMBER);
        close_tries(&s);
        expect(&s, "lock wait (lock file) of orders.db: held by holder", 765, 775);
        expect(&s, "sleeping (timer), free: lock wait (lock file) of orders.db", 175, 185);
        close_scene(&s);
    }
}

// Nobody was seen to make it, nor to remove it: it is there.
static void test_lock_file_left(void **state)
{
    (void)state;
    struct scene s;
    open_tries(&s);
    tries(&s, 20, 0, FRONT, FILE_LOCK_REFUSED | FILE_LOCK_FILE, 0, FILE_NUMBER);
    sleeps(&s, 30, 1000);
    tries(&s, 1010, 0, FRONT, FILE_LOCK_REFUSED | FILE_LOCK_FILE, 0, FILE_NUMBER);
    close_tries(&s);
    expect(&s, "lock wait (lock file) of orders.db", 965, 975);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tries_in_vain),
        cmocka_unit_test(test_from_hand_to_hand),
        cmocka_unit_test(test_sleeps_for_something_else),
        cmocka_unit_test(test_holder_unseen),
        cmocka_unit_test(test_lock_file),
        cmocka_unit_test(test_lock_file_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
