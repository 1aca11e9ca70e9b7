// SPDX-License-Identifier: MIT
//
// Words for why a thread slept: the call that it went to sleep in, what that is about, and who or
// what woke it. Causes are told apart by these words.
#ifndef ANALYSIS_DECOMPOSITION_SLEEP_NAMES_H
#define ANALYSIS_DECOMPOSITION_SLEEP_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/components.h"
#include "analysis/decomposition/decomposer.h"
#include "analysis/timeline/span.h"
#include "analysis/timeline/thread_states.h"

// What a thread of that host went to sleep in, by the call alone: "blocked in write to access.log".
// False, and "": it waits for sockets to become ready, or nobody knows.
bool sleep_call_name(const struct host_timeline *host, const struct thread_stint *before,
                     char out[CAUSE_NAME_BYTES]);

// What the server's thread went to sleep in: "lock wait (futex)", "blocked in write to access.log";
// "" where it waits for sockets to become ready, or nobody knows.
void sleep_name(struct sweep *sweep, const struct thread_stint *before, char out[CAUSE_NAME_BYTES]);

// The sleep of that name, and what ended it. who: the waking context's or thread's name, where it
// has one.
void sleep_ended_name(const char *sleep, enum waker_kind kind, const char *who,
                      char out[CAUSE_NAME_BYTES]);

// Whether it sleeps in a call that sends on a connection. Unless another thread ends that, the wait
// is for room on its socket, seen or not what made it.
bool sleep_sends(const struct sweep *sweep, const struct thread_stint *before);

// That wait: "waiting for room to send to 10.0.0.7:5432".
void sleep_room_name(const char *sleep, enum waker_kind kind, char out[CAUSE_NAME_BYTES]);

// Whether the thread sleeps for what comes over a socket: in a wait for sockets to become ready, in
// a call that reads, or in one that nobody knows.
bool sleep_awaits_socket(const struct host_timeline *host, const struct thread_stint *before);

// Whether it is the sleep of a thread that a signal or a tracer stopped.
bool sleep_is_stop(const char *sleep);

// The waking context's name; a thread's own where it is of the sleeping one's process. One that has
// the sleeper's own name is another thread of it, or another process.
void sleep_waker_name(const struct sweep *sweep, const struct waker *waker,
                      const struct thread_stint *before, char out[CAUSE_NAME_BYTES]);

// Whether it is a call, or a page fault, in which threads of a process wait for the lock on the map
// of their memory.
bool sleep_is_for_memory(const char *sleep);

// Whether Go's or Erlang's scheduler had parked the thread.
bool sleep_is_parked(const char *sleep);

// Whether it is a thread for which a Java runtime stops all others: its VM thread, and those that
// collect garbage while it waits for them.
bool sleep_stops_the_world(const char *who);

// Adds for whom such a thread stopped the others until a moment, where that is the thread which
// serves those who look into the process (jcmd, jstack, a signal): "VM Thread for Attach Listener".
void sleep_name_inspector(const struct host_timeline *host, uint32_t thread, int64_t until_ns,
                          char who[CAUSE_NAME_BYTES]);

// Kernel threads that work for who waits for a disk: a journal's, those that write back.
bool sleep_serves_disks(const struct component_table *table, const char *name);

bool sleep_is_kernel_thread(const struct component_table *table, const char *name);

bool sleep_same_process(const struct host_timeline *host, uint32_t one, uint32_t other);

// "waiting for a packet from 10.0.0.2:53", ", timed out" where a timer ended it, of a wait for a
// single socket that is no client's. False: it is none.
bool sleep_polled_name(const struct host_timeline *host, const struct thread_stint *before,
                       enum waker_kind kind, char out[CAUSE_NAME_BYTES]);

// "waiting for its client to go on": the thread sleeps until a packet brings more of what one of
// the server's clients says. It reads from that one's connection or, where another thread waits for
// this one (awaited), serves that client alone and has answered it. False: it is no such sleep.
bool sleep_client_name(const struct sweep *sweep, const struct thread_stint *before,
                       enum waker_kind kind, bool awaited, char out[CAUSE_NAME_BYTES]);

#endif
