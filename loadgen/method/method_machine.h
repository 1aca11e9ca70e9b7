// SPDX-License-Identifier: MIT
//
// The share of the machine's time that its hypervisor gave to others during the load (steal,
// /proc/stat): a latency that changes along with it may be the machine's doing, not the server's.
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
