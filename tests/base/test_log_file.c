// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log_file.h"

static char folder[] = "/tmp/taillight-log-XXXXXX";
static char path[200];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/a.tlog", folder);
    return 0;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    const uint64_t records[3] = {1, 2, 3};
    struct error err;
    struct log_reader reader;
    assert_int_equal(log_write(path, LOG_CLOCK, 4, 8, records, 3, 17, &err), 0);
    assert_int_equal(log_reader_open(&reader, path, LOG_CLOCK, 4, 8, &err), 0);
    assert_int_equal(reader.count, 3);
    assert_int_equal(reader.header.dropped, 17);
    assert_memory_equal(reader.records, records, sizeof records);
    assert_int_equal(strlen(reader.header.boot_id), 36);
    log_reader_close(&reader);
}

static void an_unfinished_log_has_no_name(void **state)
{
    (void)state;
    const uint64_t record = 1;
    struct error err;
    struct log_writer writer;
    unlink(path);
    assert_int_equal(log_writer_open(&writer, path, LOG_CLOCK, 1, 8, &err), 0);
    assert_int_equal(log_writer_append(&writer, &record, 1, &err), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    log_writer_discard(&writer);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void expect_refusal(const char *reason, enum log_kind kind, uint32_t version, size_t bytes)
{
    struct error err = {0};
    struct log_reader reader;
    assert_int_equal(log_reader_open(&reader, path, kind, version, bytes, &err), -ERROR_INPUT);
    if (!strstr(err.text, reason) || !strstr(err.text, path))
        fail_msg("the refusal says \"%s\", not \"%s\"", err.text, reason);
    assert_null(reader.mapping);
}

static void other_logs_and_damaged_ones_are_refused(void **state)
{
    (void)state;
    const uint64_t records[4] = {0};
    struct error err;
    assert_int_equal(log_write(path, LOG_CLOCK, 1, 8, records, 4, 0, &err), 0);
    expect_refusal("kind", LOG_CALLS, 1, 8);
    expect_refusal("version", LOG_CLOCK, 2, 8);
    expect_refusal("version", LOG_CLOCK, 1, 16);
    assert_int_equal(truncate(path, 128 + 31), 0);
    expect_refusal("truncated", LOG_CLOCK, 1, 8);
    assert_int_equal(truncate(path, 127), 0);
    expect_refusal("too short", LOG_CLOCK, 1, 8);
    assert_int_equal(truncate(path, 0), 0);
    expect_refusal("too short", LOG_CLOCK, 1, 8);
    unlink(path);
    expect_refusal("cannot read", LOG_CLOCK, 1, 8);
    assert_int_equal(mkfifo(path, 0600), 0); // opening one may wait for ever
    expect_refusal("not a regular file", LOG_CLOCK, 1, 8);
    unlink(path);
}

static void every_damaged_header_byte_is_survived(void **state)
{
    (void)state;
    const uint64_t records[4] = {0};
    struct error err;
    for (unsigned at = 0; at < 48; at++) {
        struct log_reader reader;
        assert_int_equal(log_write(path, LOG_CLOCK, 1, 8, records, 4, 0, &err), 0);
        int fd = open(path, O_RDWR);
        assert_int_equal(pwrite(fd, "\xff", 1, at), 1);
        close(fd);
        int result = log_reader_open(&reader, path, LOG_CLOCK, 1, 8, &err);
        bool free_field = at >= 32; // `dropped` and `boot_id` may hold anything
        assert_int_equal(result, free_field ? 0 : -ERROR_INPUT);
        log_reader_close(&reader);
    }
}

static void a_full_disk_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    struct error err = {0};
    struct log_writer writer;
    char partial[sizeof path + 40];
    static const char block[1 << 20];
    assert_int_equal(log_writer_open(&writer, path, LOG_CLOCK, 1, 8, &err), 0);
    snprintf(partial, sizeof partial, "%s", writer.out.partial);
    assert_int_equal(access(partial, F_OK), 0);
    FILE *full = fopen("/dev/full", "wb");
    assert_non_null(full);
    fclose(writer.out.file);
    writer.out.file = full;
    int result = log_writer_append(&writer, block, sizeof block / 8, &err);
    if (result == 0)
        result = log_writer_close(&writer, 0, &err);
    else
        log_writer_discard(&writer);
    assert_int_equal(result, -ERROR_FAILED);
    assert_non_null(strstr(err.text, "No space left"));
    assert_int_not_equal(access(partial, F_OK), 0);
}

// Of a log that the disk does not take whole, what it took can be kept.
static void a_log_is_cut_where_the_disk_was_full(void **state)
{
    (void)state;
    enum { RECORDS = 1000, LIMIT = 5003 }; // in the middle of a record
    uint64_t records[RECORDS];
    struct rlimit before, few;
    struct log_writer writer;
    struct log_reader reader;
    struct error err = {0};
    for (uint64_t i = 0; i < RECORDS; i++)
        records[i] = i * i;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    few = (struct rlimit){LIMIT, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    assert_int_equal(log_writer_open(&writer, path, LOG_CLOCK, 4, 8, &err), 0);
    int status = log_writer_append(&writer, records, RECORDS, &err);
    assert_true(status < 0 || log_writer_flush(&writer, &err) < 0);
    assert_int_equal(log_writer_cut(&writer, &err), 0);
    const uint64_t kept = (LIMIT - sizeof writer.header) / 8;
    assert_int_equal(writer.header.records, kept);
    assert_int_equal(log_writer_close(&writer, RECORDS - kept, &err), 0);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(log_reader_open(&reader, path, LOG_CLOCK, 4, 8, &err), 0);
    assert_int_equal(reader.count, kept);
    assert_int_equal(reader.header.dropped, RECORDS - kept);
    assert_memory_equal(reader.records, records, kept * 8);
    log_reader_close(&reader);
}

// What a killed writer leaves gets the log's name with the records that are whole, and no more is
// found then. What is still written is left alone, as is what is no log.
static void what_a_killed_writer_left_is_rescued(void **state)
{
    (void)state;
    const uint64_t records[3] = {7, 8, 9};
    struct log_writer writer;
    struct log_reader reader;
    struct error err = {0};
    char other[sizeof path + 40];
    unlink(path);
    assert_int_equal(log_rescue(path, LOG_CLOCK, 4, 8, &err), 0);
    pid_t child = fork();
    if (child == 0) {
        if (log_writer_open(&writer, path, LOG_CLOCK, 4, 8, &err) < 0 ||
            log_writer_append(&writer, records, 3, &err) < 0 ||
            log_writer_flush(&writer, &err) < 0 ||
            ftruncate(fileno(writer.out.file), (off_t)sizeof writer.header + 8 * 3 - 1) < 0)
            _exit(1);
        raise(SIGSTOP);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(log_rescue(path, LOG_CLOCK, 4, 8, &err), 0); // it is written
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_int_equal(log_rescue(path, LOG_CLOCK, 5, 8, &err), 0); // of another version
    assert_int_equal(log_rescue(path, LOG_CLOCK, 4, 8, &err), 1);
    assert_int_equal(log_reader_open(&reader, path, LOG_CLOCK, 4, 8, &err), 0);
    assert_int_equal(reader.count, 2);
    assert_int_equal(reader.header.cut_short, 1);
    assert_memory_equal(reader.records, records, 16);
    log_reader_close(&reader);
    assert_int_equal(log_rescue(path, LOG_CLOCK, 4, 8, &err), 0);
    snprintf(other, sizeof other, "%s.0123456789abcdef.partial", path);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(log_rescue(path, LOG_CLOCK, 4, 8, &err), 0);
    assert_int_equal(unlink(other), 0);
}

// No partial file above all.
static void nothing_else_is_left(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(an_unfinished_log_has_no_name),
        cmocka_unit_test(other_logs_and_damaged_ones_are_refused),
        cmocka_unit_test(every_damaged_header_byte_is_survived),
        cmocka_unit_test(a_full_disk_is_an_error_and_leaves_nothing),
        cmocka_unit_test(a_log_is_cut_where_the_disk_was_full),
        cmocka_unit_test(what_a_killed_writer_left_is_rescued),
        cmocka_unit_test(nothing_else_is_left),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
