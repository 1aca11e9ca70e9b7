// SPDX-License-Identifier: MIT
//
// What a page fault costs on this machine. The kernel's events show its handler; what lies outside
// of that, as on virtual machines whose host traps each change of a page table, is ten times as
// much on some.
#ifndef PROFILER_HOST_PAGE_FAULT_COST_H
#define PROFILER_HOST_PAGE_FAULT_COST_H

#include <stdint.h>

struct page_fault_cost {
    int64_t whole_ns;  // from the touch until the program goes on; 0: not known
    int64_t before_ns; // until the kernel's handler began, after a rest; 0: not known
};

// Tries it with memory of its own, so that neither interrupts nor other programs count: the median
// of a few hundred faults, one after another, and of some before each of which the thread slept (80
// ms in all): in a storm only the first one's time before its handler is not seen. When handlers
// begin is known where the calling thread's page faults can be counted (perf_event_open(2),
// PERF_COUNT_SW_PAGE_FAULTS).
struct page_fault_cost page_fault_cost_try(void);

#endif
