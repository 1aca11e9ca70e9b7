// SPDX-License-Identifier: MIT
//
// Who has the lock that an interpreter's threads run with, one at a time (CPython's GIL), while
// another one waits for it. Not always who hands it over: it comes through many hands, and who
// wakes for another reason may take it before those that wait. But whoever has it is awake: before
// a thread sleeps it gives it back.
#ifndef ANALYSIS_DIAGNOSIS_INTERPRETER_LOCK_H
#define ANALYSIS_DIAGNOSIS_INTERPRETER_LOCK_H

#include <stdint.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/thread_states.h"

// For whom a thread waits during [begin_ns, end_ns), a part of one wait for that lock: *holder, who
// ended the wait, if that one was awake for half of it; else the thread of its process that was
// awake for longest. *holder stays where none was, as with code in C that sleeps without giving the
// lock back.
void interpreter_lock_holder(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                             int64_t end_ns, struct waker *holder);

#endif
