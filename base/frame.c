// SPDX-License-Identifier: MIT
#include "base/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

// --- reading -------------------------------------------------------------------------------------

// Moves what is left to the front once most of the buffer has been handed out.
static void make_room(struct frame_reader *reader)
{
    size_t left = reader->buffer.count - reader->begin;
    if (reader->begin && left <= reader->begin) {
        memmove(reader->buffer.items, reader->buffer.items + reader->begin, left);
        reader->buffer.count = left;
        reader->begin = 0;
    }
}

int frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t count,
                      struct error *err)
{
    make_room(reader);
    if (array_reserve(&reader->buffer, reader->buffer.count + count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for a message");
    if (count)
        memcpy(reader->buffer.items + reader->buffer.count, bytes, count);
    reader->buffer.count += count;
    return 0;
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
    const char *at = reader->buffer.items + reader->begin;
    size_t left = reader->buffer.count - reader->begin;
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
    reader->begin += FRAME_HEAD_BYTES + (size_t)length;
    if (kind == FRAME_JSON)
        return take_json(at + FRAME_HEAD_BYTES, length, frame, err);
    frame->kind = FRAME_BYTES;
    frame->bytes = at + FRAME_HEAD_BYTES;
    frame->byte_count = length;
    return 1;
}

int frame_reader_fill(struct frame_reader *reader, int fd, bool *ended, struct error *err)
{
    char bytes[READ_BYTES];
    ssize_t got;
    *ended = false;
    do
        got = read(fd, bytes, sizeof bytes);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot read a message");
    *ended = got == 0;
    if (got == 0)
        return 0;
    int result = frame_reader_feed(reader, bytes, (size_t)got, err);
    return result < 0 ? result : 1;
}

void frame_reader_free(struct frame_reader *reader)
{
    array_free(&reader->buffer);
    reader->begin = 0;
}

// --- writing -------------------------------------------------------------------------------------

static int write_frame(int fd, enum frame_kind kind, const void *body, size_t bytes,
                       struct error *err)
{
    char head[FRAME_HEAD_BYTES];
    uint32_t length = htole32((uint32_t)bytes);
    if (bytes > FRAME_BODY_BYTES_MAX)
        return error_set(err, ERROR_FAILED, "a message of %zu bytes: at most %d can be sent", bytes,
                         FRAME_BODY_BYTES_MAX);
    memcpy(head, &length, sizeof length);
    head[4] = (char)kind;
    size_t whole = sizeof head + bytes, done = 0;
    while (done < whole) {
        struct iovec parts[2] = {{head, sizeof head}, {(void *)(uintptr_t)body, bytes}};
        size_t of_head = done < sizeof head ? done : sizeof head, of_body = done - of_head;
        parts[0].iov_base = head + of_head;
        parts[0].iov_len = sizeof head - of_head;
        parts[1].iov_base = (char *)(uintptr_t)body + of_body;
        parts[1].iov_len = bytes - of_body;
        ssize_t took = writev(fd, parts, 2);
        if (took < 0 && errno == EINTR)
            continue;
        if (took < 0)
            return error_set_errno(err, ERROR_FAILED, "cannot send a message");
        done += (size_t)took;
    }
    return 0;
}

int frame_write_json(int fd, const json_t *object, struct error *err)
{
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (!text)
        return error_set(err, ERROR_FAILED, "out of memory for a message");
    int result = write_frame(fd, FRAME_JSON, text, strlen(text), err);
    free(text);
    return result;
}

int frame_write_bytes(int fd, const void *bytes, size_t count, struct error *err)
{
    return write_frame(fd, FRAME_BYTES, bytes, count, err);
}

int frame_write_heartbeat(int fd, struct error *err)
{
    return write_frame(fd, FRAME_JSON, "{}", 2, err);
}

bool frame_is_heartbeat(const struct frame *frame)
{
    return frame->kind == FRAME_JSON && json_object_size(frame->json) == 0;
}
