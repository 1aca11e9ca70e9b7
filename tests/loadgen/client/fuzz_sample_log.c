// SPDX-License-Identifier: MIT
//
// Any bytes as a samples.tlog to be replayed: refused with the file's name, or its times ascend,
// its operations and keys are the workload's, and a schedule can be drawn from it. The input:
// whether it brings a header of its own ('H'), then the file; without one it gets a header that is
// right, so that the records are looked at, too.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log_file.h"
#include "loadgen/recording/recording_file.h"
#include "loadgen/client/sample_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const void *bytes, size_t count)
{
    if (write(fd, bytes, count) != (ssize_t)count)
        abort();
}

static void check(const struct recording *recording, const struct workload *workload)
{
    const struct schedule *requests = &recording->requests;
    struct schedule drawn;
    struct error err;
    for (size_t i = 0; i < requests->count; i++)
        if ((i && requests->items[i].offset_ns < requests->items[i - 1].offset_ns) ||
            (recording->has_keys &&
             (requests->items[i].operation >= workload->protocol->operation_count ||
              requests->items[i].key >= workload->key_count)))
            abort();
    if (recording_draw(recording, workload, 1000, 1000000000, 1, &drawn, &err) < 0)
        abort();
    schedule_free(&drawn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct workload workload;
    struct recording recording;
    struct error err;
    char path[64];
    if (size < 1)
        return 0;
    int fd = memfd_create("samples", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    if (data[0] != 'H') {
        const struct log_header header = {.magic = "TAILLOG",
                                          .kind = LOG_SAMPLES,
                                          .version = SAMPLE_LOG_VERSION,
                                          .header_bytes = sizeof header,
                                          .record_bytes = sizeof(struct sample),
                                          .records = (size - 1) / sizeof(struct sample)};
        put(fd, &header, sizeof header);
        size -= (size - 1) % sizeof(struct sample);
    }
    put(fd, data + 1, size - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    workload_defaults(&workload);
    if (recording_load(path, &workload, &recording, &err) == 0) {
        check(&recording, &workload);
        recording_free(&recording);
    } else if (!strstr(err.text, path)) {
        abort();
    }
    workload_free(&workload);
    close(fd);
    return 0;
}
