// SPDX-License-Identifier: MIT
//
// A thread beside a load that looks at something again and again, and sleeps in between. It keeps
// off the load threads' cores where its owner gives it others.
#ifndef LOADGEN_ENGINE_SIDE_THREAD_H
#define LOADGEN_ENGINE_SIDE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct side_thread {
    const char *name; // in ps and perf, at most 15 characters
    void (*look)(void *context);
    void *context;
    long every_ns; // less than a second
    pthread_t thread;
    bool running;
    atomic_bool stop;
};

// Starts it, on the given cores; NULL: on any. The owner has set the first four members, and the
// others are zero. ERROR_FAILED: no thread.
int side_thread_begin(struct side_thread *side, const cpu_set_t *cores, struct error *err);

// Waits until it has ended. Harmless when it does not run.
void side_thread_end(struct side_thread *side);

#endif
