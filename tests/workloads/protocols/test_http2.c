// SPDX-License-Identifier: MIT
//
// HTTP/2 and gRPC against a peer made by hand: what requests say, replies in any order and split
// anywhere, what a server takes back, and all that it may not say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "base/error.h"
#include "tests/workloads/protocols/http2_peer.h"
#include "workloads/protocols/http_words.h"

#define OK                 "\x88" // of RFC 7541's table: ":status: 200"
#define NOT_FOUND          "\x8d" // 404
#define FAILED             "\x8e" // 500
#define GRPC_STATUS(digit) "\0\x0bgrpc-status\1" digit
#define TYPE(bytes, type)                                                                          \
    "\0\x0c"                                                                                       \
    "content-type" bytes type

// --- requests, as another HTTP/2 reads them ------------------------------------------------------

struct reading {
    char text[1000];
    size_t used;
};

static void add_text(struct reading *reading, const void *bytes, size_t count)
{
    assert_true(reading->used + count < sizeof reading->text);
    memcpy(reading->text + reading->used, bytes, count);
    reading->used += count;
}

static int read_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                       void *reading)
{
    (void)session, (void)frame, (void)flags;
    add_text(reading, name, name_bytes);
    add_text(reading, "=", 1);
    add_text(reading, value, value_bytes);
    add_text(reading, "\n", 1);
    return 0;
}

static int read_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                     size_t count, void *reading)
{
    (void)session, (void)flags, (void)stream;
    add_text(reading, bytes, count);
    return 0;
}

static int read_end(nghttp2_session *session, const nghttp2_frame *frame, void *reading)
{
    (void)session;
    if (frame->hd.type <= NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        add_text(reading, "|", 1);
    return 0;
}

static void check_request(const struct protocol *protocol, const struct http_words *words,
                          const struct request *request, const char *expected,
                          size_t expected_bytes)
{
    struct reading reading = {.used = 0};
    struct peer *peer = peer_new(protocol, words);
    nghttp2_session *server;
    nghttp2_session_callbacks *callbacks;
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, read_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, read_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, read_end);
    assert_int_equal(nghttp2_session_server_new(&server, callbacks, &reading), 0);
    peer_listen(peer);
    assert_int_equal(nghttp2_session_mem_recv(server, (uint8_t *)peer->out, peer->out_count),
                     peer->out_count);
    FRAME(peer, FRAME_SETTINGS, 0, 0, "");
    assert_true(peer_say(peer, PEER_BYTES));
    http2_session_put(peer->session, request);
    peer_listen(peer);
    assert_in_range(peer->out_count, 1,
                    protocol->request_bytes_max(request->key_bytes, request->value_bytes) +
                        (words ? http_words_bytes(words) : 0));
    assert_int_equal(nghttp2_session_mem_recv(server, (uint8_t *)peer->out, peer->out_count),
                     peer->out_count);
    assert_int_equal(reading.used, expected_bytes);
    assert_memory_equal(reading.text, expected, expected_bytes);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_session_del(server);
    peer_free(peer);
}

#define READS(protocol, words, request, text)                                                      \
    check_request(protocol, words, request, text, sizeof(text) - 1)

static void requests_are_streams(void **state)
{
    (void)state;
    const char *const accept[] = {"Accept: */*", "X-Who:  me "};
    struct http_words words = {0};
    struct error err;
    struct request request = {.key = "0017", .key_bytes = 4, .value_bytes = 3};
    READS(&http2_protocol, NULL, &request,
          ":method=GET\n:scheme=http\n:authority=taillight\n:path=/0017\nuser-agent=taillight\n|");
    assert_int_equal(http_words_set(&words, "/a/{key}?b", "web:80", accept, 2, &err), 0);
    request.operation = 2;
    request.value = "a\0b";
    READS(&http2_protocol, &words, &request,
          ":method=POST\n:scheme=http\n:authority=web:80\n:path=/a/0017?b\naccept=*/*\nx-who=me\n"
          "user-agent=taillight\ncontent-length=3\na\0b|");
    request.value_bytes = 0;
    READS(&http2_protocol, &words, &request,
          ":method=POST\n:scheme=http\n:authority=web:80\n:path=/a/0017?b\naccept=*/*\nx-who=me\n"
          "user-agent=taillight\ncontent-length=0\n|");
    http_words_free(&words);
}

