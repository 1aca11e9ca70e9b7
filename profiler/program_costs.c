// SPDX-License-Identifier: MIT
#include "profiler/program_costs.h"
#include "base/clock.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <time.h>
#include <unistd.h>

// What counts as traffic: this many records in this time.
enum { BUSY_RECORDS = 500, LOOK_NS = 20000000, MEASURE_NS = 150000000 };

void program_costs_init(struct program_costs *costs)
{
    *costs = (struct program_costs){.fd = -1};
}

void program_costs_poll(struct program_costs *costs, uint64_t records)
{
    uint64_t now = costs->done && costs->fd < 0 ? 0 : (uint64_t)monotonic_ns();
    if (now < costs->looked_ns + (costs->fd < 0 ? LOOK_NS : MEASURE_NS))
        return;
    if (costs->fd >= 0) {
        program_costs_end(costs);
    } else if (costs->looked_ns && records - costs->records >= BUSY_RECORDS) {
        costs->fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
        costs->done = true; // also when the kernel refuses, so that it is not tried again
    }
    costs->records = records;
    costs->looked_ns = now;
}

void program_costs_end(struct program_costs *costs)
{
    if (costs->fd >= 0)
        close(costs->fd);
    costs->fd = -1;
}
