// SPDX-License-Identifier: MIT
//
// Work that goes on for ever, and a person who does not wait for it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/patience.h"

static int pipes[2];
static bool called;

static int work_short(void *context)
{
    called = true;
    return *(int *)context;
}

// Until the other end of the pipe is closed. Whoever asked is interrupted meanwhile.
static int work_for_ever(void *context)
{
    char byte;
    kill(getpid(), SIGTERM);
    while (read(pipes[0], &byte, 1) > 0)
        ;
    return write(*(int *)context, "", 1) == 1 ? 0 : -1;
}

static void take_signal(void)
{
    sigset_t interruption;
    sigemptyset(&interruption);
    sigaddset(&interruption, SIGTERM);
    assert_int_equal(sigtimedwait(&interruption, NULL, &(struct timespec){0}), SIGTERM);
}

static void what_ends_gives_its_result(void **state)
{
    (void)state;
    int wanted = -7, result = 0;
    assert_true(patience_call(work_short, &wanted, &result));
    assert_int_equal(result, -7);
}

static void what_does_not_end_is_left(void **state)
{
    (void)state;
    int result = 5, ends[2];
    char byte;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pipe(ends), 0);
    assert_false(patience_call(work_for_ever, &ends[1], &result));
    assert_int_equal(result, 5);
    close(pipes[1]); // it is still at work, and ends now
    assert_int_equal(read(ends[0], &byte, 1), 1);
    take_signal();
}

static void who_has_interrupted_waits_for_nothing(void **state)
{
    (void)state;
    int wanted = 1, result = 5;
    called = false;
    raise(SIGTERM);
    assert_false(patience_call(work_short, &wanted, &result));
    assert_false(called);
    take_signal();
}

int main(void)
{
    sigset_t interruption;
    sigemptyset(&interruption);
    sigaddset(&interruption, SIGTERM);
    sigprocmask(SIG_BLOCK, &interruption, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_gives_its_result),
        cmocka_unit_test(what_does_not_end_is_left),
        cmocka_unit_test(who_has_interrupted_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
