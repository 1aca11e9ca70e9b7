// SPDX-License-Identifier: MIT
//
// Calls of any bytes, told apart by any framing: messages end within what was moved, in order, and
// replies have the numbers of requests that were. The input: the protocol, then calls, each with
// its direction, how many bytes it has and how many more that are not seen.
#include <stdlib.h>
#include <string.h>

#include "workloads/framing/framing_protocols.h"

struct streams {
    uint64_t offset[2], end[2];
    uint32_t asked;
};

static void check(bool right)
{
    if (!right)
        abort();
}

static void note(void *context, const struct framed_message *message)
{
    struct streams *streams = context;
    check(message->end >= streams->end[message->is_reply] && message->bytes <= message->end);
    check(message->has_no_reply || message->end <= streams->offset[message->is_reply]);
    if (!message->is_reply && !message->has_no_reply)
        streams->asked = message->number + 1;
    if (message->is_reply)
        check(message->number < streams->asked);
    streams->end[message->is_reply] = message->end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct framing framing = {.grammar = framing_find(framing_name(data[0] % 3))};
    struct streams streams = {0};
    for (data++, size--; size > 2;) {
        const bool is_reply = data[0] & 1;
        size_t seen = data[1] < size - 2 ? data[1] : size - 2;
        uint32_t bytes = (uint32_t)seen + (data[0] & 2 ? data[0] * 64u : 0);
        char *copy = malloc(seen + 1);
        memcpy(copy, data + 2, seen);
        const struct framing_call call = {.is_reply = is_reply,
                                          .offset = streams.offset[is_reply],
                                          .bytes = bytes,
                                          .seen = (uint32_t)seen,
                                          .at = copy};
        streams.offset[is_reply] += bytes;
        framing_feed(&framing, &call, note, &streams);
        free(copy);
        data += 2 + seen;
        size -= 2 + seen;
    }
    return 0;
}
