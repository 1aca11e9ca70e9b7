// SPDX-License-Identifier: MIT
//
// Messages between a controller and an agent, over the agent's stdin and stdout: the far end may be
// a child on this host or one behind ssh, without any difference here. A frame is 4 bytes of
// length, 1 byte of kind, and then that many bytes. The length is bounded, so whatever the other
// end sends takes bounded memory.
//
//     offset 0  uint32, little-endian: bytes of the body, at most FRAME_BODY_BYTES_MAX
//     offset 4  kind: FRAME_JSON (one JSON object, UTF-8) or FRAME_BYTES (what the JSON before it
//               announced)
//     offset 5  the body
//
// An empty JSON object is a heartbeat: it only shows that its sender lives. Nothing here does I/O,
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
    json_t *json;      // FRAME_JSON: an object; the caller releases it with json_decref
    const char *bytes; // FRAME_BYTES: valid until the reader is next used
    size_t byte_count;
};

// A queue of bytes, consumed from the front: the content is items[begin..count). Zeroed: empty.
struct frame_queue {
    char *items;
    size_t count, capacity;
    size_t begin;
};

static inline size_t frame_queue_left(const struct frame_queue *queue)
{
    return queue->count - queue->begin;
}

// Removes that many bytes from the front.
void frame_queue_skip(struct frame_queue *queue, size_t bytes);
void frame_queue_free(struct frame_queue *queue);

// Appends a whole frame. ERROR_FAILED: out of memory (also for a NULL object), or the frame is too
// long.
int frame_append_json(struct frame_queue *queue, const json_t *object, struct error *err);
int frame_append_bytes(struct frame_queue *queue, const void *bytes, size_t count,
                       struct error *err);

// The heartbeat frame.
int frame_append_heartbeat(struct frame_queue *queue, struct error *err);
bool frame_is_heartbeat(const struct frame *frame);

// Received bytes that do not make a whole frame yet. Zeroed: empty.
struct frame_reader {
    struct frame_queue buffer;
};

// Appends received bytes. ERROR_FAILED: out of memory.
int frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t count,
                      struct error *err);

// Takes the next whole frame. Returns 1 with one, 0 when more bytes are needed. Anything that is no
// frame (an unknown kind, an impossible length, a body that is no JSON object) is ERROR_INPUT, and
// the stream cannot be read any further.
int frame_reader_next(struct frame_reader *reader, struct frame *frame, struct error *err);

void frame_reader_free(struct frame_reader *reader);

#endif
