// SPDX-License-Identifier: MIT
//
// Any bytes, in pieces of any size: frames or a refusal, never more memory than was fed.
#include <stddef.h>
#include <stdint.h>

#include "base/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_reader reader = {0};
    struct frame frame;
    struct error err;
    size_t step = size ? data[0] + 1u : 1;
    int result = 0;
    for (size_t at = 1; at < size && result >= 0; at += step) {
        size_t count = size - at < step ? size - at : step;
        result = frame_reader_feed(&reader, data + at, count, &err);
        while (result >= 0 && (result = frame_reader_next(&reader, &frame, &err)) == 1) {
            if (frame.kind == FRAME_BYTES && frame.byte_count > size)
                __builtin_trap();
            json_decref(frame.json);
        }
    }
    frame_reader_free(&reader);
    return 0;
}
