// SPDX-License-Identifier: MIT
//
// Whether the cores of this host can be sampled, by which perf event, and why not. `taillight
// doctor` and the capture say the same words, because both ask here. It is tried, not deduced: a
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

// Samples a second of each core that a capture takes. No multiple of a timer's usual frequency, so
// that they do not keep in step.
enum { SAMPLING_FREQUENCY = 3989, SAMPLING_FREQUENCY_MOST = 100000 };

// Looks. perf: the program to use, NULL: the one in PATH.
void sampling_find(const char *perf, struct sampling *out);

// Samples a second of a core that the kernel allows now (it lowers that by itself where samples
// take it too long): kernel.perf_event_max_sample_rate; 0: it does not say.
unsigned sampling_most_allowed(void);

#endif
