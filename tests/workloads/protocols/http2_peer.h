// SPDX-License-Identifier: MIT
//
// The other side of HTTP/2, made by hand: frames byte for byte, right and wrong, and the events of
// the session that reads them.
#ifndef TESTS_HTTP2_PEER_H
#define TESTS_HTTP2_PEER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/http2_session.h"
#include "workloads/protocols/reply_parser.h"

enum { PEER_DEPTH = 8, PEER_EVENTS = 64, PEER_BYTES = 1 << 18 };
enum { FRAME_DATA, FRAME_HEADERS, FRAME_RESET = 3, FRAME_SETTINGS, FRAME_PUSH, FRAME_PING };
enum { FRAME_GOAWAY = 7, FRAME_WINDOW, FRAME_CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

struct peer {
    struct http2_session *session;
    struct reply_parser parser;
    char out[PEER_BYTES]; // what the session said last
    size_t out_count;
    char in[PEER_BYTES]; // frames for it
    size_t in_count;
    struct reply replies[PEER_EVENTS]; // by the requests' numbers
    unsigned answered[PEER_EVENTS], refused[PEER_EVENTS], surplus;
};

static inline void peer_note_answer(void *owner, uint64_t number, const struct reply *reply)
{
    struct peer *peer = owner;
    if (number >= PEER_EVENTS)
        abort();
    peer->replies[number] = *reply;
    peer->answered[number]++;
}

static inline void peer_note_refusal(void *owner, uint64_t number)
{
    struct peer *peer = owner;
    if (number >= PEER_EVENTS)
        abort();
    peer->refused[number]++;
}

static inline void peer_note_surplus(void *owner)
{
    struct peer *peer = owner;
    peer->surplus++;
}

static inline struct peer *peer_new(const struct protocol *protocol, const struct http_words *words)
{
    static const struct http2_events events = {peer_note_answer, peer_note_refusal,
                                               peer_note_surplus};
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        abort();
    const struct http2_settings settings = {.dialect = protocol->http2,
                                            .words = words,
                                            .depth = PEER_DEPTH,
                                            .value_bytes = 100000,
                                            .parser = &peer->parser,
                                            .events = &events,
                                            .owner = peer};
    peer->session = http2_session_new(&settings);
    if (!peer->session || !http2_session_begin(peer->session))
        abort();
    return peer;
}

static inline void peer_free(struct peer *peer)
{
    http2_session_free(peer->session);
    free(peer);
}

static inline size_t peer_listen(struct peer *peer)
{
    peer->out_count = http2_session_say(peer->session, peer->out, sizeof peer->out);
    return peer->out_count;
}

static inline void peer_add(struct peer *peer, const char *bytes, size_t count)
{
    memcpy(peer->in + peer->in_count, bytes, count);
    peer->in_count += count;
}

static inline void peer_frame(struct peer *peer, unsigned type, unsigned flags, uint32_t stream,
                              const char *payload, size_t count)
{
    char head[9];
    big_endian_write(head, 3, count);
    head[3] = (char)type;
    head[4] = (char)flags;
    big_endian_write(head + 5, 4, stream);
    peer_add(peer, head, sizeof head);
    peer_add(peer, payload, count);
}

#define FRAME(peer, type, flags, stream, text)                                                     \
    peer_frame(peer, type, flags, stream, text, sizeof(text) - 1)

// Gives the frames to the session, in pieces of that size. Returns what it says of them.
static inline bool peer_say(struct peer *peer, size_t piece)
{
    bool right = true;
    for (size_t at = 0; at < peer->in_count && right; at += piece) {
        size_t count = peer->in_count - at < piece ? peer->in_count - at : piece;
        char *copy = malloc(count); // of its own size, so that reading past it is caught
        memcpy(copy, peer->in + at, count);
        right = http2_session_take(peer->session, copy, count, NULL);
        free(copy);
        peer_listen(peer);
        right = right && !http2_session_is_broken(peer->session);
    }
    peer->in_count = 0;
    return right;
}

static inline void peer_meet(struct peer *peer)
{
    peer_listen(peer);
    FRAME(peer, FRAME_SETTINGS, 0, 0, "");
    FRAME(peer, FRAME_SETTINGS, ACK, 0, "");
    if (!peer_say(peer, PEER_BYTES) || !http2_session_ready(peer->session))
        abort();
}

// Puts so many requests of the first operation.
static inline void peer_ask(struct peer *peer, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        const struct request request = {.key = "0017", .key_bytes = 4, .number = i};
        http2_session_put(peer->session, &request);
    }
    peer_listen(peer);
}

#endif
