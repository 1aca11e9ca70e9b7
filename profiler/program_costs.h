// SPDX-License-Identifier: MIT
//
// How long the capture's BPF programs run, by the kernel's own statistics (bpf_enable_stats, Linux
// 5.8). These cost something themselves, so they are taken once, for a moment in which there is
// traffic: turning them on and off patches the kernel's code.
#ifndef PROFILER_PROGRAM_COSTS_H
#define PROFILER_PROGRAM_COSTS_H

#include <stdbool.h>
#include <stdint.h>

struct program_costs {
    int fd; // that holds the statistics on; -1: off
    bool done;
    uint64_t records, looked_ns; // when traffic was looked for last, or the statistics turned on
};

void program_costs_init(struct program_costs *costs);

// To be called every so often with the number of records so far.
void program_costs_poll(struct program_costs *costs, uint64_t records);
void program_costs_end(struct program_costs *costs);

#endif
