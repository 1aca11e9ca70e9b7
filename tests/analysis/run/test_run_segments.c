// SPDX-License-Identifier: MIT
//
// A capture in segments, as its capture.json names them: the latest that have room are looked at,
// and a document that names a million which are not there costs no more looks than there are files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/run/run_segments.h"

enum { FILES = 5, FILE_BYTES = 100 };

static char folder[] = "/tmp/taillight-segments-XXXXXX";

// In place of libc's: how often anybody looks for a file.
static unsigned looks;

int stat(const char *path, struct stat *status)
{
    looks++;
    return fstatat(AT_FDCWD, path, status, 0);
}

static void name_of(char path[100], const char *log, int number)
{
    if (number)
        snprintf(path, 100, "%s/server/%s-%06d.tlog", folder, log, number);
    else
        snprintf(path, 100, "%s/server/%s.tlog", folder, log);
}

static void make(const char *log, int number)
{
    char path[100];
    name_of(path, log, number);
    int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
    close(fd);
}

static int read_them(struct run_segments *segments, int first, int count, uint64_t most_bytes)
{
    struct error err;
    json_t *capture =
        json_pack("{s:{s:i, s:i, s:b}}", "segments", "first", first, "count", count, "ended", 1);
    looks = 0;
    int result = run_segments_read(segments, capture, folder, "server", most_bytes, &err);
    json_decref(capture);
    return result;
}

static void the_latest_that_have_room_are_taken(void **state)
{
    (void)state;
    struct run_segments segments;
    assert_int_equal(read_them(&segments, 1, FILES, 1000000), 0);
    assert_int_equal(segments.left_out, 0);
    assert_int_equal(segments.count, FILES);
    run_segments_free(&segments);
    // events and calls of each, and of what came last
    assert_int_equal(read_them(&segments, 1, FILES, 3 * 2 * FILE_BYTES), 0);
    assert_int_equal(segments.left_out, FILES - 2);
    assert_int_equal(segments.first, FILES - 1);
    assert_int_equal(segments.count, 2);
    run_segments_free(&segments);
    // the last one is taken, whatever it has
    assert_int_equal(read_them(&segments, 1, FILES, 1), 0);
    assert_int_equal(segments.count, 0);
    assert_int_equal(segments.left_out, FILES);
    run_segments_free(&segments);
    // some of the first are not there any more, and others are of nobody
    assert_int_equal(read_them(&segments, 3, 2, 2 * 2 * FILE_BYTES), 0);
    assert_int_equal(segments.left_out, 1);
    assert_int_equal(segments.first, 4);
    run_segments_free(&segments);
}

static void a_million_that_are_not_there_are_not_looked_for(void **state)
{
    (void)state;
    struct run_segments segments;
    struct log_reader log;
    struct error err;
    assert_int_equal(read_them(&segments, 1, 1000000, 1000000), 0);
    assert_in_range(looks, 0, 100);
    assert_int_equal(segments.count, 1000000);
    assert_int_equal(run_segments_open_events(&segments, folder, &log, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "events-000001.tlog"));
    run_segments_free(&segments);
}

static int make_folder(void **state)
{
    (void)state;
    char side[60];
    if (!mkdtemp(folder))
        return -1;
    snprintf(side, sizeof side, "%s/server", folder);
    mkdir(side, 0700);
    for (int number = 0; number <= FILES; number++) {
        make("events", number);
        make("calls", number);
    }
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[100];
    for (int number = 0; number <= FILES; number++) {
        name_of(path, "events", number);
        unlink(path);
        name_of(path, "calls", number);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/server", folder);
    rmdir(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_that_have_room_are_taken),
        cmocka_unit_test(a_million_that_are_not_there_are_not_looked_for),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
