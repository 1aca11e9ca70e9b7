// SPDX-License-Identifier: MIT
//
// The server side of the protocols that labserver speaks: parses requests of the memcached text
// protocol (protocol.txt of its sources; get, gets, set, version, quit) and of the laboratory's own
// (workloads/protocols/lab.h) from bytes split anywhere. No I/O, and nothing is copied.
#ifndef WORKLOADS_SERVER_REQUEST_H
#define WORKLOADS_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "workloads/protocols/lab.h"

enum {
    SERVER_LINE_BYTES = 32 << 10, // a get of a hundred long keys
    // With this many bytes the first request is complete, or invalid.
    SERVER_REQUEST_BYTES_MAX = SERVER_LINE_BYTES + LAB_PAYLOAD_BYTES_MAX + 2,
};

enum server_request_kind {
    SERVER_GET,
    SERVER_SET,
    SERVER_BAD_DATA, // a set whose value does not end where it should
    SERVER_VERSION,
    SERVER_QUIT,
    SERVER_CALL, // of the laboratory protocol
    SERVER_UNKNOWN,
    // It is unknown where the next request begins.
    SERVER_BAD_SET,
    SERVER_LONG_LINE,
    SERVER_BAD_CALL,
};

// Within the bytes that were given.
struct text_span {
    const char *bytes;
    size_t count;
};

struct server_request {
    enum server_request_kind kind;
    struct text_span keys;       // of a get: what is left of the line
    struct text_span key, value; // of a set; the key has at most WORKLOAD_KEY_BYTES_MAX bytes
    unsigned flags;              // of a set
    bool no_reply;               // of a set
    struct lab_request call;
};

// Parses the first request. Returns how many bytes it takes; 0: it is not complete yet.
size_t server_request_read(bool lab, const char *bytes, size_t count,
                           struct server_request *request);

// Removes the next key from a get's keys. False: there is none left.
bool server_request_next_key(struct text_span *keys, struct text_span *key);

#endif
