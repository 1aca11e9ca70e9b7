// SPDX-License-Identifier: MIT
//
// When a thread could have run and did not: woken on an idle core, where the kernel's sum
// (schedstat) says nothing, and beside another thread on its core. Needs root.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "workloads/lab/ready_times.h"

enum { MOST = 16 };

static struct ready_times *times;

static void stay_on_one_core(void)
{
    cpu_set_t allowed, one;
    size_t core = 0;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(core, &allowed))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static void a_sleeper_is_ready_from_its_waking(void **state)
{
    (void)state;
    const int64_t slept_ns = 300000;
    for (int i = 0; i < 20; i++) {
        struct ready_span spans[MOST];
        ready_times_skip(times);
        int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
        nanosleep(&(struct timespec){.tv_nsec = slept_ns}, NULL);
        bool whole = false, after_its_sleep = false;
        size_t count = ready_times_take(times, spans, MOST, &whole);
        int64_t last_ns = begin_ns;
        assert_true(whole);
        assert_in_range(count, 1, MOST);
        for (size_t s = 0; s < count; last_ns = spans[s++].end_ns) {
            assert_true(spans[s].out_ns >= last_ns && spans[s].begin_ns >= spans[s].out_ns);
            assert_true(spans[s].end_ns > spans[s].begin_ns);
            after_its_sleep |= spans[s].begin_ns - begin_ns >= slept_ns * 9 / 10;
        }
        assert_true(after_its_sleep);
        assert_true(last_ns <= clock_now_ns(CLOCK_MONOTONIC_RAW));
        assert_int_equal(ready_times_take(times, spans, MOST, &whole), 0);
    }
}

static void *spin(void *stop)
{
    while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
        sched_yield();
    return NULL;
}

static void who_is_put_aside_is_ready(void **state)
{
    (void)state;
    bool stop = false;
    pthread_t beside;
    struct ready_span spans[MOST];
    size_t count = 0;
    bool whole;
    assert_int_equal(pthread_create(&beside, NULL, spin, &stop), 0);
    ready_times_skip(times);
    int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    while (count == 0) {
        sched_yield();
        count = ready_times_take(times, spans, MOST, &whole);
    }
    assert_true(whole);
    assert_true(spans[0].begin_ns >= begin_ns && spans[0].end_ns > spans[0].begin_ns);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(beside, NULL);
}

static void of_more_the_first_are_given_and_none_is_left(void **state)
{
    (void)state;
    bool whole = true;
    struct ready_span first, more[MOST];
    ready_times_skip(times);
    int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    int64_t slept_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    assert_int_equal(ready_times_take(times, &first, 1, &whole), 1);
    assert_false(whole);
    assert_true(first.begin_ns >= begin_ns && first.end_ns <= slept_ns);
    assert_int_equal(ready_times_take(times, more, MOST, &whole), 0);
    assert_true(whole);
}

static void what_the_kernel_has_no_room_for_is_told(void **state)
{
    enum { SLEEPS = 4000 }; // twice as many records, of which it keeps 4,096
    static struct ready_span spans[SLEEPS];
    bool whole = true;
    (void)state;
    ready_times_skip(times);
    for (int i = 0; i < SLEEPS; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
    assert_true(ready_times_take(times, spans, SLEEPS, &whole) < SLEEPS);
    assert_false(whole);
    ready_times_skip(times);
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
    assert_in_range(ready_times_take(times, spans, SLEEPS, &whole), 1, SLEEPS);
    assert_true(whole);
}

// The interrupt that ends such a wait may come on any core, also on one of whose interrupts there
// are no records: then the end of some is not known, but not of most.
static void a_disk_wakes_who_waits_for_it(void **state)
{
    enum { BYTES = 4 << 20, WRITES = 20, WAITS = 4096 };
    static struct ready_span spans[WAITS];
    static char bytes[BYTES];
    size_t waits = 0, known = 0;
    char path[] = "/var/tmp/taillight-ready-XXXXXX";
    (void)state;
    const int file = mkstemp(path);
    assert_true(file >= 0 && unlink(path) == 0);
    for (int i = 0; i < WRITES; i++) {
        bool whole = false;
        ready_times_skip(times);
        assert_int_equal(pwrite(file, bytes, BYTES, 0), BYTES);
        assert_int_equal(fdatasync(file), 0);
        const size_t count = ready_times_take(times, spans, WAITS, &whole);
        assert_true(whole);
        for (size_t s = 0; s < count; s++)
            known += spans[s].begin_ns >= spans[s].out_ns;
        waits += count;
    }
    close(file);
    if (waits == 0) { // it is in memory
        puts("/var/tmp is on no disk");
        skip();
    }
    assert_true(2 * known > waits);
}

static void none_is_nothing(void **state)
{
    (void)state;
    struct ready_span span;
    bool whole = false;
    ready_times_skip(NULL);
    assert_int_equal(ready_times_take(NULL, &span, 1, &whole), 0);
    assert_true(whole);
    ready_times_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeper_is_ready_from_its_waking),
        cmocka_unit_test(who_is_put_aside_is_ready),
        cmocka_unit_test(of_more_the_first_are_given_and_none_is_left),
        cmocka_unit_test(what_the_kernel_has_no_room_for_is_told),
        cmocka_unit_test(a_disk_wakes_who_waits_for_it),
        cmocka_unit_test(none_is_nothing),
    };
    struct error err = {0};
    stay_on_one_core();
    times = ready_times_new(&err);
    if (!times) {
        printf("skipped: %s\n", err.text);
        return 77;
    }
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    ready_times_free(times);
    return result;
}
