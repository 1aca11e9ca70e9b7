// SPDX-License-Identifier: MIT
//
// What a page fault costs on this machine. The kernel's events show its handler; what lies outside
// of that, as on virtual machines whose host traps each change of a page table, is ten times as
// much on some.
#ifndef PROFILER_HOST_PAGE_FAULT_COST_H
#define PROFILER_HOST_PAGE_FAULT_COST_H

#include <stdint.h>

// How long it takes as a rule, from the touch until the program goes on, ns: the median of a few
// hundred faults of memory of its own, so that neither interrupts nor other programs count. 0:
// there is no memory to try it with.
int64_t page_fault_cost_ns(void);

#endif
