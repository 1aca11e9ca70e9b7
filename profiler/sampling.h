// SPDX-License-Identifier: MIT
//
// Whether the cores of this host can be sampled, by which perf event, and why not. `taillight
// doctor` and the capture give the same answer, because both ask here. The event is tried: a
// virtual machine may offer counters that do not interrupt.
#ifndef PROFILER_SAMPLING_H
#define PROFILER_SAMPLING_H

#include <stdbool.h>

struct sampling {
    bool ready;
    const char *event; // "cycles" where there is a PMU, else "cpu-clock": the timer's interrupts
    char perf[256];    // the program's path; "" where there is none
    char reason[200];  // why not, a sentence without its stop; "" when ready
    const char *how;   // what to do about it; NULL when ready
};

// Samples per second of each core in a capture. Not a multiple of usual timer frequencies, so that
// samples do not fall into step with timers.
enum { SAMPLING_FREQUENCY = 3989, SAMPLING_FREQUENCY_MOST = 100000 };

// Examines the host. perf: the program to use, NULL: the one in PATH.
void sampling_find(const char *perf, struct sampling *out);

// Samples per second of a core that the kernel allows now (kernel.perf_event_max_sample_rate; it
// lowers that by itself when taking samples takes too long); 0: unknown.
unsigned sampling_most_allowed(void);

#endif
