// SPDX-License-Identifier: MIT
//
// Requests of many keys: what each protocol writes, what it lists of every reply, split everywhere,
// and what of that is right.
#include "tests/workloads/protocols/codec_test.h"

#include <stdio.h>

#include "workloads/multiget.h"
#include "workloads/protocols/protocols.h"

enum { KEYS = 3, NUMBER = 17 };

// Three keys of five, with values of three bytes.
static const char description[] =
    "mix: {multiget: 1}\nkeys: {count: 5, size: {fixed: 4}, multiget: 3}\n"
    "values: {size: {fixed: 3}}\n";

static void scene_make(const char *protocol, struct workload *workload, struct multiget *multiget)
{
    struct error err;
    char text[300];
    int bytes = snprintf(text, sizeof text, "protocol: %s\n%s", protocol, description);
    if (workload_parse("test", text, (size_t)bytes, workload, &err) < 0)
        fail_msg("%s", err.text);
    multiget_init(multiget, workload);
    assert_int_equal(multiget->count, KEYS);
}

// A template with the names of the request's keys in place of ~A, ~B and ~C.
static size_t fill(const struct multiget *multiget, const char *text, size_t count, char *out)
{
    char *at = out;
    for (size_t i = 0; i < count; i++)
        if (text[i] < 'A' || text[i] > 'C' || i == 0 || text[i - 1] != '~') {
            if (text[i] != '~')
                *at++ = text[i];
        } else {
            uint64_t key = multiget_key(multiget, 2, NUMBER, (unsigned)(text[i] - 'A'));
            at += workload_key(multiget->workload, key, at);
        }
    return (size_t)(at - out);
}

static void check_encoded(const char *protocol, const char *text, size_t count)
{
    struct workload workload;
    struct multiget multiget;
    char key[WORKLOAD_KEY_BYTES_MAX], expected[400], out[1600];
    scene_make(protocol, &workload, &multiget);
    char *room = malloc(multiget_room(&multiget));
    struct request request = {.operation =
                                  (unsigned)protocol_operation_find(workload.protocol, "multiget"),
                              .key = key,
                              .key_bytes = workload_key(&workload, 2, key),
                              .number = NUMBER};
    multiget_add_keys(&multiget, 2, 0, &request, room);
    size_t most = workload.protocol->request_bytes_max(multiget_key_bytes_max(&multiget), 0);
    assert_true(most <= sizeof out);
    size_t bytes = fill(&multiget, text, count, expected);
    assert_int_equal(workload.protocol->encode(&request, out, most), bytes);
    assert_memory_equal(out, expected, bytes);
    assert_int_equal(workload.protocol->encode(&request, out, bytes - 1), 0);
    free(room);
    workload_free(&workload);
}

#define BINARY_GET(opaque) "\x80\x9\0\4\0\0\0\0\0\0\0\4" opaque "\0\0\0\0\0\0\0\0"

static void requests_name_all_keys(void **state)
{
    (void)state;
#define CHECK(protocol, text) check_encoded(protocol, text, sizeof text - 1)
    CHECK("memcached", "get ~A ~B ~C\r\n");
    CHECK("memcached-meta", "mg ~A v O17\r\nmg ~B v O17\r\nmg ~C v O17\r\n");
    CHECK("memcached-binary",
          BINARY_GET("\0\0\0\x11") "~A" BINARY_GET("\0\x40\0\x11") "~B" BINARY_GET(
              "\0\x80\0\x11") "~C\x80\xa\0\0\0\0\0\0\0\0\0\0\0\0\0\x11\0\0\0\0\0\0\0\0");
    CHECK("redis", "*4\r\n$4\r\nMGET\r\n$4\r\n~A\r\n$4\r\n~B\r\n$4\r\n~C\r\n");
#undef CHECK
}

