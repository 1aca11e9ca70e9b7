// SPDX-License-Identifier: MIT
//
// The Redis codec: every command, RESP2 held against hiredis' reader, RESP3's own types, splits.
#include "tests/workloads/protocols/codec_test.h"

#include <hiredis/hiredis.h>

#include "workloads/protocols/redis.h"
#include "workloads/protocols/protocols.h"

static const struct protocol *const protocol = &redis_protocol;

static void check_command(unsigned operation, uint64_t number, const char *expected)
{
    char out[400];
    const struct request request = {.operation = operation,
                                    .key = "0017",
                                    .key_bytes = 4,
                                    .value = "a\r\nz",
                                    .value_bytes = 4,
                                    .number = number};
    size_t bytes = protocol->encode(&request, out, sizeof out);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(out, expected, bytes);
    assert_true(bytes <= protocol->request_bytes_max(4, 4));
    assert_int_equal(protocol->encode(&request, out, 40), 0);
}

static void what_expires_says_when(void **state)
{
    (void)state;
    static const char expected[] =
        "*5\r\n$3\r\nSET\r\n$4\r\n0017\r\n$1\r\na\r\n$2\r\nEX\r\n$2\r\n60\r\n";
    char out[400];
    struct request request = {.operation = REDIS_SET,
                              .key = "0017",
                              .key_bytes = 4,
                              .value = "a",
                              .value_bytes = 1,
                              .expiry_s = 60};
    assert_int_equal(protocol->encode(&request, out, sizeof out), sizeof expected - 1);
    assert_memory_equal(out, expected, sizeof expected - 1);
    request.operation = REDIS_LPUSH; // Redis has no such thing for its lists
    assert_int_equal(protocol->encode(&request, out, sizeof out),
                     strlen("*3\r\n$5\r\nLPUSH\r\n$9\r\nlist:0017\r\n$1\r\na\r\n"));
}

static void requests_are_encoded(void **state)
{
    (void)state;
    check_command(REDIS_GET, 0, "*2\r\n$3\r\nGET\r\n$4\r\n0017\r\n");
    check_command(REDIS_SET, 0, "*3\r\n$3\r\nSET\r\n$4\r\n0017\r\n$4\r\na\r\nz\r\n");
    check_command(REDIS_INCR, 0, "*2\r\n$4\r\nINCR\r\n$12\r\ncounter:0017\r\n");
    check_command(REDIS_LPUSH, 0, "*3\r\n$5\r\nLPUSH\r\n$9\r\nlist:0017\r\n$4\r\na\r\nz\r\n");
    check_command(REDIS_LPOP, 0, "*2\r\n$4\r\nLPOP\r\n$9\r\nlist:0017\r\n");
    check_command(REDIS_LRANGE, 0,
                  "*4\r\n$6\r\nLRANGE\r\n$9\r\nlist:0017\r\n$1\r\n0\r\n$1\r\n9\r\n");
    check_command(REDIS_HSET, 0,
                  "*4\r\n$4\r\nHSET\r\n$9\r\nhash:0017\r\n$5\r\nfield\r\n$4\r\na\r\nz\r\n");
    check_command(REDIS_HGET, 0, "*3\r\n$4\r\nHGET\r\n$9\r\nhash:0017\r\n$5\r\nfield\r\n");
    check_command(REDIS_ZADD, 1234,
                  "*4\r\n$4\r\nZADD\r\n$9\r\nzset:0017\r\n$2\r\n34\r\n$2\r\n34\r\n");
    check_command(REDIS_ZRANGE, 0,
                  "*4\r\n$6\r\nZRANGE\r\n$9\r\nzset:0017\r\n$1\r\n0\r\n$1\r\n9\r\n");
    check_command(REDIS_XADD, 0,
                  "*8\r\n$4\r\nXADD\r\n$11\r\nstream:0017\r\n$6\r\nMAXLEN\r\n$1\r\n~\r\n"
                  "$4\r\n1000\r\n$1\r\n*\r\n$5\r\nfield\r\n$4\r\na\r\nz\r\n");
    check_command(
        REDIS_XRANGE, 0,
        "*6\r\n$6\r\nXRANGE\r\n$11\r\nstream:0017\r\n$1\r\n-\r\n$1\r\n+\r\n$5\r\nCOUNT\r\n"
        "$2\r\n10\r\n");
    check_command(REDIS_SCRIPT, 0,
                  "*5\r\n$7\r\nEVALSHA\r\n$40\r\n" REDIS_SCRIPT_SHA
                  "\r\n$1\r\n1\r\n$4\r\n0017\r\n$4\r\na\r\nz\r\n");
}

