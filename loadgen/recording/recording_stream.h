// SPDX-License-Identifier: MIT
//
// The clients' bytes of TCP connections, put in order from their segments (RFC 9293), and the
// commands in them. The client is who sent the SYN, else who has the higher port. What came before
// is dropped; behind a hole segments wait until it is filled, or until the server acknowledges it
// or too many wait: then it is a gap.
#ifndef LOADGEN_RECORDING_RECORDING_STREAM_H
#define LOADGEN_RECORDING_RECORDING_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"
#include "loadgen/recording/recording_command.h"
#include "loadgen/recording/recording_reading.h"

struct endpoint {
    uint8_t address[16];
    uint16_t port;
};

struct segment {
    struct endpoint from, to;
    uint32_t sequence, acknowledged;
    bool syn, ack;
    const char *bytes;
    uint32_t kept, count; // bytes that the recording has of it, and those that it had
};

struct stream;

// Zeroed but for `reading`, which must expect commands.
struct streams {
    struct reading *reading;
    struct ARRAY_OF(struct stream) items;
    struct map map;
    uint64_t waiting_bytes; // of all of them
    double now_s;
};

// The next segment, as it was captured at now_s. Errors are reading_take_command's.
int streams_take(struct streams *streams, const struct segment *segment);

// After the last: what still waits is taken behind its gap.
int streams_end(struct streams *streams);

void streams_free(struct streams *streams);

#endif
