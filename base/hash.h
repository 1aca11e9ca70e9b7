// SPDX-License-Identifier: MIT
//
// Numbers that look random but are a function of their input: for keys' sizes, values' bytes, seeds
// derived from one another, and places in hash maps (base/map.h). The finaliser of SplitMix64
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014); for texts
// FNV-1a (Fowler, Noll and Vo).
//
// This header is read by the BPF compiler too, which has no libc and takes only hash64 and
// hash_pair.
#ifndef BASE_HASH_H
#define BASE_HASH_H

#ifndef __bpf__
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

static inline uint64_t hash64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Hash of two numbers; their order matters.
static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return hash64(hash64(a) ^ b);
}

#ifndef __bpf__
static inline uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

// Of bytes, eight at a time: quicker than hash_text where there are more than a few.
static inline uint64_t hash_bytes(const char *bytes, size_t count)
{
    uint64_t hash = count, word;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = hash64(hash ^ word);
    }
    word = 0;
    if (count) // of nothing `bytes` may be NULL
        memcpy(&word, bytes, count);
    return hash64(hash ^ word);
}

// Uniform in [0, 1), 53 bits.
static inline double hash_fraction(uint64_t x)
{
    return (double)(hash64(x) >> 11) * 0x1p-53;
}

// The next of a sequence of such fractions, which is SplitMix64 itself: any state begins one.
static inline double random_fraction(uint64_t *state)
{
    const double fraction = hash_fraction(*state);
    *state += 0x9e3779b97f4a7c15u;
    return fraction;
}
#endif

#endif
