// SPDX-License-Identifier: MIT
//
// Around a call that waits for work. A return with events begins a batch: what the thread receives
// until its next such return shares the batch's number. Only threads that have a ring, because
// they have used a watched connection, leave a record; nobody else needs to be slowed by one.
#ifndef SHIM_PRELOAD_WAIT_H
#define SHIM_PRELOAD_WAIT_H

#include "shim/preload_local.h"

// False for the threads that are left alone: they jump on to the real call and never come back
// here, since one more return after a system call costs a misprediction.
static inline bool wait_watched(void)
{
    return shim_thread.ring.place != 0;
}

static inline struct observation wait_begin(void)
{
    struct observation observation = {0};
    observation.recording =
        atomic_load_explicit(&shim.control->state, memory_order_relaxed) == CONTROL_ENABLED &&
        shim_thread.epoch == atomic_load_explicit(&shim.session->epoch, memory_order_relaxed);
    if (observation.recording)
        observation.entry_tsc = tsc_now_on_core(&observation.entry_core);
    return observation;
}

static inline int wait_end(struct observation *observation, int ready)
{
    if (ready <= 0)
        return ready;
    struct shim_thread *thread = &shim_thread;
    thread->batch_position = 0;
    if (++thread->batch == 0)
        thread->batch = 1; // 0 means none
    if (observation->recording) {
        struct call_exit exit;
        exit.tsc = tsc_now_on_core(&exit.core);
        shim_record(observation, &exit, CALL_WAIT, 0, (uint32_t)ready, 0);
    }
    return ready;
}

#endif
