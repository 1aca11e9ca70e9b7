// SPDX-License-Identifier: MIT
//
// HTTP/2 on one connection, client side (RFC 9113, RFC 7541), by nghttp2 and without I/O: bytes go
// in, events and bytes to be sent come out. Each request is a stream, and replies end in any order.
// What requests and replies are within streams is a protocol's (http2.c, grpc.c): its dialect.
//
// A session's own memory is taken when it is made; what nghttp2 takes for a stream, and frees when
// it ends, is kept for the next one. Pushes are refused, windows as wide as replies can be.
#ifndef WORKLOADS_PROTOCOLS_HTTP2_SESSION_H
#define WORKLOADS_PROTOCOLS_HTTP2_SESSION_H

#include "workloads/protocols/protocol.h"

struct http2_session;

enum { HTTP2_PREFIX_BYTES = 5 };

// What a client says first (RFC 9113, 3.4): the preface, and SETTINGS that set nothing.
#define HTTP2_PROBE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
#define HTTP2_ALPN  "h2"

// What is known of a reply under way.
struct http2_reply {
    uint64_t begin;      // where its first frame began
    uint64_t body_bytes; // so far
    uint16_t status;     // HTTP's; 0: none came yet
    int16_t code;        // gRPC's; -1: none came yet
    bool begun;
    bool foreign; // its content-type is another than the dialect's
    // Of a body that is messages (http2_dialect.take_body):
    uint32_t messages;     // that are whole
    uint8_t prefix_bytes;  // seen of what stands in front of the message under way
    bool compressed;       // the first one is
    uint64_t first_bytes;  // of the first one
    uint64_t message_left; // of the message under way, as far as its prefix is whole
};

// A header's name and value, neither with a NUL behind it.
struct http2_header {
    const char *name, *value;
    size_t name_bytes, value_bytes;
};

struct http2_dialect {
    const char *const *methods;      // of each operation
    const char *path;                // where the workload says none
    const char *const (*headers)[2]; // of every request: names and values, up to a NULL
    bool always_body;                // not only of a request that carries a value
    bool states_length;              // a request with a body has its Content-Length
    size_t prefix_bytes;             // by so many a body is longer than the value
    // Writes the body of a request that has one.
    size_t (*body)(const struct request *request, char *out);
    // Takes the next bytes of a reply's body. NULL: they do not matter.
    void (*take_body)(struct http2_reply *reply, const uint8_t *bytes, size_t count);
    // Takes a header or trailer of a reply, and what it says for people, if it does, into `said`,
    // which is empty when headers begin. NULL: none matters.
    void (*take_header)(struct http2_reply *reply, const struct http2_header *header,
                        char said[REPLY_SAID_BYTES]);
    // What a reply is that has ended, and how long its value; of a fault also what it says.
    enum reply_kind (*judge)(const struct http2_reply *reply, uint64_t *value_bytes,
                             char said[REPLY_SAID_BYTES]);
};

// Called while bytes are taken, once for each request at most. They may not end the session.
struct http2_events {
    // The reply has ended; broken (reply_is_broken): it has not, but nothing more of it comes.
    void (*answered)(void *owner, uint64_t number, const struct reply *reply);
    // The server has not looked at the request, and will not (GOAWAY; RFC 9113, 6.8).
    void (*refused)(void *owner, uint64_t number);
    // Another reply begins where one has ended.
    void (*surplus)(void *owner);
};

struct http2_settings {
    const struct http2_dialect *dialect;
    const struct http_words *words; // NULL: what is usual
    bool tls;                       // the scheme is https
    uint32_t depth;                 // the most streams at once
    size_t value_bytes;             // of the longest value of a request
    struct reply_parser *parser;    // its offset is counted up, and its `said` written
    const struct http2_events *events;
    void *owner; // for the events
};

// The most bytes of a request with that key and value, besides those of a workload's own words.
size_t http2_request_bytes_max(const struct http2_dialect *dialect, size_t key_bytes,
                               size_t value_bytes);

// What it is given must outlive it. NULL: no memory.
struct http2_session *http2_session_new(const struct http2_settings *settings);
void http2_session_free(struct http2_session *session);

// A connection begins, and ends. False: no memory.
bool http2_session_begin(struct http2_session *session);
void http2_session_end(struct http2_session *session);

// This side is to end it in order: what http2_session_say returns next is its last, GOAWAY.
void http2_session_leave(struct http2_session *session);

// The server's SETTINGS have come: it speaks HTTP/2.
bool http2_session_ready(const struct http2_session *session);

// Whether another request may be put: the server allows another stream, and the last request is
// whole.
bool http2_session_takes(const struct http2_session *session);

// What the server holds a session back with that has more to say.
enum http2_wait {
    HTTP2_WAITS_NOT,
    HTTP2_WAITS_WINDOW, // it reads no more of a body than it has (RFC 9113, 5.2)
    HTTP2_WAITS_STREAM, // it allows no further stream at once (5.1.2)
    HTTP2_WAITS_END,    // it has announced that it closes (6.8), and finishes no reply
};
enum http2_wait http2_session_waits(const struct http2_session *session);

// Puts a request; its bytes are those that http2_session_say returns next, if all before were said.
void http2_session_put(struct http2_session *session, const struct request *request);

// Whether all bytes of the last request were said, but for what the server refused to read. It is
// not while the server's windows are full.
bool http2_session_whole(const struct http2_session *session);

// Writes what there is to say: requests, and what the protocol wants besides. Returns how many
// bytes; call it again when the buffer was full.
size_t http2_session_say(struct http2_session *session, char *out, size_t out_bytes);

// Where bytes are on the wire that are there in other places than in the stream (TLS).
struct http2_place {
    uint64_t begin, end;
};

// Takes bytes that came; `place`: NULL, or theirs. False: what came is no HTTP/2, and
// parser->said how it begins, or what is wrong. What a session then says is of no use.
bool http2_session_take(struct http2_session *session, const char *bytes, size_t count,
                        const struct http2_place *place);

// What the parser has for people is not what the server said, but what this side says of it.
bool http2_session_says_itself(const struct http2_session *session);

// It cannot go on: a peer that breaks the protocol, or no memory.
bool http2_session_is_broken(const struct http2_session *session);

// The server has ended it for an error, parser->said which: nothing more is to be expected.
bool http2_session_is_ended(const struct http2_session *session);

// No further request will be taken; those under way may still be answered.
bool http2_session_is_ending(const struct http2_session *session);

// Whether the bytes are the begin of HTTP/2 from a server: its SETTINGS frame.
bool http2_begins(const char *bytes, size_t count);

#endif
