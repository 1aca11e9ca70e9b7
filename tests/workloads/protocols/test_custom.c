// SPDX-License-Identifier: MIT
//
// The protocol that a workload describes: requests byte for byte, replies by mark and by length,
// split anywhere, and all that replies can count as.
#include "tests/workloads/protocols/codec_test.h"

#include "base/error.h"

static const char key[] = "0017";

// Of one request and that reply. The caller frees it.
static struct custom *custom_make(const char *request, const char *until)
{
    struct error err;
    struct custom *custom = custom_alloc();
    assert_non_null(custom);
    if (custom_add(custom, "ask", request, &err) < 0)
        fail_msg("%s: %s", request, err.text);
    custom->reply.until = (struct custom_mark){0};
    if (until)
        assert_int_equal(custom_mark_read(until, &custom->reply.until, &err), 0);
    return custom;
}

static void mark_add(struct custom *custom, enum custom_verdict verdict, const char *text)
{
    struct error err;
    struct custom_reply *reply = &custom->reply;
    assert_int_equal(
        custom_mark_read(text, &reply->marks[verdict][reply->mark_count[verdict]++], &err), 0);
}

static void requests_are_encoded(void **state)
{
    (void)state;
#define CASE(text, bytes)                                                                          \
    {                                                                                              \
        text, bytes, sizeof bytes - 1                                                              \
    }
    static const struct {
        const char *text, *expected;
        size_t bytes;
    } cases[] = {
        CASE("GET {key}\r\n", "GET 0017\r\n"),
        CASE("{key}{key}", "00170017"),
        CASE("{\"key\": \"{key}\", \"n\": {number}, \"a\": {}}",
             "{\"key\": \"0017\", \"n\": 66051, \"a\": {}}"),
        CASE("{hex:00fF}a{hex:41}", "\0\xff"
                                    "aA"),
        CASE("{number:u8}{number:u16}{number:u24}{number:u32}{number:u64}",
             "\3\2\3\1\2\3\0\1\2\3\0\0\0\0\0\1\2\3"),
        CASE("{number:u8le}{number:u16le}{number:u32le}", "\3\3\2\3\2\1\0"),
        CASE("{key_size} {value_size} {expiry_s} {value}", "4 5 60 a\0\377\r\n"),
        CASE("{value:letters}", "bapnk"),
        CASE("{rest_size:u16}{key}{rest_size}{value}", "\0\x0a"
                                                       "00175a\0\377\r\n"),
        CASE("{rest_size}", "0"),
        CASE("{rest_size+4:u32le}{key}{rest_size-1}{value}!", "\xf\0\0\0"
                                                              "00175a\0\377\r\n!"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct custom *custom = custom_make(cases[i].text, "\n");
        const struct request request = {.key = key,
                                        .key_bytes = 4,
                                        .value = "a\0\377\r\n",
                                        .value_bytes = 5,
                                        .number = 0x010203,
                                        .expiry_s = 60,
                                        .custom = custom};
        check_request(&custom->protocol, &request, cases[i].expected, cases[i].bytes);
        custom_free(custom);
    }
    const struct request plain = {.key = key, .key_bytes = 4};
    check_request(&custom_protocol, &plain, "0017\r\n", 6);
}

static void what_a_request_carries_is_known(void **state)
{
    (void)state;
    struct error err;
    struct custom *custom = custom_make("{value_size:u16}{key}", "\n");
    assert_true(custom->operations[0].states_size && !custom->operations[0].carries_value);
    assert_int_equal(custom->protocol.value_bytes_max, 65535);
    assert_int_equal(custom_add(custom, "set", "{value_size:u8}{value}", &err), 0);
    assert_int_equal(custom_add(custom, "get", "{expiry_s}", &err), 0);
    assert_true(protocol_has_get_and_set(&custom->protocol));
    assert_string_equal(custom->protocol.operations[2].name, "ask");
    assert_true(custom->operations[1].carries_value && custom->operations[2].states_size);
    assert_true(custom_says_expiry(custom, 0) && !custom_says_expiry(custom, 1));
    assert_int_equal(custom->protocol.value_bytes_max, 255);
    custom_free(custom);
}

static void descriptions_of_one_server_end_replies_alike(void **state)
{
    (void)state;
    struct custom *lines = custom_make("a", "\n"), *bars = custom_make("b", "|");
    struct custom *sized = custom_make("c", NULL), *other = custom_make("d", NULL);
    assert_true(custom_share_replies(lines, lines) && custom_share_replies(NULL, NULL));
    assert_true(custom_share_replies(lines, NULL) && custom_share_replies(NULL, lines)); // CR LF
    assert_false(custom_share_replies(lines, bars) || custom_share_replies(bars, NULL));
    sized->reply.length = other->reply.length = (struct custom_number){.at = 1, .bytes = 2};
    assert_true(custom_share_replies(sized, other));
    assert_false(custom_share_replies(sized, lines) || custom_share_replies(lines, sized));
    other->reply.number = (struct custom_number){.at = 8, .bytes = 4};
    assert_true(custom_share_replies(sized, other)); // who does not look for it
    sized->reply.number = (struct custom_number){.at = 9, .bytes = 4};
    assert_false(custom_share_replies(sized, other));
    sized->reply.number = other->reply.number;
    other->reply.length.order = 1;
    assert_false(custom_share_replies(sized, other));
    custom_free(lines);
    custom_free(bars);
    custom_free(sized);
    custom_free(other);
}

static void replies_end_with_their_mark(void **state)
{
    (void)state;
    struct custom *custom = custom_make("x", "abac");
    static const enum reply_kind values[] = {REPLY_VALUE, REPLY_VALUE, REPLY_VALUE};
    check_splits(&custom->protocol, STREAM("xyababacabacaababac"), values, 3);
    custom_free(custom);
    custom = custom_make("x", "\r\n");
    mark_add(custom, CUSTOM_OK, "+");
    mark_add(custom, CUSTOM_MISS, "-NOT");
    mark_add(custom, CUSTOM_STORED, "OK");
    mark_add(custom, CUSTOM_ERROR, "-");
    custom->reply.status_at = 1;
    custom->reply.most_bytes = 12;
    // Errors are looked for first; a mark is no part of the content; too much is passed over.
    static const enum reply_kind kinds[] = {
        REPLY_VALUE,        REPLY_STORED,    REPLY_SERVER_ERROR, REPLY_CLIENT_ERROR,
        REPLY_CLIENT_ERROR, REPLY_OVERSIZED, REPLY_VALUE};
    check_splits(&custom->protocol,
                 STREAM(" +1\r\n OK\r\n -NOT\r\n hm\r\n\r\n +345678901234567\r890\r\n +\r\n"),
                 kinds, 7);
    struct stream stream = STREAM(" +12\r\n -no\t!\r\n");
    struct reply_parser parser = {0};
    feed(&custom->protocol, &parser, &stream, 0, stream.count, 4);
    assert_int_equal(stream.replies[0].value_bytes, 4);
    assert_string_equal(parser.said, " -no?!");
    custom_free(custom);
}

static void replies_say_how_long_they_are(void **state)
{
    (void)state;
    struct custom *custom = custom_make("x", NULL);
    custom->reply.length = (struct custom_number){.at = 1, .bytes = 2, .order = 1};
    custom->reply.number = (struct custom_number){.at = 3, .bytes = 1};
    custom->reply.status_at = 4;
    custom->reply.most_bytes = 300;
    mark_add(custom, CUSTOM_MISS, "{hex:00}");
    mark_add(custom, CUSTOM_OK, "{hex:01}");
    static const enum reply_kind kinds[] = {REPLY_MISS,         REPLY_VALUE,     REPLY_OUT_OF_ORDER,
                                            REPLY_CLIENT_ERROR, REPLY_MALFORMED, REPLY_OVERSIZED};
    check_splits(&custom->protocol, STREAM("#\2\0\0\0#\4\0\1\1ab#\2\0\1\1#\1\0\3#\0\0#\x2a\1"),
                 kinds, 6);
    struct stream wrong = STREAM("#\4\0\0no!");
    struct reply_parser quoting = {0};
    feed(&custom->protocol, &quoting, &wrong, 0, wrong.count, 4);
    assert_string_equal(quoting.said, "no!"); // not what frames it, or whom it answers
    custom->reply.length = (struct custom_number){.bytes = 4, .adds = -4};
    custom->reply.number = (struct custom_number){0};
    custom->reply.status_at = 8;
    static const enum reply_kind adding[] = {REPLY_VALUE, REPLY_CLIENT_ERROR, REPLY_MALFORMED};
    check_splits(&custom->protocol, STREAM("\0\0\0\x9____\1\0\0\0\4\0\0\0\3"), adding, 3);
    struct stream stream = STREAM("\0\0\0\x9____\1");
    struct reply_parser parser = {0};
    feed(&custom->protocol, &parser, &stream, 0, stream.count, 4);
    assert_int_equal(stream.replies[0].value_bytes, 5);
    custom->reply.length = (struct custom_number){.bytes = 8, .adds = 3};
    check_splits(&custom->protocol, STREAM("\377\377\377\377\377\377\377\377"),
                 (const enum reply_kind[]){REPLY_OVERSIZED}, 1);
    check_splits(&custom->protocol, STREAM("\0\0\0\0\0\0\0\1abcd"),
                 (const enum reply_kind[]){REPLY_CLIENT_ERROR}, 1);
    custom_free(custom);
}

static void one_that_nobody_described_speaks_in_lines(void **state)
{
    (void)state;
    check_splits(&custom_protocol, STREAM("a\r\n\r\n\r\r\n"),
                 (const enum reply_kind[]){REPLY_VALUE, REPLY_VALUE, REPLY_VALUE}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_encoded),
        cmocka_unit_test(what_a_request_carries_is_known),
        cmocka_unit_test(descriptions_of_one_server_end_replies_alike),
        cmocka_unit_test(replies_end_with_their_mark),
        cmocka_unit_test(replies_say_how_long_they_are),
        cmocka_unit_test(one_that_nobody_described_speaks_in_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
