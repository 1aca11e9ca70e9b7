// SPDX-License-Identifier: MIT
//
// The bytes are those of protobuf.dev/programming-guides/encoding, where it gives them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/protobuf.h"

#define expect(out, ...)                                                                           \
    do {                                                                                           \
        const uint8_t wanted_[] = {__VA_ARGS__};                                                   \
        assert_false((out)->failed);                                                               \
        assert_int_equal((out)->count, sizeof wanted_);                                            \
        assert_memory_equal((out)->items, wanted_, sizeof wanted_);                                \
        protobuf_free(out);                                                                        \
        *(out) = (struct protobuf){0};                                                             \
    } while (0)

static void fields_are_as_the_specification_has_them(void **state)
{
    (void)state;
    struct protobuf out = {0};
    protobuf_number(&out, 1, 150);
    expect(&out, 0x08, 0x96, 0x01);
    protobuf_text(&out, 2, "testing");
    expect(&out, 0x12, 0x07, 't', 'e', 's', 't', 'i', 'n', 'g');
    protobuf_number(&out, 16, UINT64_MAX);
    expect(&out, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
    protobuf_fixed64(&out, 1, 0x0102030405060708);
    expect(&out, 0x09, 8, 7, 6, 5, 4, 3, 2, 1);
    protobuf_double(&out, 1, -2.0);
    expect(&out, 0x09, 0, 0, 0, 0, 0, 0, 0, 0xc0);
}

static void signed_numbers_zigzag(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        uint8_t byte;
    } cases[] = {{0, 0}, {-1, 1}, {1, 2}, {-2, 3}, {63, 126}, {-64, 127}};
    struct protobuf out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        protobuf_signed(&out, 1, cases[i].value);
        expect(&out, 0x08, cases[i].byte);
    }
    protobuf_signed(&out, 1, INT64_MIN);
    expect(&out, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
}

static void messages_nest_and_may_be_long(void **state)
{
    (void)state;
    struct protobuf out = {0};
    size_t opened = protobuf_open(&out, 3);
    protobuf_number(&out, 1, 150);
    protobuf_close(&out, opened);
    expect(&out, 0x1a, 0x03, 0x08, 0x96, 0x01);

    size_t outer = protobuf_open_delimited(&out);
    size_t inner = protobuf_open(&out, 1);
    char text[300];
    memset(text, 'x', sizeof text);
    protobuf_bytes(&out, 2, text, sizeof text); // 303 bytes: its length takes two
    protobuf_close(&out, inner);
    protobuf_number(&out, 4, 5);
    protobuf_close(&out, outer);
    static const uint8_t head[] = {0xb4, 0x02, 0x0a, 0xaf, 0x02, 0x12, 0xac, 0x02};
    assert_int_equal(out.count, 2 + 3 + 303 + 2);
    assert_memory_equal(out.items, head, sizeof head);
    assert_memory_equal(out.items + sizeof head, text, sizeof text);
    assert_int_equal(out.items[out.count - 2], 0x20);
    assert_int_equal(out.items[out.count - 1], 5);
    protobuf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_as_the_specification_has_them),
        cmocka_unit_test(signed_numbers_zigzag),
        cmocka_unit_test(messages_nest_and_may_be_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