static void calls_are_messages(void **state)
{
    (void)state;
    struct http_words words = {0};
    struct error err;
    assert_int_equal(http_words_set(&words, "/shop.Cart/Add", NULL, NULL, 0, &err), 0);
    struct request request = {.key = "0017", .key_bytes = 4};
#define CALL                                                                                       \
    ":method=POST\n:scheme=http\n:authority=taillight\n:path=/shop.Cart/Add\n"                     \
    "content-type=application/grpc\nte=trailers\nuser-agent=taillight\n"
    READS(&grpc_protocol, &words, &request,
          CALL "\0\0\0\0\6\x0a\4"
               "0017|");
    char value[200] = "";
    request = (struct request){
        .operation = 1, .key = "0", .key_bytes = 1, .value = value, .value_bytes = sizeof value};
    char expected[sizeof CALL + 300] = CALL "\0\0\0\0\xce\x0a\1"
                                            "0\x12\xc8\1";
    expected[sizeof CALL - 1 + 11 + sizeof value] = '|';
    check_request(&grpc_protocol, &words, &request, expected,
                  sizeof CALL - 1 + 11 + sizeof value + 1);
    request.operation = 2;
    request.value = "raw";
    request.value_bytes = 3;
    READS(&grpc_protocol, &words, &request, CALL "\0\0\0\0\3raw|");
    http_words_free(&words);
}

// --- replies -------------------------------------------------------------------------------------

static void replies_come_in_any_order_and_split(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 80; piece++) {
        struct peer *peer = peer_new(&http2_protocol, NULL);
        peer_meet(peer);
        peer_ask(peer, 0, 4);
        const uint64_t begin = peer->parser.offset;
        FRAME(peer, FRAME_HEADERS, END_HEADERS, 5, OK);                     // 10 bytes
        FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, NOT_FOUND); // 10
        FRAME(peer, FRAME_PING, 0, 0, "12345678");                          // 17
        FRAME(peer, FRAME_DATA, 0, 5, "abc");                               // 12
        FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 7, FAILED);    // 10
        FRAME(peer, FRAME_DATA, END_STREAM, 5, "de");                       // 11
        assert_true(peer_say(peer, piece));
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(peer->answered[i], i != 1);
            assert_int_equal(peer->refused[i], 0);
        }
        assert_int_equal(peer->replies[0].kind, REPLY_MISS);
        assert_int_equal(peer->replies[2].kind, REPLY_VALUE);
        assert_int_equal(peer->replies[2].value_bytes, 5);
        assert_int_equal(peer->replies[2].begin, begin);
        assert_int_equal(peer->replies[2].end, begin + 70);
        assert_int_equal(peer->replies[3].kind, REPLY_SERVER_ERROR);
        assert_int_equal(peer->replies[3].begin, begin + 49);
        assert_int_equal(peer->replies[3].end, begin + 59);
        assert_string_equal(peer->parser.said, ":status 500");
        peer_free(peer);
    }
}

static enum reply_kind judge_call(const char *headers, size_t header_bytes, const char *body,
                                  size_t body_bytes, const char *trailers, size_t trailer_bytes,
                                  const char *said)
{
    struct peer *peer = peer_new(&grpc_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 1);
    const unsigned last = END_HEADERS | (trailers ? 0 : END_STREAM);
    peer_frame(peer, FRAME_HEADERS, last, 1, headers, header_bytes);
    if (trailers) {
        peer_frame(peer, FRAME_DATA, 0, 1, body, body_bytes);
        peer_frame(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, trailers, trailer_bytes);
    }
    assert_true(peer_say(peer, 3));
    assert_int_equal(peer->answered[0], 1);
    if (said)
        assert_string_equal(peer->parser.said, said);
    enum reply_kind kind = peer->replies[0].kind;
    if (kind == REPLY_VALUE)
        assert_int_equal(peer->replies[0].value_bytes, body_bytes - HTTP2_PREFIX_BYTES);
    peer_free(peer);
    return kind;
}

#define ENDS(headers, body, trailers, said)                                                        \
    judge_call(headers, sizeof(headers) - 1, body, sizeof(body) - 1, trailers,                     \
               sizeof(trailers) - 1, said)
