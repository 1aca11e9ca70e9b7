// SPDX-License-Identifier: MIT
//
// Waiting for one thing while watching others.
// Runs beside others: deadlines that must not pass are far away.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiments/common/supervisor.h"

#define SECOND_NS 1000000000ull

static void start(struct process *process, const char *script, bool output)
{
    struct error err = {0};
    const struct process_place place = {.pipe_output = output};
    if (process_start(process, (const char *[]){"sh", "-c", script, NULL}, &place, &err) < 0)
        fail_msg("%s", err.text);
}

static uint64_t soon(void)
{
    return supervisor_now_ns() + 20 * SECOND_NS;
}

static void output_and_end_are_collected(void **state)
{
    (void)state;
    struct supervisor s;
    struct process process;
    struct text_buffer output = {0};
    struct error err = {0};
    int status = -1;
    assert_int_equal(supervisor_open(&s, &err), 0);
    start(&process, "echo first; sleep 0.2; printf 'more %070000d' 1; exit 3", true);
    assert_int_equal(supervisor_wait(&s, &process, &output, true, soon(), &status, &err), 1);
    assert_true(output.count >= 6 && memcmp(output.items, "first\n", 6) == 0);
    assert_int_equal(supervisor_wait(&s, &process, &output, false, soon(), &status, &err), 1);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_int_equal(output.count, 6 + 5 + 70000);
    assert_int_equal(process.pid, 0);
    process_stop(&process, 0);
    array_free(&output);
    supervisor_close(&s);
}

static void time_passes(void **state)
{
    (void)state;
    struct supervisor s;
    struct process process;
    struct error err = {0};
    int status;
    assert_int_equal(supervisor_open(&s, &err), 0);
    start(&process, "sleep 60", false);
    assert_int_equal(
        supervisor_wait(&s, &process, NULL, false, supervisor_now_ns() + 50000000, &status, &err),
        0);
    assert_int_equal(supervisor_wait(&s, NULL, NULL, false, supervisor_now_ns(), NULL, &err), 0);
    process_stop(&process, 0);
    supervisor_close(&s);
}

// It would be waited for until the deadline, which is that of one that works.
static void a_stopped_process_is_not_waited_for(void **state)
{
    (void)state;
    struct supervisor s;
    struct process process;
    struct error err = {0};
    int status;
    assert_int_equal(supervisor_open(&s, &err), 0);
    s.stopped_grace_ns = 1;
    start(&process, "sleep 60", false);
    kill(process.pid, SIGSTOP);
    const uint64_t never = supervisor_now_ns() + 3600 * SECOND_NS;
    assert_true(supervisor_wait(&s, &process, NULL, false, never, &status, &err) < 0);
    assert_non_null(strstr(err.text, "(process "));
    assert_non_null(strstr(err.text, "has been stopped (SIGSTOP, or a debugger)"));
    // One that goes on is waited for again, and one that is stopped can be ended.
    kill(process.pid, SIGCONT);
    while (process_is_stopped(&process))
        usleep(1000);
    assert_int_equal(
        supervisor_wait(&s, &process, NULL, false, supervisor_now_ns() + 1, &status, &err), 0);
    kill(process.pid, SIGSTOP);
    process_stop(&process, 0);
    assert_int_equal(process.pid, 0);
    supervisor_close(&s);
}

static void the_death_of_another_ends_the_wait(void **state)
{
    (void)state;
    struct supervisor s;
    struct process watched, awaited;
    struct error err = {0};
    int status;
    char log[] = "/tmp/taillight-test-supervisor-XXXXXX";
    int fd = mkstemp(log);
    assert_int_equal(write(fd, "first\nlast words\n\n", 18), 18);
    close(fd);
    assert_int_equal(supervisor_open(&s, &err), 0);
    start(&watched, "sleep 0.1; kill -9 $$", false);
    start(&awaited, "sleep 60", false);
    supervisor_watch(&s, &watched, "the server `cache`", log);
    assert_int_equal(supervisor_wait(&s, &awaited, NULL, false, soon(), &status, &err),
                     -ERROR_FAILED);
    char expected[200];
    snprintf(expected, sizeof expected,
             "the server `cache` was killed by signal 9 (Killed); the last line of %s: last words",
             log);
    assert_string_equal(err.text, expected);
    // It has been reported once; the wait can go on without it.
    supervisor_unwatch(&s, &watched);
    assert_int_equal(s.watched_count, 0);
    assert_int_equal(
        supervisor_wait(&s, &awaited, NULL, false, supervisor_now_ns() + 1000000, &status, &err),
        0);
    process_stop(&awaited, 0);
    supervisor_close(&s);
    unlink(log);
}

static void the_user_ends_the_wait(void **state)
{
    (void)state;
    struct supervisor s;
    struct error err = {0};
    assert_int_equal(supervisor_open(&s, &err), 0);
    raise(SIGINT); // blocked by the supervisor, so it lands there
    assert_int_equal(supervisor_wait(&s, NULL, NULL, false, soon(), NULL, &err), -ERROR_FAILED);
    assert_string_equal(err.text, "interrupted");
    assert_true(s.interrupted);
    supervisor_close(&s);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    assert_false(sigismember(&now, SIGINT));
}

// What one of our own commands said last, with what it was, unless that is named there already.
static void whose_end_it_was_is_said_once(void **state)
{
    (void)state;
    static const char *const told[][2] = {
        {"no core 7", "host a: no core 7"},
        {"the link to host a (me@b) broke", "the link to host a (me@b) broke"}};
    char path[] = "/tmp/test-supervisor-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < 2; i++) {
        struct error err = {0};
        char line[100];
        int bytes = snprintf(line, sizeof line, "taillight: %s\n", told[i][0]);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, line, (size_t)bytes, 0), bytes);
        assert_int_equal(supervisor_end_error(&err, "host a", ERROR_INPUT << 8, path),
                         -ERROR_INPUT);
        assert_string_equal(err.text, told[i][1]);
    }
    close(fd);
    unlink(path);
}

// Another process of this machine may have been killed meanwhile: nobody says it was this one.
static void want_of_memory_is_said_of_who_was_killed(void **state)
{
    (void)state;
    static const int ends[] = {SIGKILL, SIGTERM};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct supervisor s;
        struct process process;
        struct error err = {0};
        assert_int_equal(supervisor_open(&s, &err), 0);
        s.oom_kills--; // as if the kernel had killed one since
        start(&process, "sleep 60", false);
        supervisor_watch(&s, &process, "the server", "/dev/null");
        kill(process.pid, ends[i]);
        const uint64_t never = supervisor_now_ns() + 3600 * SECOND_NS;
        assert_true(supervisor_wait(&s, NULL, NULL, false, never, NULL, &err) < 0);
        assert_non_null(strstr(err.text, "the server was killed by signal"));
        assert_true(!strstr(err.text, "for want of memory") == (ends[i] == SIGTERM));
        supervisor_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_end_are_collected),
        cmocka_unit_test(time_passes),
        cmocka_unit_test(a_stopped_process_is_not_waited_for),
        cmocka_unit_test(the_death_of_another_ends_the_wait),
        cmocka_unit_test(the_user_ends_the_wait),
        cmocka_unit_test(whose_end_it_was_is_said_once),
        cmocka_unit_test(want_of_memory_is_said_of_who_was_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
