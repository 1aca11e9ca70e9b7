// SPDX-License-Identifier: MIT
//
// The requests of one load thread, where they do not all fit into memory: a ring of samples, in the
// order of its schedule. In front of what the thread has put another thread draws its schedule;
// behind it that thread takes the samples that nothing can change any more (sample_drain.h).
//
//     taken        final               put         ready         taken + size
//       | to be taken | open, or waiting | to be put  | to be drawn    |
//
// Each side writes its own numbers only, in a cache line of their own: no locks.
#ifndef LOADGEN_ENGINE_SAMPLE_RING_H
#define LOADGEN_ENGINE_SAMPLE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/client/sample_log.h"

// What a load thread says of its samples.
struct sample_sent {
    _Atomic uint64_t final; // the first that may still change
    atomic_bool ended;      // it has ended, by itself: none changes any more
} __attribute__((aligned(64)));

struct sample_ring {
    struct sample *samples; // number n is samples[n & mask]
    uint64_t mask;          // a power of two less 1
    // By whoever draws and takes.
    struct {
        _Atomic uint64_t ready; // the first that is not drawn yet
        atomic_bool whole;      // none will be drawn any more
        uint64_t seen_final;    // sent.final when it was last looked at
    } drawn __attribute__((aligned(64)));
    struct sample_sent sent; // by the load thread
} __attribute__((aligned(64)));

static inline struct sample *sample_ring_at(const struct sample_ring *ring, uint64_t number)
{
    return &ring->samples[number & ring->mask];
}

#endif
