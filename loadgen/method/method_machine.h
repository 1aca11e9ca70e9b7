// SPDX-License-Identifier: MIT
//
// How much of the machine's time its hypervisor gave to others meanwhile (steal, /proc/stat): a
// latency that wanders beside that may be the machine's, not the server's.
#ifndef LOADGEN_METHOD_METHOD_MACHINE_H
#define LOADGEN_METHOD_METHOD_MACHINE_H

#include <stdint.h>

// Since boot, over all CPUs, in clock ticks. Zeroed: unknown.
struct machine_time {
    uint64_t stolen, all;
};

struct machine_time machine_time_read(void);

// The share of the time since `before` that was stolen; 0 where it is unknown.
double machine_stolen_since(const struct machine_time *before);

#endif
