// SPDX-License-Identifier: MIT
//
// Messages between a controller and an agent, over the agent's stdin and stdout: the far end may
// be a child on this host or one behind ssh, and neither notices. A frame is 4 bytes of length and
// 1 byte of kind, and then so many bytes; the length is bounded, so that whatever the other end
// sends takes bounded memory.
//
//     offset 0  uint32, little-endian: bytes of the body, at most FRAME_BODY_BYTES_MAX
//     offset 4  kind: FRAME_JSON (one JSON object, UTF-8) or FRAME_BYTES (what the JSON before it
//               announced)
//     offset 5  the body
//
// An empty JSON object is a heartbeat: it only says that its sender lives. Reading and parsing are
// apart (frame_reader_feed does no I/O), so that the parser can be fuzzed.
#ifndef BASE_FRAME_H
#define BASE_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

enum { FRAME_HEAD_BYTES = 5, FRAME_BODY_BYTES_MAX = 1 << 20 };

enum frame_kind { FRAME_JSON = 'J', FRAME_BYTES = 'B' };

struct frame {
    enum frame_kind kind;
    json_t *json;      // of FRAME_JSON: an object; the caller's to json_decref
    const char *bytes; // of FRAME_BYTES: valid until the reader is next used
    size_t byte_count;
};

// Bytes that have come and make no whole frame yet. Zeroed: empty.
struct frame_reader {
    struct {
        char *items;
        size_t count;
        size_t capacity;
    } buffer;
    size_t begin; // of what has not been handed out
};

// Appends bytes as they came. ERROR_FAILED: out of memory.
int frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t count,
                      struct error *err);

// The next whole frame. Returns 1 with one, 0 when more bytes are needed. What is no frame (a kind
// or a length that cannot be, a body that is no JSON object) is ERROR_INPUT, and the stream is
// lost.
int frame_reader_next(struct frame_reader *reader, struct frame *frame, struct error *err);

void frame_reader_free(struct frame_reader *reader);

// Reads once from fd (waiting for bytes if it blocks) into the reader. Returns 1 when something
// came, 0 at the end of the stream or, of a non-blocking fd, when nothing is there (*ended tells
// them apart).
int frame_reader_fill(struct frame_reader *reader, int fd, bool *ended, struct error *err);

// Writes a whole frame to a blocking fd. A reader that is gone is ERROR_FAILED (SIGPIPE must be
// ignored). Not atomic: several threads need a lock of their own.
int frame_write_json(int fd, const json_t *object, struct error *err);
int frame_write_bytes(int fd, const void *bytes, size_t count, struct error *err);

// The frame that only says "here".
int frame_write_heartbeat(int fd, struct error *err);
bool frame_is_heartbeat(const struct frame *frame);

#endif
