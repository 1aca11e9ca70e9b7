// SPDX-License-Identifier: MIT
//
// Where requests and replies end, by three protocols' framing: the same however the bytes are split
// into calls, and as far as only the first bytes of a call are seen; and what falls out of step
// comes back into it at a turn, and is counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/framing/framing_protocols.h"

struct seen {
    struct framed_message items[64];
    size_t count;
};

static void note(void *context, const struct framed_message *message)
{
    struct seen *seen = context;
    assert_true(seen->count < 64);
    seen->items[seen->count++] = *message;
}

// A call of `bytes` bytes of which those of `text` are seen.
static void give(struct framing *framing, struct seen *seen, bool is_reply, uint64_t *offset,
                 const char *text, size_t shown, size_t bytes)
{
    char *copy = malloc(shown + 1); // of its own size, so that reading past it is caught
    memcpy(copy, text, shown);
    const struct framing_call call = {.is_reply = is_reply,
                                      .offset = *offset,
                                      .bytes = (uint32_t)bytes,
                                      .seen = (uint32_t)shown,
                                      .at = copy};
    framing_feed(framing, &call, note, seen);
    *offset += bytes;
    free(copy);
}

struct talk {
    const char *protocol, *requests, *replies;
    size_t request_bytes, reply_bytes;
    uint64_t ends[16]; // of the requests, 0 behind the last
    uint64_t reply_ends[16];
};

#define TALK(name, asked, said, ...)                                                               \
    {                                                                                              \
        .protocol = name, .requests = asked, .request_bytes = sizeof asked - 1, .replies = said,   \
        .reply_bytes = sizeof said - 1, __VA_ARGS__                                                \
    }

static const struct talk talks[] = {
    TALK("redis",
         "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$4\r\n*1\r\n\r\nPING\r\n"
         "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n",
         "$2\r\nab\r\n+OK\r\n*2\r\n*1\r\n:1\r\n$-1\r\n%1\r\n+a\r\n_\r\n", .ends = {20, 50, 56, 80},
         .reply_ends = {8, 13, 30, 41}),
    TALK("memcached",
         "get a b\r\nset k 0 0 5 noreply\r\nge\r\nt\r\nset k 0 0 2\r\nab\r\nmg k v\r\nincr n 1\r\n",
         "VALUE a 0 4\r\nEND\r\r\nEND\r\nSTORED\r\nVA 2 f0\r\nHD\r\n7\r\n", .ends = {9, 54, 62, 72},
         .reply_ends = {24, 32, 45, 48}),
    TALK("memcached", // a quiet get and a get; statistics
         "\x80\x09\0\1\0\0\0\0\0\0\0\1abcdefghijkl!"
         "\x80\x00\0\1\0\0\0\0\0\0\0\1abcdefghijkl?"
         "\x80\x10\0\0\0\0\0\0\0\0\0\0abcdefghijkl",
         "\x81\x09\0\0\0\0\0\0\0\0\0\5abcdefghijkl?????"
         "\x81\x00\0\0\0\0\0\0\0\0\0\0abcdefghijkl"
         "\x81\x10\0\0\0\0\0\0\0\0\0\2abcdefghijkl??"
         "\x81\x10\0\0\0\0\0\0\0\0\0\0abcdefghijkl",
         .ends = {50, 74}, .reply_ends = {53, 103}),
    TALK(
        "http",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
        "POST /x HTTP/1.1\r\ncontent-length:  3 \r\n\r\nGET"
        "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA;x\r\n0123456789\r\n0\r\nT: 1\r\n\r\n"
        "GET / HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Length: 2 ,2\r\n\r\nab"
        "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nHT\r\n0\r\n\r\n",
        .ends = {28, 72, 146, 164}, .reply_ends = {39, 83, 126, 185}),
};

static void check(const struct talk *talk, const struct seen *seen, bool replies)
{
    const uint64_t *ends = replies ? talk->reply_ends : talk->ends;
    uint64_t before = 0;
    size_t at = 0;
    for (size_t i = 0; i < seen->count; i++) {
        const struct framed_message *message = &seen->items[i];
        if (message->is_reply != replies)
            continue;
        if (message->has_no_reply) {
            before = message->end;
            continue;
        }
        assert_int_equal(message->end, ends[at]);
        assert_int_equal(message->bytes, message->end - before);
        assert_int_equal(message->number, at);
        before = message->end;
        at++;
    }
    assert_int_equal(ends[at], 0);
    assert_true(at > 1);
}

