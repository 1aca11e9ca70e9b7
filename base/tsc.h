// SPDX-License-Identifier: MIT
//
// The processor's counter (x86's TSC), header-only because the shim uses it inside other people's
// processes. It runs at one rate on all cores, whatever they do.
// Readings are raw cycles; profiler/clock/clock_log turns them into host time afterwards.
#ifndef BASE_TSC_H
#define BASE_TSC_H

#include <sched.h>
#include <stdint.h>

#if defined __x86_64__
#include <x86intrin.h>

// Cycles now. Not serialising: may be reordered with neighbouring loads by a few nanoseconds.
static inline uint64_t tsc_now(void)
{
    return __rdtsc();
}

// Cycles now, after every earlier instruction has finished (Intel SDM vol. 2, RDTSC: LFENCE before
// it; Linux makes it so on AMD's processors too). Not RDTSCP, which takes as long: some virtual
// machines have none, and the core's number in its TSC_AUX may be that of the hypervisor's host.
static inline uint64_t tsc_now_ordered(void)
{
    _mm_lfence();
    return __rdtsc();
}

#elif defined __aarch64__

// The virtual counter (Arm ARM, D13.8: CNTVCT_EL0), which Linux lets user space read: the one clock
// of all cores. Its rate is CNTFRQ_EL0's, 24 MHz to 1 GHz.
static inline uint64_t tsc_now(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

// The same, after every earlier instruction has finished.
static inline uint64_t tsc_now_ordered(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
}

#else
#error "this processor's counter is not known: base/tsc.h says what it has to give"
#endif

// Cycles now, after every earlier instruction has finished, and the core they were read on: the one
// that the thread was on before and after. It comes from what the kernel keeps in the thread's rseq
// area (glibc 2.35), else from the vDSO.
static inline uint64_t tsc_now_on_core(uint16_t *core)
{
    uint64_t cycles;
    int here;
    do {
        here = sched_getcpu();
        cycles = tsc_now_ordered();
    } while (sched_getcpu() != here);
    *core = here < 0 ? 0 : (uint16_t)here;
    return cycles;
}

#endif
