// SPDX-License-Identifier: MIT
//
// Files that somebody else has prepared: links and FIFOs where we write, FIFOs and devices where we
// read, and a file that is cut short while it is read.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/input_file.h"
#include "base/new_file.h"

static char folder[] = "/tmp/taillight-files-XXXXXX";

static char *in_folder(const char *name)
{
    static char paths[4][200];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void check_holds(const char *name, const char *text)
{
    char got[100] = "";
    FILE *file = fopen(in_folder(name), "r");
    assert_non_null(file);
    assert_true(fread(got, 1, sizeof got - 1, file) < sizeof got - 1);
    fclose(file);
    assert_string_equal(got, text);
}

// A link under the name, or under the name that a partial file once had, must not be written
// through.
static void a_link_is_replaced_and_not_followed(void **state)
{
    (void)state;
    struct error err;
    put("victim", "precious");
    assert_int_equal(symlink(in_folder("victim"), in_folder("out")), 0);
    assert_int_equal(symlink(in_folder("victim"), in_folder("out.partial")), 0);
    assert_int_equal(new_file_write(in_folder("out"), "new", 3, &err), 0);
    check_holds("victim", "precious");
    check_holds("out", "new");
    unlink(in_folder("out"));
    assert_int_equal(symlink(in_folder("victim"), in_folder("out")), 0);
    assert_int_equal(new_file_create(in_folder("out"), &err), -ERROR_FAILED);
    assert_int_equal(new_file_continue(in_folder("out")), -1);
    assert_int_equal(errno, ELOOP);
    unlink(in_folder("out"));
}

// None of these may wait.
static void a_fifo_is_an_error(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_int_equal(input_open(in_folder("fifo"), &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_null(input_stream(in_folder("fifo"), &err));
    assert_null(input_json(in_folder("fifo"), NULL));
    assert_int_equal(new_file_write(in_folder("fifo"), "x", 1, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "fifo is a pipe that nobody reads: read it, or remove it"));
    assert_int_equal(mkdir(in_folder("folder"), 0700), 0);
    assert_int_equal(new_file_write(in_folder("folder"), "x", 1, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "folder is a folder where a file is to be"));
    assert_int_equal(new_file_create(in_folder("fifo"), &err), -ERROR_FAILED);
    assert_int_equal(new_file_continue(in_folder("fifo")), -1);
    assert_int_equal(input_open("/dev/zero", &err), -ERROR_INPUT);
    assert_int_equal(input_open("/tmp", &err), -ERROR_INPUT);
    // A person may name one: without a writer it is at its end.
    char byte;
    int fd = input_open_any(in_folder("fifo"), &err);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

static void a_device_is_written_as_it_is(void **state)
{
    (void)state;
    struct error err;
    struct stat before, after;
    assert_int_equal(stat("/dev/null", &before), 0);
    assert_int_equal(new_file_write("/dev/null", "x", 1, &err), 0);
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_true(S_ISCHR(after.st_mode) && before.st_ino == after.st_ino);
    if (access("/dev/full", W_OK) == 0)
        assert_int_equal(new_file_write("/dev/full", "x", 1, &err), -ERROR_FAILED);
}

// How many names in the folder end so.
static unsigned partials_there(void)
{
    unsigned count = 0;
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    assert_non_null(entries);
    while ((entry = readdir(entries)))
        count += strlen(entry->d_name) > 20 && strstr(entry->d_name, ".partial") != NULL;
    closedir(entries);
    return count;
}

// Nothing is there afterwards, and what was there stays; who reads a pipe does not see its end.
static void what_is_to_be_written_later_is_tried(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(new_file_try(in_folder("later"), &err), 0);
    assert_int_equal(access(in_folder("later"), F_OK), -1);
    put("there", "precious");
    assert_int_equal(new_file_try(in_folder("there"), &err), 0);
    check_holds("there", "precious");
    assert_int_equal(partials_there(), 0);
    assert_int_equal(new_file_try(in_folder("none/later"), &err), -ERROR_FAILED);
    assert_int_equal(mkdir(in_folder("a folder"), 0700), 0);
    assert_int_equal(new_file_try(in_folder("a folder"), &err), -ERROR_INPUT);
    assert_int_equal(mkfifo(in_folder("read"), 0600), 0);
    int reader = open(in_folder("read"), O_RDONLY | O_NONBLOCK), writer;
    char byte;
    assert_true(reader >= 0);
    assert_true((writer = open(in_folder("read"), O_WRONLY)) >= 0);
    assert_int_equal(new_file_try(in_folder("read"), &err), 0);
    assert_int_equal(read(reader, &byte, 1), -1); // not 0
    close(writer);
    close(reader);
}

// A child that has begun to write "a" and "out", and waits.
static pid_t begin_to_write(void)
{
    int ready[2];
    char byte;
    struct error err;
    struct new_file files[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (new_file_open(&files[0], in_folder("a"), &err) < 0 ||
            new_file_open(&files[1], in_folder("out"), &err) < 0 || write(ready[1], "", 1) != 1)
            _exit(99);
        alarm(20); // its parent may have failed
        pause();
        _exit(98);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_with(pid_t pid, int number)
{
    int status;
    assert_int_equal(kill(pid, number), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), number);
}

static void a_signal_leaves_no_partial_file(void **state)
{
    (void)state;
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        pid_t pid = begin_to_write();
        assert_int_equal(partials_there(), 2);
        end_with(pid, ends[i]);
        assert_int_equal(partials_there(), 0);
    }
}

static void what_sigkill_leaves_is_swept_and_nothing_else(void **state)
{
    (void)state;
    struct error err;
    pid_t writes = begin_to_write();
    end_with(begin_to_write(), SIGKILL);
    assert_int_equal(partials_there(), 4);
    assert_int_equal(new_file_write(in_folder("a"), "x", 1, &err), 0); // the same name again
    assert_int_equal(partials_there(), 3);
    put("a.0123456789abcdeg.partial", "no name of ours");
    new_file_sweep(folder);
    assert_int_equal(partials_there(), 2 + 1);
    assert_int_equal(access(in_folder("a.0123456789abcdeg.partial"), F_OK), 0);
    unlink(in_folder("a.0123456789abcdeg.partial"));
    check_holds("a", "x");
    end_with(writes, SIGTERM);
    assert_int_equal(partials_there(), 0);
}

// Its pages are gone when they are read.
static void a_file_cut_short_ends_the_program_with_an_error(void **state)
{
    (void)state;
    enum { BYTES = 64 << 10 };
    int report[2], status;
    char said[300] = "";
    struct error err;
    put("a", "");
    assert_int_equal(truncate(in_folder("a"), BYTES), 0);
    assert_int_equal(pipe(report), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const void *bytes;
        size_t count;
        int fd = input_open(in_folder("a"), &err);
        struct new_file partial;
        if (new_file_open(&partial, in_folder("out"), &err) < 0 ||
            input_map(fd, in_folder("a"), &bytes, &count, &err) < 0 || count != BYTES ||
            truncate(in_folder("a"), 0) < 0)
            _exit(99);
        dup2(report[1], STDERR_FILENO);
        _exit(((const volatile char *)bytes)[BYTES / 2] ? 98 : 97);
    }
    close(report[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(read(report[0], said, sizeof said - 1) > 0);
    close(report[0]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ERROR_INPUT);
    assert_non_null(strstr(said, in_folder("a")));
    assert_non_null(strstr(said, "truncated while it was read"));
    assert_int_equal(partials_there(), 0);
}

static void mappings_come_and_go(void **state)
{
    (void)state;
    struct error err;
    const void *bytes[3];
    size_t count;
    put("a", "text");
    int fd = input_open(in_folder("a"), &err);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(input_map(fd, "a", &bytes[i], &count, &err), 0);
            assert_int_equal(count, 4);
            assert_memory_equal(bytes[i], "text", 4);
        }
        for (int i = 0; i < 3; i++)
            input_unmap(bytes[i]);
    }
    close(fd);
    put("a", "");
    fd = input_open(in_folder("a"), &err);
    assert_int_equal(input_map(fd, "a", &bytes[0], &count, &err), 0);
    assert_null(bytes[0]);
    input_unmap(bytes[0]);
    close(fd);
}

// No partial file above all.
static void nothing_else_is_left(void **state)
{
    static const char *const names[] = {"victim",      "out",   "fifo", "a",
                                        "out.partial", "there", "read"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_folder(names[i]));
    rmdir(in_folder("folder"));
    rmdir(in_folder("a folder"));
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_is_replaced_and_not_followed),
        cmocka_unit_test(a_fifo_is_an_error),
        cmocka_unit_test(a_device_is_written_as_it_is),
        cmocka_unit_test(what_is_to_be_written_later_is_tried),
        cmocka_unit_test(a_signal_leaves_no_partial_file),
        cmocka_unit_test(what_sigkill_leaves_is_swept_and_nothing_else),
        cmocka_unit_test(a_file_cut_short_ends_the_program_with_an_error),
        cmocka_unit_test(mappings_come_and_go),
        cmocka_unit_test(nothing_else_is_left),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