static void messages_end_where_they_do_however_they_are_split(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof talks / sizeof *talks; t++)
        for (size_t piece = 1; piece <= talks[t].request_bytes + talks[t].reply_bytes; piece++) {
            const struct talk *talk = &talks[t];
            struct framing framing = {.grammar = framing_find(talk->protocol)};
            struct seen seen = {0};
            for (int is_reply = 0; is_reply < 2; is_reply++) {
                const char *text = is_reply ? talk->replies : talk->requests;
                size_t bytes = is_reply ? talk->reply_bytes : talk->request_bytes, now;
                for (uint64_t offset = 0; offset < bytes;) {
                    now = bytes - offset < piece ? bytes - offset : piece;
                    give(&framing, &seen, is_reply, &offset, text + offset, now, now);
                }
            }
            assert_false(framing.given_up);
            assert_int_equal(framing.lost + framing.unasked, 0);
            check(talk, &seen, false);
            check(talk, &seen, true);
        }
}

// A large value needs no look; several messages behind what was seen do, and what is asked while
// some may not be answered yet is left alone.
static void the_first_bytes_suffice_where_lengths_say_the_rest(void **state)
{
    (void)state;
    static const char set[] = "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$9000\r\n", ping[] = "PING\r\n";
    static const char array_ping[] = "*1\r\n$4\r\nPING\r\n", ok[] = "+OK\r\n";
    struct framing framing = {.grammar = framing_find("redis")};
    struct seen seen = {0};
    uint64_t asked = 0, said = 0;
    give(&framing, &seen, false, &asked, set, sizeof set - 1, sizeof set - 1 + 9002);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.items[0].end, asked);
    give(&framing, &seen, false, &asked, ping, sizeof ping - 1, 5000);
    assert_int_equal(seen.count, 2);
    assert_int_equal(framing.lost, 1);
    give(&framing, &seen, false, &asked, array_ping, sizeof array_ping - 1, sizeof array_ping - 1);
    assert_int_equal(seen.count, 2);
    give(&framing, &seen, true, &said, ok, sizeof ok - 1, sizeof ok - 1);
    give(&framing, &seen, false, &asked, array_ping, sizeof array_ping - 1, sizeof array_ping - 1);
    assert_int_equal(seen.count, 3);
    give(&framing, &seen, true, &said, ok, sizeof ok - 1, sizeof ok - 1);
    assert_int_equal(seen.count, 4);
    assert_true(seen.items[3].is_reply && seen.items[3].number == seen.items[2].number);
    give(&framing, &seen, true, &said, ok, sizeof ok - 1, sizeof ok - 1);
    assert_int_equal(framing.unasked, 1);
}

// Which requests ask to be kept waiting, however they are split; no reply does.
static void blocking_commands_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        bool waits;
    } all[] = {
        {"*3\r\n$5\r\nBRPOP\r\n$1\r\na\r\n$1\r\n0\r\n", true},
        {"*3\r\n$4\r\nwait\r\n$1\r\n1\r\n$1\r\n0\r\n", true},
        {"*2\r\n$4\r\nRPOP\r\n$5\r\nBLPOP\r\n", false},
        {"*6\r\n$5\r\nXREAD\r\n$5\r\nBLOCK\r\n$1\r\n0\r\n$7\r\nSTREAMS\r\n$1\r\na\r\n$1\r\n$\r\n",
         true},
        {"*4\r\n$5\r\nXREAD\r\n$7\r\nstreams\r\n$5\r\nblock\r\n$1\r\n0\r\n", false},
        {"*9\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$"
         "40\r\n0123456789012345678901234567890123456789\r\n"
         "$1\r\nc\r\n$5\r\nblock\r\n$1\r\n9\r\n$7\r\nSTREAMS\r\n$1\r\na\r\n$1\r\n>\r\n",
         true},
        {"blpop a 0\r\n", true},
        {"XREAD COUNT 1 BLOCK 0 STREAMS a $\r\n", true},
        {"XREAD STREAMS block 0\r\n", false},
        {"GET blpop\r\n", false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t bytes = strlen(all[i].request);
        const bool is_line = all[i].request[0] != '*';
        for (size_t piece = is_line ? bytes : 1; piece <= bytes; piece++) {
            struct framing framing = {.grammar = framing_find("redis")};
            struct seen seen = {0};
            uint64_t asked = 0, said = 0;
            give(&framing, &seen, false, &asked, "*1\r\n$4\r\nPING\r\n", 14, 14);
            while (asked < 14 + bytes) {
                const size_t left = 14 + bytes - asked, now = left < piece ? left : piece;
                give(&framing, &seen, false, &asked, all[i].request + asked - 14, now, now);
            }
            give(&framing, &seen, true, &said, "+PONG\r\n*-1\r\n", 12, 12);
            assert_int_equal(seen.count, 4);
            assert_false(seen.items[0].asks_to_wait);
            assert_int_equal(seen.items[1].asks_to_wait, all[i].waits);
            assert_false(seen.items[2].asks_to_wait || seen.items[3].asks_to_wait);
        }
    }
}

