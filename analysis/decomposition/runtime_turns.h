// SPDX-License-Identifier: MIT
//
// Runtimes of languages let so many of a process's threads run at a time: CPython one, with its
// interpreter's lock (GIL), Go as many as it has processors, and Erlang's machine
// as Go: what is said of that holds for both. Whom another one waits for that sleeps
// until it is its turn: not always who wakes it.
#ifndef ANALYSIS_DECOMPOSITION_RUNTIME_TURNS_H
#define ANALYSIS_DECOMPOSITION_RUNTIME_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/thread_states.h"

// The same of an interpreter's lock, in a part [begin_ns, end_ns) of one wait for it. It comes
// through many hands, and who wakes for another reason may take it before those that wait; but
// whoever has it is awake: before a thread sleeps it gives it back. *holder, who ended the wait,
// stays if it was awake for half of the time; else it is the thread of the process that was for
// longest. It stays, too, where none was, as with code in C that sleeps without giving the lock
// back.
void interpreter_lock_holder(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                             int64_t end_ns, struct waker *holder);

// The same of a thread that Go's scheduler had parked. *holder stays, unless that is a timer, or
// who only looks now and then whether there is work that nobody was free for (sysmon), and has
// slept until a time; then it is the thread that was awake for longest meanwhile, if that was for
// half of it.
void go_processor_holder(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                         int64_t end_ns, struct waker *holder);

// Whether it is the thread that only looks whether there is work that nobody was free for (sysmon):
// the one that was awake at that time had slept until a time.
bool go_watches(const struct host_timeline *host, uint32_t thread, int64_t time_ns);

// The other thread of its process that was awake for longest in [begin_ns, end_ns), into *other.
// False: none was.
bool runtime_awake_meanwhile(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                             int64_t end_ns, struct waker *other);

// Whether Go's scheduler has the thread: one of its process was parked around that time. One that
// waits for sockets for all of them need not be.
bool go_schedules(const struct host_timeline *host, uint32_t thread, int64_t time_ns);

// Whether it is a thread of a CPython interpreter: one of its process waited for that one's lock
// around that time.
bool python_schedules(const struct host_timeline *host, uint32_t thread, int64_t time_ns);

#endif
