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

#include "analysis/run/input/run_segments.h"
#include "profiler/bpf/event_log.h"

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

static int read_in(const char *run_dir, struct run_segments *segments, int first, int count,
                   uint64_t most_bytes)
{
    struct error err;
    json_t *capture =
        json_pack("{s:{s:i, s:i, s:b}}", "segments", "first", first, "count", count, "ended", 1);
    looks = 0;
    int result = run_segments_read(segments, capture, run_dir, "server", most_bytes, &err);
    json_decref(capture);
    return result;
}

static int read_them(struct run_segments *segments, int first, int count, uint64_t most_bytes)
{
    return read_in(folder, segments, first, count, most_bytes);
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

// What `taillight capture` wrote by itself has its logs where its capture.json is.
static void of_a_capture_alone_too(void **state)
{
    (void)state;
    struct run_segments segments;
    char alone[100], document[120];
    snprintf(alone, sizeof alone, "%s/server", folder);
    snprintf(document, sizeof document, "%s/capture.json", alone);
    close(open(document, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(read_in(alone, &segments, 1, FILES, 3 * 2 * FILE_BYTES), 0);
    assert_int_equal(segments.left_out, FILES - 2);
    run_segments_free(&segments);
    unlink(document);
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

// In place of an empty file: of each core a message and a switch every 10 ns from that time on.
static void write_events(int number, uint64_t from)
{
    enum { TIMES = 10, CORES = 2 };
    struct log_writer writer;
    struct error err;
    char path[100];
    name_of(path, "events", number);
    unlink(path);
    assert_int_equal(
        log_writer_open(&writer, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
    for (uint16_t core = 0; core < CORES; core++)
        for (uint64_t i = 0; i < TIMES; i++) {
            const struct event pair[] = {
                {.kind = EVENT_SWITCH, .core = core, .time = from + 10 * i},
                {.kind = EVENT_RECEIVED, .core = core, .time = from + 10 * i}};
            assert_int_equal(log_writer_append(&writer, pair, 2, &err), 0);
        }
    assert_int_equal(log_writer_close(&writer, 0, &err), 0);
}

// What threads did is there from the first segment on, messages shortly before a later one begins.
static void messages_of_before_are_left_out(void **state)
{
    (void)state;
    struct error err;
    for (int number = 1; number <= 3; number++)
        write_events(number, (uint64_t)number * 100);
    static const struct {
        unsigned from;
        uint64_t lead, since;
    } cases[] = {{0, 0, 100}, {3, 20, 280}, {2, 200, 100}, {3, 0, 300}, {1, 0, 100}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct run_segments segments;
        struct log_reader log;
        size_t switches = 0, messages = 0;
        assert_int_equal(read_them(&segments, 1, 3, 1000000), 0);
        assert_true(run_segments_keep(
            &segments, (struct run_segment_range){.first = 1,
                                                  .last = 3,
                                                  .messages_from = cases[c].from,
                                                  .messages_lead_ns = cases[c].lead}));
        assert_int_equal(run_segments_open_events(&segments, folder, &log, &err), 0);
        const struct event *events = log.records;
        for (size_t i = 0; i < log.count; i++) {
            switches += events[i].kind == EVENT_SWITCH;
            messages += events[i].kind == EVENT_RECEIVED;
            assert_true(events[i].kind == EVENT_SWITCH || events[i].time >= cases[c].since);
            assert_true(i == 0 || events[i - 1].core < events[i].core ||
                        events[i - 1].time <= events[i].time);
        }
        assert_int_equal(switches, 2 * 30);
        assert_int_equal(messages, 2 * (400 - cases[c].since) / 10);
        log_reader_close(&log);
        run_segments_free(&segments);
    }
}

// Of before only who had the core last, in each segment.
static void what_is_not_of_that_time_is_left_out(void **state)
{
    (void)state;
    struct error err;
    struct run_segments segments;
    struct log_reader log;
    const struct run_segment_range range = {
        .first = 1, .last = 3, .events_from = 250, .events_until = 320};
    static const uint64_t expected[] = {190, 240, 250, 250, 260, 260, 270, 270, 280,
                                        280, 290, 290, 300, 300, 310, 310, 320, 320};
    enum { EACH = sizeof expected / sizeof *expected };
    assert_int_equal(read_them(&segments, 1, 3, 1000000), 0);
    assert_true(run_segments_keep(&segments, range));
    assert_int_equal(run_segments_open_events(&segments, folder, &log, &err), 0);
    assert_int_equal(log.count, 2 * EACH);
    assert_int_equal(log.header.records, 3 * 2 * 2 * 10); // of which a share was dropped
    const struct event *events = log.records;
    for (size_t i = 0; i < log.count; i++) {
        assert_int_equal(events[i].core, i / EACH);
        assert_int_equal(events[i].time, expected[i % EACH]);
        assert_true(events[i].time >= 250 || events[i].kind == EVENT_SWITCH);
    }
    log_reader_close(&log);
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
        cmocka_unit_test(of_a_capture_alone_too),
        cmocka_unit_test(a_million_that_are_not_there_are_not_looked_for),
        cmocka_unit_test(messages_of_before_are_left_out),
        cmocka_unit_test(what_is_not_of_that_time_is_left_out),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
