// SPDX-License-Identifier: MIT
//
// A folder for the time being goes however its program ends, and nobody else's goes with it.
// Runs beside others: it waits for what it has started.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/new_file.h"
#include "base/passing_folder.h"

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// A program that has one, with a file in it, until it is ended. Returns its process.
static pid_t begin(struct passing_folder *folder)
{
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct error err;
        char file[sizeof folder->path + 8];
        memset(folder, 0, sizeof *folder);
        if (passing_folder_make(folder, "test", &err) < 0)
            _exit(99);
        snprintf(file, sizeof file, "%s/file", folder->path);
        if (new_file_write(file, "x", 1, &err) < 0 ||
            write(told[1], folder, sizeof *folder) != sizeof *folder)
            _exit(98);
        for (;;)
            pause();
    }
    close(told[1]);
    assert_int_equal(read(told[0], folder, sizeof *folder), sizeof *folder);
    close(told[0]);
    return pid;
}

static void end(pid_t pid, int number)
{
    int status;
    assert_int_equal(kill(pid, number), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == number);
}

static bool is_there(const struct passing_folder *folder)
{
    return access(folder->path, F_OK) == 0;
}

static void it_goes_with_what_it_is_for(void **state)
{
    (void)state;
    struct passing_folder folder = {0};
    struct stat status;
    struct error err;
    passing_folder_end(&folder); // harmless
    assert_int_equal(passing_folder_make(&folder, "test", &err), 0);
    assert_int_equal(stat(folder.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    struct passing_folder copy = folder;
    passing_folder_end(&folder);
    assert_false(is_there(&copy));
}

static void it_goes_when_a_signal_ends_the_program(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct passing_folder folder;
        end(begin(&folder), ends[i]);
        assert_false(is_there(&folder));
    }
}

static void what_sigkill_leaves_goes_with_the_next_one_and_nothing_else(void **state)
{
    (void)state;
    struct passing_folder killed, living, next = {0};
    struct error err;
    pid_t lives = begin(&living);
    char others[] = "/tmp/taillight-test-1x-XXXXXX"; // no name of this kind
    assert_non_null(mkdtemp(others));
    end(begin(&killed), SIGKILL);
    assert_true(is_there(&killed));
    assert_int_equal(passing_folder_make(&next, "other", &err), 0);
    assert_false(is_there(&killed));
    assert_true(is_there(&living));
    passing_folder_end(&next);
    assert_int_equal(rmdir(others), 0);
    end(lives, SIGTERM);
}

// Its process has another number where that is seen from, as in a container with the same /tmp.
static void one_that_is_in_use_stays(void **state)
{
    (void)state;
    struct passing_folder used = {0}, next = {0};
    struct error err;
    pid_t ended = fork();
    if (ended == 0)
        _exit(0);
    assert_int_equal(waitpid(ended, NULL, 0), ended);
    assert_int_equal(passing_folder_make(&used, "test", &err), 0);
    struct passing_folder renamed = used;
    snprintf(renamed.path, sizeof renamed.path, "/tmp/taillight-test-%d-abcdef", (int)ended);
    assert_int_equal(rename(used.path, renamed.path), 0);
    assert_int_equal(passing_folder_make(&next, "test", &err), 0);
    assert_true(is_there(&renamed));
    passing_folder_end(&next);
    assert_int_equal(rename(renamed.path, used.path), 0);
    passing_folder_end(&used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_with_what_it_is_for),
        cmocka_unit_test(it_goes_when_a_signal_ends_the_program),
        cmocka_unit_test(what_sigkill_leaves_goes_with_the_next_one_and_nothing_else),
        cmocka_unit_test(one_that_is_in_use_stays),
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        signal(ends[i], SIG_DFL); // in the background of a shell some are ignored
    return cmocka_run_group_tests(tests, NULL, NULL);
}
