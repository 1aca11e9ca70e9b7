// SPDX-License-Identifier: MIT
//
// What holds up a thread whatever else its core does: sleeping in a system call, being stopped, and
// page faults.
#ifndef ANALYSIS_TIMELINE_PAUSES_H
#define ANALYSIS_TIMELINE_PAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"

// What a pause (struct host_timeline.pauses) is called: "lock wait (futex)", "stopped by a signal",
// "blocked in fsync", "blocked in system call 321".
void pause_name(uint32_t pause, char *out, size_t out_bytes);

// What a system call is called: "fsync", "system call 600".
void system_call_name(uint32_t number, char *out, size_t out_bytes);

// What the thread went to sleep in at the end of a stint on a core. False: it did not, or that is
// not known.
bool pause_after(const struct host_timeline *host, const struct thread_stint *stint,
                 uint32_t *pause);

// A call that a stop, a freezer or a tracer interrupted goes on, by its own number or as
// restart_syscall: such a pause becomes one in the call that it is the rest of, where that was seen
// (struct thread_stint's interrupted). For a new timeline.
void pauses_settle(struct host_timeline *host);

// Whether it does not sleep by itself, but was stopped or frozen.
bool pause_is_stop(uint32_t pause);

// Whether it changes a file, and nothing but a file: pwrite64, ftruncate, fallocate.
bool pause_changes_file(uint32_t pause);

// Whether it is for a lock on a file: flock, fcntl.
bool pause_locks_file(uint32_t pause);

// Whether a thread waits for another one in it: for a lock, a condition.
bool pause_awaits_thread(uint32_t pause);

// Whether it sleeps in it until a time, and for nothing else: if anybody wakes it, with a signal.
bool pause_is_for_time(uint32_t pause);

// Whether it is a call that sends, on a socket and nothing else; the same of one that gives bytes
// to whatever file it is about.
bool pause_sends(uint32_t pause);
bool pause_may_send(uint32_t pause);

// Whether it is a call that moves bytes from or to whatever file it is about: read, write,
// sendfile.
bool pause_moves_bytes(uint32_t pause);

// Whether it is a call in which threads wait for something to do: for bytes, connections, another
// thread's word, a child, a signal, for a time to pass, or for sockets to become ready.
bool pause_may_await_work(uint32_t pause);

// A thread's page faults, found once for many questions: those for pages that were not there, and
// those of writing to one that was.
struct thread_pages {
    const struct thread_moment *faults, *copies;
    size_t fault_count, copy_count;
    int64_t least_ns;  // what one costs as a rule (host_timeline.page_fault_ns)
    int64_t before_ns; // how much of it before its handler (host_timeline.page_fault_before_ns)
};

// host may be NULL.
struct thread_pages thread_pages_of(const struct host_timeline *host, uint32_t thread);

// How much of the thread's running time [begin_ns, end_ns) went to page faults. The capture has the
// begin of each and, for most, when it had its page: the rest (lists of pages, the return to the
// program) is assumed to last PAGE_FAULT_RETURN_NS, or up to the thread's next fault where that
// comes within PAGE_FAULT_STORM_NS, amid many of them PAGE_FAULT_PAUSE_NS (interrupts, a host that
// finds memory for its guest). A fault of which only the begin is known is assumed to last until
// the thread's next, for PAGE_FAULT_MOST_NS at most. Where the machine takes longer for a fault
// than that, as a host does that traps each change of its guest's page tables, before the handler
// begins and after it has ended, the fault takes what was tried there
// (host_timeline.page_fault_ns), after its handler where that took longer by itself, and the next
// is that much later, within a storm up to four times that. It begins that much before its handler
// as was tried, too (host_timeline.page_fault_before_ns), and the last of a storm takes as long
// after its handler as the median of those alike, if that is longer. One of which only the begin is
// known, as of each that copies a page, lasts until the next where that is within twice of what was
// tried, or else as long as the median of those.
enum {
    PAGE_FAULT_RETURN_NS = 1000,
    PAGE_FAULT_STORM_NS = 6000,
    PAGE_FAULT_PAUSE_NS = 100000,
    PAGE_FAULT_MOST_NS = 20000,
};
double page_fault_ns(const struct thread_pages *pages, int64_t begin_ns, int64_t end_ns);

// When the last of the thread's faults for pages that were not there before `before_ns` was over by
// the same reckoning. 0: there was none.
int64_t page_fault_end_ns(const struct thread_pages *pages, int64_t before_ns);

// As page_fault_ns, for faults of writing to a page that is there, which the first does not count.
double page_copy_ns(const struct thread_pages *pages, int64_t begin_ns, int64_t end_ns);

#endif
