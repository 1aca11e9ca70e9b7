// SPDX-License-Identifier: MIT
//
// Whether this host has Intel PT and perf to record it with, why not, and which perf event records
// it in how much detail. `taillight doctor` and the capture say the same words, because both ask
// here. The numbers are those of /sys/bus/event_source/devices/intel_pt (Linux,
// Documentation/ABI/testing/sysfs-bus-event_source-devices-intel_pt; Intel SDM vol. 3, "Intel
// Processor Trace", CPUID leaf 14H).
#ifndef PROFILER_TRACE_PROCESSOR_TRACE_H
#define PROFILER_TRACE_PROCESSOR_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum processor_trace_obstacle {
    PROCESSOR_TRACE_READY,
    PROCESSOR_TRACE_NO_CPU,       // another vendor, or too old, or a guest that is not given it
    PROCESSOR_TRACE_NO_DEVICE,    // the CPU has it, the kernel does not offer it
    PROCESSOR_TRACE_NO_PERF,      // there is no perf to record it with
    PROCESSOR_TRACE_NO_PRIVILEGE, // it may not record every core, kernel included
};

struct processor_trace {
    enum processor_trace_obstacle obstacle;
    char reason[200]; // a sentence without its stop; "" when ready
    char how[200];    // what to do about it
    unsigned pmu_type;
    char perf[256]; // the program's path; "" where there is none
    // The values that may be requested: bit n of a mask stands for the value n. 0: none.
    uint32_t mtc_periods;      // MTC every 2^n crystal clock ticks
    uint32_t cycle_thresholds; // CYC at most every 2^(n-1) cycles
    uint32_t psb_periods;      // PSB every 2^(n+11) bytes
};

// Examines the host. root: "" or a folder that replaces "/" (its proc and sys; for tests). perf:
// the program to use, NULL: the one in PATH.
void processor_trace_find(const char *root, const char *perf, struct processor_trace *out);

// How fine the resolution of time and calls is, against how much trace it makes.
enum processor_trace_detail {
    PROCESSOR_TRACE_LIGHT,  // TSC and rare MTC: about a microsecond, the least trace
    PROCESSOR_TRACE_NORMAL, // MTC and CYC at every 16th cycle or so: tens of nanoseconds
    PROCESSOR_TRACE_FINE,   // every CYC packet, MTC as often as possible: the most trace
};

// "light", ...; NULL behind the last.
const char *processor_trace_detail_name(unsigned index);

// "light", "normal" or "fine"; false for other words.
bool processor_trace_parse_detail(const char *word, enum processor_trace_detail *out);

// Writes the perf event: "intel_pt/tsc=1,cyc=1,cyc_thresh=5,mtc=1,mtc_period=3,psb_period=3/".
// Terms that the processor does not have are left out; a period it does not have is replaced by the
// next finer one, or the finest. Returns out.
char *processor_trace_event(const struct processor_trace *trace, enum processor_trace_detail detail,
                            char *out, size_t out_bytes);

#endif