// Of a recorded key by the names of what it holds, which are in other slots of a cluster, too.
static void a_key_is_deleted_by_its_names(void **state)
{
    (void)state;
    struct request request = {.operation = REDIS_DELETE, .key = "0017", .key_bytes = 4};
    struct request list = {.operation = REDIS_LRANGE, .key = "0017", .key_bytes = 4};
    static const char plain[] = "*2\r\n$3\r\nDEL\r\n$4\r\n0017\r\n",
                      of_list[] = "*2\r\n$3\r\nDEL\r\n$9\r\nlist:0017\r\n",
                      of_both[] = "*3\r\n$3\r\nDEL\r\n$4\r\n0017\r\n$9\r\nhash:0017\r\n";
    check_request(protocol, &request, plain, sizeof plain - 1);
    assert_int_not_equal(protocol->slot(&request), protocol->slot(&list));
    request.key_operations = 1 << REDIS_DELETE;
    check_request(protocol, &request, plain, sizeof plain - 1);
    request.key_operations = 1 << REDIS_LPUSH | 1 << REDIS_LPOP | 1 << REDIS_DELETE;
    check_request(protocol, &request, of_list, sizeof of_list - 1);
    assert_int_equal(protocol->slot(&request), protocol->slot(&list));
    request.key_operations = 1 << REDIS_GET | 1 << REDIS_SET | 1 << REDIS_HGET;
    check_request(protocol, &request, of_both, sizeof of_both - 1);
    // The longest fits in what is said to be the most.
    char key[WORKLOAD_KEY_BYTES_MAX], out[2000];
    memset(key, 'k', sizeof key);
    request = (struct request){.operation = REDIS_DELETE,
                               .key = key,
                               .key_bytes = sizeof key,
                               .key_operations = UINT16_MAX};
    size_t most = protocol->request_bytes_max(sizeof key, 0);
    assert_in_range(protocol->encode(&request, out, most), 6 * sizeof key, most);
}

static void a_transaction_is_four_commands(void **state)
{
    (void)state;
    static const char before[] = "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nGET\r\n$4\r\n0017\r\n",
                      set[] = "*3\r\n$3\r\nSET\r\n$4\r\n0017\r\n$1\r\na\r\n",
                      set_ex[] =
                          "*5\r\n$3\r\nSET\r\n$4\r\n0017\r\n$1\r\na\r\n$2\r\nEX\r\n$2\r\n60\r\n",
                      after[] = "*1\r\n$4\r\nEXEC\r\n";
    struct request request = {.operation = REDIS_TRANSACTION,
                              .key = "0017",
                              .key_bytes = 4,
                              .value = "a",
                              .value_bytes = 1};
    char expected[400];
    int bytes = sprintf(expected, "%s%s%s", before, set, after);
    check_request(protocol, &request, expected, (size_t)bytes);
    request.expiry_s = 60;
    bytes = sprintf(expected, "%s%s%s", before, set_ex, after);
    check_request(protocol, &request, expected, (size_t)bytes);
    // The longest fits in what is said to be the most.
    char key[WORKLOAD_KEY_BYTES_MAX], value[300] = {0}, out[2000];
    memset(key, 'k', sizeof key);
    request = (struct request){.operation = REDIS_TRANSACTION,
                               .key = key,
                               .key_bytes = sizeof key,
                               .value = value,
                               .value_bytes = sizeof value,
                               .expiry_s = UINT32_MAX};
    size_t most = protocol->request_bytes_max(sizeof key, sizeof value);
    assert_in_range(protocol->encode(&request, out, most), 1, most);
}