// The longest keys there are, as many as there may be.
static void the_largest_request_has_room(void **state)
{
    (void)state;
    static const char text[] = "keys: {count: 1000, size: {fixed: 250}, multiget: 500}\n";
    for (size_t i = 0; i < PROTOCOLS; i++) {
        struct workload workload;
        struct multiget multiget;
        struct error err;
        char key[WORKLOAD_KEY_BYTES_MAX];
        int operation = protocol_operation_find(protocols[i], "multiget");
        if (operation < 0)
            continue;
        assert_int_equal(workload_parse("test", text, sizeof text - 1, &workload, &err), 0);
        assert_int_equal(workload_set_protocol(&workload, protocols[i], &err), 0);
        workload.mix[operation] = 1;
        multiget_init(&multiget, &workload);
        char *room = malloc(multiget_room(&multiget));
        size_t most = protocols[i]->request_bytes_max(multiget_key_bytes_max(&multiget), 0);
        char *out = malloc(most);
        struct request request = {.operation = (unsigned)operation,
                                  .key = key,
                                  .key_bytes = workload_key(&workload, 2, key),
                                  .number = UINT64_MAX};
        multiget_add_keys(&multiget, 2, 0, &request, room);
        assert_in_range(protocols[i]->encode(&request, out, most), 500 * 250, most);
        free(out);
        free(room);
        workload_free(&workload);
    }
}

// What is wrong is refused by the kind of reply, or by what is listed.
enum outcome { RIGHT, WRONG_VALUES, REFUSED };

static void check_reply(const char *protocol, const char *text, size_t count, enum outcome outcome,
                        enum reply_kind kind, unsigned missing)
{
    struct workload workload;
    struct multiget multiget;
    char bytes[400];
    scene_make(protocol, &workload, &multiget);
    struct reply_list *list = multiget_list_new(&multiget);
    struct stream stream = {.bytes = bytes, .count = fill(&multiget, text, count, bytes)};
    list->number = NUMBER;
    list->apart = workload.protocol->operations[2].keys_apart;
    for (size_t piece = 1; piece <= stream.count; piece++) {
        struct reply_parser parser = {.list = list, .number = NUMBER};
        unsigned found = 0;
        parser.parts_due = list->apart ? KEYS - 1 : 0;
        list->count = list->told = 0;
        stream.reply_count = 0;
        for (size_t at = 0; at < stream.count && !stream.reply_count; at += piece)
            feed(workload.protocol, &parser, &stream, at,
                 at + piece < stream.count ? at + piece : stream.count, 1);
        assert_true(stream.reply_count >= 1);
        assert_int_equal(stream.replies[0].kind, kind);
        if (outcome == REFUSED)
            continue;
        assert_int_equal(stream.reply_count, 1);
        assert_int_equal(stream.replies[0].end, stream.count);
        assert_null(parser.list);
        assert_int_equal(multiget_is_right(&multiget, 2, list, &found), outcome == RIGHT);
        if (outcome == RIGHT)
            assert_int_equal(found, missing);
    }
    free(list);
    workload_free(&workload);
}
#define CHECK(text, ...) check_reply(protocol, text, sizeof text - 1, __VA_ARGS__)

static void text_replies_are_judged(void **state)
{
    (void)state;
    static const char *const protocol = "memcached";
#define A "VALUE ~A 0 3\r\nabc\r\n"
#define B "VALUE ~B 0 3\r\nabc\r\n"
#define C "VALUE ~C 0 3\r\nabc\r\n"
    CHECK(A B C "END\r\n", RIGHT, REPLY_VALUE, 0);
    CHECK(A C "END\r\n", RIGHT, REPLY_VALUE, 1);
    CHECK(C "END\r\n", RIGHT, REPLY_VALUE, 2);
    CHECK("END\r\n", RIGHT, REPLY_MISS, 3);
    CHECK(A "VALUE ~B 0 2\r\nab\r\n" C "END\r\n", WRONG_VALUES, REPLY_VALUE, 0);
    CHECK(A "VALUE other 0 3\r\nabc\r\n" C "END\r\n", WRONG_VALUES, REPLY_VALUE, 0);
    CHECK(C B A "END\r\n", WRONG_VALUES, REPLY_VALUE, 0);
    CHECK(A A "END\r\n", WRONG_VALUES, REPLY_VALUE, 0);
    CHECK(A B C C "END\r\n", REFUSED, REPLY_MALFORMED, 0);
    CHECK(A "VALUE ~B 0 3\r\nabcXXEND\r\n", REFUSED, REPLY_MALFORMED, 0);
    CHECK("SERVER_ERROR no\r\n", REFUSED, REPLY_SERVER_ERROR, 0);
#undef A
#undef B
#undef C
}