static void what_has_no_turns_is_given_up(void **state)
{
    (void)state;
    static const struct {
        const char *protocol, *request, *reply;
    } all[] = {
        {"redis", "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n", ""},
        {"redis", "*3\r\n$6\r\nclient\r\n$5\r\nreply\r\n$3\r\noff\r\n", ""},
        {"redis", "*1\r\n$4\r\nPING\r\n", ">1\r\n+x\r\n"},
        {"memcached", "mg k q\r\n", ""},
        {"memcached", "set k 0 0 many\r\n", ""},
        {"http", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 101 Switching\r\n\r\n"},
        {"http", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nuntil the end"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct framing framing = {.grammar = framing_find(all[i].protocol)};
        struct seen seen = {0};
        uint64_t asked = 0, said = 0;
        give(&framing, &seen, false, &asked, all[i].request, strlen(all[i].request),
             strlen(all[i].request));
        give(&framing, &seen, true, &said, all[i].reply, strlen(all[i].reply),
             strlen(all[i].reply));
        assert_true(framing.given_up);
    }
    struct framing framing = {.grammar = framing_find("http")};
    struct seen seen = {0};
    uint64_t asked = 0, said = 0;
    for (int i = 0; i < FRAMING_STRANGE_MOST + 1; i++) { // another protocol altogether
        give(&framing, &seen, false, &asked, "\x16\x03\x01", 3, 3);
        give(&framing, &seen, true, &said, "\x16\x03\x01", 3, 3);
    }
    assert_true(framing.given_up);
    assert_int_equal(seen.count, 0);
    assert_null(framing_find("gopher"));
    assert_null(framing_name(3));
}

// Of a client that asks far ahead calls begin within requests, however many; once one begins with a
// request, they are told apart again.
static void who_once_spoke_the_protocol_is_not_given_up(void **state)
{
    (void)state;
    static const char get[] = "get a\r\n", end[] = "END\r\n";
    struct framing framing = {.grammar = framing_find("memcached")};
    struct seen seen = {0};
    uint64_t asked = 0, said = 0;
    for (int i = 0; i < 2; i++) {
        give(&framing, &seen, false, &asked, get, sizeof get - 1, sizeof get - 1);
        give(&framing, &seen, true, &said, end, sizeof end - 1, sizeof end - 1);
        asked += i == 0 ? 100 : 0; // of which nothing was seen
    }
    for (int i = 0; i < 2 * FRAMING_STRANGE_MOST; i++) {
        give(&framing, &seen, false, &asked, "1\r\nget b\r\nget", 13, 13);
        give(&framing, &seen, true, &said, "END\r\nEN", 7, 7);
        asked += 7; // a gap
    }
    assert_false(framing.given_up);
    size_t before = seen.count;
    give(&framing, &seen, false, &asked, get, sizeof get - 1, sizeof get - 1);
    give(&framing, &seen, true, &said, end, sizeof end - 1, sizeof end - 1);
    assert_int_equal(seen.count, before + 2);
    assert_true(seen.items[before + 1].is_reply &&
                seen.items[before + 1].number == seen.items[before].number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_end_where_they_do_however_they_are_split),
        cmocka_unit_test(the_first_bytes_suffice_where_lengths_say_the_rest),
        cmocka_unit_test(blocking_commands_are_told),
        cmocka_unit_test(what_has_no_turns_is_given_up),
        cmocka_unit_test(who_once_spoke_the_protocol_is_not_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
