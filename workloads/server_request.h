// SPDX-License-Identifier: MIT
//
// A server's half of the protocols that labserver speaks: requests of the memcached text protocol
// (protocol.txt of its sources; get, gets, set, version, quit) and of the laboratory's own
// (workloads/lab.h), out of bytes that come in any pieces. No I/O, and nothing is copied.
#ifndef WORKLOADS_SERVER_REQUEST_H
#define WORKLOADS_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "workloads/lab.h"

enum {
    SERVER_LINE_BYTES = 32 << 10, // a get of a hundred long keys
    // With so many bytes at hand the first request is whole, or is none.
    SERVER_REQUEST_BYTES_MAX = SERVER_LINE_BYTES + WORKLOAD_VALUE_BYTES_MAX + 2,
};

enum server_request_kind {
    SERVER_GET,
    SERVER_SET,
    SERVER_BAD_DATA, // a set whose value does not end where it was to
    SERVER_VERSION,
    SERVER_QUIT,
    SERVER_CALL, // of the laboratory protocol
    SERVER_UNKNOWN,
    // Where the next request begins is anyone's guess.
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

// Reads the first request. Returns how many bytes it takes; 0: it is not whole yet.
size_t server_request_read(bool lab, const char *bytes, size_t count,
                           struct server_request *request);

// Takes the next key of a get off the others. False: there is none.
bool server_request_next_key(struct text_span *keys, struct text_span *key);

#endif
