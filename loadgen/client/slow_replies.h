// SPDX-License-Identifier: MIT
//
// Tells while a load lasts that replies were slow, so that somebody can keep what recorded the
// server then. A load thread pays for it at slow replies only: one write to an eventfd for all that
// come until they are looked at.
#ifndef LOADGEN_CLIENT_SLOW_REPLIES_H
#define LOADGEN_CLIENT_SLOW_REPLIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

// Shared by the threads of a load.
struct slow_replies {
    uint64_t over_tsc;      // longer than this is slow; 0: nobody asks
    int news;               // eventfd; -1: none
    _Atomic uint64_t count; // so far
    atomic_bool told;       // and not yet looked at
};

static inline void slow_replies_note(struct slow_replies *slow, uint64_t latency_tsc)
{
    const uint64_t one = 1;
    if (latency_tsc <= slow->over_tsc)
        return;
    atomic_fetch_add_explicit(&slow->count, 1, memory_order_relaxed);
    if (!atomic_exchange(&slow->told, true) && write(slow->news, &one, sizeof one) < 0)
        atomic_store(&slow->told, false); // its counter cannot be full
}

// Takes the news. Returns how many were slow so far, 0 where there is nothing new.
static inline uint64_t slow_replies_look(struct slow_replies *slow)
{
    uint64_t news;
    if (slow->news < 0 || read(slow->news, &news, sizeof news) != sizeof news)
        return 0;
    atomic_store(&slow->told, false);
    return atomic_load(&slow->count);
}

#endif
