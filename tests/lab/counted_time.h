// SPDX-License-Identifier: MIT
//
// The TSC of a guest whose time is its own instructions (QEMU's -icount): it moves by a nanosecond
// with each of them, and by more only where all CPUs sleep. QEMU cannot be asked for it within a
// block of code; so it is counted from the latest reading of the guest's. Its CPUs run in one
// thread, and all is called in that.
#ifndef TESTS_LAB_COUNTED_TIME_H
#define TESTS_LAB_COUNTED_TIME_H

#include <stdbool.h>
#include <stdint.h>

// Whether this QEMU has what is needed for it.
bool counted_time_is_possible(void);

// CPUs that take turns share code that QEMU translates for the one at work as if there were no
// other, and tells plugins of that one, whoever runs it: before it has run, for each CPU.
void counted_time_begins(unsigned cpu);

// A moment: how many instructions all CPUs have executed, and how much was slept through.
struct counted_moment {
    uint64_t instructions, slept;
};
struct counted_moment counted_moment(uint64_t instructions);

// At that moment the guest read that TSC.
void counted_time_is(struct counted_moment moment, uint64_t tsc);

uint64_t counted_time(struct counted_moment moment);

#endif
