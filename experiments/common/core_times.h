// SPDX-License-Identifier: MIT
//
// How long some cores of this machine were busy between two moments, whatever kept them busy: the
// server, its kernel, what watches it (/proc/stat, proc_stat(5)). Idle time is what the kernel
// counts, in ticks of 10 ms: exact enough over seconds, not over less.
#ifndef EXPERIMENTS_COMMON_CORE_TIMES_H
#define EXPERIMENTS_COMMON_CORE_TIMES_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct core_times {
    uint64_t now_ns;  // CLOCK_MONOTONIC
    uint64_t idle_ns; // of all the cores together, since boot; waiting for disks is idle
    unsigned cores;   // that were found
};

// Of the text of /proc/stat, of the cores in the set. ticks_per_second: sysconf(_SC_CLK_TCK).
void core_times_parse(const char *text, const cpu_set_t *cores, long ticks_per_second,
                      struct core_times *out);

// Now. False where /proc/stat cannot be read or lacks one of the cores.
bool core_times_read(const cpu_set_t *cores, struct core_times *out);

// Busy time of all the cores together from one moment to the other.
double core_times_busy_ns(const struct core_times *from, const struct core_times *to);

#endif
