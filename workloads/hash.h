// SPDX-License-Identifier: MIT
//
// Numbers that look random but follow from an index: for keys' sizes, values' bytes, and seeds that
// derive from one another. The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014).
#ifndef WORKLOADS_HASH_H
#define WORKLOADS_HASH_H

#include <stdint.h>

static inline uint64_t hash64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Uniform in [0, 1), 53 bits.
static inline double hash_fraction(uint64_t x)
{
    return (double)(hash64(x) >> 11) * 0x1p-53;
}

#endif
