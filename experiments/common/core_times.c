// SPDX-License-Identifier: MIT
#include "experiments/common/core_times.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void core_times_parse(const char *text, const cpu_set_t *cores, long ticks_per_second,
                      struct core_times *out)
{
    uint64_t tick_ns = 1000000000u / (uint64_t)ticks_per_second;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        unsigned core;
        unsigned long long idle, waiting;
        line += *line == '\n';
        // The line "cpu " is the sum of all cores.
        if (strncmp(line, "cpu", 3) != 0 || line[3] == ' ' ||
            sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &core, &idle, &waiting) != 3 ||
            core >= CPU_SETSIZE || !CPU_ISSET(core, cores))
            continue;
        out->idle_ns += (idle + waiting) * tick_ns;
        out->cores++;
    }
}

bool core_times_read(const cpu_set_t *cores, struct core_times *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = fopen("/proc/stat", "re");
    *out = (struct core_times){0};
    if (!file)
        return false;
    out->now_ns = (uint64_t)monotonic_ns();
    ssize_t got = getdelim(&text, &bytes, '\0', file);
    fclose(file);
    if (got > 0)
        core_times_parse(text, cores, sysconf(_SC_CLK_TCK), out);
    free(text);
    return out->cores > 0 && out->cores == (unsigned)CPU_COUNT(cores);
}

double core_times_busy_ns(const struct core_times *from, const struct core_times *to)
{
    double whole = (double)(to->now_ns - from->now_ns) * from->cores;
    double busy = whole - ((double)to->idle_ns - (double)from->idle_ns);
    return busy < 0 ? 0 : busy > whole ? whole : busy;
}
