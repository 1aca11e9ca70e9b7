// SPDX-License-Identifier: MIT
#include "profiler/sampling.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/host_facts.h"

// Whether the event can be opened for the current core, for any thread that runs there.
static bool event_opens(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr = {
        .type = type,
        .size = sizeof attr,
        .config = config,
        .sample_freq = SAMPLING_FREQUENCY,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
        .freq = 1,
        .disabled = 1,
    };
    unsigned core;
    if (syscall(SYS_getcpu, &core, NULL, NULL) < 0)
        core = 0;
    long fd = syscall(SYS_perf_event_open, &attr, -1, (int)core, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

void sampling_find(const char *perf, struct sampling *out)
{
    char paranoid[16];
    *out = (struct sampling){0};
    if (perf)
        snprintf(out->perf, sizeof out->perf, "%s", perf);
    else if (!host_find_program("perf", out->perf, sizeof out->perf))
        out->perf[0] = '\0';
    if (event_opens(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES))
        out->event = "cycles";
    else if (event_opens(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK))
        out->event = "cpu-clock";
    int reason = errno;
    if (!out->event && (reason == EACCES || reason == EPERM)) {
        host_read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
        snprintf(out->reason, sizeof out->reason,
                 "sampling every core takes CAP_PERFMON (perf_event_paranoid is %s)",
                 paranoid[0] ? paranoid : "unknown");
        out->how = "run as root, or sysctl kernel.perf_event_paranoid=-1";
    } else if (!out->event) {
        snprintf(out->reason, sizeof out->reason,
                 "the kernel opens neither cycles nor cpu-clock: %s", strerror(reason));
        out->how = "a kernel with CONFIG_PERF_EVENTS";
    } else if (!out->perf[0]) {
        snprintf(out->reason, sizeof out->reason, "perf, which takes the samples, is not there");
        out->how = "apt-get install linux-perf";
    }
    out->ready = out->how == NULL;
}

unsigned sampling_most_allowed(void)
{
    char text[16];
    host_read_line("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof text);
    return (unsigned)strtoul(text, NULL, 10);
}
