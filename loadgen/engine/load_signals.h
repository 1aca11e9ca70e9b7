// SPDX-License-Identifier: MIT
//
// Ctrl-C while one command makes several loads: a signal that comes between two of them stays
// pending and ends the next one as it begins; after the last one it has no effect.
#ifndef LOADGEN_ENGINE_LOAD_SIGNALS_H
#define LOADGEN_ENGINE_LOAD_SIGNALS_H

#include <signal.h>
#include <time.h>

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
    while (sigtimedwait(&signals->held, NULL, &at_once) > 0)
        ;
    sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

#endif
