// SPDX-License-Identifier: MIT
//
// Where requests and replies end in the two streams of a connection, by their protocol's own
// framing: RESP (redis.io, "Redis serialization protocol"), memcached's text, meta and binary
// protocols (protocol.txt, BinaryProtocolRevamped), HTTP/1.1 (RFC 9112). For who looks on: of each
// socket call only the first bytes are needed, the lengths in them say the rest. No I/O; nothing is
// kept of the bytes but the line that a call ended within.
//
// The n-th reply answers the n-th request that has one. Quiet
// requests of the binary protocol belong to the next one that is not. Where bytes are missing that
// would have said where the next message begins, both streams are out of step until a request
// begins a call again. Where a protocol's replies are not one for one (subscriptions, an upgrade, a
// body that ends with its connection), the connection is given up.
#ifndef WORKLOADS_FRAMING_FRAMING_H
#define WORKLOADS_FRAMING_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FRAMING_LINE_BYTES = 320, // of a longer line these are looked at: a key has 250 at most
    // Calls in a row that begin with no request, before one did: it is another protocol. Of a
    // client that asks far ahead few begin with one.
    FRAMING_STRANGE_MOST = 64,
};

// One direction.
struct framing_stream {
    bool in_step, ends_after_skip;
    bool asks_to_wait; // of the request, as below
    uint8_t phase;     // the grammar's; 0 where a message begins
    bool has_length;   // so are these
    uint64_t at;       // offset of the next byte
    uint64_t begin;    // of the message
    uint64_t skip;     // bytes that need no look
    uint64_t pending;  // the grammar's
    uint16_t head_bytes;
    char head[FRAMING_LINE_BYTES];
};

// A zeroed one with a grammar is a connection of which nothing was seen.
struct framing {
    const struct framing_grammar *grammar;
    struct framing_stream requests, replies;
    uint32_t asked, answered;
    uint64_t headless; // by the low bits of a request's number: its reply has no body (HTTP's HEAD)
    uint8_t strange;
    bool was_reply; // the latest call
    bool given_up;
    uint64_t lost;    // times that it fell out of step
    uint64_t unasked; // replies to requests that were not seen
};

// What a protocol has to say for its messages to be told apart: a file and a row of
// framing_protocols.c each.
enum framing_step {
    FRAMING_GOES_ON,   // the message does, behind what is to be skipped
    FRAMING_ENDS,      // it ends there
    FRAMING_NO_ANSWER, // so does this one, which gets no reply, or is none
    FRAMING_GIVES_UP,
};

struct framing_grammar {
    const char *name;
    // Whether a call that begins so begins with a message.
    bool (*begins)(bool is_reply, const char *bytes, size_t count);
    // How many bytes the next head has, by its first byte; 0: it is a line.
    size_t (*head_bytes)(const struct framing_stream *stream, unsigned char first);
    // Takes a head, or a line without its end; `skip` of the stream is set to what follows that
    // needs no look.
    enum framing_step (*take_head)(struct framing *framing, struct framing_stream *stream,
                                   const char *head, size_t count);
};

struct framed_message {
    uint64_t end; // offset after it in its direction's stream
    uint32_t bytes;
    uint32_t number; // the same of a request and its reply
    bool is_reply;
    bool has_no_reply; // a request to which none comes, and without a number
    // A request whose reply may come when somebody else has done something, or a time is up: the
    // server does not owe it at once.
    bool asks_to_wait;
};

typedef void framing_found(void *context, const struct framed_message *message);

struct framing_call {
    bool is_reply;
    uint64_t offset; // of its first byte
    uint32_t bytes;  // that it moved
    uint32_t seen;   // of these, from the first
    const char *at;
};

// Takes the next call of a connection, and tells of each message that ends in it.
void framing_feed(struct framing *framing, const struct framing_call *call, framing_found *found,
                  void *context);

#endif
