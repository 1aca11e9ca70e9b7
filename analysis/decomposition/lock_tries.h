// SPDX-License-Identifier: MIT
//
// A thread that wants a lock on a file and does not wait for it, but sleeps for a while after each
// try in vain, as SQLite does; or that wants to make a file which is a lock itself. Nobody wakes it
// when the lock is free. Who had it meanwhile.
#ifndef ANALYSIS_DECOMPOSITION_LOCK_TRIES_H
#define ANALYSIS_DECOMPOSITION_LOCK_TRIES_H

#include <stdint.h>

#include "analysis/decomposition/components.h"
#include "analysis/timeline/thread_states.h"

// The last try in vain before a sleep for a time, if the same file is tried again after it, without
// another sleep or wait in between. NULL: it is none such.
const struct file_lock_try *lock_try_before(const struct host_timeline *host,
                                            const struct thread_period *period);

// "lock wait (fcntl tries) of orders.db", "lock wait (lock file) of orders.lock".
void lock_try_name(const struct host_timeline *host, const struct file_lock_try *refused,
                   char out[CAUSE_NAME_BYTES]);

// A part of the time after a try in vain in which one process had the lock.
struct lock_turn {
    int64_t end_ns;
    bool taken;       // else the lock was free
    uint32_t process; // 0: not known
    uint32_t thread;  // of that process, which gave it back; else which took it, or its first
};

// The one that begins at begin_ns and ends at end_ns at most.
struct lock_turn lock_turn_at(const struct host_timeline *host, const struct file_lock_try *refused,
                              int64_t begin_ns, int64_t end_ns);

#endif
