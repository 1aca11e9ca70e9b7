// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/process.h"
#include "base/process_family.h"
#include "tests/skip.h"

static void output_of_a_command(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "echo \"$GREETING\"; echo aside >&2", NULL};
    const char *const environment[] = {"GREETING=hello", NULL};
    const struct process_place place = {.environment = environment};
    char out[100];
    struct error err = {0};
    assert_int_equal(process_run(argv, &place, 5000, out, sizeof out, &err), 0);
    assert_string_equal(out, "hello\n");
}

static void failure_quotes_the_command_and_its_complaint(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "echo no such luck >&2; exit 3", NULL};
    struct error err = {0};
    assert_int_equal(process_run(argv, NULL, 5000, NULL, 0, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "exit 3: no such luck"));
    const char *const killed[] = {"sh", "-c", "kill -9 $$", NULL};
    assert_int_equal(process_run(killed, NULL, 5000, NULL, 0, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "killed by signal 9"));
}

static void a_missing_program_is_reported_at_start(void **state)
{
    (void)state;
    const char *const argv[] = {"taillight-no-such-program", NULL};
    struct process process;
    struct error err = {0};
    assert_int_equal(process_start(&process, argv, NULL, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "is it installed?)"));
    assert_int_equal(process.pid, 0);
}

static void a_program_of_a_known_package_names_it(void **state)
{
    (void)state;
    const char *const argv[] = {"/nowhere/ssh", "host", NULL};
    struct process process;
    struct error err = {0};
    assert_int_equal(process_start(&process, argv, NULL, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "is it installed? apt-get install openssh-client)"));
}

static void a_command_that_hangs_is_ended(void **state)
{
    (void)state;
    const char *const argv[] = {"sleep", "60", NULL};
    struct error err = {0};
    assert_int_equal(process_run(argv, NULL, 50, NULL, 0, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "no end after 50 ms"));
}

static void lines_are_read_as_they_come(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "echo one; read x; echo \"got $x\"", NULL};
    const struct process_place place = {.pipe_input = true, .pipe_output = true};
    struct process process;
    struct error err = {0};
    char line[100];
    int status;
    assert_int_equal(process_start(&process, argv, &place, &err), 0);
    assert_int_equal(process_read_line(&process, line, sizeof line, 5000, &err), 1);
    assert_string_equal(line, "one");
    assert_int_equal(process_read_line(&process, line, sizeof line, 20, &err), 0);
    assert_int_equal(write(process.input, "two\n", 4), 4);
    assert_int_equal(process_read_line(&process, line, sizeof line, 5000, &err), 1);
    assert_string_equal(line, "got two");
    assert_int_equal(process_wait(&process, 5000, &status, &err), 1);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    process_close_pipes(&process);
}

static void a_control_group_that_is_not_there_is_told(void **state)
{
    (void)state;
    const char *const argv[] = {"true", NULL};
    const struct process_place place = {.cgroup = "/nowhere"};
    struct process process;
    struct error err = {0};
    assert_int_equal(process_start(&process, argv, &place, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "join its control group"));
    assert_int_equal(process.pid, 0);
}

static void stopping_takes_the_stubborn_too(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "trap '' TERM; echo armed; while :; do sleep 1; done",
                                NULL};
    const struct process_place place = {.pipe_output = true};
    struct process process;
    struct error err = {0};
    char line[100];
    assert_int_equal(process_start(&process, argv, &place, &err), 0);
    pid_t pid = process.pid;
    assert_int_equal(process_read_line(&process, line, sizeof line, 5000, &err), 1);
    int status = process_stop(&process, 50);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(process_stop(&process, 50), -1);
}

// Of several the later ones wait for the earlier, and are not asked again then.
static void whoever_is_asked_to_end_is_asked_once(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c",
                                "trap 'trap \"echo again\" TERM; sleep 0.2; echo end; exit' TERM; "
                                "echo armed; while :; do sleep 0.02; done",
                                NULL};
    const struct process_place place = {.pipe_output = true};
    struct process first, second;
    struct error err = {0};
    char line[100];
    assert_int_equal(process_start(&first, argv, &place, &err), 0);
    assert_int_equal(process_read_line(&first, line, sizeof line, 5000, &err), 1);
    assert_int_equal(process_start(&second, argv, &place, &err), 0);
    assert_int_equal(process_read_line(&second, line, sizeof line, 5000, &err), 1);
    int said = dup(second.output);
    process_ask_to_end(&first);
    struct timespec earlier = {.tv_nsec = 100000000};
    nanosleep(&earlier, NULL); // so that the first one ends before the second
    process_stop_all((struct process *[]){&first, &second}, 2, 10000);
    ssize_t got = read(said, line, sizeof line - 1);
    assert_int_equal(got, 4);
    line[got] = '\0';
    assert_string_equal(line, "end\n");
    close(said);
}