#define ENDS_AT_ONCE(headers, said) judge_call(headers, sizeof(headers) - 1, "", 0, NULL, 0, said)

static void calls_are_judged_by_their_status(void **state)
{
    (void)state;
    assert_int_equal(ENDS(OK, "\0\0\0\0\2ab", GRPC_STATUS("0"), NULL), REPLY_VALUE);
    assert_int_equal(ENDS(OK, "\0\0\0\0\0", GRPC_STATUS("0"), NULL), REPLY_VALUE);
    assert_int_equal(
        ENDS(OK, "\0\0\0\0\3ab", GRPC_STATUS("0"), "a message of another length than it says"),
        REPLY_MALFORMED);
    assert_int_equal(ENDS(OK, "\0\0\0", GRPC_STATUS("0"), "no message"), REPLY_MALFORMED);
    assert_int_equal(ENDS(OK, "\0\0\0\0\2ab\0\0\0\0\0\1\0\0\0\1c", GRPC_STATUS("0"),
                          "3 messages, and a unary call has one: does it stream?"),
                     REPLY_MALFORMED);
    assert_int_equal(
        ENDS(OK, "\0\0\0\0\2ab\0\0", GRPC_STATUS("0"), "a message of another length than it says"),
        REPLY_MALFORMED);
    assert_int_equal(ENDS(OK, "\0\0\0\0\2ab", "\0\1a\1b", "no grpc-status"), REPLY_MALFORMED);
    assert_int_equal(ENDS_AT_ONCE(OK GRPC_STATUS("5") "\0\x0cgrpc-message\4gone", NULL),
                     REPLY_MISS);
    assert_int_equal(
        ENDS_AT_ONCE(OK "\0\x0cgrpc-message\4full" GRPC_STATUS("8"), "grpc-status 8: full"),
        REPLY_SERVER_ERROR);
    assert_int_equal(ENDS_AT_ONCE(OK "\0\x0cgrpc-message\x16"
                                     "100%25 f%C3%bcll %4%g1" GRPC_STATUS("8"),
                                  "grpc-status 8: 100% f??ll %4%g1"),
                     REPLY_SERVER_ERROR);
    assert_int_equal(ENDS_AT_ONCE(OK GRPC_STATUS("x"), "a grpc-status that is no number"),
                     REPLY_MALFORMED);
    assert_int_equal(ENDS_AT_ONCE(OK "\0\x0bgrpc-status\5"
                                     "32768",
                                  NULL),
                     REPLY_MALFORMED);
    assert_int_equal(
        ENDS(OK, "\1\0\0\0\2ab", GRPC_STATUS("0"), "a compressed message, and none was asked for"),
        REPLY_MALFORMED);
    assert_int_equal(
        ENDS(OK TYPE("\x15", "application/grpc+json"), "\0\0\0\0\0", GRPC_STATUS("0"), NULL),
        REPLY_VALUE);
    assert_int_equal(ENDS(OK TYPE("\x9", "text/html"), "\0\0\0\0\0", GRPC_STATUS("0"),
                          "a content-type that is not gRPC's"),
                     REPLY_MALFORMED);
    assert_int_equal(ENDS_AT_ONCE(FAILED TYPE("\x9", "text/html"), ":status 500"),
                     REPLY_SERVER_ERROR);
    assert_int_equal(ENDS_AT_ONCE(OK GRPC_STATUS("3"), "grpc-status 3: "), REPLY_CLIENT_ERROR);
    assert_int_equal(ENDS_AT_ONCE(FAILED, ":status 500"), REPLY_SERVER_ERROR);
}

// --- what a server takes back --------------------------------------------------------------------

static void a_server_that_closes_says_what_it_looked_at(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 3);
    FRAME(peer, FRAME_GOAWAY, 0, 0, "\0\0\0\3\0\0\0\0");
    assert_true(peer_say(peer, PEER_BYTES));
    assert_true(http2_session_is_ending(peer->session));
    assert_false(http2_session_takes(peer->session));
    assert_int_equal(peer->refused[2], 1);
    assert_int_equal(peer->refused[0] + peer->refused[1], 0);
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 3, OK);
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, OK);
    assert_true(peer_say(peer, PEER_BYTES));
    assert_int_equal(peer->answered[0], 1);
    assert_int_equal(peer->answered[1], 1);
    assert_int_equal(peer->answered[2], 0);
    peer_free(peer);
}

