// SPDX-License-Identifier: MIT
//
// A recording's text or packets are anyone's: whatever the bytes, it is refused or its times
// ascend, its operations are the protocol's and its keys those that it counts.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen/engine/recording_csv.h"
#include "loadgen/engine/recording_pcap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(const uint8_t *data, size_t size, const struct workload *workload,
                 struct recording *recording)
{
    struct error err;
    if (!pcap_begins(data, size))
        return recording_parse((const char *)data, size, "input", workload, recording, &err);
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    return file ? recording_parse_pcap(file, "input", workload, recording, &err) : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recording recording = {0};
    struct workload workload;
    workload_defaults(&workload);
    if (parse(data, size, &workload, &recording) < 0) {
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
