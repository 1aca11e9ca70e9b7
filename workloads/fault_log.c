// SPDX-License-Identifier: MIT
#include "workloads/fault_log.h"
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int fault_log_open(struct fault_log *log, const char *path, struct error *err)
{
    const size_t bytes = (size_t)FAULT_LOG_LINES * FAULT_LOG_LINE_BYTES;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot write the fault log %s", path);
    *log = (struct fault_log){.lines = MAP_FAILED};
    if (ftruncate(fd, (off_t)bytes) == 0)
        log->lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (log->lines == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "cannot map the fault log %s", path);
    memset(log->lines, 0, bytes); // its first writes must not fault
    return 0;
}

void fault_log_add(struct fault_log *log, int64_t begin_ns, int64_t end_ns, const char *kind)
{
    char line[FAULT_LOG_LINE_BYTES + 1];
    uint32_t number = __atomic_fetch_add(&log->used, 1, __ATOMIC_RELAXED);
    if (number >= FAULT_LOG_LINES)
        return;
    snprintf(line, sizeof line, "%20lld %20lld %-21.21s\n", (long long)begin_ns, (long long)end_ns,
             kind);
    memcpy(log->lines + (size_t)number * FAULT_LOG_LINE_BYTES, line, FAULT_LOG_LINE_BYTES);
}

int64_t fault_log_now(void)
{
    return clock_now_ns(CLOCK_MONOTONIC_RAW);
}
