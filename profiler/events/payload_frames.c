// SPDX-License-Identifier: MIT
#include "profiler/events/payload_frames.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "profiler/bpf/event_rings.h"
#include "workloads/framing/framing.h"

// By the low bits of the socket's id: one that takes another's place begins anew.
enum { CONNECTIONS = 16384 };

struct framed_connection {
    uint32_t id;
    struct framing framing;
};

struct payload_frames {
    const struct framing_grammar *grammar;
    struct ring_buffer *ring;
    struct framed_connection *connections[CONNECTIONS];
    struct frame_array cores[EVENTS_MAX_CORES];
    const struct payload_head *call; // that is looked at
    uint64_t requests, replies, lost, unasked, given_up, no_memory;
};

static void take_message(void *context, const struct framed_message *message)
{
    struct payload_frames *frames = context;
    const struct payload_head *call = frames->call;
    const struct event event = {
        .time = call->time,
        .kind = EVENT_FRAMED,
        .flags = message->is_reply       ? FRAMED_REPLY
                 : message->has_no_reply ? FRAMED_UNANSWERED
                 : message->asks_to_wait ? FRAMED_WAITS
                                         : 0,
        .core = call->core,
        .id = call->id,
        .payload = {.a = message->end, .b = (uint64_t)message->bytes << 32 | message->number}};
    if (array_push(&frames->cores[call->core], event) < 0)
        frames->no_memory++;
    else if (message->is_reply)
        frames->replies++;
    else
        frames->requests++;
}

static struct framed_connection *connection_of(struct payload_frames *frames, uint32_t id)
{
    struct framed_connection **place = &frames->connections[id % CONNECTIONS];
    if (!*place)
        *place = calloc(1, sizeof **place);
    if (*place && (*place)->id != id) {
        // Two that share a place throw each other out: that is out of step, too, unless the other
        // one had all its answers.
        frames->lost += (*place)->framing.asked != (*place)->framing.answered;
        **place = (struct framed_connection){.id = id, .framing = {.grammar = frames->grammar}};
    }
    return *place;
}

static int take_call(void *context, void *data, size_t bytes)
{
    struct payload_frames *frames = context;
    const struct payload_head *head = data;
    struct framed_connection *connection = connection_of(frames, head->id);
    if (!connection || head->core >= EVENTS_MAX_CORES || bytes < sizeof *head + head->seen) {
        frames->no_memory += !connection;
        return 0;
    }
    struct framing *framing = &connection->framing;
    const struct framing before = {
        .lost = framing->lost, .unasked = framing->unasked, .given_up = framing->given_up};
    const struct framing_call call = {.is_reply = head->is_reply,
                                      .offset = head->offset,
                                      .bytes = head->bytes,
                                      .seen = head->seen,
                                      .at = (const char *)(head + 1)};
    frames->call = head;
    framing_feed(framing, &call, take_message, frames);
    frames->lost += framing->lost - before.lost;
    frames->unasked += framing->unasked - before.unasked;
    frames->given_up += framing->given_up && !before.given_up;
    return 0;
}

int payload_frames_open(const struct framing_grammar *grammar, int map_fd,
                        struct payload_frames **out, struct error *err)
{
    struct payload_frames *frames = *out = calloc(1, sizeof *frames);
    if (!frames)
        return error_set(err, ERROR_FAILED, "no memory for the framing of messages");
    frames->grammar = grammar;
    frames->ring = ring_buffer__new(map_fd, take_call, frames, NULL);
    if (frames->ring)
        return 0;
    error_set_errno(err, ERROR_FAILED, "cannot map the ring of the first bytes of calls");
    free(frames);
    *out = NULL;
    return -ERROR_FAILED;
}

void payload_frames_poll(struct payload_frames *frames)
{
    if (frames)
        ring_buffer__consume(frames->ring);
}

struct frame_array *payload_frames_of(struct payload_frames *frames, unsigned core)
{
    return &frames->cores[core];
}

json_t *payload_frames_json(const struct payload_frames *frames, uint64_t unseen, uint64_t dropped)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "protocol", frames->grammar->name,
                     "requests", (json_int_t)frames->requests, "replies",
                     (json_int_t)frames->replies, "lost", (json_int_t)frames->lost, "unasked",
                     (json_int_t)frames->unasked, "given_up", (json_int_t)frames->given_up,
                     "unseen", (json_int_t)unseen, "dropped",
                     (json_int_t)(dropped + frames->no_memory));
}

void payload_frames_free(struct payload_frames *frames)
{
    if (!frames)
        return;
    ring_buffer__free(frames->ring);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        free(frames->connections[i]);
    for (unsigned core = 0; core < EVENTS_MAX_CORES; core++)
        array_free(&frames->cores[core]);
    free(frames);
}
