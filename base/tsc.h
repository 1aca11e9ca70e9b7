// SPDX-License-Identifier: MIT
//
// The processor's counter (x86's TSC), header-only because the shim uses it inside other people's
// processes. It runs at one rate on all cores, whatever they do.
// Readings are raw cycles; profiler/clock_log turns them into host time afterwards.
#ifndef BASE_TSC_H
#define BASE_TSC_H

#include <stdint.h>

#if defined __x86_64__
#include <x86intrin.h>

// Cycles now. Not serialising: may be reordered with neighbouring loads by a few nanoseconds.
static inline uint64_t tsc_now(void)
{
    return __rdtsc();
}

// Cycles now, after every earlier instruction has finished, and the core it was read on: Linux
// keeps (node << 12 | core) in TSC_AUX (arch/x86/kernel/cpu/common.c, setup_getcpu).
static inline uint64_t tsc_now_on_core(uint16_t *core)
{
    unsigned int aux;
    uint64_t cycles = __rdtscp(&aux);
    *core = (uint16_t)(aux & 0xfff);
    return cycles;
}

#elif defined __aarch64__
#include <sched.h>

// The virtual counter (Arm ARM, D13.8: CNTVCT_EL0), which Linux lets user space read: the one clock
// of all cores. Its rate is CNTFRQ_EL0's, 24 MHz to 1 GHz.
static inline uint64_t tsc_now(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

// The core comes from what the kernel keeps in the thread's rseq area (glibc 2.35), else from the
// vDSO: it may be another one than the counter was read on where the thread was moved in between.
static inline uint64_t tsc_now_on_core(uint16_t *core)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    int here = sched_getcpu();
    *core = here < 0 ? 0 : (uint16_t)here;
    return ticks;
}

#else
#error "this processor's counter is not known: base/tsc.h says what it has to give"
#endif

#endif
