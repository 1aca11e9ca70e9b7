// SPDX-License-Identifier: MIT
//
// A recording's text is anyone's: whatever its bytes, it is refused or its times ascend, its
// operations are the protocol's and its keys those that it counts.
#include <stdint.h>
#include <stdlib.h>

#include "loadgen/engine/recording_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recording recording;
    struct error err;
    struct workload workload;
    workload_defaults(&workload);
    if (recording_parse((const char *)data, size, "input", &workload, &recording, &err) < 0) {
        recording_free(&recording);
        return 0;
    }
    for (size_t i = 1; i < recording.requests.count; i++)
        if (recording.requests.items[i].offset_ns < recording.requests.items[i - 1].offset_ns)
            abort();
    for (size_t i = 0; i < recording.requests.count; i++)
        if (recording.requests.items[i].operation >= workload.protocol->operation_count ||
            (recording.has_keys && recording.requests.items[i].key >= recording.keys.count))
            abort();
    recording_apply(&recording, &workload);
    if (workload_key_bytes_max(&workload) > WORKLOAD_KEY_BYTES_MAX ||
        workload_value_bytes_max(&workload) > WORKLOAD_VALUE_BYTES_MAX)
        abort();
    recording_free(&recording);
    return 0;
}
