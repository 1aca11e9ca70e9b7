// SPDX-License-Identifier: MIT
//
// Ctrl-C while one command makes several loads: a signal that comes between two of them stays
// pending and ends the next one as it begins; after the last one it has no effect. And while what
// a single load measured is summed up.
#ifndef LOADGEN_ENGINE_LOAD_SIGNALS_H
#define LOADGEN_ENGINE_LOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "base/one_wish.h"

struct load_signals {
    sigset_t held, before;
};

static inline void load_signals_hold(struct load_signals *signals)
{
    sigemptyset(&signals->held);
    sigaddset(&signals->held, SIGINT);
    sigaddset(&signals->held, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals->held, &signals->before);
}

static inline void load_signals_release(struct load_signals *signals)
{
    const struct timespec at_once = {0, 0};
    for (int number; (number = sigtimedwait(&signals->held, NULL, &at_once)) > 0;)
        one_wish_note(number);
    one_wish_reopen(&signals->before);
}

// From the end of a load until its results are written: the first signal finds it ending, and only
// a second one ends it at once. told: there was a first one, or another load follows.
static inline void load_signals_sum_up(const struct load_signals *signals, bool told)
{
    if (!told)
        one_wish_spare_next();
    one_wish_reopen(&signals->before);
}

#endif
