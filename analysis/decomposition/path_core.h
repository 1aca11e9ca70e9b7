// SPDX-License-Identifier: MIT
//
// What a core did while a thread that has a message, or that its own thread waits for, ran on it or
// was ready to: piece by piece into components. What the thread slept for is critical_path.c's.
#ifndef ANALYSIS_DECOMPOSITION_PATH_CORE_H
#define ANALYSIS_DECOMPOSITION_PATH_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/decomposer.h"
#include "analysis/decomposition/peer_turn.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/thread_states.h"

// Along a thread's time: the message's own thread, or one that it waits for.
struct path {
    struct sweep sweep;
    const char *wait;  // what the message's thread waits for meanwhile, "lock wait (futex): held by
                       // worker-2"; NULL: it is this thread that has the message
    const char *sleep; // what it went to sleep in, "lock wait (futex)"
    bool has_work;     // the thread is at a request: no sleep of its is for work
    const struct peer_wait
        *peer;         // `wait` is for that one, whose thread this is or waits for; or NULL
    const char *outer; // with what `wait` begins where a holder, in turn, sleeps for a file: NULL
    bool helper;       // this thread hands the message on to the one that has it next
    bool in_gap;       // it did not run just now
    bool at_once;      // as soon as it was ready, whatever had its core had to make way
    uint32_t asker;    // the thread that waits for this one; 0: none
    unsigned hops;
    unsigned ahead; // beside these, for the same lock on a file
};

// The time goes to what the path waits for, with `what` behind it.
void path_add_wait(struct path *path, const char *what, int64_t begin_ns, int64_t end_ns);

// It goes to another server, in the words of the format, which has one %s for that one's name.
void path_add_waiting_for(struct path *path, const struct peer_wait *wait, const char *form,
                          int64_t begin_ns, int64_t end_ns);

// It goes to what the thread did for the kernel's memory.
void path_add_detour(struct path *path, const struct detour *detour, int64_t begin_ns,
                     int64_t end_ns);

// The thread was not allowed to run: by the quota of the control group that the kernel named last.
void path_add_throttled(struct path *path, int64_t begin_ns, int64_t end_ns);

// The thread ran on that core.
void path_running(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns);

// A thread that is ready to run waits for the core that it ran on, or that the scheduler moved it
// to; at last for the one on which it goes on.
void path_ready(struct path *path, const struct thread_period *period);

// Nobody knows why the thread did not run: only whether the core's records are missing as well.
void path_unknown(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns);

// The thread slept, in nobody knows what, and nobody was seen to end that until it ran on that
// core: where the core's records are missing it may have run since.
void path_unended(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns);

// What woke the thread was at it already, on that core.
void path_being_woken(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns);

#endif
