// SPDX-License-Identifier: MIT
#include "tests/lab/counted_time.h"

#include <stddef.h>

// QEMU's own, which it exports for its modules. A CPU that asks for the time must be at the end of
// a block of code; who is no CPU is told what it was when the last one stopped, so that the
// difference of these two is what was slept through.
extern __thread void *current_cpu __attribute__((weak));
extern int64_t icount_get(void) __attribute__((weak));
extern int64_t icount_get_raw(void) __attribute__((weak));
extern int64_t icount_to_ns(int64_t instructions) __attribute__((weak));
extern void *qemu_get_cpu(int index) __attribute__((weak));
extern void tcg_cpu_init_cflags(void *cpu, bool parallel) __attribute__((weak));

static struct {
    struct counted_moment moment;
    uint64_t tsc;
} latest; // reading

bool counted_time_is_possible(void)
{
    return icount_get && icount_get_raw && icount_to_ns && qemu_get_cpu && tcg_cpu_init_cflags;
}

void counted_time_begins(unsigned cpu)
{
    tcg_cpu_init_cflags(qemu_get_cpu((int)cpu), true);
}

struct counted_moment counted_moment(uint64_t instructions)
{
    void *cpu = current_cpu;
    current_cpu = NULL;
    int64_t slept = icount_get() - icount_to_ns(icount_get_raw());
    current_cpu = cpu;
    return (struct counted_moment){instructions, (uint64_t)slept};
}

void counted_time_is(struct counted_moment moment, uint64_t tsc)
{
    if (moment.instructions < latest.moment.instructions)
        return;
    latest.moment = moment;
    latest.tsc = tsc;
}

uint64_t counted_time(struct counted_moment moment)
{
    uint64_t ran = moment.instructions - latest.moment.instructions;
    return latest.tsc + (uint64_t)icount_to_ns((int64_t)ran) + moment.slept - latest.moment.slept;
}
