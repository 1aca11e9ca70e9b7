// SPDX-License-Identifier: MIT
//
// What the tests of codecs share: a stream of replies, fed in pieces of every size, must give the
// same replies however it is split.
#ifndef TESTS_CODEC_TEST_H
#define TESTS_CODEC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/protocols/custom.h"
#include "workloads/protocols/http_words.h"
#include "workloads/protocols/protocol.h"
#include "workloads/protocols/reply_parser.h"
#include "workloads/workload.h"

struct stream {
    const char *bytes;
    size_t count;
    struct reply replies[64];
    size_t reply_count;
};

#define STREAM(text)                                                                               \
    (struct stream)                                                                                \
    {                                                                                              \
        .bytes = text, .count = sizeof text - 1                                                    \
    }

// Feeds bytes [begin, end), in as many calls as it takes, with room for few replies a call.
static inline void feed(const struct protocol *protocol, struct reply_parser *parser,
                        struct stream *stream, size_t begin, size_t end, size_t room)
{
    while (begin < end) {
        // A copy of its own size, so that reading past it is caught by the sanitizers.
        char *copy = malloc(end - begin);
        assert_non_null(copy);
        memcpy(copy, stream->bytes + begin, end - begin);
        size_t found = 0;
        size_t used = reply_parse(protocol, parser, copy, end - begin,
                                  stream->replies + stream->reply_count, room, &found);
        free(copy);
        assert_true(used > 0 && used <= end - begin && found <= room);
        stream->reply_count += found;
        assert_true(stream->reply_count < 60);
        begin += used;
    }
}

static inline void check_whole(struct stream *stream, const enum reply_kind *kinds, size_t count)
{
    uint64_t at = 0;
    assert_int_equal(stream->reply_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(stream->replies[i].kind, kinds[i]);
        assert_int_equal(stream->replies[i].begin, at);
        assert_true(stream->replies[i].end > at);
        at = stream->replies[i].end;
    }
}

// What was seen of each reply does not depend on how it came.
static inline void check_alike(const struct stream *stream, const struct stream *other)
{
    for (size_t i = 0; i < stream->reply_count; i++) {
        assert_int_equal(stream->replies[i].value_bytes, other->replies[i].value_bytes);
        assert_int_equal(stream->replies[i].key_hash, other->replies[i].key_hash);
    }
}

// Every way to split the stream in three, whole, and byte by byte: as which no reply is there at
// once (protocol.h, take_usual).
static inline void check_splits(const struct protocol *protocol, struct stream stream,
                                const enum reply_kind *kinds, size_t count)
{
    struct stream bytewise = stream;
    struct reply_parser parser = {0};
    for (size_t at = 0; at < stream.count; at++)
        feed(protocol, &parser, &bytewise, at, at + 1, 1);
    check_whole(&bytewise, kinds, count);
    for (size_t first = 0; first <= stream.count; first++) {
        for (size_t second = first; second <= stream.count; second++) {
            parser = (struct reply_parser){0};
            stream.reply_count = 0;
            feed(protocol, &parser, &stream, 0, first, 1 + first % 3);
            feed(protocol, &parser, &stream, first, second, 8);
            feed(protocol, &parser, &stream, second, stream.count, 8);
            check_whole(&stream, kinds, count);
            check_alike(&stream, &bytewise);
            assert_int_equal(parser.offset, stream.count);
        }
    }
}

// Encodes into exactly the room it may take, and holds the outcome against what is expected.
static inline void check_request(const struct protocol *protocol, const struct request *request,
                                 const char *expected, size_t expected_bytes)
{
    size_t room = protocol->request_bytes_max(request->key_bytes, request->value_bytes) +
                  (request->http ? http_words_bytes(request->http) : 0) +
                  (request->custom ? custom_bytes(request->custom) : 0);
    char *out = malloc(room);
    assert_non_null(out);
    size_t bytes = protocol->encode(request, out, room);
    assert_int_equal(bytes, expected_bytes);
    assert_memory_equal(out, expected, expected_bytes);
    assert_int_equal(protocol->encode(request, out, expected_bytes - 1), 0);
    free(out);
}

#endif