static void a_server_may_end_it_for_an_error(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 1);
    FRAME(peer, FRAME_GOAWAY, 0, 0, "\0\0\0\1\0\0\0\x0b");
    assert_true(peer_say(peer, PEER_BYTES));
    assert_true(http2_session_is_ended(peer->session));
    assert_string_equal(peer->parser.said, "GOAWAY ENHANCE_YOUR_CALM");
    assert_int_equal(peer->answered[0] + peer->refused[0], 0);
    peer_free(peer);
}

static void a_stream_that_is_reset_is_an_error(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 2);
    FRAME(peer, FRAME_RESET, 0, 1, "\0\0\0\7");
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 3, OK);
    FRAME(peer, FRAME_RESET, 0, 3, "\0\0\0\0"); // behind a whole reply it changes nothing
    assert_true(peer_say(peer, PEER_BYTES));
    assert_int_equal(peer->replies[0].kind, REPLY_SERVER_ERROR);
    assert_string_equal(peer->parser.said, "RST_STREAM REFUSED_STREAM");
    assert_int_equal(peer->replies[1].kind, REPLY_VALUE);
    assert_int_equal(peer->answered[1], 1);
    assert_true(http2_session_takes(peer->session));
    peer_free(peer);
}

// What comes behind a whole reply is told, once a reply; not where this side has ended a stream, of
// which frames may be under way.
static void a_reply_to_what_was_answered_is_surplus(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 4);
    FRAME(peer, FRAME_HEADERS, END_HEADERS, 1, OK);
    FRAME(peer, FRAME_DATA, END_STREAM, 1, "ab");
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 3, OK);
    assert_true(peer_say(peer, 1));
    assert_int_equal(peer->surplus, 0);
    FRAME(peer, FRAME_HEADERS, END_HEADERS, 1, OK);
    FRAME(peer, FRAME_DATA, END_STREAM, 1, "ab");
    FRAME(peer, FRAME_DATA, END_STREAM, 3, "ab");
    FRAME(peer, FRAME_RESET, 0, 3, "\0\0\0\0");
    FRAME(peer, FRAME_WINDOW, 0, 3, "\0\0\0\1");
    assert_true(peer_say(peer, 1));
    assert_int_equal(peer->surplus, 2);
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 5, "\0\1a\1b"); // no status
    FRAME(peer, FRAME_DATA, END_STREAM, 5, "ab");
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 7, OK);
    assert_true(peer_say(peer, 1));
    assert_int_equal(peer->surplus, 2);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(peer->answered[i], 1);
    peer_free(peer);
}

// A stream that breaks the rules of HTTP is lost alone.
static void a_wrong_stream_is_malformed(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 3);
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, "\0\1a\1b"); // no status
    FRAME(peer, FRAME_HEADERS, END_HEADERS, 3,
          OK "\x0f\x0d\1"
             "3"); // content-length: 3
    FRAME(peer, FRAME_DATA, END_STREAM, 3, "ab");
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 5, OK);
    assert_true(peer_say(peer, PEER_BYTES));
    assert_int_equal(peer->replies[0].kind, REPLY_MALFORMED);
    assert_int_equal(peer->replies[1].kind, REPLY_MALFORMED);
    assert_int_equal(peer->replies[2].kind, REPLY_VALUE);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(peer->answered[i], 1);
    peer_free(peer);
}

