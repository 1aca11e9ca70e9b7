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
// An empty JSON object is a heartbeat: it only says that its sender lives. Nothing here does I/O,
// so that the parser can be fuzzed; base/link.h does.
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

// Bytes in a row, taken from the front: [begin, count) of items. Zeroed: empty.
struct frame_queue {
    char *items;
    size_t count, capacity;
    size_t begin;
};

static inline size_t frame_queue_left(const struct frame_queue *queue)
{
    return queue->count - queue->begin;
}

// Done with so many bytes at the front.
void frame_queue_skip(struct frame_queue *queue, size_t bytes);
void frame_queue_free(struct frame_queue *queue);

// Appends a whole frame. ERROR_FAILED: out of memory (also for a NULL object), or it is too long.
int frame_append_json(struct frame_queue *queue, const json_t *object, struct error *err);
int frame_append_bytes(struct frame_queue *queue, const void *bytes, size_t count,
                       struct error *err);

// The frame that only says "here".
int frame_append_heartbeat(struct frame_queue *queue, struct error *err);
bool frame_is_heartbeat(const struct frame *frame);

// Bytes that have come and make no whole frame yet. Zeroed: empty.
struct frame_reader {
    struct frame_queue buffer;
};

// Appends bytes as they came. ERROR_FAILED: out of memory.
int frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t count,
                      struct error *err);

// The next whole frame. Returns 1 with one, 0 when more bytes are needed. What is no frame (a kind
// or a length that cannot be, a body that is no JSON object) is ERROR_INPUT, and the stream is
// lost.
int frame_reader_next(struct frame_reader *reader, struct frame *frame, struct error *err);

void frame_reader_free(struct frame_reader *reader);

#endif
