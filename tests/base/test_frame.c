// SPDX-License-Identifier: MIT
//
// Frames survive any split of the byte stream, and whatever is no frame is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/frame.h"

// Three frames as they lie on the wire. Returns how many bytes.
static size_t write_three(char *wire, size_t room)
{
    struct error err = {0};
    struct frame_queue queue = {0};
    json_t *plan = json_pack("{s:s,s:I}", "type", "plan", "seed", (json_int_t)1 << 60);
    assert_int_equal(frame_append_json(&queue, plan, &err), 0);
    assert_int_equal(frame_append_heartbeat(&queue, &err), 0);
    assert_int_equal(frame_append_bytes(&queue, "a\0b", 3, &err), 0);
    json_decref(plan);
    size_t bytes = frame_queue_left(&queue);
    assert_true(bytes > 0 && bytes <= room);
    memcpy(wire, queue.items, bytes);
    frame_queue_free(&queue);
    return bytes;
}

static void check_three(struct frame_reader *reader, unsigned *taken)
{
    struct error err = {0};
    struct frame frame;
    while (frame_reader_next(reader, &frame, &err) == 1) {
        if (*taken == 0) {
            assert_false(frame_is_heartbeat(&frame));
            assert_int_equal(json_integer_value(json_object_get(frame.json, "seed")),
                             (json_int_t)1 << 60);
        } else if (*taken == 1) {
            assert_true(frame_is_heartbeat(&frame));
        } else {
            assert_int_equal(frame.kind, FRAME_BYTES);
            assert_int_equal(frame.byte_count, 3);
            assert_memory_equal(frame.bytes, "a\0b", 3);
        }
        json_decref(frame.json);
        (*taken)++;
    }
    assert_int_equal(err.kind, ERROR_NONE);
}

static void any_split_gives_the_same_frames(void **state)
{
    (void)state;
    char wire[200];
    size_t bytes = write_three(wire, sizeof wire);
    for (size_t step = 1; step <= bytes; step++) {
        struct frame_reader reader = {0};
        struct error err = {0};
        unsigned taken = 0;
        for (size_t at = 0; at < bytes; at += step) {
            size_t count = bytes - at < step ? bytes - at : step;
            assert_int_equal(frame_reader_feed(&reader, wire + at, count, &err), 0);
            check_three(&reader, &taken);
        }
        assert_int_equal(taken, 3);
        frame_reader_free(&reader);
    }
}

static void refuse(const char *bytes, size_t count, const char *why)
{
    struct frame_reader reader = {0};
    struct error err = {0};
    struct frame frame;
    assert_int_equal(frame_reader_feed(&reader, bytes, count, &err), 0);
    assert_int_equal(frame_reader_next(&reader, &frame, &err), -ERROR_INPUT);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
    frame_reader_free(&reader);
}

static void what_is_no_frame_is_refused(void **state)
{
    (void)state;
    refuse("Permission denied", 17, "no message: its kind is 105"); // what a shell may say instead
    refuse("\xff\xff\xff\xffJ", 5, "at most 1048576 are taken");
    refuse("\x01\x00\x10\x00"
           "B",
           5, "1048577 bytes");
    refuse("\x02\x00\x00\x00J[]", 7, "no JSON object");
    refuse("\x03\x00\x00\x00J{\"a", 8, "no JSON:");
    refuse("\x00\x00\x00\x00J", 5, "no JSON:");
    refuse("\x0f\x00\x00\x00J{\"a\":1, \"a\":2}", 20, "duplicate");
}

static void long_streams_take_bounded_memory(void **state)
{
    (void)state;
    struct frame_reader reader = {0};
    struct error err = {0};
    struct frame frame;
    static char body[100000];
    char head[5] = {(char)0xa0, (char)0x86, 0x01, 0, 'B'}; // 100,000
    for (unsigned i = 0; i < 500; i++) {
        assert_int_equal(frame_reader_feed(&reader, head, 5, &err), 0);
        assert_int_equal(frame_reader_feed(&reader, body, 60000, &err), 0);
        if (i)
            assert_int_equal(frame_reader_next(&reader, &frame, &err), 0);
        assert_int_equal(frame_reader_feed(&reader, body, 40000, &err), 0);
        assert_int_equal(frame_reader_next(&reader, &frame, &err), 1);
        assert_int_equal(frame.byte_count, 100000);
    }
    assert_true(reader.buffer.capacity <= 4 * 100005);
    frame_reader_free(&reader);
}

static void nothing_too_long_is_sent(void **state)
{
    (void)state;
    struct error err = {0};
    static char big[FRAME_BODY_BYTES_MAX + 1];
    struct frame_queue queue = {0};
    assert_int_equal(frame_append_bytes(&queue, big, sizeof big, &err), -ERROR_FAILED);
    assert_non_null(strstr(err.text, "can be sent"));
    assert_int_equal(frame_queue_left(&queue), 0);
    frame_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_gives_the_same_frames),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(long_streams_take_bounded_memory),
        cmocka_unit_test(nothing_too_long_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