static void a_server_sets_how_much_it_takes(void **state)
{
    (void)state;
    static char value[100000];
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    FRAME(peer, FRAME_SETTINGS, 0, 0, "\0\3\0\0\0\2"); // two streams
    assert_true(peer_say(peer, PEER_BYTES));
    peer_ask(peer, 0, 1);
    assert_true(http2_session_takes(peer->session));
    const struct request post = {.operation = 2,
                                 .key = "1",
                                 .key_bytes = 1,
                                 .number = 1,
                                 .value = value,
                                 .value_bytes = sizeof value};
    http2_session_put(peer->session, &post);
    size_t said = peer_listen(peer);
    assert_in_range(said, 65535, 70000); // the window of RFC 9113, 6.9.2
    assert_false(http2_session_whole(peer->session));
    assert_false(http2_session_takes(peer->session));
    FRAME(peer, FRAME_WINDOW, 0, 0, "\0\1\0\0");
    assert_true(peer_say(peer, PEER_BYTES));
    assert_int_equal(peer->out_count, 0); // of the stream there is no room
    FRAME(peer, FRAME_WINDOW, 0, 3, "\0\1\0\0");
    assert_true(peer_say(peer, PEER_BYTES));
    assert_true(http2_session_whole(peer->session));
    assert_false(http2_session_takes(peer->session)); // both streams are in use
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, OK);
    assert_true(peer_say(peer, PEER_BYTES));
    assert_true(http2_session_takes(peer->session));
    peer_free(peer);
}

// A reply that does not wait for the body ends the request; what is left of that is dropped.
static void a_reply_may_come_before_the_body_has_left(void **state)
{
    (void)state;
    static char value[100000];
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    const struct request post = {
        .operation = 2, .key = "1", .key_bytes = 1, .value = value, .value_bytes = sizeof value};
    http2_session_put(peer->session, &post);
    peer_listen(peer);
    assert_false(http2_session_takes(peer->session));
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, FAILED);
    FRAME(peer, FRAME_RESET, 0, 1, "\0\0\0\0");
    assert_true(peer_say(peer, PEER_BYTES));
    assert_int_equal(peer->answered[0], 1);
    assert_int_equal(peer->replies[0].kind, REPLY_SERVER_ERROR);
    assert_true(http2_session_takes(peer->session));
    peer_free(peer);
}

// --- what a server may not say -------------------------------------------------------------------

struct nonsense {
    const char *name;
    unsigned type, flags;
    uint32_t stream;
    const char *payload;
    size_t bytes;
};

#define WRONG(type, flags, stream, text)                                                           \
    {                                                                                              \
#type " " #stream, type, flags, stream, text, sizeof(text) - 1                             \
    }

static void what_breaks_the_protocol_ends_the_connection(void **state)
{
    (void)state;
    static char long_payload[16385];
    static const struct nonsense all[] = {
        WRONG(FRAME_DATA, 0, 0, "ab"),
        WRONG(FRAME_DATA, END_STREAM, 9, "ab"), // no such stream
        WRONG(FRAME_HEADERS, END_HEADERS, 2, OK),
        WRONG(FRAME_HEADERS, END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        WRONG(FRAME_PUSH, END_HEADERS, 1, "\0\0\0\2\x82\x84\x86"),
        WRONG(FRAME_SETTINGS, 0, 0, "\0\4\xff\xff\xff\xff"), // a window without end
        WRONG(FRAME_SETTINGS, 0, 1, ""),
        WRONG(FRAME_SETTINGS, 0, 0, "abc"),
        WRONG(FRAME_PING, 0, 0, "abc"),
        WRONG(FRAME_WINDOW, 0, 0, "\x7f\xff\xff\xff"),
        WRONG(FRAME_GOAWAY, 0, 0, "\0"),
        WRONG(FRAME_CONTINUATION, 0, 1, ""),
        {"a long frame", FRAME_DATA, 0, 1, long_payload, sizeof long_payload},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t piece = 1; piece < 30000; piece *= 27) {
            struct peer *peer = peer_new(&http2_protocol, NULL);
            peer_meet(peer);
            peer_ask(peer, 0, 1);
            peer_frame(peer, all[i].type, all[i].flags, all[i].stream, all[i].payload,
                       all[i].bytes);
            if (peer_say(peer, piece))
                fail_msg("%s was taken", all[i].name);
            assert_true(http2_session_is_broken(peer->session));
            assert_false(http2_session_takes(peer->session));
            assert_true(peer->parser.said[0]);
            peer_free(peer);
        }
}

// Frames of a type that nobody knows are passed over (RFC 9113, 4.1), but not for ever.
static bool say_unknown(struct peer *peer, unsigned count)
{
    bool right = true;
    for (; count && right; count--) {
        FRAME(peer, 99, 0, 0, "");
        right = peer_say(peer, PEER_BYTES);
    }
    return right;
}

static void a_server_without_end_is_left(void **state)
{
    (void)state;
    char headers[16000];
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 2);
    assert_true(say_unknown(peer, 6000));
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, OK);
    assert_true(say_unknown(peer, 6000));
    assert_int_equal(peer->answered[0], 1);
    assert_false(say_unknown(peer, 6000));
    assert_non_null(strstr(peer->parser.said, "10,000 frames"));
    peer_free(peer);

    peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    peer_ask(peer, 0, 1);
    memset(headers, 0x90, sizeof headers); // "accept-encoding: gzip, deflate" in a byte each
    headers[0] = OK[0];
    peer_frame(peer, FRAME_HEADERS, END_HEADERS, 1, headers, 4000);
    assert_true(peer_say(peer, PEER_BYTES)); // nearly 256 KiB
    peer_frame(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, headers + 1, sizeof headers - 1);
    assert_false(peer_say(peer, PEER_BYTES));
    assert_non_null(strstr(peer->parser.said, "256 KiB of headers"));
    peer_free(peer);
}