static void meta_replies_are_judged(void **state)
{
    (void)state;
    static const char *const protocol = "memcached-meta";
#define ONE "VA 3 O17\r\nabc\r\n"
    CHECK(ONE ONE ONE, RIGHT, REPLY_VALUE, 0);
    CHECK(ONE "EN\r\n" ONE, RIGHT, REPLY_VALUE, 1);
    CHECK(ONE ONE "EN\r\n", RIGHT, REPLY_VALUE, 1);
    CHECK("EN\r\nEN\r\nEN\r\n", RIGHT, REPLY_MISS, 3);
    CHECK(ONE "VA 2 O17\r\nab\r\n" ONE, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK(ONE "VA 3 O18\r\nabc\r\n", REFUSED, REPLY_OUT_OF_ORDER, 0);
    CHECK(ONE "HD\r\n", REFUSED, REPLY_MALFORMED, 0);
    CHECK(ONE "SERVER_ERROR no\r\n" ONE, REFUSED, REPLY_SERVER_ERROR, 0);
#undef ONE
}

static void binary_replies_are_judged(void **state)
{
    (void)state;
    static const char *const protocol = "memcached-binary";
#define VALUE(place, more)                                                                         \
    "\x81\x9\0\0\4\0\0\0\0\0\0\7" place "\0\x11\0\0\0\0\0\0\0\0\0\0\0\0ab" more
#define HEAD(opcode, status) "\x81" opcode "\0\0\0\0" status "\0\0\0\0\0\0\0\x11\0\0\0\0\0\0\0\0"
#define END                  HEAD("\xa", "\0\0")
    CHECK(VALUE("\0\0", "c") VALUE("\0\x40", "c") VALUE("\0\x80", "c") END, RIGHT, REPLY_VALUE, 0);
    CHECK(VALUE("\0\0", "c") VALUE("\0\x80", "c") END, RIGHT, REPLY_VALUE, 1);
    CHECK(END, RIGHT, REPLY_MISS, 3);
    CHECK(VALUE("\0\x40", "c") VALUE("\0\0", "c") END, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK(VALUE("\0\x40", "c") VALUE("\0\x40", "c") END, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK("\x81\x9\0\0\4\0\0\0\0\0\0\6\0\0\0\x11\0\0\0\0\0\0\0\0\0\0\0\0ab" END, WRONG_VALUES,
          REPLY_VALUE, 0);
    CHECK(VALUE("\0\xc0", "c") END, REFUSED, REPLY_MALFORMED, 0); // a fourth key
    CHECK(VALUE("\1\x20", "c") END, REFUSED, REPLY_OUT_OF_ORDER, 0);
    CHECK(HEAD("\0", "\0\0"), REFUSED, REPLY_MALFORMED, 0);
    CHECK(HEAD("\x9", "\0\x82") END, REFUSED, REPLY_SERVER_ERROR, 0);
#undef END
#undef HEAD
#undef VALUE
}

static void redis_replies_are_judged(void **state)
{
    (void)state;
    static const char *protocol = "redis";
#define ONE "$3\r\nabc\r\n"
    CHECK("*3\r\n" ONE ONE ONE, RIGHT, REPLY_VALUE, 0);
    CHECK("*3\r\n" ONE "$-1\r\n" ONE, RIGHT, REPLY_VALUE, 1);
    CHECK("*3\r\n$-1\r\n$-1\r\n$-1\r\n", RIGHT, REPLY_VALUE, 3);
    CHECK("*2\r\n" ONE ONE, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK("*0\r\n", WRONG_VALUES, REPLY_MISS, 0);
    CHECK(ONE, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK("*3\r\n" ONE "$2\r\nab\r\n" ONE, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK("*3\r\n" ONE ":3\r\n" ONE, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK("*1\r\n*2\r\n" ONE ONE, WRONG_VALUES, REPLY_VALUE, 0);
    CHECK("*4\r\n" ONE ONE ONE ONE, REFUSED, REPLY_MALFORMED, 0);
    CHECK("*4\r\n" ONE ONE ONE "$-1\r\n", REFUSED, REPLY_MALFORMED, 0);
    CHECK("-CROSSSLOT no\r\n", REFUSED, REPLY_CLIENT_ERROR, 0);
    protocol = "redis-resp3";
    CHECK("*3\r\n" ONE "_\r\n" ONE, RIGHT, REPLY_VALUE, 1);
#undef ONE
    // The greeting's answer, in front of a connection's first, is not listed.
    struct workload workload;
    struct multiget multiget;
    scene_make(protocol, &workload, &multiget);
    struct reply_list *list = multiget_list_new(&multiget);
    struct reply_parser parser = {.list = list};
    struct stream stream =
        STREAM("%2\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n*3\r\n$3\r\nabc\r\n_\r\n_\r\n");
    feed(workload.protocol, &parser, &stream, 0, stream.count, 1);
    assert_int_equal(stream.reply_count, 1);
    assert_int_equal(stream.replies[0].kind, REPLY_VALUE);
    assert_int_equal(list->count, 1);
    assert_int_equal(list->told, 3);
    free(list);
    workload_free(&workload);
}

// The keys behind the first are as popular as the schedule's, and differ from request to request.
static void keys_have_the_workloads_popularity(void **state)
{
    (void)state;
    enum { COUNT = 50, REQUESTS = 4000, EACH = 10 };
    static const char text[] = "protocol: redis\nmix: {multiget: 1}\n"
                               "keys: {count: 50, popularity: {zipf: 0.9}, multiget: 10}\n";
    struct workload workload;
    struct multiget multiget;
    struct error err;
    double seen[COUNT] = {0}, deviation = 0;
    assert_int_equal(workload_parse("test", text, sizeof text - 1, &workload, &err), 0);
    multiget_init(&multiget, &workload);
    for (uint64_t number = 0; number < REQUESTS; number++)
        for (unsigned place = 1; place < EACH; place++)
            seen[multiget_key(&multiget, 0, number, place)]++;
    for (uint64_t key = 0; key < COUNT; key++) {
        double expected =
            popularity_probability(&workload.popularity, COUNT, key) * REQUESTS * (EACH - 1);
        deviation += (seen[key] - expected) * (seen[key] - expected) / expected;
    }
    assert_true(deviation < 95); // chi-squared of 49 degrees: more in one case of 10,000
    workload_free(&workload);
}

static void the_mapping_says_how_many(void **state)
{
    (void)state;
    struct workload workload, again;
    struct error err;
    static const char text[] = "mix: {get: 1, multiget: 3}\nkeys: {multiget: 40}\n",
                      plain[] = "mix: {get: 1}\n", few[] = "keys:\n  multiget: 1\n",
                      none[] = "protocol: http\nmix: {multiget: 1}\n";
    assert_int_equal(workload_parse("test", text, sizeof text - 1, &workload, &err), 0);
    char *yaml = workload_to_yaml(&workload);
    assert_int_equal(workload_parse("again", yaml, strlen(yaml), &again, &err), 0);
    assert_int_equal(again.multiget_keys, 40);
    free(yaml);
    workload_free(&again);
    workload_free(&workload);
    assert_int_equal(workload_parse("test", plain, sizeof plain - 1, &workload, &err), 0);
    yaml = workload_to_yaml(&workload);
    assert_null(strstr(yaml, "\"multiget\": 10"));
    free(yaml);
    workload_free(&workload);
    assert_int_equal(workload_parse("test", few, sizeof few - 1, &workload, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "test:2:13: multiget"));
    assert_int_equal(workload_parse("test", none, sizeof none - 1, &workload, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "protocol http has no multiget"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_name_all_keys),
        cmocka_unit_test(the_largest_request_has_room),
        cmocka_unit_test(text_replies_are_judged),
        cmocka_unit_test(meta_replies_are_judged),
        cmocka_unit_test(binary_replies_are_judged),
        cmocka_unit_test(redis_replies_are_judged),
        cmocka_unit_test(keys_have_the_workloads_popularity),
        cmocka_unit_test(the_mapping_says_how_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