// What the parts in front of EXEC's reply, and it, make together, in one piece and byte by byte.
static void check_transaction(const struct protocol *of, const char *text, enum reply_kind kind,
                              uint64_t value_bytes, const char *said)
{
    for (int bytewise = 0; bytewise < 2; bytewise++) {
        struct reply_parser parser = {.parts_due = 3, .number = 1};
        struct stream stream = {.bytes = text, .count = strlen(text)};
        for (size_t at = 0, piece; at < stream.count; at += piece) {
            piece = bytewise ? 1 : stream.count;
            feed(of, &parser, &stream, at, at + piece, 1);
        }
        assert_int_equal(stream.reply_count, 1);
        assert_int_equal(stream.replies[0].kind, kind);
        assert_int_equal(stream.replies[0].begin, 0);
        if (reply_is_broken(kind))
            continue;
        assert_int_equal(stream.replies[0].end, stream.count);
        assert_int_equal(parser.parts_due + parser.parts_past + parser.part_fault, 0);
        if (said)
            assert_string_equal(parser.said, said);
        else
            assert_int_equal(stream.replies[0].value_bytes, value_bytes);
    }
}

static void a_transactions_reply_comes_in_parts(void **state)
{
    (void)state;
#define QUEUED "+QUEUED\r\n"
#define TAKEN  "+OK\r\n" QUEUED QUEUED
    check_transaction(protocol, TAKEN "*2\r\n$3\r\nabc\r\n+OK\r\n", REPLY_VALUE, 3, NULL);
    check_transaction(protocol, TAKEN "*2\r\n$-1\r\n+OK\r\n", REPLY_MISS, 0, NULL);
    check_transaction(&redis_resp3_protocol, TAKEN "*2\r\n_\r\n+OK\r\n", REPLY_MISS, 0, NULL);
    check_transaction(&redis_resp3_protocol,
                      "+OK\r\n" QUEUED ">1\r\n+push\r\n" QUEUED "*2\r\n$3\r\nabc\r\n+OK\r\n",
                      REPLY_VALUE, 3, NULL);
    // It was aborted: by a key that was watched, or since a command was refused, which is why.
    check_transaction(protocol, TAKEN "*-1\r\n", REPLY_CLIENT_ERROR, 0, "*-1");
    check_transaction(&redis_resp3_protocol, TAKEN "_\r\n", REPLY_CLIENT_ERROR, 0, "_");
    check_transaction(protocol,
                      "+OK\r\n" QUEUED "-OOM command not allowed\r\n-EXECABORT because\r\n",
                      REPLY_SERVER_ERROR, 0, "-OOM command not allowed");
    check_transaction(protocol, "+OK\r\n-MOVED 1 a:1\r\n-MOVED 1 a:2\r\n-EXECABORT because\r\n",
                      REPLY_CLIENT_ERROR, 0, "-MOVED 1 a:1");
    check_transaction(protocol, TAKEN "-EXECABORT because\r\n", REPLY_CLIENT_ERROR, 0,
                      "-EXECABORT because");
    // It knows no MULTI, so that the commands are answered at once.
    check_transaction(protocol, "-NOPERM multi\r\n$3\r\nabc\r\n+OK\r\n-ERR EXEC without MULTI\r\n",
                      REPLY_CLIENT_ERROR, 0, "-NOPERM multi");
    // It was done but for one command.
    check_transaction(protocol, TAKEN "*2\r\n-WRONGTYPE no\r\n+OK\r\n", REPLY_CLIENT_ERROR, 0,
                      "-WRONGTYPE no");
    check_transaction(protocol, TAKEN "*2\r\n$3\r\nabc\r\n-OOM no\r\n", REPLY_SERVER_ERROR, 0,
                      "-OOM no");
    // What no command is answered by while others are to follow.
    check_transaction(protocol, "+OK\r\n$3\r\nabc\r\n", REPLY_MALFORMED, 0, NULL);
    check_transaction(protocol, "+OK\r\n" QUEUED "?\r\n", REPLY_MALFORMED, 0, NULL);
#undef TAKEN
#undef QUEUED
    // The greeting's answer comes in front of the first.
    struct reply_parser parser = {.parts_due = 3};
    struct stream stream = STREAM("%1\r\n+server\r\n+redis\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n"
                                  "*2\r\n$3\r\nabc\r\n+OK\r\n");
    feed(&redis_resp3_protocol, &parser, &stream, 0, stream.count, 8);
    assert_int_equal(stream.reply_count, 1);
    assert_int_equal(stream.replies[0].kind, REPLY_VALUE);
}