// A child must not outlive a parent that was killed without a chance to clean up.
static void children_die_with_a_killed_parent(void **state)
{
    (void)state;
    int report[2];
    assert_int_equal(pipe(report), 0);
    pid_t parent = fork();
    if (parent == 0) {
        const char *const argv[] = {"sleep", "60", NULL};
        struct process process;
        if (process_start(&process, argv, NULL, NULL) < 0 ||
            write(report[1], &process.pid, sizeof process.pid) != sizeof process.pid)
            _exit(1);
        raise(SIGKILL);
    }
    pid_t child = 0;
    assert_int_equal(read(report[0], &child, sizeof child), sizeof child);
    waitpid(parent, NULL, 0);
    char name[40];
    snprintf(name, sizeof name, "/proc/%d/stat", child);
    bool gone = false;
    for (int i = 0; i < 6000 && !gone; i++) {
        // A zombie waiting for init to reap it is dead as well.
        FILE *file = fopen(name, "r");
        char mark = 'Z';
        gone = !file || (fscanf(file, "%*d (%*[^)]) %c", &mark) == 1 && mark == 'Z');
        if (file)
            fclose(file);
        usleep(10000);
    }
    assert_true(gone);
    close(report[0]);
    close(report[1]);
}

static void a_process_that_nobody_waited_for_has_ended(void **state)
{
    (void)state;
    siginfo_t ended;
    assert_false(process_has_ended(getpid()));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(kill(child, 0), 0);
    assert_true(process_has_ended(child));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(process_has_ended(child));
}

static void *pause_for_ever(void *leader_gone)
{
    pthread_join(*(pthread_t *)leader_gone, NULL);
    const char done = 'x';
    if (write(STDOUT_FILENO, &done, 1) == 1)
        pause();
    return NULL;
}

// A process goes on when its first thread has ended.
static void a_process_lives_as_long_as_its_threads(void **state)
{
    (void)state;
    int report[2];
    char byte;
    assert_int_equal(pipe(report), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pthread_t first = pthread_self(), other;
        dup2(report[1], STDOUT_FILENO);
        pthread_create(&other, NULL, pause_for_ever, &first);
        pthread_exit(NULL);
    }
    close(report[1]);
    assert_int_equal(read(report[0], &byte, 1), 1);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); // the first is a zombie by then
    assert_false(process_has_ended(child));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(report[0]);
}

static bool is_in(const struct process_family *family, pid_t process)
{
    size_t times = 0;
    for (size_t i = 0; i < family->count; i++)
        times += family->items[i] == (uint32_t)process;
    assert_true(times <= 1);
    return times;
}

// Of two processes of this program each has the other in its family, and what that has started,
// but not whom it was started by and who runs another program.
static void a_family_is_what_runs_this_program_and_its_children(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "sleep 60 & wait", NULL};
    struct process process;
    struct error err = {0};
    struct process_family family = {0};
    assert_int_equal(process_start(&process, argv, NULL, &err), 0);
    assert_int_equal(process_family_read(&family), 0);
    if (family.count == 0) { // in a PID namespace of its own
        process_stop(&process, 100);
        skip_case("in a PID namespace of its own");
    }
    assert_true(is_in(&family, getpid()));
    assert_true(is_in(&family, process.pid));
    assert_false(is_in(&family, getppid()));
    assert_false(is_in(&family, 1));
    array_free(&family);
    pid_t child = fork();
    if (child == 0) {
        bool both = process_family_read(&family) == 0 && is_in(&family, getppid()) &&
                    is_in(&family, getpid()) && is_in(&family, process.pid);
        array_free(&family);
        _exit(both ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    process_stop(&process, 100);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void commands_are_described_as_a_shell_would_read_them(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "a b", "", "plain", NULL};
    char text[100];
    assert_string_equal(process_describe(argv, text, sizeof text), "sh -c 'a b' '' plain");
    assert_string_equal(process_describe(argv, text, 6), "sh -c");
    const char *const quoted[] = {"echo", "it's", NULL};
    assert_string_equal(process_describe(quoted, text, sizeof text), "echo 'it'\\''s'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_of_a_command),
        cmocka_unit_test(failure_quotes_the_command_and_its_complaint),
        cmocka_unit_test(a_missing_program_is_reported_at_start),
        cmocka_unit_test(a_program_of_a_known_package_names_it),
        cmocka_unit_test(a_command_that_hangs_is_ended),
        cmocka_unit_test(lines_are_read_as_they_come),
        cmocka_unit_test(a_control_group_that_is_not_there_is_told),
        cmocka_unit_test(stopping_takes_the_stubborn_too),
        cmocka_unit_test(whoever_is_asked_to_end_is_asked_once),
        cmocka_unit_test(children_die_with_a_killed_parent),
        cmocka_unit_test(a_process_that_nobody_waited_for_has_ended),
        cmocka_unit_test(a_process_lives_as_long_as_its_threads),
        cmocka_unit_test(a_family_is_what_runs_this_program_and_its_children),
        cmocka_unit_test(commands_are_described_as_a_shell_would_read_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
