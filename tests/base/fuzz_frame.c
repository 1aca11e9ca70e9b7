// SPDX-License-Identifier: MIT
//
// Any bytes, in pieces of any size: frames or a refusal, never more memory than was fed. A link
// that hears them hands out as many frames, and then says that its peer is gone or why it was
// refused.
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_frame(void *context, const struct frame *frame, struct error *err)
{
    (void)frame, (void)err;
    *(size_t *)context += 1;
    return 0;
}

static void fuzz_link(const uint8_t *data, size_t size, size_t wanted, bool right)
{
    int ends[2];
    size_t frames = 0;
    struct link link;
    const struct link_settings settings = {
        .peer = "the fuzzer", .take = count_frame, .context = &frames};
    signal(SIGPIPE, SIG_IGN);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        return;
    if (send(ends[1], data, size, MSG_DONTWAIT) == (ssize_t)size) {
        shutdown(ends[1], SHUT_WR);
        link_init(&link, ends[0], ends[0], &settings);
        while (link.state == LINK_UP)
            link_poll((struct link *const[]){&link}, 1, NULL, 0, -1);
        if (frames != wanted || (link.state == LINK_CLOSED) != right || !link.err.text[0])
            __builtin_trap();
        link_fini(&link);
    }
    close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_reader reader = {0};
    struct frame frame;
    struct error err;
    size_t step = size ? data[0] + 1u : 1, frames = 0;
    int result = 0;
    for (size_t at = 1; at < size && result >= 0; at += step) {
        size_t count = size - at < step ? size - at : step;
        result = frame_reader_feed(&reader, data + at, count, &err);
        while (result >= 0 && (result = frame_reader_next(&reader, &frame, &err)) == 1) {
            if (frame.kind == FRAME_BYTES && frame.byte_count > size)
                __builtin_trap();
            frames += !frame_is_heartbeat(&frame);
            json_decref(frame.json);
        }
    }
    frame_reader_free(&reader);
    if (size > 1)
        fuzz_link(data + 1, size - 1, frames, result >= 0);
    return 0;
}
