// SPDX-License-Identifier: MIT
//
// What the flight recorder leaves on disk: a folder with a window's segments, which gets those of
// the next interval where its stretch goes on there, once, and stays as it was where it cannot.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/folder.h"
#include "base/json_numbers.h"
#include "experiments/watch/flight_recorder.h"
#include "experiments/watch/held_segments.h"

struct scene {
    char capture[64], saved[64];
    struct flight_recorder recorder;
};

static void write_file(const struct scene *s, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", s->capture, name);
    unlink(path); // as a capture does: another file by that name
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

// Segments up to that number, and what is written anew with each.
static void record(const struct scene *s, unsigned last)
{
    char name[80];
    for (unsigned number = 1; number <= last; number++) {
        snprintf(name, sizeof name, "events-%06u.tlog", number);
        write_file(s, name, "events");
    }
    snprintf(name, sizeof name, "of segment %u", last);
    write_file(s, "sockets.tlog", name);
    write_file(s, "clock.tlog", name);
    snprintf(name, sizeof name,
             "{\"segments\": {\"first\": 1, \"count\": %u, \"sockets\": [1, 3, 5, 6]}}", last);
    write_file(s, "capture.json", name);
}

static int begin(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    strcpy(s->capture, "/tmp/flight-test-capture-XXXXXX");
    strcpy(s->saved, "/tmp/flight-test-saved-XXXXXX");
    assert_non_null(mkdtemp(s->capture));
    assert_non_null(mkdtemp(s->saved));
    s->recorder = (struct flight_recorder){.folder = s->saved, .saves = 5};
    *state = s;
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;
    folder_remove(s->capture);
    if (s->recorder.path[0])
        folder_remove(s->recorder.path);
    rmdir(s->saved);
    free(s);
    return 0;
}

static void save(struct scene *s, unsigned first, unsigned last, struct slow_window window)
{
    struct error err = {0};
    record(s, last);
    assert_int_equal(flight_recorder_save(&s->recorder, s->capture,
                                          (struct run_segment_range){.first = first, .last = last},
                                          &window, &err),
                     0);
}

static bool lengthen(struct scene *s, unsigned first, unsigned last, struct slow_window window)
{
    window.goes_on = true;
    return flight_recorder_lengthen(&s->recorder, s->capture,
                                    (struct run_segment_range){.first = first, .last = last},
                                    &window);
}

static bool has(const struct scene *s, const char *name)
{
    char path[RUN_PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", s->recorder.path, name);
    return access(path, F_OK) == 0;
}

static void check(const struct scene *s, int first, int count, int64_t from_ns, int64_t until_ns,
                  const char *beside)
{
    struct error err = {0};
    struct run_folder folder;
    char path[RUN_PATH_BYTES + 64], text[64] = "";
    snprintf(folder.path, sizeof folder.path, "%s", s->recorder.path);
    json_t *document = run_folder_read_json(&folder, "capture.json", &err);
    assert_non_null(document);
    const json_t *segments = json_object_get(document, "segments");
    assert_int_equal(json_integer_value(json_object_get(segments, "first")), first);
    assert_int_equal(json_integer_value(json_object_get(segments, "count")), count);
    assert_int_equal(json_integer_value(json_object_get(segments, "from_ns")), from_ns);
    assert_int_equal(json_integer_value(json_object_get(segments, "until_ns")), until_ns);
    json_decref(document);
    for (int number = first; number < first + count; number++) {
        char name[64];
        snprintf(name, sizeof name, "events-%06d.tlog", number);
        assert_true(has(s, name));
    }
    snprintf(path, sizeof path, "%s/sockets.tlog", s->recorder.path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, beside);
    assert_false(has(s, "sockets.tlog.new"));
}

// Those connections, too, that left the table while a segment was recorded, or since.
static void saves_connections_that_ended(void **state)
{
    struct scene *s = *state;
    struct held_segments held = {0};
    struct error err = {0};
    const struct run_segment_range range = {.first = 2, .last = 3};
    const struct slow_window window = {100, 200, 10, 1, false};
    char path[RUN_PATH_BYTES + 64];
    record(s, 6);
    write_file(s, "sockets-000001.tlog", "before");
    write_file(s, "sockets-000003.tlog", "then");
    write_file(s, "sockets-000005.tlog", "since");
    held_segments_take(&held, s->capture, range);
    snprintf(path, sizeof path, "%s/sockets-000003.tlog", s->capture);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(flight_recorder_save(&s->recorder, s->capture, range, &window, &err), 0);
    assert_false(has(s, "sockets-000001.tlog"));
    assert_true(has(s, "sockets-000003.tlog"));
    assert_true(has(s, "sockets-000005.tlog"));
    assert_false(has(s, "events-000005.tlog"));
    // And it says which it has: not the sixth, which the capture wrote a moment later.
    struct run_folder folder;
    snprintf(folder.path, sizeof folder.path, "%s", s->recorder.path);
    json_t *document = run_folder_read_json(&folder, "capture.json", &err);
    json_t *named = json_object_get(json_object_get(document, "segments"), "sockets");
    json_t *expected = json_pack("[i, i]", 3, 5);
    assert_true(json_equal(named, expected));
    json_decref(expected);
    json_decref(document);
}

static void a_stretch_that_goes_on_has_one_folder(void **state)
{
    struct scene *s = *state;
    save(s, 2, 3, (struct slow_window){100, 200, 50, 1, false});
    check(s, 2, 2, 100, 200, "of segment 3");
    record(s, 4);
    assert_true(lengthen(s, 3, 4, (struct slow_window){200, 260, 50, 1, false}));
    check(s, 2, 3, 100, 260, "of segment 4");
    assert_int_equal(s->recorder.saved, 1);
    assert_int_equal(s->recorder.lengthened, 1);
    // Once: a server that stays slow does not fill a folder without end.
    record(s, 5);
    assert_false(lengthen(s, 4, 5, (struct slow_window){260, 300, 50, 1, false}));
    check(s, 2, 3, 100, 260, "of segment 4");
}

static void what_does_not_follow_has_its_own(void **state)
{
    struct scene *s = *state;
    record(s, 1);
    assert_false(lengthen(s, 1, 1, (struct slow_window){0, 100, 50, 1, false})); // nothing is saved
    save(s, 2, 3, (struct slow_window){100, 200, 50, 1, false});
    record(s, 6);
    const struct slow_window apart = {250, 300, 50, 1, false}, next = {200, 300, 50, 1, false};
    assert_false(lengthen(s, 3, 4, apart)); // requests between are of neither
    assert_false(lengthen(s, 5, 6, next));  // nor is there the segment between
    char path[300];
    snprintf(path, sizeof path, "%s/events-000004.tlog", s->capture);
    assert_int_equal(unlink(path), 0);
    assert_false(lengthen(s, 3, 4, next)); // it has made room
    check(s, 2, 2, 100, 200, "of segment 3");
    assert_int_equal(s->recorder.lengthened, 0);
}

// The capture has forgotten a segment while the interval was looked at.
static void saves_what_was_held(void **state)
{
    struct scene *s = *state;
    struct held_segments held = {0};
    struct error err = {0};
    const struct run_segment_range range = {.first = 2, .last = 3};
    const struct slow_window window = {100, 200, 10, 1, false};
    char path[RUN_PATH_BYTES + 64];
    record(s, 3);
    held_segments_take(&held, s->capture, range);
    snprintf(path, sizeof path, "%s/events-000002.tlog", s->capture);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(flight_recorder_save(&s->recorder, s->capture, range, &window, &err), 0);
    snprintf(path, sizeof path, "%s/events-000002.tlog", s->recorder.path);
    assert_int_equal(access(path, R_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stretch_that_goes_on_has_one_folder, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_follow_has_its_own, begin, end),
        cmocka_unit_test_setup_teardown(saves_what_was_held, begin, end),
        cmocka_unit_test_setup_teardown(saves_connections_that_ended, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