static const char resp2[] = "$5\r\nhello\r\n"
                            "$-1\r\n"
                            "+OK\r\n"
                            ":-12\r\n"
                            "*2\r\n$2\r\n\r\n\r\n$0\r\n\r\n" // elements like line ends
                            "*0\r\n"
                            "*-1\r\n"
                            "*2\r\n*1\r\n:1\r\n*2\r\n+a\r\n$-1\r\n"
                            "-ERR unknown command\r\n"
                            "-OOM command not allowed\r\n"
                            "-WRONGTYPE Operation\r\n"
                            "-LOADING Redis\r\n"
                            "$4\r\n+OK\r\r\n";

static const enum reply_kind resp2_kinds[] = {
    REPLY_VALUE,        REPLY_MISS,         REPLY_STORED, REPLY_STORED,       REPLY_VALUE,
    REPLY_MISS,         REPLY_MISS,         REPLY_VALUE,  REPLY_CLIENT_ERROR, REPLY_SERVER_ERROR,
    REPLY_CLIENT_ERROR, REPLY_SERVER_ERROR, REPLY_VALUE};
enum { RESP2_REPLIES = sizeof resp2_kinds / sizeof *resp2_kinds };

static void replies_survive_any_split(void **state)
{
    (void)state;
    struct stream stream = {.bytes = resp2, .count = sizeof resp2 - 1};
    check_splits(protocol, stream, resp2_kinds, RESP2_REPLIES);
}

// What hiredis makes of a reply, in our words.
static enum reply_kind kind_of(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_STRING:
        return REPLY_VALUE;
    case REDIS_REPLY_ARRAY:
        return reply->elements ? REPLY_VALUE : REPLY_MISS;
    case REDIS_REPLY_NIL:
        return REPLY_MISS;
    case REDIS_REPLY_ERROR:
        return strncmp(reply->str, "OOM", 3) == 0 || strncmp(reply->str, "LOADING", 7) == 0
                   ? REPLY_SERVER_ERROR
                   : REPLY_CLIENT_ERROR;
    default:
        return REPLY_STORED;
    }
}

// hiredis' reader sees each reply end at the very byte where ours does, and of the same kind.
static void hiredis_agrees(void **state)
{
    (void)state;
    struct reply replies[RESP2_REPLIES];
    struct reply_parser parser = {0};
    size_t found;
    assert_int_equal(
        reply_parse(protocol, &parser, resp2, sizeof resp2 - 1, replies, RESP2_REPLIES, &found),
        sizeof resp2 - 1);
    assert_int_equal(found, RESP2_REPLIES);
    redisReader *reader = redisReaderCreate();
    assert_non_null(reader);
    size_t next = 0;
    for (size_t at = 0; at < sizeof resp2 - 1; at++) {
        void *reply = NULL;
        assert_int_equal(redisReaderFeed(reader, resp2 + at, 1), REDIS_OK);
        assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
        if (!reply)
            continue;
        assert_int_equal(replies[next].end, at + 1);
        assert_int_equal(replies[next].kind, kind_of(reply));
        next++;
        freeReplyObject(reply);
    }
    assert_int_equal(next, RESP2_REPLIES);
    redisReaderFree(reader);
}

