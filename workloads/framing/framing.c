// SPDX-License-Identifier: MIT
#include "workloads/framing/framing.h"

#include <string.h>

// The next numbers are none that a message had which was begun before.
static void lose(struct framing *framing)
{
    uint32_t most = framing->asked > framing->answered ? framing->asked : framing->answered;
    framing->lost += framing->requests.in_step;
    framing->requests.in_step = framing->replies.in_step = false;
    framing->asked = framing->answered = most;
}

static void give_up(struct framing *framing)
{
    framing->given_up = true;
    framing->requests.in_step = framing->replies.in_step = false;
}

static void begin_message(struct framing_stream *stream)
{
    *stream = (struct framing_stream){.in_step = true, .at = stream->at, .begin = stream->at};
}

static struct framed_message message_of(const struct framing_stream *stream)
{
    uint64_t end = stream->at + stream->skip, bytes = end - stream->begin;
    return (struct framed_message){.end = end,
                                   .bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes};
}

static void end_message(struct framing *framing, bool is_reply, framing_found *found, void *context)
{
    struct framing_stream *stream = is_reply ? &framing->replies : &framing->requests;
    struct framed_message message = message_of(stream);
    message.is_reply = is_reply;
    message.asks_to_wait = stream->asks_to_wait;
    begin_message(stream);
    if (!is_reply) {
        message.number = framing->asked++;
    } else if (framing->answered != framing->asked) {
        message.number = framing->answered++;
    } else {
        framing->unasked++; // to one from before it was looked at
        return;
    }
    found(context, &message);
}

// Its bytes may be still to come.
static void end_unanswered(struct framing_stream *stream, framing_found *found, void *context)
{
    struct framed_message message = message_of(stream);
    uint64_t skip = stream->skip;
    message.has_no_reply = true;
    begin_message(stream);
    stream->skip = skip;
    stream->begin = message.end;
    found(context, &message);
}

// A head is whole.
static void take_head(struct framing *framing, bool is_reply, const char *head, size_t count,
                      framing_found *found, void *context)
{
    struct framing_stream *stream = is_reply ? &framing->replies : &framing->requests;
    stream->head_bytes = 0;
    stream->ends_after_skip = false;
    switch (framing->grammar->take_head(framing, stream, head, count)) {
    case FRAMING_GOES_ON:
        break;
    case FRAMING_ENDS:
        if (stream->skip)
            stream->ends_after_skip = true;
        else
            end_message(framing, is_reply, found, context);
        break;
    case FRAMING_NO_ANSWER:
        end_unanswered(stream, found, context);
        break;
    case FRAMING_GIVES_UP:
        give_up(framing);
        break;
    }
}

// Takes bytes without a look; returns how many.
static uint64_t skip_bytes(struct framing *framing, bool is_reply, uint64_t most,
                           framing_found *found, void *context)
{
    struct framing_stream *stream = is_reply ? &framing->replies : &framing->requests;
    uint64_t skipped = stream->skip < most ? stream->skip : most;
    stream->skip -= skipped;
    stream->at += skipped;
    if (stream->skip == 0 && stream->ends_after_skip)
        end_message(framing, is_reply, found, context);
    return skipped;
}

// Takes the next head, or as much of it as there is; returns how many bytes.
static size_t take_bytes(struct framing *framing, bool is_reply, const char *bytes, size_t count,
                         framing_found *found, void *context)
{
    struct framing_stream *stream = is_reply ? &framing->replies : &framing->requests;
    unsigned char first = (unsigned char)(stream->head_bytes ? stream->head[0] : bytes[0]);
    size_t fixed = framing->grammar->head_bytes(stream, first), taken = count;
    bool whole = false;
    if (fixed) {
        whole = stream->head_bytes + count >= fixed;
        if (whole)
            taken = fixed - stream->head_bytes;
    } else {
        const char *newline = memchr(bytes, '\n', count);
        whole = newline != NULL;
        if (whole)
            taken = (size_t)(newline - bytes) + 1;
    }
    stream->at += taken;
    if (whole && stream->head_bytes == 0 && taken <= FRAMING_LINE_BYTES) {
        take_head(framing, is_reply, bytes, taken, found, context);
        return taken;
    }
    size_t room = (size_t)(FRAMING_LINE_BYTES - stream->head_bytes);
    size_t kept = taken < room ? taken : room;
    memcpy(stream->head + stream->head_bytes, bytes, kept);
    stream->head_bytes = (uint16_t)(stream->head_bytes + kept);
    if (whole) {
        char head[FRAMING_LINE_BYTES];
        size_t head_bytes = stream->head_bytes;
        memcpy(head, stream->head, head_bytes);
        take_head(framing, is_reply, head, head_bytes, found, context);
    }
    return taken;
}

// Whether the call continues where the stream was, or begins it.
static bool is_in_step(struct framing *framing, const struct framing_call *call,
                       framing_found *found, void *context)
{
    struct framing_stream *stream = call->is_reply ? &framing->replies : &framing->requests;
    if (stream->in_step && call->offset > stream->at)
        skip_bytes(framing, call->is_reply, call->offset - stream->at, found, context);
    if (stream->in_step && call->offset == stream->at)
        return true;
    if (stream->in_step)
        lose(framing);
    if (call->is_reply && !framing->requests.in_step)
        return false; // there is nothing yet that it could answer
    if (!call->is_reply && !framing->was_reply && call->offset)
        return false; // some before it may not be answered yet
    if (!framing->grammar->begins(call->is_reply, call->at, call->seen)) {
        if (!call->is_reply && framing->asked == 0 && ++framing->strange == FRAMING_STRANGE_MOST)
            give_up(framing);
        return false;
    }
    framing->strange = 0;
    stream->at = call->offset;
    begin_message(stream);
    return true;
}

void framing_feed(struct framing *framing, const struct framing_call *call, framing_found *found,
                  void *context)
{
    struct framing_stream *stream = call->is_reply ? &framing->replies : &framing->requests;
    const char *at = call->at, *end = call->at + call->seen;
    if (framing->given_up)
        return;
    bool in_step = is_in_step(framing, call, found, context);
    framing->was_reply = call->is_reply;
    if (!in_step)
        return;
    while (at < end && stream->in_step)
        at += stream->skip
                  ? skip_bytes(framing, call->is_reply, (uint64_t)(end - at), found, context)
                  : take_bytes(framing, call->is_reply, at, (size_t)(end - at), found, context);
    uint64_t unseen = call->bytes - call->seen;
    if (stream->in_step && unseen &&
        (!stream->skip || skip_bytes(framing, call->is_reply, unseen, found, context) != unseen))
        lose(framing);
}
