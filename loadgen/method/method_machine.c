// SPDX-License-Identifier: MIT
#include "loadgen/method/method_machine.h"

#include <inttypes.h>
#include <stdio.h>

struct machine_time machine_time_read(void)
{
    struct machine_time time = {0};
    uint64_t ticks[8]; // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5))
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return time;
    if (fscanf(file,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
               &ticks[7]) == 8) {
        time.stolen = ticks[7];
        for (unsigned i = 0; i < 8; i++)
            time.all += ticks[i];
    }
    fclose(file);
    return time;
}

double machine_stolen_since(const struct machine_time *before)
{
    struct machine_time now = machine_time_read();
    if (before->all == 0 || now.all <= before->all || now.stolen < before->stolen)
        return 0;
    return (double)(now.stolen - before->stolen) / (double)(now.all - before->all);
}
