// SPDX-License-Identifier: MIT
//
// Who interrupts a program that does not come to its signals gets out all the same.
// Runs beside others: deadlines that must not pass are far away.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiments/common/supervisor.h"
#include "experiments/common/way_out.h"

enum { NEVER_MS = 3600 * 1000 };

struct scene {
    struct supervisor supervisor;
    struct way_out way_out;
    int left; // eventfd: 1: time is up, 2: a second signal
};

static void leave(void *context, bool again)
{
    const struct scene *scene = context;
    eventfd_write(scene->left, again ? 2 : 1);
}

static void open_scene(struct scene *scene, int within_ms)
{
    struct error err = {0};
    assert_int_equal(supervisor_open(&scene->supervisor, &err), 0);
    scene->left = eventfd(0, EFD_CLOEXEC);
    scene->way_out = (struct way_out){
        .taken = scene->supervisor.taken, .within_ms = within_ms, .leave = leave, .context = scene};
    assert_int_equal(way_out_open(&scene->way_out, &err), 0);
}

static void close_scene(struct scene *scene)
{
    way_out_close(&scene->way_out);
    way_out_close(&scene->way_out); // harmless
    supervisor_close(&scene->supervisor);
    close(scene->left);
}

// How it was left: 0: not within so long.
static unsigned long long left_within(const struct scene *scene, int wait_ms)
{
    struct pollfd ready = {.fd = scene->left, .events = POLLIN};
    eventfd_t how = 0;
    if (poll(&ready, 1, wait_ms) == 1)
        eventfd_read(scene->left, &how);
    return how;
}

static void take(struct scene *scene)
{
    struct error err = {0};
    assert_true(supervisor_check(&scene->supervisor, &err) < 0);
}

static void a_signal_that_nobody_takes(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 150);
    kill(getpid(), SIGTERM);
    assert_int_equal(left_within(&scene, NEVER_MS), 1);
    assert_true(process_is_interrupted()); // it is still the program's to take
    close_scene(&scene);
}

static void a_signal_that_is_taken_and_then_nothing(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 150);
    kill(getpid(), SIGINT);
    take(&scene); // perhaps before the thread has seen it
    assert_int_equal(left_within(&scene, NEVER_MS), 1);
    close_scene(&scene);
}

static void a_second_signal(void **state)
{
    (void)state;
    for (int taken = 0; taken < 2; taken++) { // by the program or not
        struct scene scene;
        open_scene(&scene, NEVER_MS);
        kill(getpid(), SIGINT);
        take(&scene);
        // What comes within a moment is the same wish: until then there may be some that are not
        // counted.
        for (int i = 0; i < 1000; i++) {
            kill(getpid(), SIGTERM);
            if (taken)
                take(&scene);
            struct pollfd ready = {.fd = scene.left, .events = POLLIN};
            if (poll(&ready, 1, 20) == 1)
                break;
        }
        assert_int_equal(left_within(&scene, NEVER_MS), 2);
        close_scene(&scene);
    }
}

static void one_wish_twice(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, NEVER_MS);
    kill(getpid(), SIGTERM); // both are pending at once
    kill(getpid(), SIGINT);
    take(&scene);
    assert_int_equal(left_within(&scene, 400), 0);
    close_scene(&scene);
}

static void all_is_done_in_time(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, NEVER_MS);
    kill(getpid(), SIGINT);
    take(&scene);
    close_scene(&scene);
    open_scene(&scene, 0); // and no signal
    assert_int_equal(left_within(&scene, 300), 0);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_that_nobody_takes),
        cmocka_unit_test(a_signal_that_is_taken_and_then_nothing),
        cmocka_unit_test(a_second_signal),
        cmocka_unit_test(one_wish_twice),
        cmocka_unit_test(all_is_done_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
