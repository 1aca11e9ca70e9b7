// SPDX-License-Identifier: MIT
//
// The time-stamp counter, header-only because the shim uses it inside other people's processes.
// Readings are raw cycles; profiler/clock_log turns them into host time afterwards.
#ifndef BASE_TSC_H
#define BASE_TSC_H

#include <stdint.h>
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

#endif
