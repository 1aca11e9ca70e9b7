// SPDX-License-Identifier: MIT
//
// Any bytes as a workload file: taken, or refused as input with the file's name; what is taken can
// be written down, read again, and asked for keys and values within their stated bounds.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workloads/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(const void *bytes, size_t count, struct workload *workload, struct error *err)
{
    char path[64];
    int fd = memfd_create("workload", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int result = workload_load_file(path, NULL, workload, err);
    if (result != 0 && (result != -ERROR_INPUT || !strstr(err->text, path)))
        abort();
    close(fd);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct workload workload, again;
    struct error err = {0};
    if (load(data, size, &workload, &err) != 0)
        return 0;
    char *yaml = workload_to_yaml(&workload);
    if (!yaml || load(yaml, strlen(yaml), &again, &err) != 0)
        abort();
    free(yaml);
    char key[WORKLOAD_KEY_BYTES_MAX];
    static char value[WORKLOAD_VALUE_BYTES_MAX];
    for (uint64_t i = 0; i < workload.key_count && i < 3; i++) {
        if (workload_key(&workload, i, key) > workload_key_bytes_max(&workload) ||
            workload_value_bytes(&workload, i) > workload_value_bytes_max(&workload))
            abort();
        workload_value(&workload, i, value);
    }
    workload_free(&workload);
    workload_free(&again);
    return 0;
}