static void a_server_of_something_else_is_quoted(void **state)
{
    (void)state;
    static const char *const others[] = {"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n",
                                         "SSH-2.0-OpenSSH_9.2p1\r\n", "-ERR unknown command\r\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct peer *peer = peer_new(&http2_protocol, NULL);
        peer_listen(peer);
        peer_add(peer, others[i], strlen(others[i]));
        assert_false(peer_say(peer, PEER_BYTES));
        assert_int_equal(strlen(peer->parser.said), strcspn(others[i], "\r"));
        assert_memory_equal(peer->parser.said, others[i], strlen(peer->parser.said));
        assert_false(http2_session_ready(peer->session));
        peer_free(peer);
    }
}

// A frame may name a stream before there is one: PRIORITY does (RFC 9113, 5.3.2).
static void a_stream_may_be_named_before_it_begins(void **state)
{
    (void)state;
    enum { FRAME_PRIORITY = 2 };
    struct peer *peer = peer_new(&http2_protocol, NULL);
    peer_meet(peer);
    FRAME(peer, FRAME_PRIORITY, 0, 1, "\0\0\0\0\7");
    assert_true(peer_say(peer, PEER_BYTES));
    peer_ask(peer, 0, 1);
    FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, OK);
    assert_true(peer_say(peer, PEER_BYTES));
    assert_int_equal(peer->answered[0], 1);
    assert_int_equal(peer->surplus, 0);
    peer_free(peer);
}

// One connection after the other, with the same memory.
static void a_session_begins_again(void **state)
{
    (void)state;
    struct peer *peer = peer_new(&http2_protocol, NULL);
    for (unsigned round = 0; round < 3; round++) {
        peer_meet(peer);
        peer_ask(peer, round, PEER_DEPTH);
        assert_false(http2_session_takes(peer->session)); // as deep as it may be
        FRAME(peer, FRAME_HEADERS, END_HEADERS | END_STREAM, 1, OK);
        assert_true(peer_say(peer, PEER_BYTES));
        assert_int_equal(peer->answered[round], 1);
        assert_true(http2_session_takes(peer->session));
        assert_true(http2_session_begin(peer->session));
        peer->parser = (struct reply_parser){0};
    }
    peer_free(peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_streams),
        cmocka_unit_test(calls_are_messages),
        cmocka_unit_test(replies_come_in_any_order_and_split),
        cmocka_unit_test(calls_are_judged_by_their_status),
        cmocka_unit_test(a_server_that_closes_says_what_it_looked_at),
        cmocka_unit_test(a_server_may_end_it_for_an_error),
        cmocka_unit_test(a_stream_that_is_reset_is_an_error),
        cmocka_unit_test(a_reply_to_what_was_answered_is_surplus),
        cmocka_unit_test(a_wrong_stream_is_malformed),
        cmocka_unit_test(a_server_sets_how_much_it_takes),
        cmocka_unit_test(a_reply_may_come_before_the_body_has_left),
        cmocka_unit_test(what_breaks_the_protocol_ends_the_connection),
        cmocka_unit_test(a_server_without_end_is_left),
        cmocka_unit_test(a_server_of_something_else_is_quoted),
        cmocka_unit_test(a_stream_may_be_named_before_it_begins),
        cmocka_unit_test(a_session_begins_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
