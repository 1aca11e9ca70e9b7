// SPDX-License-Identifier: MIT
//
// A program that was told to end and hands over what it has: a reader who does not read is not
// waited for, while work, and others on the same core, take as long as they take.
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/one_wish.h"

enum { ENDED_ITSELF = 4 };

static void work_for(int64_t ns)
{
    for (const int64_t end = monotonic_ns() + ns; monotonic_ns() < end;)
        ;
}

static void take_one_core(void)
{
    cpu_set_t cores, one;
    sched_getaffinity(0, sizeof cores, &cores);
    CPU_ZERO(&one);
    for (size_t core = 0; core < (size_t)CPU_SETSIZE && !CPU_COUNT(&one); core++)
        if (CPU_ISSET(core, &cores))
            CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static int status_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void who_works_is_let_finish(void **state)
{
    (void)state;
    const int64_t longer_ns = 2 * ONE_WISH_READER_MS * INT64_C(1000000);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i])
            continue;
        take_one_core(); // the other one has it, too
        one_wish_note(SIGTERM);
        one_wish_hand_over();
        work_for(longer_ns);
        _exit(ENDED_ITSELF);
    }
    for (int i = 0; i < 2; i++) {
        const int status = status_of(children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), ENDED_ITSELF);
    }
}

static void who_does_not_read_is_left(void **state)
{
    (void)state;
    char bytes[4096] = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        one_wish_hand_over();
        one_wish_note(SIGTERM);
        work_for(ONE_WISH_READER_MS * INT64_C(1000000));
        while (write(ends[1], bytes, sizeof bytes) > 0)
            ;
        _exit(ENDED_ITSELF);
    }
    const int status = status_of(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_works_is_let_finish),
        cmocka_unit_test(who_does_not_read_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
