// SPDX-License-Identifier: MIT
//
// A recording's text is anyone's: whatever its bytes, it is refused or its times ascend.
#include <stdint.h>
#include <stdlib.h>

#include "loadgen/engine/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recording recording;
    struct error err;
    if (recording_parse((const char *)data, size, "input", &recording, &err) < 0)
        return 0;
    for (size_t i = 1; i < recording.requests.count; i++)
        if (recording.requests.items[i].offset_ns < recording.requests.items[i - 1].offset_ns)
            abort();
    recording_free(&recording);
    return 0;
}