static void resp3_survives_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {
        REPLY_MISS,  REPLY_VALUE,        REPLY_VALUE,  REPLY_VALUE, REPLY_VALUE, REPLY_VALUE,
        REPLY_VALUE, REPLY_CLIENT_ERROR, REPLY_STORED, REPLY_VALUE, REPLY_MISS,  REPLY_STORED};
    check_splits(protocol,
                 STREAM("_\r\n"
                        "#t\r\n"
                        ",1.5e3\r\n"
                        "(3492890328409238509324850943850943825024385\r\n"
                        "=15\r\ntxt:Some string\r\n"
                        "%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n_\r\n#f\r\n"
                        "~2\r\n+x\r\n+y\r\n"
                        "!9\r\nERR wrong\r\n"
                        ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n:1\r\n" // a push, then a reply
                        "|1\r\n+ttl\r\n:3600\r\n*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n" // attributes
                        ">0\r\n|0\r\n$-1\r\n"
                        "+OK\r\n"),
                 kinds, 12);
}

static void the_greeting_belongs_to_the_first_reply(void **state)
{
    (void)state;
    char out[400];
    const struct request get = {.operation = REDIS_GET, .key = "0017", .key_bytes = 4};
    static const char expected[] =
        "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$3\r\nGET\r\n$4\r\n0017\r\n";
    size_t bytes = redis_resp3_protocol.encode(&get, out, sizeof out);
    assert_int_equal(bytes, sizeof expected - 1);
    assert_memory_equal(out, expected, bytes);
    static const enum reply_kind kinds[] = {REPLY_MISS, REPLY_STORED};
    check_splits(&redis_resp3_protocol,
                 STREAM("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n_\r\n+OK\r\n"),
                 kinds, 2);
    // A server that knows no HELLO goes on in RESP2.
    check_splits(&redis_resp3_protocol, STREAM("-ERR unknown command\r\n$-1\r\n+OK\r\n"), kinds, 2);
}

static void nonsense_is_counted_and_passed(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_MALFORMED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_OVERSIZED, REPLY_OVERSIZED, REPLY_MALFORMED,
                                            REPLY_MALFORMED, REPLY_MALFORMED, REPLY_STORED};
    check_splits(protocol,
                 STREAM("STORED\r\n"
                        "\r\n"
                        "$x\r\n"
                        "$99999999999999999999\r\n"
                        "*99999999999999999999\r\n"
                        ":one\r\n"
                        "*2\r\n+a\r\n?\r\n" // an element that is none
                        "$3\r\nabcde"       // a value that does not end where it says
                        "+OK\r\n"),
                 kinds, 9);
}

static void answers_fit_their_questions(void **state)
{
    (void)state;
    assert_true(protocol->answers(REDIS_GET, REPLY_MISS));
    assert_false(protocol->answers(REDIS_GET, REPLY_STORED));
    assert_true(protocol->answers(REDIS_INCR, REPLY_STORED));
    assert_false(protocol->answers(REDIS_ZADD, REPLY_VALUE));
    assert_true(protocol->answers(REDIS_LPUSH, REPLY_CLIENT_ERROR));
    assert_ptr_equal(protocol_find("redis"), protocol);
    assert_int_equal(protocol_operation_find(protocol, "zrange"), REDIS_ZRANGE);
    assert_int_equal(protocol_operation_find(protocol, "call"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_encoded),
        cmocka_unit_test(a_key_is_deleted_by_its_names),
        cmocka_unit_test(a_transaction_is_four_commands),
        cmocka_unit_test(a_transactions_reply_comes_in_parts),
        cmocka_unit_test(what_expires_says_when),
        cmocka_unit_test(replies_survive_any_split),
        cmocka_unit_test(hiredis_agrees),
        cmocka_unit_test(resp3_survives_any_split),
        cmocka_unit_test(the_greeting_belongs_to_the_first_reply),
        cmocka_unit_test(nonsense_is_counted_and_passed),
        cmocka_unit_test(answers_fit_their_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
