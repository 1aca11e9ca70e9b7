// SPDX-License-Identifier: MIT
#include "base/frame.h"

#include <endian.h>
#include <string.h>

#include "base/array.h"

// --- queues of bytes -----------------------------------------------------------------------------

void frame_queue_skip(struct frame_queue *queue, size_t bytes)
{
    queue->begin += bytes;
    if (queue->begin == queue->count)
        queue->begin = queue->count = 0;
}

void frame_queue_free(struct frame_queue *queue)
{
    array_free(queue);
    queue->begin = 0;
}

// Moves the remaining bytes to the front once most of the buffer has been consumed, then appends.
static int queue_append(struct frame_queue *queue, const void *bytes, size_t count,
                        struct error *err)
{
    size_t left = frame_queue_left(queue);
    if (queue->begin && left <= queue->begin) {
        memmove(queue->items, queue->items + queue->begin, left);
        queue->count = left;
        queue->begin = 0;
    }
    if (array_reserve(queue, queue->count + count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for a message");
    if (count)
        memcpy(queue->items + queue->count, bytes, count);
    queue->count += count;
    return 0;
}

// --- reading -------------------------------------------------------------------------------------

int frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t count,
                      struct error *err)
{
    return queue_append(&reader->buffer, bytes, count, err);
}

static int take_json(const char *body, size_t bytes, struct frame *frame, struct error *err)
{
    json_error_t where;
    frame->json = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!frame->json)
        return error_set(err, ERROR_INPUT, "a message of %zu bytes is no JSON: %s", bytes,
                         where.text);
    if (!json_is_object(frame->json)) {
        json_decref(frame->json);
        frame->json = NULL;
        return error_set(err, ERROR_INPUT, "a message of %zu bytes is no JSON object", bytes);
    }
    return 1;
}

int frame_reader_next(struct frame_reader *reader, struct frame *frame, struct error *err)
{
    const char *at = reader->buffer.items + reader->buffer.begin;
    size_t left = frame_queue_left(&reader->buffer);
    uint32_t length;
    *frame = (struct frame){.kind = FRAME_JSON};
    if (left < FRAME_HEAD_BYTES)
        return 0;
    memcpy(&length, at, sizeof length);
    length = le32toh(length);
    char kind = at[4];
    if (kind != FRAME_JSON && kind != FRAME_BYTES)
        return error_set(err, ERROR_INPUT, "what came is no message: its kind is %d",
                         (unsigned char)kind);
    if (length > FRAME_BODY_BYTES_MAX)
        return error_set(err, ERROR_INPUT, "a message of %u bytes: at most %d are taken", length,
                         FRAME_BODY_BYTES_MAX);
    if (left < FRAME_HEAD_BYTES + (size_t)length)
        return 0;
    reader->buffer.begin += FRAME_HEAD_BYTES + (size_t)length;
    if (kind == FRAME_JSON)
        return take_json(at + FRAME_HEAD_BYTES, length, frame, err);
    frame->kind = FRAME_BYTES;
    frame->bytes = at + FRAME_HEAD_BYTES;
    frame->byte_count = length;
    return 1;
}

void frame_reader_free(struct frame_reader *reader)
{
    frame_queue_free(&reader->buffer);
}

bool frame_is_heartbeat(const struct frame *frame)
{
    return frame->kind == FRAME_JSON && json_object_size(frame->json) == 0;
}

// --- writing -------------------------------------------------------------------------------------

static int append_frame(struct frame_queue *queue, enum frame_kind kind, const void *body,
                        size_t bytes, struct error *err)
{
    char head[FRAME_HEAD_BYTES];
    uint32_t length = htole32((uint32_t)bytes);
    if (bytes > FRAME_BODY_BYTES_MAX)
        return error_set(err, ERROR_FAILED, "a message of %zu bytes: at most %d can be sent", bytes,
                         FRAME_BODY_BYTES_MAX);
    memcpy(head, &length, sizeof length);
    head[4] = (char)kind;
    size_t whole_before = frame_queue_left(queue);
    int result = queue_append(queue, head, sizeof head, err);
    if (result == 0)
        result = queue_append(queue, body, bytes, err);
    if (result < 0)
        queue->count = queue->begin + whole_before; // never leave half a frame
    return result;
}

int frame_append_json(struct frame_queue *queue, const json_t *object, struct error *err)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (!text)
        return error_set(err, ERROR_FAILED, "out of memory for a message");
    int result = append_frame(queue, FRAME_JSON, text, strlen(text), err);
    free(text);
    return result;
}

int frame_append_bytes(struct frame_queue *queue, const void *bytes, size_t count,
                       struct error *err)
{
    return append_frame(queue, FRAME_BYTES, bytes, count, err);
}

int frame_append_heartbeat(struct frame_queue *queue, struct error *err)
{
    return append_frame(queue, FRAME_JSON, "{}", 2, err);
}
