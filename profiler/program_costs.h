// SPDX-License-Identifier: MIT
//
// How long the capture's BPF programs run, by the kernel's own statistics (bpf_enable_stats, Linux
// 5.8). The statistics slow the programs down, so they are only on once, for a moment with traffic:
// turning them on and off patches the kernel's code.
#ifndef PROFILER_PROGRAM_COSTS_H
#define PROFILER_PROGRAM_COSTS_H

#include <stdbool.h>
#include <stdint.h>

struct program_costs {
    int fd; // keeps the statistics on while open; -1: off
    bool done;
    uint64_t records, looked_ns; // when traffic was last checked, or the statistics turned on
};

void program_costs_init(struct program_costs *costs);

// To be called regularly with the number of records so far.
void program_costs_poll(struct program_costs *costs, uint64_t records);
void program_costs_end(struct program_costs *costs);

#endif
